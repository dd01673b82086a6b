//! The printer: all output of commands to stdout and stderr passes through it.
//!
//! All output is redacted, written in complete lines and flushed. A closed pipe is not an error.
//!
//! The output of a call is one final text, optionally preceded by stream lines. The signal thread may print a
//! final text at the same time as the main thread, so the state is behind a lock: the first final text is
//! printed, later ones are dropped, and lines are written completely or not at all.

#![expect(clippy::disallowed_methods, reason = "the printer is the module that writes to stdout")]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use delegator_domain::redact::{RedactStream, Redactor};
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::output::pager::Pager;
use crate::spec::formats::LogFormat;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    Complete,
    /// The reader has closed the pipe. This is not an error; nothing more is written.
    ReaderGone,
    /// Another thread has already printed the final text.
    AlreadyFinished,
}

#[derive(Debug)]
pub struct Printer {
    redactor: Redactor,
    state: Mutex<PrinterState>,
    /// The remarks since the terminal shows a full screen; `None` while it does not.
    full_screen: Mutex<Option<Vec<String>>>,
}

/// Later remarks are dropped while the terminal shows a full screen.
const MAX_HELD_REMARKS: usize = 100;

#[derive(Debug, Default)]
struct PrinterState {
    finished: bool,
    reader_gone: bool,
    lines: Option<LineStream>,
}

#[derive(Debug)]
struct LineStream {
    redact: RedactStream,
    /// Redacted bytes of an incomplete line.
    pending: Vec<u8>,
    file: Option<(NamedTempFile, PathBuf)>,
}

impl Printer {
    pub fn new(redactor: Redactor) -> Self {
        Printer { redactor, state: Mutex::default(), full_screen: Mutex::default() }
    }

