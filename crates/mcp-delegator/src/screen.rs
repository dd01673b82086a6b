//! What a handler may show while it works: lines of a stream, and progress.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use delegator_domain::terminal;
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::{AppError, io_error};
use crate::interrupt::Attachment;
use crate::presentation::Presentation;
use crate::stdout::{Printer, WriteResult};
use crate::views::escape_terminal_controls;

/// Below this size work is over before anyone could read a bar.
const MIN_BYTES_FOR_PROGRESS: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct Screen<'a> {
    pub printer: &'a Arc<Printer>,
    pub presentation: &'a Presentation,
    pub attachment: &'a Attachment,
}

/// In which form items are to be shown as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFormat {
    /// A line of text each.
    Text,
    /// A line of JSON each.
    Json,
    /// Not at all: the answer comes as a whole.
    Collected,
}

/// Whether there is anyone left to go on for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

impl Screen<'_> {
    /// Writes whole lines; a reader that is gone, or a last word already said, is a reason to stop and not an error.
    pub fn write_lines(&self, bytes: &[u8]) -> Result<Flow, AppError> {
        // What a terminal is shown must not steer it; a program gets the bytes as they are.
        let safe = match self.presentation.writes_to_terminal() {
            // JSON keeps what it says, in another spelling; what is none may be anything at all.
            true => {
                let json = escape_terminal_controls(&String::from_utf8_lossy(bytes));
                Cow::Owned(terminal::sanitize(&json).into_owned().into_bytes())
            }
            false => Cow::Borrowed(bytes),
        };
        match self.printer.write_lines(self.presentation.file(), &safe) {
            Ok(WriteResult::Complete) => Ok(Flow::Continue),
            Ok(WriteResult::ReaderGone | WriteResult::AlreadyFinished) => Ok(Flow::Stop),
            Err(error) => Err(write_error(&error)),
        }
    }

    /// Something a command that goes on has to say at once, on stderr.
    pub fn announce(&self, message: &str) {
        self.printer.remark(&self.presentation.announcement(message));
    }

    /// A bar on stderr for work of this many bytes, where a person watches and it takes a while.
    pub fn progress(&self, bytes: Option<u64>) -> ProgressBar {
        let Some(bytes) =
            bytes.filter(|bytes| *bytes >= MIN_BYTES_FOR_PROGRESS && self.presentation.shows_progress())
        else {
            return ProgressBar::hidden();
        };
        let bar = ProgressBar::new(bytes);
        // A template that cannot be read leaves the plain bar, which is fine.
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {elapsed}")
        {
            bar.set_style(style);
        }
        bar
    }
}

fn write_error(error: &io::Error) -> AppError {
    io_error("Writing the answer", error)
}
