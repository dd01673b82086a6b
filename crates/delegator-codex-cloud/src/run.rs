//! Runs one `codex cloud` process with a time limit and bounded output.
//!
//! Codex runs in a private scratch directory, because it writes `error.log` where it runs, and its git finds no
//! repository, also not around that directory: Codex would send its remotes to the backend and take its branch. At the
//! end of the call, and at the time limit, the whole process group is killed. This module interprets nothing that Codex
//! prints.

#![expect(clippy::disallowed_methods, reason = "this is the module that runs codex cloud")]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::error::CloudError;

/// A diff of this size cannot be reviewed, and one call holds it in memory.
const MAX_STDOUT: usize = 32 << 20;
/// The beginning of the error output is enough: it holds the message, and bodies of responses.
const MAX_STDERR: usize = 64 << 10;

/// Variables that change what Codex prints: colours (`NO_COLOR` does not win against them) and backtraces.
const REMOVED_VARIABLES: [&str; 5] =
    ["CLICOLOR_FORCE", "FORCE_COLOR", "RUST_BACKTRACE", "RUST_LIB_BACKTRACE", "RUST_LOG"];

/// The program, its environment, and the limits of a call.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) program: PathBuf,
    /// Arguments before `cloud`.
    pub(crate) leading_args: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) scratch: PathBuf,
    pub(crate) limit: Duration,
}

/// What one call printed.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Exited(Printed),
    /// Killed at the time limit.
    TimedOut(Printed),
    /// Printed more than [`MAX_STDOUT`].
    TooMuchOutput(Printed),
}

impl Runner {
    /// Runs `codex cloud` with these arguments and this input.
    pub(crate) fn run(&self, args: &[OsString], input: &str) -> Result<Ended, CloudError> {
        create_private(&self.scratch)?;
        let deadline = Instant::now() + self.limit;
        let start_error = |source| CloudError::Start { program: self.program.clone(), source };
        let mut child = self.command(args).spawn().map_err(start_error)?;
        let (stdout, stderr) = exchange(&mut child, input);
        let exited = wait_for_exit(&child, deadline);
        // Also after the exit: the node wrapper and helpers of Codex must not outlive the call.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let status = child.wait().map_err(start_error)?;
        // The process group is dead, so both streams have ended, unless a process left the group.
        let (stdout, stderr) = (received(&stdout, deadline), received(&stderr, deadline));
        let is_complete = exited.map_err(start_error)? && stdout.is_some() && stderr.is_some();
        let printed =
            Printed { status, stdout: stdout.unwrap_or_default(), stderr: stderr.unwrap_or_default() };
        // Codex appends to it at each call. It holds nothing that Codex does not also print.
        let _ = std::fs::remove_file(self.scratch.join("error.log"));
        Ok(match is_complete {
            false => Ended::TimedOut(printed),
            true if printed.stdout.len() > MAX_STDOUT => Ended::TooMuchOutput(printed),
            true => Ended::Exited(printed),
        })
    }

    fn command(&self, args: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.leading_args).arg("cloud").args(args).current_dir(&self.scratch).env_clear();
        let is_passed = |name: &OsStr| {
            !name.as_encoded_bytes().starts_with(b"GIT_")
                && !REMOVED_VARIABLES.iter().any(|removed| name == *removed)
        };
        let variables = self.variables.iter().filter(|(name, _)| is_passed(name));
        command.envs(variables.map(|(name, value)| (name, value))).env("NO_COLOR", "1");
        command.env("GIT_DIR", "/dev/null");
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn create_private(folder: &Path) -> Result<(), CloudError> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|source| CloudError::Io {
        doing: "create",
        path: folder.to_owned(),
        source,
    })
}

/// Writes the input and reads both streams, each in a thread of its own, so that a full pipe blocks nothing.
fn exchange(child: &mut Child, input: &str) -> (Receiver<Vec<u8>>, Receiver<Vec<u8>>) {
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // Fails if Codex exits without reading its input. Its exit code says why.
        thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    }
    (read_in_thread(child.stdout.take(), MAX_STDOUT + 1), read_in_thread(child.stderr.take(), MAX_STDERR))
}

/// Reads to the end of the stream and stores the first bytes of it.
fn read_in_thread(stream: Option<impl Read + Send + 'static>, stored: usize) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(stored as u64).read_to_end(&mut bytes);
            let _ = io::copy(&mut stream, &mut io::sink());
        }
        // The receiver is gone after a timeout.
        let _ = sender.send(bytes);
    });
    receiver
}

/// What a stream held, or `None` if a process that left the group still has it open.
fn received(stream: &Receiver<Vec<u8>>, deadline: Instant) -> Option<Vec<u8>> {
    const DRAIN: Duration = Duration::from_secs(2);
    stream.recv_timeout(deadline.saturating_duration_since(Instant::now()).max(DRAIN)).ok()
}

/// Whether the child exited before the deadline. It is not reaped yet, so its process group still exists.
fn wait_for_exit(child: &Child, deadline: Instant) -> io::Result<bool> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(remaining).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
