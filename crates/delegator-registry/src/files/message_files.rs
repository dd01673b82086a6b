//! The texts for an agent in `messages/`: messages and answers, unredacted.
//!
//! Each file has a unique random name, so that several senders can write before they know the number of their
//! message. A file is synced before the row that names it is committed. It is removed when the text is not
//! needed any more, at the latest at the end of the task, with those of senders that were killed before they
//! had a row.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::durable;
use super::task_dir::TaskDir;
use crate::compare_and_set::Nonce;
use crate::error::{RegistryError, Result};

impl TaskDir {
    fn messages(&self) -> PathBuf {
        self.path().join("messages")
    }

    fn message_file(&self, name: &Nonce) -> PathBuf {
        self.messages().join(name.as_str())
    }

    /// Writes a text durably, unless the task's directory is gone. A file that cannot be completed is
    /// removed.
    pub(crate) fn write_message(&self, name: &Nonce, text: &str) -> Result<()> {
        let (folder, path) = (self.messages(), self.message_file(name));
        let written = match durable::make_new_private_dir(&folder) {
            Ok(()) => durable::sync_dir(self.path()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        };
        let written = written.and_then(|()| durable::write_new(&path, text.as_bytes()));
        let written = written.and_then(|()| durable::sync_dir(&folder));
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written.map_err(RegistryError::file(&path, "write"))
    }

    /// `None` if there is no such file.
    pub(crate) fn read_message(&self, name: &Nonce) -> Result<Option<String>> {
        let path = self.message_file(name);
        durable::if_exists(fs::read_to_string(&path)).map_err(RegistryError::file(&path, "read"))
    }

    /// Removes a text. If this fails, [`TaskDir::remove_messages`] removes it at the end of the task.
    pub(crate) fn remove_message(&self, name: &Nonce) {
        let _ = fs::remove_file(self.message_file(name));
    }

    pub(crate) fn remove_messages(&self) -> Result<()> {
        let folder = self.messages();
        durable::if_exists(fs::remove_dir_all(&folder))
            .map(drop)
            .map_err(RegistryError::file(&folder, "remove"))
    }

    pub(crate) fn has_messages(&self) -> bool {
        self.messages().exists()
    }
}
