//! The one printer.
//!
//! Everything this program says leaves through here: cleaned of secrets, in one write, flushed. A reader that has gone
//! away is not an error of ours. A signal may want to say its own last word while an answer is being written, so
//! whoever speaks first speaks alone.

#![expect(clippy::disallowed_methods, reason = "this is the room that may write to stdout")]

use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use delegator_domain::redact::Redactor;

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Whole,
    /// The reader is gone: nothing more needs saying, and it is not a failure.
    ReaderGone,
}

#[derive(Debug)]
pub struct Printer {
    redactor: Redactor,
    answered: AtomicBool,
    speaking: Mutex<()>,
}

impl Printer {
    pub fn new(redactor: Redactor) -> Self {
        Printer { redactor, answered: AtomicBool::new(false), speaking: Mutex::new(()) }
    }

    /// The answer, to stdout. Only the first one is written; `None` says that somebody else has answered already.
    pub fn answer(&self, text: &str) -> io::Result<Option<Written>> {
        let _alone = self.speaking.lock();
        if self.answered.swap(true, Ordering::SeqCst) {
            return Ok(None);
        }
        self.write(&mut io::stdout().lock(), text).map(Some)
    }

    /// The answer, into a file: whole or not at all.
    pub fn answer_to_file(&self, path: &Path, text: &str) -> io::Result<()> {
        let _alone = self.speaking.lock();
        if self.answered.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        // A device or a pipe has no directory entry to replace.
        if path.metadata().is_ok_and(|meta| !meta.is_file()) {
            let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
            return self.write(&mut file, text).map(|_| ());
        }
        // A link is followed: what the user named is what gets the answer.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let directory =
            target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        self.write(file.as_file_mut(), text)?;
        file.as_file().sync_all()?;
        restore_usual_mode(file.path(), &target)?;
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    }

    /// A remark, an error or a log line for whoever watches.
    pub fn remark(&self, text: &str) {
        // Nobody can be told that stderr is closed.
        let _ = self.write(&mut io::stderr().lock(), text);
    }

    fn write(&self, sink: &mut impl Write, text: &str) -> io::Result<Written> {
        if text.is_empty() {
            return Ok(Written::Whole);
        }
        let mut clean = self.redactor.redact_str(text).into_owned();
        if !clean.ends_with('\n') {
            clean.push('\n');
        }
        match sink.write_all(clean.as_bytes()).and_then(|()| sink.flush()) {
            Ok(()) => Ok(Written::Whole),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::ReaderGone),
            Err(error) => Err(error),
        }
    }
}

/// A temporary file is private; what replaces a user's file has the mode that file had, or the usual one.
fn restore_usual_mode(temporary: &Path, target: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match target.metadata() {
        Ok(existing) => existing.permissions().mode(),
        Err(_) => {
            let umask = rustix::process::umask(rustix::fs::Mode::empty());
            rustix::process::umask(umask);
            0o666 & !umask.bits()
        }
    };
    std::fs::set_permissions(temporary, std::fs::Permissions::from_mode(mode))
}
