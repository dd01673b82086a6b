//! Runs the setup script of an environment: with a time limit, bounded output, and no process left behind.
//!
//! The script runs in a process group of its own, and its processes carry a task marker. At its end, whatever
//! the cause, the group is killed and every process with the marker is swept. A process that has left the
//! group and dropped the marker may survive; its output is not waited for. If this process is killed, a
//! watcher in the group kills the group. This module does not interpret what the script prints.

#![expect(clippy::disallowed_methods, reason = "this module starts setup scripts")]

use std::io::{self, PipeWriter};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use delegator_domain::task::{ExitStatus, TaskId};
use delegator_subprocess::{Capture, End, Limits};

use crate::process::{Owner, SweepLimits, sweep_lost};
use crate::variables::{MARKER, Variables, task_marker};

/// How much of the beginning and of the end of the output is retained.
const RETAINED_BYTES: usize = 256 << 10;

/// Starts a watcher and becomes the script. The watcher ends the group when its input ends, because the
/// process that runs the script was killed, and at the time limit at the latest.
const WRAPPER: &str = r#"
exec 3<&0 </dev/null
{ read -r -t "$1" _ <&3; kill -KILL 0; } >/dev/null 2>&1 &
exec 3<&-
exec "$BASH" -e -o pipefail "$2"
"#;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupEnd {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

#[derive(Debug)]
pub struct SetupRun {
    pub end: SetupEnd,
    pub output: Vec<u8>,
}

impl SetupScript<'_> {
    /// Runs the script until it exits, the time limit is reached or `cancel` is set. A failing command ends
    /// the script.
    pub fn run(&self, cancel: &AtomicBool) -> io::Result<SetupRun> {
        let (command, _lifeline) = self.command()?;
        let limits = Limits {
            input: None,
            time: self.limit,
            stdout: Capture::BothEnds(RETAINED_BYTES),
            stderr: None,
            cancel: Some(cancel),
            leaves_children: false,
        };
        let finished = delegator_subprocess::run(command, &limits)?;
        sweep_lost(self.mark, &|_| Owner::ThisTask, SweepLimits::default())?;
        let end = match finished.end {
            End::Cancelled => SetupEnd::Cancelled,
            End::TimedOut => SetupEnd::TimedOut,
            End::Exited | End::TooMuchOutput => SetupEnd::Exited(exit_status(finished.status)),
        };
        Ok(SetupRun { end, output: finished.stdout })
    }

    /// The command, and a pipe: the script is killed when that is closed.
    fn command(&self) -> io::Result<(Command, PipeWriter)> {
        let (watched, lifeline) = io::pipe()?;
        // One second more: the limit of this process comes first and is reported.
        let limit = self.limit.as_secs().saturating_add(1).to_string();
        let mut command = Command::new(self.shell);
        command.args(["-c", WRAPPER, "setup", &limit]).arg(self.script);
        command.current_dir(self.working_dir).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env(MARKER, task_marker(self.mark, 0)).stdin(watched);
        Ok((command, lifeline))
    }
}

fn exit_status(status: std::process::ExitStatus) -> ExitStatus {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, signal) => ExitStatus::Signal(signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;

    use delegator_domain::task::TaskLocation;
    use rustix::process::{Pid, Signal};

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
                let (mut command, lifeline) = setup.command().unwrap();
                let lifeline = Some(lifeline).filter(|_| !is_killed);
                let (mut reader, writer) = io::pipe().unwrap();
                let mut child = command.process_group(0).stdout(writer).spawn().unwrap();
                drop(command);
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
        assert!(text.len() < 2 * RETAINED_BYTES + 100 && text.contains("bytes omitted"));
        assert!(text.ends_with("\nend\n"));
    }
}
