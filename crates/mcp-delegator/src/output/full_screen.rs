//! The terminal while a command draws the whole of it: the alternate screen, without line editing, with the
//! mouse. Everything is undone on every way out: at the end, when the value is dropped by a panic, and by the
//! handler of a signal. What is drawn goes through the printer, which redacts it.

use std::io::{self, Write};
use std::sync::Arc;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::output::printer::Printer;

/// Saves the title, then: alternate screen, no cursor, clicks and the wheel but no movement of the mouse, pasted
/// text marked as such.
const ENTER: &str = "\u{1b}[22;2t\u{1b}[?1049h\u{1b}[2J\u{1b}[?25l\u{1b}[?1000h\u{1b}[?1006h\u{1b}[?2004h";
const LEAVE: &str = "\u{1b}[?2004l\u{1b}[?1006l\u{1b}[?1000l\u{1b}[0m\u{1b}[?25h\u{1b}[?1049l\u{1b}[23;2t";

#[derive(Debug)]
pub struct FullScreen {
    printer: Arc<Printer>,
    before: Termios,
}

impl FullScreen {
    pub fn enter(printer: &Arc<Printer>) -> io::Result<FullScreen> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        let screen = FullScreen { printer: Arc::clone(printer), before };
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        if let Err(error) = screen.printer.begin_full_screen(ENTER) {
            screen.leave();
            return Err(error);
        }
        Ok(screen)
    }

    /// The terminal is as it was before. Does nothing the second time.
    pub fn leave(&self) {
        let Some(remarks) = self.printer.end_full_screen(LEAVE) else { return };
        // What was typed for the screen is not for the shell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
        remarks.iter().for_each(|remark| self.printer.remark(remark));
    }
}

/// The sequence that sets the title of the terminal; it is restored with the screen.
pub fn title_sequence(title: &str) -> String {
    format!("\u{1b}]2;{title}\u{1b}\\")
}

/// Collects a frame, and passes it to the printer whole.
#[derive(Debug)]
pub struct FrameWriter {
    printer: Arc<Printer>,
    frame: Vec<u8>,
}

impl FrameWriter {
    pub fn new(printer: &Arc<Printer>) -> FrameWriter {
        FrameWriter { printer: Arc::clone(printer), frame: Vec::new() }
    }
}

impl Write for FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        self.printer.draw(&String::from_utf8_lossy(&frame)).map(drop)
    }
}
