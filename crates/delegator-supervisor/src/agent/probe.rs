//! Runs a program to learn something about it, with a time limit.

#![expect(clippy::disallowed_methods, reason = "this module starts programs")]

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::environment::Variables;
use super::verification::{self, VerifyPlan, VerifyRequest};
use crate::enclosure::Enclosure;
use crate::process::identity::open_pidfd;
use crate::run::poll_fds::{Readiness, wait_readable};

const MAX_OUTPUT_BYTES: usize = 16 << 10;

#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("the program could not be started: {0}")]
    Spawn(#[source] io::Error),
    #[error("the program did not respond within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("the program printed no version: {output:?}")]
    NoVersion { output: String },
    #[error("its sandbox could not run a command{}", last_line_suffix(output))]
    NoSandbox { output: String },
    #[error("its sandbox does not restrict writing")]
    SandboxNotEnforced,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// `: ` and the last line of the output, shortened; empty if there is none.
fn last_line_suffix(output: &str) -> String {
    let last = output.lines().rfind(|line| !line.trim().is_empty());
    last.map(|line| format!(": {}", line.chars().take(200).collect::<String>())).unwrap_or_default()
}

/// Runs a program without input and returns what it printed on standard output.
pub(super) fn printed_output<'a>(
    program: &Path,
    args: impl IntoIterator<Item = &'a OsStr>,
    environment: &Variables,
    limit: Duration,
) -> Result<String, ProbeError> {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    command.current_dir("/").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(ProbeError::Spawn)?;
    match child.stdout.take() {
        Some(stdout) => read_output(child, stdout, limit),
        None => Ok(String::new()),
    }
}

/// Runs a program without input; returns whether it succeeded, and what it printed on both streams.
pub(crate) fn exit_and_output<'a>(
    program: &Path,
    args: impl IntoIterator<Item = &'a OsStr>,
    environment: &Variables,
    limit: Duration,
) -> Result<(bool, String), ProbeError> {
    let (reader, writer) = io::pipe()?;
    let mut child = {
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        command.spawn().map_err(ProbeError::Spawn)?
    };
    let deadline = Instant::now() + limit;
    let output = read_until_exit(&child, reader, limit);
    // The end of the output may precede the exit.
    let has_exited = wait_for_exit(&child, deadline);
    let status = kill_group_and_wait(&mut child);
    Ok((has_exited? && status?.success(), output?))
}

/// Whether the program exits before the deadline.
fn wait_for_exit(child: &Child, deadline: Instant) -> io::Result<bool> {
    let pidfd = open_pidfd(i32::try_from(child.id()).map_err(io::Error::other)?)?;
    match &pidfd {
        Some(pidfd) => Ok(!matches!(wait_readable(&[pidfd], deadline)?, Readiness::TimedOut)),
        None => Ok(true),
    }
}

/// Kills the program and what it started, unless that has left its process group. The status of a program that has
/// exited stays the same.
fn kill_group_and_wait(child: &mut Child) -> io::Result<ExitStatus> {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()
}