    /// Writes the next lines of a stream to stdout, or to a temporary file that replaces `file` with the
    /// final text.
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
            none => none.insert(self.line_stream(file)?),
        };
        lines.redact.push(bytes, &mut lines.pending);
        let complete = memchr::memrchr(b'\n', &lines.pending).map_or(0, |at| at + 1);
        let written = lines.write(complete)?;
        state.reader_gone = written == WriteResult::ReaderGone;
        Ok(written)
    }

    /// Whether the reader of stdout has closed the pipe or socket, for a caller that may write nothing for long.
    pub fn is_reader_gone(&self) -> bool {
        let stdout = io::stdout();
        let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
        let ready = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        ready.is_ok() && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    /// The columns and rows of the terminal at stdout, now.
    pub fn terminal_size(&self) -> Option<(usize, usize)> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some((size.ws_col.into(), size.ws_row.into())).filter(|(columns, rows)| *columns > 0 && *rows > 0)
    }

    /// Writes a frame to a terminal, whole.
    pub fn write_frame(&self, text: &str) -> io::Result<WriteResult> {
        let state = self.lock_state();
        if state.finished {
            return Ok(WriteResult::AlreadyFinished);
        }
        write_whole(&mut io::stdout().lock(), self.redact(text).as_bytes())
    }

    /// Writes the sequences that begin a full screen. Remarks are held until its end, because they would be
    /// printed across it.
    pub fn begin_full_screen(&self, enter: &str) -> io::Result<()> {
        let mut held = self.full_screen.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert_default();
        write_whole(&mut io::stdout().lock(), enter.as_bytes()).map(drop)
    }

    /// Writes to the full screen; nothing if it has ended.
    pub fn draw(&self, text: &str) -> io::Result<WriteResult> {
        let held = self.full_screen.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            return Ok(WriteResult::AlreadyFinished);
        }
        write_whole(&mut io::stdout().lock(), self.redact(text).as_bytes())
    }

    /// Writes the sequences that end the full screen and returns the remarks since it began; `None` if there is
    /// no full screen.
    pub fn end_full_screen(&self, leave: &str) -> Option<Vec<String>> {
        let mut held = self.full_screen.lock().unwrap_or_else(PoisonError::into_inner);
        let remarks = held.take()?;
        // A closed terminal cannot be reported.
        let _ = write_whole(&mut io::stdout().lock(), leave.as_bytes());
        Some(remarks)
    }

    fn line_stream(&self, file: Option<&Path>) -> io::Result<LineStream> {
        let file = file.map(temporary_beside).transpose()?;
        Ok(LineStream { redact: self.redactor.stream(), pending: Vec::new(), file })
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub fn redact(&self, text: &str) -> String {
        self.redactor.redact_str(text).into_owned()
    }

    pub fn contains_secret(&self, text: &str) -> bool {
        self.redactor.contains_secret(text)
    }

    pub fn print_final(&self, text: &str) -> io::Result<WriteResult> {
        let mut state = self.lock_state();
        if std::mem::replace(&mut state.finished, true) {
            return Ok(WriteResult::AlreadyFinished);
        }
        if state.reader_gone {
            return Ok(WriteResult::ReaderGone);
        }
        // Lines for a file are dropped: the file is written only on success.
        match state.lines.take().filter(|lines| lines.file.is_none()) {
            Some(lines) => self.write_final(lines, text).map(|(written, _)| written),
            None => write_whole(&mut io::stdout().lock(), self.redacted_line(text).as_bytes()),
        }
    }

    /// Shows the final text in a pager, or prints it if the pager cannot be run. Until the pager ends, a
    /// signal prints nothing and does not end the process, because the pager handles the keys.
    pub fn print_final_paged(&self, text: &str, pager: &Pager) -> io::Result<WriteResult> {
        let mut state = self.lock_state();
        if std::mem::replace(&mut state.finished, true) {
            return Ok(WriteResult::AlreadyFinished);
        }
        let text = self.redacted_line(text);
        if text.is_empty() || pager.show(&text)? {
            Ok(WriteResult::Complete)
        } else {
            write_whole(&mut io::stdout().lock(), text.as_bytes())
        }
    }

    /// Writes the final text to a file, atomically. If that fails, the final text can still be printed to
    /// stdout.
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
            // A terminal, a pipe or the file behind /dev/stdout cannot be replaced, so the text is appended.
            let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
            return write_whole(&mut file, self.redacted_line(text).as_bytes());
        }
        let lines = match state.lines.take() {
            Some(lines) => lines,
            None => self.line_stream(Some(path))?,
        };
        let (written, file) = self.write_final(lines, text)?;
        if let Some((file, target)) = file {
            file.as_file().sync_all()?;
            apply_target_mode(file.path(), &target)?;
            file.persist(&target).map_err(|error| error.error)?;
        }
        Ok(written)
    }

    /// Prints a remark, an error or a log line to stderr.
    pub fn remark(&self, text: &str) {
        if let Some(held) = &mut *self.full_screen.lock().unwrap_or_else(PoisonError::into_inner) {
            if held.len() < MAX_HELD_REMARKS {
                held.push(text.to_owned());
            }
            return;
        }
        // A closed stderr cannot be reported.
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

    pub fn redacted_line(&self, text: &str) -> String {
        let mut clean = self.redactor.redact_str(text).into_owned();
        if !clean.is_empty() && !clean.ends_with('\n') {
            clean.push('\n');
        }
        clean
    }

    /// Ignores poisoning: after a panic the error must still be printed.
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

/// Whether the path is a regular file or does not exist, so that a rename can replace it. Paths under `/dev`
/// and `/proc` refer to open files and are never replaced.
fn is_replaceable(path: &Path) -> bool {
    let special = |path: &Path| path.starts_with("/dev") || path.starts_with("/proc");
    let target = link_target(path);
    !special(path) && !special(&target) && target.metadata().map_or(true, |meta| meta.is_file())
}

/// Resolves symbolic links, including a final link whose target does not exist.
fn link_target(path: &Path) -> PathBuf {
    if let Ok(target) = path.canonicalize() {
        return target;
    }
    match path.read_link() {
        Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
        Err(_) => path.to_owned(),
    }
}

/// Creates a temporary file in the directory of the file it will replace. Symbolic links are followed.
fn temporary_beside(path: &Path) -> io::Result<(NamedTempFile, PathBuf)> {
    let target = link_target(path);
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((NamedTempFile::new_in(directory)?, target))
}

/// Temporary files are private. The file that replaces the target gets the target's mode, or the default of
/// the umask.
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

/// A message for stderr in the log format. It is printed regardless of the filter.
pub fn announcement(message: &str, format: LogFormat) -> String {
    match format {
        LogFormat::Text => message.to_owned(),
        LogFormat::Json => json!({
            "timestamp": Timestamp::now().to_string(),
            "level": "INFO",
            "fields": {"message": message},
            "target": module_path!(),
        })
        .to_string(),
    }
}
