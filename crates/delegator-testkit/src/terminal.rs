//! A pseudo terminal, to test the output that a user sees.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::answers;
use crate::program::RunOutput;

/// Runs the command with stdout and stderr on one terminal; everything it wrote is in `stdout`.
pub fn run_on_terminal(command: Command) -> RunOutput {
    TerminalSession::start(command).wait()
}

/// A command running on a terminal, and its output so far.
#[derive(Debug)]
pub struct TerminalSession {
    pub child: Child,
    master: File,
    output: Vec<u8>,
}

impl TerminalSession {
    pub fn start(command: Command) -> TerminalSession {
        TerminalSession::start_with_stdin(command, |_| Stdio::null())
    }

    /// Starts the command with standard input on the terminal as well; [`TerminalSession::type_keys`] writes to it.
    pub fn start_with_keyboard(command: Command) -> TerminalSession {
        TerminalSession::start_with_stdin(command, |terminal| Stdio::from(terminal.try_clone().unwrap()))
    }

    fn start_with_stdin(mut command: Command, stdin: fn(&OwnedFd) -> Stdio) -> TerminalSession {
        let (master, terminal) = open_pty();
        let copy = || Stdio::from(terminal.try_clone().unwrap());
        // Only the child may hold the terminal open, otherwise reading never ends; this function drops `command` at
        // its end.
        let child = command.stdin(stdin(&terminal)).stdout(copy()).stderr(copy()).spawn().unwrap();
        TerminalSession { child, master: File::from(master), output: Vec::new() }
    }

    pub fn type_keys(&mut self, keys: &[u8]) {
        self.master.write_all(keys).unwrap();
    }

    /// Reads until the output contains a text.
    pub fn wait_for_text(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.output).contains(text) {
            assert!(self.read(), "ended without {text}: {}", String::from_utf8_lossy(&self.output));
        }
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

fn open_pty() -> (OwnedFd, OwnedFd) {
    // CLOEXEC: neither the child nor a task it starts inherits any other descriptor of the terminal.
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    (master, terminal)
}
