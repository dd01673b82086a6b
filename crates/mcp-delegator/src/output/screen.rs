//! Output of a command while it runs: stream lines and a progress bar.
//!
//! Lines go through the printer to stdout or the output file; progress and announcements go to stderr.

use std::borrow::Cow;
use std::sync::Arc;

use delegator_domain::terminal;
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::{AppError, io_error};
use crate::output::awaited_task::Attachment;
use crate::output::documents::document::Document;
use crate::output::documents::text::TextStyle;
use crate::output::presentation::Presentation;
use crate::output::printer::{Printer, WriteResult};
use crate::output::values::escape_terminal_controls;

/// Smaller inputs are processed before a progress bar could be read.
const MIN_BYTES_FOR_PROGRESS: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct Screen<'a> {
    pub printer: &'a Arc<Printer>,
    pub presentation: &'a Presentation,
    pub attachment: &'a Attachment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

fn flow(written: std::io::Result<WriteResult>) -> Result<Flow, AppError> {
    match written {
        Ok(WriteResult::Complete) => Ok(Flow::Continue),
        Ok(WriteResult::ReaderGone | WriteResult::AlreadyFinished) => Ok(Flow::Stop),
        Err(error) => Err(io_error("Writing the output", &error)),
    }
}

impl Screen<'_> {
    /// Writes complete lines. Returns `Stop` if the reader has closed the pipe or the final output was
    /// already printed.
    pub fn write_lines(&self, bytes: &[u8]) -> Result<Flow, AppError> {
        // Control sequences must not reach a terminal; a program gets the bytes unchanged.
        let safe = if self.presentation.writes_to_terminal() {
            // JSON stays equivalent, with control characters escaped; other text is sanitized.

            let json = escape_terminal_controls(&String::from_utf8_lossy(bytes));
            Cow::Owned(terminal::sanitize(&json).into_owned().into_bytes())
        } else {
            Cow::Borrowed(bytes)
        };
        flow(self.printer.write_lines(self.presentation.file(), &safe))
    }

    /// Whether a person reads the output on a terminal.
    pub fn can_redraw(&self) -> bool {
        self.presentation.is_for_people() && self.presentation.writes_to_terminal()
    }

    /// Replaces what the terminal shows, as far as it fits.
    pub fn redraw(&self, document: &Document, is_first: bool) -> Result<Flow, AppError> {
        let style = self.presentation.body_style();
        let (columns, rows) = self.printer.terminal_size().unzip();
        let rows = rows.map_or(usize::MAX, |rows| rows - 1);
        let text = document.to_text(TextStyle { columns: columns.or(style.columns), ..style });
        // Erases the screen at first, later only the rest of each line and what is below, which does not flicker.
        let mut frame = if is_first { "\u{1b}[2J\u{1b}[H".to_owned() } else { "\u{1b}[H".to_owned() };
        for line in text.lines().take(rows) {
            frame.push_str(line);
            frame.push_str("\u{1b}[K\n");
        }
        frame.push_str("\u{1b}[J");
        flow(self.printer.write_frame(&frame))
    }

    /// Prints a message on stderr while the command continues, unless only the result is wanted.
    pub fn announce(&self, message: &str) {
        if !self.presentation.quiet {
            self.announce_always(message);
        }
    }

    /// Prints a message that the user cannot do without.
    pub fn announce_always(&self, message: &str) {
        self.printer.remark(&self.presentation.announcement(message));
    }

    /// A progress bar on stderr for this many bytes; hidden for small inputs or if no person watches.
    pub fn progress(&self, bytes: Option<u64>) -> ProgressBar {
        let Some(bytes) =
            bytes.filter(|bytes| *bytes >= MIN_BYTES_FOR_PROGRESS && self.presentation.shows_progress())
        else {
            return ProgressBar::hidden();
        };
        let bar = ProgressBar::new(bytes);
        // If the template were invalid, the default style is used.
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {elapsed}")
        {
            bar.set_style(style);
        }
        bar
    }
}
