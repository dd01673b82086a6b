//! A pseudo terminal, to see what a person sees.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::Run;

/// Runs the command with stdout and stderr on one terminal; everything it wrote is in `stdout`.
pub fn run_on_terminal(mut command: Command) -> Run {
    let (master, terminal) = open();
    let copy = || Stdio::from(terminal.try_clone().unwrap());
    let mut child = command.stdin(Stdio::null()).stdout(copy()).stderr(copy()).spawn().unwrap();
    // Only the child may hold the terminal open, else reading never ends.
    drop(command);
    drop(terminal);
    let mut seen = Vec::new();
    let mut master = File::from(master);
    let mut chunk = [0; 4096];
    // The end of a terminal is an I/O error, not an end of file.
    while let Ok(read @ 1..) = master.read(&mut chunk) {
        seen.extend_from_slice(&chunk[..read]);
    }
    let exit = child.wait().unwrap().code();
    let text = String::from_utf8(seen).expect("a terminal gets UTF-8").replace("\r\n", "\n");
    Run { exit, stdout: text, stderr: String::new() }
}

fn open() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (master, terminal)
}
