//! Runs the setup script of an environment: with a time limit, bounded output, and no process left behind.
//!
//! The script runs in a process group of its own, and its processes carry a task marker. At its end, whatever the cause, the
//! group is killed and every process with the marker is swept. A process that has left the group and dropped the marker may
//! survive; its output is not waited for. If this process is killed, a watcher in the group kills the group. This module does
//! not interpret what the script prints.

#![expect(clippy::disallowed_methods, reason = "this module starts setup scripts")]

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use delegator_domain::task::{ExitStatus, TaskId};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::agent::environment::{MARKER, Variables, task_marker};
use crate::process::identity::open_pidfd;
use crate::process::{Owner, SweepLimits, sweep_lost};
use crate::run::poll_fds::{Readiness, wait_readable};

/// Beginning and end of the output that are retained.
const HEAD_BYTES: usize = 256 << 10;
const TAIL_BYTES: usize = 256 << 10;
/// How soon a cancelled script ends.
const CANCEL_POLL: Duration = Duration::from_millis(100);
/// How long output is read after the end: a process that was not found may hold the pipe open for ever.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Starts a watcher and becomes the script. The watcher ends the group when its input ends, because the process that runs the
/// script was killed, and at the time limit at the latest.
const WRAPPER: &str = r#"
exec 3<&0 </dev/null
{ read -r -t "$1" _ <&3; kill -KILL 0; } >/dev/null 2>&1 &
exec 3<&-
exec "$BASH" -e -o pipefail "$2"
"#;

/// A script and how to run it.
#[derive(Debug)]
pub struct SetupScript<'a> {
    /// Marks the processes of the script.
    pub mark: &'a TaskId,
    pub shell: &'a Path,
    pub script: &'a Path,
    pub working_dir: &'a Path,
    pub variables: &'a Variables,
    pub limit: Duration,
}

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupEnd {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

/// The end of a script, and what it printed on both streams.
#[derive(Debug)]
pub struct SetupRun {
    pub end: SetupEnd,
    pub output: Vec<u8>,
}

impl SetupScript<'_> {
    /// Runs the script until it exits, the time limit is reached or `cancel` is set. A failing command ends the script.
    pub fn run(&self, cancel: &AtomicBool) -> io::Result<SetupRun> {
        let Started { mut child, reader, lifeline: _lifeline } = self.start()?;
        let mut output = Output::new(reader)?;
        let ended = wait_for_end(&child, &mut output, Instant::now() + self.limit, cancel);
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let status = child.wait()?;
        sweep_lost(self.mark, &|_| Owner::ThisTask, SweepLimits::default())?;
        output.drain(Instant::now() + DRAIN_LIMIT)?;
        let end = ended?.unwrap_or_else(|| SetupEnd::Exited(exit_status(status)));
        Ok(SetupRun { end, output: output.into_bytes() })
    }

    fn start(&self) -> io::Result<Started> {
        let (reader, writer) = io::pipe()?;
        let (watched, lifeline) = io::pipe()?;
        // One second more: the limit of this process comes first and is reported.
        let limit = self.limit.as_secs().saturating_add(1).to_string();
        let mut command = Command::new(self.shell);
        command.args(["-c", WRAPPER, "setup", &limit]).arg(self.script);
        command.current_dir(self.working_dir).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env(MARKER, task_marker(self.mark, 0)).process_group(0);
        command.stdin(watched).stdout(writer.try_clone()?).stderr(writer);
        // The command holds the writing end of the output and is dropped here, so that the output can end.
        Ok(Started { child: command.spawn()?, reader, lifeline })
    }
}

/// A running script.
struct Started {
    child: Child,
    reader: PipeReader,
    /// The script is killed when this is closed.
    lifeline: PipeWriter,
}

fn exit_status(status: std::process::ExitStatus) -> ExitStatus {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, signal) => ExitStatus::Signal(signal.unwrap_or_default()),
    }
}

/// Reads the output until the exit; `None` if the process has exited by itself.
fn wait_for_end(
    child: &Child,
    output: &mut Output,
    deadline: Instant,
    cancel: &AtomicBool,
) -> io::Result<Option<SetupEnd>> {
    let Some(pidfd) = open_pidfd(Pid::from_child(child).as_raw_nonzero().get())? else { return Ok(None) };
    loop {
        if cancel.load(Ordering::Relaxed) {
            return Ok(Some(SetupEnd::Cancelled));
        }
        if Instant::now() >= deadline {
            return Ok(Some(SetupEnd::TimedOut));
        }
        let mut watched: Vec<&dyn AsFd> = vec![&pidfd];
        watched.extend(output.reader.as_ref().map(|reader| reader as &dyn AsFd));
        let pause = deadline.min(Instant::now() + CANCEL_POLL);
        if let Readiness::Ready(ready) = wait_readable(&watched, pause)? {
            if ready[0] {
                return Ok(None);
            }
            output.read_available()?;
        }
    }
}

/// The beginning and the end of what a script prints.
struct Output {
    /// `None` at the end of the output.
    reader: Option<PipeReader>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
}