/// Runs a plan that creates `forbidden`. Succeeds if the command ran and the file does not exist.
pub fn probe_sandbox(plan: &VerifyPlan, forbidden: &Path, limit: Duration) -> Result<(), ProbeError> {
    let (reader, writer) = io::pipe()?;
    let child = {
        let mut command = Command::new(&plan.program);
        command.args(&plan.args).env_clear();
        command.envs(plan.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        command.spawn().map_err(ProbeError::Spawn)?
    };
    let output = read_output(child, reader, limit)?;
    let is_sentinel = |line: &str| plan.sentinel.as_deref() == Some(line);
    if std::fs::remove_file(forbidden).is_ok() {
        return Err(ProbeError::SandboxNotEnforced);
    }
    if output.lines().any(is_sentinel) { Ok(()) } else { Err(ProbeError::NoSandbox { output }) }
}

/// Runs a command that creates `forbidden` in an enclosure. Succeeds if the command ran and the file does not exist.
pub fn probe_enclosure(
    enclosure: &Enclosure,
    request: &VerifyRequest,
    environment: &Variables,
    forbidden: &Path,
    limit: Duration,
) -> Result<(), ProbeError> {
    let plan = verification::enclosed(request, environment);
    let args = enclosure.wrap(&plan.program, &plan.args);
    probe_sandbox(&VerifyPlan { program: enclosure.launcher.clone(), args, ..plan }, forbidden, limit)
}

/// Reads a program's output until it exits or the size limit is reached, then kills it.
fn read_output(mut child: Child, pipe: impl Read + AsFd, limit: Duration) -> Result<String, ProbeError> {
    let outcome = read_until_exit(&child, pipe, limit);
    // It has printed its output, or never will.
    kill_group_and_wait(&mut child)?;
    outcome
}

fn read_until_exit(child: &Child, mut pipe: impl Read + AsFd, limit: Duration) -> Result<String, ProbeError> {
    let deadline = Instant::now() + limit;
    let mut output = Vec::new();
    let mut buffer = [0; 1024];
    let gone = || io::Error::other("the process could not be found");
    let pidfd = open_pidfd(i32::try_from(child.id()).map_err(io::Error::other)?)?.ok_or_else(gone)?;
    while output.len() < MAX_OUTPUT_BYTES {
        // A background process may hold the pipe open, so the program's exit ends the output too.
        let ready = wait_readable(&[&pipe, &pidfd], deadline)?;
        match ready {
            Readiness::TimedOut => return Err(ProbeError::TimedOut(limit)),
            Readiness::Ready(ready_fds) if !ready_fds[0] => break,
            Readiness::Ready(_) => {}
        }
        match pipe.read(&mut buffer)? {
            0 => break,
            count => output.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::agent::codex;

    fn script(folder: &Path, text: &str) -> std::path::PathBuf {
        let path = folder.join("agent");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn probe(text: &str, limit: Duration) -> Result<(u32, u32, u32), ProbeError> {
        probe_with(&[], text, limit)
    }

    fn probe_with(args: &[&str], text: &str, limit: Duration) -> Result<(u32, u32, u32), ProbeError> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let folder = tempfile::tempdir().unwrap();
        let program = script(folder.path(), text);
        let path = vec![("PATH".into(), "/usr/bin:/bin".into())];
        loop {
            // Another test may be between fork and exec with this file open for writing.
            match codex::probe_version(&program, &args, &path, limit) {
                Err(ProbeError::Spawn(error)) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                outcome => return outcome,
            }
        }
    }

    #[test]
    fn version_is_read_even_if_a_child_holds_the_pipe() {
        let generous = Duration::from_secs(20);
        let version = probe("[ \"$1\" = --version ] && echo codex-cli 0.150.2", generous).unwrap();
        assert_eq!(version, (0, 150, 2));
        // Its child holds the pipe open.
        let version = probe("echo codex-cli 0.150.2; sleep 3 & exit 0", generous).unwrap();
        assert_eq!(version, (0, 150, 2));
        assert!(matches!(probe("echo hello", generous), Err(ProbeError::NoVersion { .. })));
    }

    #[test]
    fn configured_arguments_come_before_the_version_flag() {
        let text = "[ \"$*\" = '/x/codex.js --version' ] && echo codex-cli 0.150.2 || echo v22.1.0";
        let version = probe_with(&["/x/codex.js"], text, Duration::from_secs(20)).unwrap();
        assert_eq!(version, (0, 150, 2));
    }

    #[test]
    fn exit_code_and_both_streams_are_reported() {
        let path = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let run = |script: &str| {
            let args = ["-c", script].map(OsStr::new);
            exit_and_output(Path::new("/bin/sh"), args, &path, Duration::from_secs(20)).unwrap()
        };
        assert_eq!(run("echo a; echo b >&2"), (true, "a\nb\n".to_owned()));
        assert_eq!(run("echo a; exit 1"), (false, "a\n".to_owned()));
        // The output ends before the program.
        assert!(!run("exec >/dev/null 2>&1; (exit 3)").0);
    }

    #[test]
    fn what_the_program_started_is_killed() {
        let path = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let args = ["-c", "sleep 600 & echo $!"].map(OsStr::new);
        let limit = Duration::from_secs(20);
        let (_, output) = exit_and_output(Path::new("/bin/sh"), args, &path, limit).unwrap();
        let stat = format!("/proc/{}/stat", output.trim());
        let is_running = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let deadline = Instant::now() + limit;
        while is_running() {
            assert!(Instant::now() < deadline, "the background process still runs");
            std::thread::yield_now();
        }
    }

    #[test]
    fn silent_program_times_out() {
        assert!(matches!(probe("exec sleep 60", Duration::from_millis(200)), Err(ProbeError::TimedOut(_))));
    }
}
