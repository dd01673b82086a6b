//! Runs a program to learn something about it, such as its version, with a time limit.

#![expect(clippy::disallowed_methods, reason = "this module starts programs")]

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use delegator_domain::text::last_line;
use delegator_subprocess::{Capture, End, Finished, Limits, RunError};

use crate::variables::Variables;

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
    last_line(output, 200).map(|line| format!(": {line}")).unwrap_or_default()
}

/// Runs a program with `--version`; `args` are the configured arguments, which come first.
pub(crate) fn probe_version(
    program: &Path,
    args: &[OsString],
    environment: &Variables,
    limit: Duration,
) -> Result<Version, ProbeError> {
    let args = args.iter().map(OsString::as_os_str).chain([OsStr::new("--version")]);
    let output = text(&run(program, args, environment, Some(Capture::Nothing), limit)?);
    version_in(&output).ok_or(ProbeError::NoVersion { output })
}

/// Runs a program without input; returns whether it succeeded, and what it printed on both streams.
pub(crate) fn exit_and_output<'a>(
    program: &Path,
    args: impl IntoIterator<Item = &'a OsStr>,
    environment: &Variables,
    limit: Duration,
) -> Result<(bool, String), ProbeError> {
    let finished = run(program, args, environment, None, limit)?;
    Ok((finished.status.success(), text(&finished)))
}

/// Runs a program until it exits or has printed [`MAX_OUTPUT_BYTES`].
fn run<'a>(
    program: &Path,
    args: impl IntoIterator<Item = &'a OsStr>,
    environment: &Variables,
    stderr: Option<Capture>,
    limit: Duration,
) -> Result<Finished, ProbeError> {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    command.current_dir("/").stdin(Stdio::null());
    let stdout = Capture::AtMost(MAX_OUTPUT_BYTES);
    let limits = Limits { input: None, time: limit, stdout, stderr, cancel: None, leaves_children: false };
    match delegator_subprocess::run(command, &limits) {
        Ok(finished) if finished.end == End::TimedOut => Err(ProbeError::TimedOut(limit)),
        Ok(finished) => Ok(finished),
        Err(RunError::Start(error)) => Err(ProbeError::Spawn(error)),
        Err(RunError::Supervise(error)) => Err(error.into()),
    }
}

fn text(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.stdout).into_owned()
}

pub(crate) type Version = (u32, u32, u32);

pub(crate) fn version_text((major, minor, patch): Version) -> String {
    format!("{major}.{minor}.{patch}")
}

/// The first version in what a program prints about itself: `codex-cli 0.166.0`, with or without a suffix
/// such as `-alpha.3`.
fn version_in(output: &str) -> Option<Version> {
    output.split_whitespace().find_map(parse_version)
}

fn parse_version(word: &str) -> Option<Version> {
    let word = word.strip_prefix('v').unwrap_or(word).trim_end_matches('.');
    let plain = word.split(['-', '+']).next()?;
    let mut numbers = plain.split('.').map(|number| number.parse().ok());
    let version = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    use super::*;

    fn script(folder: &Path, text: &str) -> std::path::PathBuf {
        let path = folder.join("agent");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn probe(text: &str, limit: Duration) -> Result<Version, ProbeError> {
        probe_with(&[], text, limit)
    }

    fn probe_with(args: &[&str], text: &str, limit: Duration) -> Result<Version, ProbeError> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let folder = tempfile::tempdir().unwrap();
        let program = script(folder.path(), text);
        let path = vec![("PATH".into(), "/usr/bin:/bin".into())];
        loop {
            // Another test may be between fork and exec with this file open for writing.
            match probe_version(&program, &args, &path, limit) {
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

    #[test]
    fn version_is_parsed_from_program_output() {
        let version = Some((0, 166, 0));
        assert_eq!(version_in("codex-cli 0.166.0\n"), version);
        assert_eq!(version_in("WARNING: odd (1.2)\ncodex-cli 0.166.0-alpha.3"), version);
        assert_eq!(version_in("Another CLI 0.166.0.\nRun 'x'"), version);
        assert_eq!(version_in("2.1.325 (Claude Code)\n"), Some((2, 1, 325)));
        for other in ["", "usage: codex [0.1]", "claude 2.1", "2.1.x (Claude Code)"] {
            assert_eq!(version_in(other), None, "{other}");
        }
    }
}
