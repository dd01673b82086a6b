//! Runs a program with a time limit and bounded output.
//!
//! The program runs in a process group of its own. When it exits, and at every limit, the whole group is
//! killed, so that no process of it is left and its output has ended; [`Limits::leaves_children`] is the
//! exception. One thread writes the input and reads both streams without blocking: a program that does not
//! read, and a process that has left the group and holds a stream open, delay nothing.
//!
//! Which program runs, with which arguments and variables, is up to the caller. Nothing that it prints is
//! interpreted.

mod output;

use std::io::{self, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

pub use output::Capture;
use output::Output;

/// How soon a cancelled program ends.
const CANCEL_POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// What is written to its standard input, which ends afterwards. `None`: the caller has set the standard
    /// input.
    pub input: Option<&'a [u8]>,
    pub time: Duration,
    pub stdout: Capture,
    /// `None`: it is written to the same pipe as the standard output.
    pub stderr: Option<Capture>,
    /// Ends the program as soon as it is true.
    pub cancel: Option<&'a AtomicBool>,
    /// Whether processes that the program leaves when it exits, such as a daemon, continue. A limit ends
    /// them, too.
    pub leaves_children: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Exited,
    TimedOut,
    Cancelled,
    /// It printed more than [`Capture::AtMost`] permits.
    TooMuchOutput,
}

#[derive(Debug)]
pub struct Finished {
    pub end: End,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the program could not be started: {0}")]
    Start(#[source] io::Error),
    #[error("the program could not be supervised: {0}")]
    Supervise(#[from] io::Error),
}

impl From<RunError> for io::Error {
    fn from(error: RunError) -> io::Error {
        match error {
            RunError::Start(error) | RunError::Supervise(error) => error,
        }
    }
}

pub fn run(command: Command, limits: &Limits<'_>) -> Result<Finished, RunError> {
    Running::start(command, limits)?.finish(limits)
}

/// A started program. Dropping it kills its process group.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Output,
    stderr: Output,
}

impl Running {
    /// The caller may work until it needs the output. Until [`Running::finish`] no limit applies.
    pub fn start(mut command: Command, limits: &Limits<'_>) -> Result<Running, RunError> {
        let (stdout, writer) = Output::new(limits.stdout)?;
        let (stderr, error_writer) = match limits.stderr {
            Some(capture) => Output::new(capture)?,
            None => (Output::default(), writer.as_ref().map(PipeWriter::try_clone).transpose()?),
        };
        let stdio = |writer: Option<PipeWriter>| writer.map_or_else(Stdio::null, Stdio::from);
        command.process_group(0).stdout(stdio(writer)).stderr(stdio(error_writer));
        if limits.input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().map_err(RunError::Start)?;
        let stdin = child.stdin.take();
        // The command holds the writing ends of the pipes and is dropped here, so that the streams can end.
        Ok(Running { child, stdin, stdout, stderr })
    }

    /// Waits for the end of the program or for a limit; `limits` are those of the start.
    pub fn finish(mut self, limits: &Limits<'_>) -> Result<Finished, RunError> {
        let end = self.exchange(limits, Instant::now() + limits.time)?;
        let is_left = limits.leaves_children && end == End::Exited;
        let status = if is_left { self.child.wait() } else { self.kill() }?;
        Ok(Finished { end, status, stdout: self.stdout.take(), stderr: self.stderr.take() })
    }

    fn exchange(&mut self, limits: &Limits<'_>, deadline: Instant) -> io::Result<End> {
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())?;
        if let Some(stdin) = &self.stdin {
            rustix::io::ioctl_fionbio(stdin, true)?;
        }
        let mut input = limits.input.unwrap_or_default();
        loop {
            if limits.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                return Ok(End::Cancelled);
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(End::TimedOut);
            }
            let pause = if limits.cancel.is_some() { remaining.min(CANCEL_POLL) } else { remaining };
            input = self.write_some(input);
            // What it printed before its exit is in the pipes by then.
            let has_exited = self.wait(&pidfd, pause)?;
            self.stdout.read_available()?;
            self.stderr.read_available()?;
            if self.stdout.is_too_long() || self.stderr.is_too_long() {
                return Ok(End::TooMuchOutput);
            }
            if has_exited {
                return Ok(End::Exited);
            }
        }
    }

    /// Waits until a stream is ready. True once the program has exited: it is not reaped yet, so its group
    /// still exists.
    fn wait(&self, pidfd: &OwnedFd, pause: Duration) -> io::Result<bool> {
        let mut sources = vec![PollFd::new(pidfd, PollFlags::IN)];
        let outputs = [&self.stdout, &self.stderr].into_iter().filter_map(|output| output.pipe.as_ref());
        sources.extend(outputs.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        sources.extend(self.stdin.as_ref().map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
        let pause = Timespec::try_from(pause).map_err(io::Error::other)?;
        match poll(&mut sources, Some(&pause)) {
            Ok(_) => Ok(!sources[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes what fits and returns the rest. The input ends with the last byte, and if the program has
    /// closed it.
    fn write_some<'a>(&mut self, mut input: &'a [u8]) -> &'a [u8] {
        while let Some(stdin) = self.stdin.as_mut().filter(|_| !input.is_empty()) {
            match stdin.write(input) {
                Ok(count) => input = &input[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return input,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => input = &[],
            }
        }
        self.stdin = None;
        input
    }

    /// Kills the program and what it started, unless that has left its process group. The status of a program
    /// that has exited stays the same.
    fn kill(&mut self) -> io::Result<ExitStatus> {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that was waited for has no group any more, and its id may belong to another one.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.kill();
        }
    }
}

#[cfg(test)]
mod tests;