impl Output {
    fn new(reader: PipeReader) -> io::Result<Output> {
        rustix::io::ioctl_fionbio(&reader, true)?;
        Ok(Output { reader: Some(reader), head: Vec::new(), tail: VecDeque::new(), omitted: 0 })
    }

    /// Reads to the end of the output, or until the deadline.
    fn drain(&mut self, deadline: Instant) -> io::Result<()> {
        while let Some(reader) = &self.reader {
            if Instant::now() >= deadline || wait_readable(&[reader], deadline)? == Readiness::TimedOut {
                break;
            }
            self.read_available()?;
        }
        Ok(())
    }

    fn read_available(&mut self) -> io::Result<()> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let mut chunk = [0; 16 << 10];
        match reader.read(&mut chunk) {
            Ok(0) => self.reader = None,
            Ok(count) => self.add(&chunk[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.omitted += excess as u64;
    }

    fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.omitted > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes omitted]\n", self.omitted).as_bytes());
        }
        bytes.extend(self.tail);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::TaskLocation;

    use super::*;

    fn run(text: &str, limit: Duration, cancel: bool) -> SetupRun {
        with_script(text, limit, |setup| setup.run(&AtomicBool::new(cancel)).unwrap())
    }

    fn with_script<T>(text: &str, limit: Duration, test: impl FnOnce(SetupScript<'_>) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("setup");
        std::fs::write(&script, text).unwrap();
        let mut seed = [7; 16];
        // Scripts with the same mark would end each other.
        seed[..4].copy_from_slice(&std::process::id().to_le_bytes());
        seed[4..12].copy_from_slice(&(text.len() as u64).to_le_bytes());
        let mark = TaskId::from_random(TaskLocation::Local, seed);
        let variables = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
        test(SetupScript {
            mark: &mark,
            shell: Path::new("/bin/bash"),
            script: &script,
            working_dir: folder.path(),
            variables: &variables,
            limit,
        })
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_failing_command_ends_the_script_and_the_output_is_returned() {
        let run = run("echo one; echo two >&2; false | cat; echo three", LONG, false);
        assert_eq!(run.end, SetupEnd::Exited(ExitStatus::Code(1)));
        assert_eq!(String::from_utf8_lossy(&run.output), "one\ntwo\n");
    }

    #[test]
    fn processes_that_leave_the_group_are_swept() {
        let run = run("setsid sleep 600 & echo $!", LONG, false);
        assert_eq!(run.end, SetupEnd::Exited(ExitStatus::Code(0)));
        let pid = String::from_utf8(run.output).unwrap().trim().parse().unwrap();
        assert!(crate::process::read_stat(pid).is_none_or(|stat| stat.is_dead()));
    }

    #[test]
    fn a_process_that_cannot_be_found_does_not_delay_the_end() {
        let script = "echo before
            setsid env -i /bin/sh -c 'echo $$ > left; exec /bin/sleep 20' &
            while [ ! -s left ]; do sleep 0.02; done; cat left";
        let run = run(script, LONG, false);
        assert_eq!(run.end, SetupEnd::Exited(ExitStatus::Code(0)));
        let text = String::from_utf8(run.output).unwrap();
        let pid = text.lines().last().unwrap().parse().unwrap();
        assert!(text.starts_with("before\n"));
        let survives = crate::process::read_stat(pid).is_some_and(|stat| !stat.is_dead());
        let _ = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        assert!(survives, "otherwise this test shows nothing");
    }

    #[test]
    fn time_limit_and_cancel_end_the_script() {
        assert_eq!(run("sleep 600", Duration::from_millis(100), false).end, SetupEnd::TimedOut);
        assert_eq!(run("sleep 601", LONG, true).end, SetupEnd::Cancelled);
    }

    #[test]
    fn a_script_ends_with_the_process_that_runs_it_and_at_its_limit() {
        let end_of = |limit, is_killed: bool| {
            with_script("echo started; sleep 30 & wait; sleep 30", limit, |setup| {
                let Started { mut child, mut reader, lifeline } = setup.start().unwrap();
                let lifeline = Some(lifeline).filter(|_| !is_killed);
                let mut output = String::new();
                // Ends when no process of the script is left.
                reader.read_to_string(&mut output).unwrap();
                drop(lifeline);
                (child.wait().unwrap().signal(), output)
            })
        };
        let killed = Some(Signal::KILL.as_raw());
        assert_eq!(end_of(LONG, true).0, killed);
        assert_eq!(end_of(Duration::ZERO, false), (killed, "started\n".to_owned()));
        // The script does not wait for the watcher.
        assert_eq!(run("true & wait; echo waited", LONG, false).output, b"waited\n");
    }

    #[test]
    fn endless_output_is_bounded() {
        let run = run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end", LONG, false);
        let text = String::from_utf8(run.output).unwrap();
        assert!(text.len() < HEAD_BYTES + TAIL_BYTES + 100 && text.contains("bytes omitted"));
        assert!(text.ends_with("\nend\n"));
    }
}
