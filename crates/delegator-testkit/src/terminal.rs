//! A pseudo terminal, to test the output that a user sees.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::answers;
use crate::program::RunOutput;

/// Runs the command with stdout and stderr on one terminal; everything it wrote is in `stdout`.
pub fn run_on_terminal(command: Command) -> RunOutput {
    TerminalSession::start(command).wait()
}

/// The same, on a terminal of this width.
pub fn run_on_terminal_of(columns: u16, command: Command) -> RunOutput {
    TerminalSession::start_with_columns(columns, command).wait()
}

/// Columns of a terminal on which no line is wrapped.
const WIDE: u16 = 1000;

/// A command running on a terminal, and its output so far.
#[derive(Debug)]
pub struct TerminalSession {
    pub child: Child,
    master: File,
    output: Vec<u8>,
    /// The settings of the terminal before the command was started.
    before: String,
}

#[derive(Debug)]
pub struct TerminalSettings {
    master: File,
    before: String,
}

impl TerminalSettings {
    /// Whether they are as before the command.
    pub fn are_restored(&self) -> bool {
        settings_of(&self.master) == self.before
    }
}

fn settings_of(terminal: impl AsFd) -> String {
    format!("{:?}", tcgetattr(terminal).unwrap())
}

impl TerminalSession {
    pub fn start(command: Command) -> TerminalSession {
        TerminalSession::start_with_columns(WIDE, command)
    }

    pub fn start_with_columns(columns: u16, mut command: Command) -> TerminalSession {
        command.stdin(Stdio::null());
        TerminalSession::start_on(open_pty(columns), command)
    }

    /// Also standard input is the terminal, so that a test can answer questions.
    pub fn start_interactive(command: Command) -> TerminalSession {
        TerminalSession::start_interactive_of(WIDE, command)
    }

    /// The same, on a terminal of this width.
    pub fn start_interactive_of(columns: u16, mut command: Command) -> TerminalSession {
        let (master, terminal) = open_pty(columns);
        command.stdin(Stdio::from(terminal.try_clone().unwrap()));
        TerminalSession::start_on((master, terminal), command)
    }

    fn start_on((master, terminal): (OwnedFd, OwnedFd), mut command: Command) -> TerminalSession {
        let copy = || Stdio::from(terminal.try_clone().unwrap());
        // Only the child may hold the terminal open, otherwise reading never ends; this function drops `command` at
        // its end.
        let before = settings_of(&master);
        let child = command.stdout(copy()).stderr(copy()).spawn().unwrap();
        TerminalSession { child, master: File::from(master), output: Vec::new(), before }
    }

    /// Types a text, which the terminal also echoes.
    pub fn type_text(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until the output contains a text.
    pub fn wait_for_text(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.output).contains(text) {
            assert!(self.read(), "ended without {text}: {}", String::from_utf8_lossy(&self.output));
        }
    }

    /// Reads until the screen shows a text.
    pub fn wait_for_screen(&mut self, text: &str) {
        while !self.screen().contains(text) {
            assert!(self.read(), "ended without {text}: {}", self.screen());
        }
    }

    /// What the terminal shows, if the program draws the whole screen: text, moves of the cursor and erasing.
    pub fn screen(&self) -> String {
        shown_by(&self.output)
    }

    /// How the terminal treats what is typed and printed; also after the command has ended.
    pub fn settings(&self) -> TerminalSettings {
        TerminalSettings { master: self.master.try_clone().unwrap(), before: self.before.clone() }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
    }

    /// Everything read so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Reads until the command ends.
    pub fn wait(mut self) -> RunOutput {
        while self.read() {}
        let exit = self.child.wait().unwrap().code();
        let text = String::from_utf8(self.output).expect("a terminal gets UTF-8").replace("\r\n", "\n");
        answers::check_text(&text);
        RunOutput { exit, stdout: text, stderr: String::new() }
    }

    /// Reads more output; false at the end. The end of a terminal is an I/O error, not an end of file.
    fn read(&mut self) -> bool {
        let mut chunk = [0; 4096];
        match self.master.read(&mut chunk) {
            Ok(read @ 1..) => {
                self.output.extend_from_slice(&chunk[..read]);
                true
            }
            _ => false,
        }
    }
}

fn open_pty(columns: u16) -> (OwnedFd, OwnedFd) {
    // CLOEXEC: neither the child nor a task it starts inherits any other descriptor of the terminal.
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    (master, terminal)
}

/// What a terminal shows after this output.
fn shown_by(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let mut rows: Vec<Vec<char>> = Vec::new();
    let (mut row, mut column) = (0, 0);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => {
                let is_string = letters.next() == Some(']');
                let ends =
                    |letter: &char| if is_string { *letter == '\\' } else { letter.is_ascii_alphabetic() };
                let mut sequence = String::new();
                for letter in letters.by_ref() {
                    sequence.push(letter);
                    if ends(&letter) {
                        break;
                    }
                }
                if let (false, Some(place)) = (is_string, sequence.strip_suffix('H')) {
                    let mut numbers = place.split(';').map(|number| number.parse().unwrap_or(1) - 1);
                    (row, column) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
                } else if !is_string && sequence.ends_with('J') {
                    rows.clear();
                }
            }
            '\n' => row += 1,
            '\r' => column = 0,
            letter => {
                rows.resize(rows.len().max(row + 1), Vec::new());
                let cells = &mut rows[row];
                cells.resize(cells.len().max(column + 1), ' ');
                cells[column] = letter;
                column += 1;
            }
        }
    }
    rows.into_iter().map(|row| row.into_iter().collect::<String>() + "\n").collect()
}
