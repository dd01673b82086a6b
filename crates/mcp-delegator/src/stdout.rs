//! The one printer.
//!
//! Everything this program says leaves through here: cleaned of secrets, in whole lines, flushed. A reader that has
//! gone away is not an error of ours.
//!
//! An answer is one text, or lines that come as they are found and then a last text. A signal may want to say its own
//! last word meanwhile, so there is one voice behind a lock: whoever gives the last text first ends it, and lines are
//! written whole or not at all.

#![expect(clippy::disallowed_methods, reason = "this is the room that may write to stdout")]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use delegator_domain::redact::{RedactStream, Redactor};
use tempfile::NamedTempFile;

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    Complete,
    /// The reader is gone: nothing more needs saying, and it is not a failure.
    ReaderGone,
    /// Somebody else has given the last word already.
    AlreadyFinished,
}

#[derive(Debug)]
pub struct Printer {
    redactor: Redactor,
    state: Mutex<PrinterState>,
}

#[derive(Debug, Default)]
struct PrinterState {
    finished: bool,
    reader_gone: bool,
    lines: Option<LineStream>,
}

/// An answer under way.
#[derive(Debug)]
struct LineStream {
    redact: RedactStream,
    /// Clean bytes whose line is not whole yet.
    pending: Vec<u8>,
    file: Option<(NamedTempFile, PathBuf)>,
}

impl Printer {
    pub fn new(redactor: Redactor) -> Self {
        Printer { redactor, state: Mutex::default() }
    }

    /// The next lines of an answer that comes line by line, to stdout or into a file that appears with the last word.
    pub fn write_lines(&self, file: Option<&Path>, bytes: &[u8]) -> io::Result<WriteResult> {
        let mut state = self.lock_state();
        if state.finished {
            return Ok(WriteResult::AlreadyFinished);
        }
        if state.reader_gone {
            return Ok(WriteResult::ReaderGone);
        }
        let lines = match &mut state.lines {
            Some(lines) => lines,
            none => none.insert(LineStream {
                redact: self.redactor.stream(),
                pending: Vec::new(),
                file: file.map(temporary_beside).transpose()?,
            }),
        };
        lines.redact.push(bytes, &mut lines.pending);
        let whole = memchr::memrchr(b'\n', &lines.pending).map_or(0, |at| at + 1);
        let written = lines.write(whole)?;
        state.reader_gone = written == WriteResult::ReaderGone;
        Ok(written)
    }

    /// What hides secrets here, for whoever keeps something.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// A text as it may be kept.
    pub fn redact(&self, text: &str) -> String {
        self.redactor.redact_str(text).into_owned()
    }

    /// Whether a text holds something that must not be shown.
    pub fn contains_secret(&self, text: &str) -> bool {
        self.redactor.contains_secret(text)
    }

    /// The last word, to stdout.
    pub fn print_final(&self, text: &str) -> io::Result<WriteResult> {
        let mut state = self.lock_state();
        if std::mem::replace(&mut state.finished, true) {
            return Ok(WriteResult::AlreadyFinished);
        }
        if state.reader_gone {
            return Ok(WriteResult::ReaderGone);
        }
        // A file whose lines were not followed by a success is not worth having.
        match state.lines.take().filter(|lines| lines.file.is_none()) {
            Some(lines) => self.write_final(lines, text).map(|(written, _)| written),
            None => write_whole(&mut io::stdout().lock(), self.redacted_line(text).as_bytes()),
        }
    }

    /// The last word, into a file: whole or not at all. If that fails, the last word is still to be said.
    pub fn print_final_to_file(&self, path: &Path, text: &str) -> io::Result<WriteResult> {
        let mut state = self.lock_state();
        if state.finished {
            return Ok(WriteResult::AlreadyFinished);
        }
        let written = self.write_file(&mut state, path, text)?;
        state.finished = true;
        Ok(written)
    }

    fn write_file(&self, state: &mut PrinterState, path: &Path, text: &str) -> io::Result<WriteResult> {
        if !is_replaceable(path) {
            // Whatever is there already (a terminal, a pipe, the file behind /dev/stdout) is added to.
            let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
            return write_whole(&mut file, self.redacted_line(text).as_bytes());
        }
        let lines = match state.lines.take() {
            Some(lines) => lines,
            None => LineStream {
                redact: self.redactor.stream(),
                pending: Vec::new(),
                file: Some(temporary_beside(path)?),
            },
        };
        let (written, file) = self.write_final(lines, text)?;
        if let Some((file, target)) = file {
            file.as_file().sync_all()?;
            apply_target_mode(file.path(), &target)?;
            file.persist(&target).map_err(|error| error.error)?;
        }
        Ok(written)
    }

    /// A remark, an error or a log line for whoever watches.
    pub fn remark(&self, text: &str) {
        // Nobody can be told that stderr is closed.
        let _ = write_whole(&mut io::stderr().lock(), self.redacted_line(text).as_bytes());
    }

    fn write_final(
        &self,
        mut lines: LineStream,
        text: &str,
    ) -> io::Result<(WriteResult, Option<(NamedTempFile, PathBuf)>)> {
        lines.redact.finish(&mut lines.pending);
        lines.pending.extend_from_slice(self.redacted_line(text).as_bytes());
        let all = lines.pending.len();
        let written = lines.write(all)?;
        Ok((written, lines.file))
    }

    /// A text as it is written.
    pub fn redacted_line(&self, text: &str) -> String {
        let mut clean = self.redactor.redact_str(text).into_owned();
        if !clean.is_empty() && !clean.ends_with('\n') {
            clean.push('\n');
        }
        clean
    }

    /// A panic while speaking leaves a voice that can still say so.
    fn lock_state(&self) -> MutexGuard<'_, PrinterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineStream {
    fn write(&mut self, count: usize) -> io::Result<WriteResult> {
        let written = match &mut self.file {
            Some((file, _)) => write_whole(file.as_file_mut(), &self.pending[..count]),
            None => write_whole(&mut io::stdout().lock(), &self.pending[..count]),
        };
        self.pending.drain(..count);
        written
    }
}

fn write_whole(sink: &mut impl Write, bytes: &[u8]) -> io::Result<WriteResult> {
    if bytes.is_empty() {
        return Ok(WriteResult::Complete);
    }
    match sink.write_all(bytes).and_then(|()| sink.flush()) {
        Ok(()) => Ok(WriteResult::Complete),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(WriteResult::ReaderGone),
        Err(error) => Err(error),
    }
}

/// Only an ordinary file, or one that does not exist yet, can be replaced in one step. What stands under `/dev` or
/// `/proc` is somebody's open file, whatever it looks like.
fn is_replaceable(path: &Path) -> bool {
    let special = |path: &Path| path.starts_with("/dev") || path.starts_with("/proc");
    let target = link_target(path);
    !special(path) && !special(&target) && target.metadata().map_or(true, |meta| meta.is_file())
}

/// What a path leads to, through links, also where the last one dangles.
fn link_target(path: &Path) -> PathBuf {
    if let Ok(target) = path.canonicalize() {
        return target;
    }
    match path.read_link() {
        Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
        Err(_) => path.to_owned(),
    }
}

/// A temporary file beside the one it will replace. A link is followed: what the user named is what gets the answer.
fn temporary_beside(path: &Path) -> io::Result<(NamedTempFile, PathBuf)> {
    let target = link_target(path);
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((NamedTempFile::new_in(directory)?, target))
}

/// A temporary file is private; what replaces a user's file has the mode that file had, or the usual one.
fn apply_target_mode(temporary: &Path, target: &Path) -> io::Result<()> {
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
