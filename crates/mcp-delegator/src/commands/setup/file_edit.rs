//! One file of a client and what changes in it.
//!
//! The edit is computed before any file is written. The previous content is saved beside the file, under a name
//! that does not exist yet.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use delegator_config::replace_text;

use crate::commands::prelude::*;
use crate::commands::setup::hosts::{Edit, EntryError, Host};

const BACKUP: &str = ".before-mcp-delegator";
const MAX_BACKUPS: u32 = 1000;

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EditedFile {
    /// A configuration file of the client
    pub file: String,
    /// The file was changed
    pub is_changed: bool,
    /// Backup of the previous content
    pub backup: Option<String>,
}

impl EditedFile {
    pub fn unchanged(file: &Path) -> EditedFile {
        EditedFile { file: file.display().to_string(), is_changed: false, backup: None }
    }
}

#[derive(Debug)]
pub struct FileEdit {
    pub file: PathBuf,
    before: Option<String>,
    edit: Edit,
}

impl FileEdit {
    /// `before` is `None` if the file does not exist.
    pub fn of(
        host: Host,
        file: PathBuf,
        before: Option<String>,
        edit: impl FnOnce(&str) -> Result<Edit, EntryError>,
    ) -> Result<FileEdit, AppError> {
        match edit(before.as_deref().unwrap_or_default()) {
            Ok(edit) => Ok(FileEdit { file, before, edit }),
            Err(error) => Err(edit_error(error, host, &file)),
        }
    }

    pub fn before(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    pub fn after(&self) -> &str {
        match &self.edit {
            Edit::Unchanged => self.before(),
            Edit::Changed(after) => after,
        }
    }

    /// Writes the file, if it changes.
    pub fn write(&self, dry_run: bool) -> Result<EditedFile, AppError> {
        let unchanged = EditedFile::unchanged(&self.file);
        let Edit::Changed(after) = &self.edit else { return Ok(unchanged) };
        let backup = if dry_run {
            None
        } else {
            let written = write_config(&self.file, self.before.as_deref(), after);
            written.map_err(|error| file_error(&self.file, &error))?
        };
        Ok(EditedFile {
            is_changed: true,
            backup: backup.map(|path| path.display().to_string()),
            ..unchanged
        })
    }
}

pub(super) fn read_if_present(file: &Path) -> Result<Option<String>, AppError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(file, &error)),
    }
}

fn write_config(file: &Path, before: Option<&str>, after: &str) -> io::Result<Option<PathBuf>> {
    let Some(before) = before else {
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        replace_text(file, after, 0o600)?;
        return Ok(None);
    };
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let backup = write_backup(file, before, mode)?;
    replace_text(file, after, mode)?;
    Ok(Some(backup))
}

/// Saves the text beside the file, under a name that does not exist yet.
fn write_backup(file: &Path, text: &str, mode: u32) -> io::Result<PathBuf> {
    for number in 1..=MAX_BACKUPS {
        let mut backup = file.as_os_str().to_owned();
        backup.push(BACKUP);
        if number > 1 {
            backup.push(format!(".{number}"));
        }
        match fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&backup) {
            Ok(mut created) => {
                created.write_all(text.as_bytes())?;
                created.sync_all()?;
                return Ok(backup.into());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("there are {MAX_BACKUPS} backups already; remove the oldest")))
}

fn file_error(file: &Path, error: &io::Error) -> AppError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let message = format!("You do not have permission to read and write {}.", file.display());
            AppError::new(ErrorCode::PermissionDenied, message).context("path", file.display().to_string())
        }
        _ => io_error(&format!("Changing {}", file.display()), error),
    }
}

pub(super) fn edit_error(error: EntryError, host: Host, file: &Path) -> AppError {
    let advice = match &error {
        EntryError::WithoutCommand { .. } => {
            "Nothing was changed. Remove the entry first if the client should start the server itself.".into()
        }
        EntryError::Unreadable { .. } | EntryError::CannotEdit { .. } => {
            let print = NextCall::new(&["setup"]).with("host", host.name()).with("print", true);
            Suggestion::with_call("Nothing was changed. Print the entry and add it by hand: {call}", print)
        }
    };
    AppError::new(ErrorCode::ConfigInvalid, format!("{}: {error}.", file.display()))
        .context("path", file.display().to_string())
        .suggest(advice)
}
