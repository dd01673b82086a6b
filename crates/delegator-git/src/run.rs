//! Runs one git process with a controlled environment, a deadline and an output limit.
//!
//! git never gets the caller's environment, except the variables that locate the user's configuration. A call
//! that reaches another repository may take long: it ends with this process, so that it does not change a
//! mirror while another process does.

#![expect(clippy::disallowed_methods, reason = "this is the module that runs git")]

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use delegator_subprocess::{Capture, End, Limits, RunError, Running};

use crate::error::{GitError, Result};

const MAX_OUTPUT: usize = 64 << 20;
const MAX_STDERR: usize = 16 << 10;

/// An argument of every git process of ours that changes a repository of the user.
pub(crate) const OWN_ARGUMENT: &str = "core.untrackedCache=false";
/// Passed to every git call, overriding what a repository configures.
const OVERRIDES: [&str; 10] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=:",
    "core.attributesFile=/dev/null",
    "protocol.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    // git's ownership check protects against running another user's configuration; we run none of it.
    "safe.directory=*",
];
/// Passed to calls that reach no other repository.
const LOCAL_OVERRIDES: [&str; 9] = [
    OWN_ARGUMENT,
    "core.splitIndex=false",
    "core.sshCommand=false",
    "core.askPass=",
    "index.sparse=false",
    "credential.helper=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "advice.detachedHead=false",
];
/// Passed to calls that reach another repository. Credentials, proxies and ssh come from the user's own
/// configuration; transports that run a command of the URL stay forbidden.
const REMOTE_OVERRIDES: [&str; 7] = [
    "protocol.https.allow=always",
    "protocol.http.allow=always",
    "protocol.ssh.allow=always",
    "protocol.git.allow=always",
    "protocol.file.allow=always",
    "push.gpgSign=false",
    "transfer.credentialsInUrl=allow",
];

/// Starts a watcher and becomes git. The watcher kills the process group when its input ends without a line,
/// because the process that runs git was killed.
const WITH_WATCHER: &str = r#"
exec 3<&0 </dev/null
{ read -r _ <&3 || kill -s KILL 0; } >/dev/null 2>&1 &
exec 3<&-
exec "$@"
"#;
const SHELL: &str = "/bin/sh";

/// The git program, the variables that locate the user's configuration, and a deadline for all calls.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    /// `HOME` and `XDG_CONFIG_HOME`, which locate the user's configuration.
    user_config_env: Vec<(OsString, OsString)>,
    deadline: Instant,
    limit: Duration,
    cancel: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Default)]
pub(crate) struct Call<'a> {
    pub(crate) options: Vec<OsString>,
    pub(crate) args: Vec<OsString>,
    pub(crate) variables: Vec<(&'static str, OsString)>,
    pub(crate) input: &'a [u8],
    /// Whether git reads the user's configuration; only for reading settings.
    pub(crate) reads_user_config: bool,
    /// Added to the output limit, for lists whose size depends on the repository.
    pub(crate) extra_output: usize,
    /// The environment of a call that reaches another repository.
    pub(crate) remote: Option<&'a [(OsString, OsString)]>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(args: impl IntoIterator<Item: AsRef<OsStr>>) -> Call<'a> {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        Call { args, ..Call::default() }
    }

    /// A call on a git directory, without a work tree.
    pub(crate) fn in_git_dir(dir: &Path, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Call<'a> {
        let mut option = OsString::from("--git-dir=");
        option.push(dir);
        Call { options: vec![option], ..Call::new(args) }
    }

    fn name(&self) -> String {
        self.args.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl Git {
    /// `program` is absolute and was not found below a work tree. Only those variables of `environment` that
    /// locate the user's configuration are used. All calls together must end within `limit`.
    pub fn new<'a>(
        program: PathBuf,
        environment: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
        limit: Duration,
    ) -> Git {
        let config_env =
            environment.into_iter().filter(|(name, _)| *name == "HOME" || *name == "XDG_CONFIG_HOME");
        let user_config_env = config_env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Git { program, user_config_env, deadline: Instant::now() + limit, limit, cancel: None }
    }

    pub fn version(&self) -> Result<String> {
        let output = self.run(Path::new("/"), Call::new(["--version"]))?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }

    /// A copy whose calls end with [`GitError::Cancelled`] soon after the flag is set.
    #[must_use]
    pub fn with_cancel(&self, cancel: Arc<AtomicBool>) -> Git {
        Git { cancel: Some(cancel), ..self.clone() }
    }

    /// A copy with a new time limit that starts now.
    #[must_use]
    pub fn with_limit(&self, limit: Duration) -> Git {
        Git { deadline: Instant::now() + limit, limit, ..self.clone() }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn limits<'a>(&'a self, call: &Call<'a>) -> Limits<'a> {
        Limits {
            input: call.remote.is_none().then_some(call.input),
            time: self.remaining(),
            stdout: Capture::AtMost(MAX_OUTPUT + call.extra_output),
            // The beginning of the error output is enough.
            stderr: Some(Capture::Beginning(MAX_STDERR)),
            cancel: self.cancel.as_deref(),
            leaves_children: call.remote.is_some(),
        }
    }

    /// Runs git in `dir` and returns its standard output; any exit code but 0 is an error.
    pub(crate) fn run(&self, dir: &Path, call: Call<'_>) -> Result<Vec<u8>> {
        self.start(dir, call)?.output()
    }

    /// Starts git in `dir`. The caller may work until it needs the output.
    pub(crate) fn start<'a>(&self, dir: &Path, call: Call<'a>) -> Result<RunningGit<'a>> {
        let mut command = self.command(dir, &call);
        let watcher =
            call.remote.map(|_| io::pipe()).transpose().map_err(|source| GitError::Spawn { source })?;
        let watcher = watcher.map(|(reader, writer)| {
            command.stdin(reader);
            writer
        });
        let running = Running::start(command, &self.limits(&call)).map_err(spawn_error)?;
        Ok(RunningGit { git: self.clone(), call, running, watcher })
    }

    /// Like [`Git::run`], but exit code 1 means "no result".
    pub(crate) fn run_optional(&self, dir: &Path, call: Call<'_>) -> Result<Option<Vec<u8>>> {
        match self.run(dir, call) {
            Ok(output) => Ok(Some(output)),
            Err(GitError::Failed { exit: Some(1), .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn command(&self, dir: &Path, call: &Call<'_>) -> Command {
        let mut command = match call.remote {
            Some(_) => {
                let mut command = Command::new(SHELL);
                command.args(["-c", WITH_WATCHER, "git"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.arg("--no-pager");
        let overrides = if call.remote.is_some() { &REMOTE_OVERRIDES[..] } else { &LOCAL_OVERRIDES[..] };
        for setting in OVERRIDES.iter().chain(overrides) {
            command.args(["-c", setting]);
        }
        command.args(&call.options).args(&call.args).current_dir(dir).env_clear();
        command.envs(self.user_config_env.iter().map(|(name, value)| (name, value)));
        // git's own directory: it needs no other program.
        command.env("PATH", self.program.parent().unwrap_or(Path::new("/")));
        command.envs([
            ("LC_ALL", "C"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", ""),
            ("GIT_EDITOR", ":"),
        ]);
        if let Some(variables) = call.remote {
            command.envs(variables.iter().map(|(name, value)| (name, value)));
        } else if !call.reads_user_config {
            command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
        }
        command.envs(call.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A git process whose output was not read yet. Dropping it kills the process group.
#[derive(Debug)]
pub(crate) struct RunningGit<'a> {
    git: Git,
    call: Call<'a>,
    running: Running,
    /// The input of the watcher of a remote call.
    watcher: Option<PipeWriter>,
}

impl RunningGit<'_> {
    pub(crate) fn output(self) -> Result<Vec<u8>> {
        let RunningGit { git, call, running, watcher } = self;
        let finished = running.finish(&git.limits(&call)).map_err(spawn_error)?;
        let command = call.name();
        match finished.end {
            End::Exited => {}
            End::TimedOut => return Err(GitError::TimedOut { command, limit: git.limit }),
            End::Cancelled => return Err(GitError::Cancelled { command }),
            End::TooMuchOutput => {
                return Err(GitError::TooMuchOutput { command, limit: MAX_OUTPUT + call.extra_output });
            }
        }
        // With a line instead of the end of its input the watcher kills nothing: a credential helper may have
        // left a daemon.
        if let Some(mut watcher) = watcher {
            let _ = watcher.write_all(b"\n");
        }
        if finished.status.success() {
            return Ok(finished.stdout);
        }
        let stderr = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
        let stderr = if stderr.is_empty() { finished.status.to_string() } else { stderr };
        Err(GitError::Failed { command, exit: finished.status.code(), stderr })
    }
}

fn spawn_error(error: RunError) -> GitError {
    GitError::Spawn { source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::{Pid, Signal, kill_process};

    /// A shell script in place of git.
    fn fake_git(folder: &Path, text: &str, limit: Duration) -> Git {
        let path = folder.join("git");
        std::fs::write(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Git::new(path, [], limit)
    }

    fn run_script(text: &str, input: &[u8], limit: Duration) -> Result<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let git = fake_git(folder.path(), text, limit);
        loop {
            // Retry while another test is between fork and exec and has this file open for writing.
            match git.run(folder.path(), Call { input, ..Call::new(["status"]) }) {
                Err(GitError::Spawn { source }) if source.kind() == io::ErrorKind::ExecutableFileBusy => {}
                outcome => return outcome,
            }
        }
    }

    const LONG_LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_hanging_git_is_killed_with_its_children() {
        let result = run_script("sleep 600 & sleep 600", b"", Duration::from_millis(300));
        assert!(matches!(result, Err(GitError::TimedOut { .. })), "{result:?}");
    }

    /// The live processes of a process group.
    fn group_members(group: i32) -> Vec<i32> {
        let is_member = |stat: &str| {
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            fields[0] != "Z" && fields[2] == group.to_string()
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let stat = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/stat"));
        pids.filter(|pid| stat(pid).is_ok_and(|stat| is_member(&stat))).collect()
    }

    fn run_remote(text: &str) -> Result<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let git = fake_git(folder.path(), text, LONG_LIMIT);
        loop {
            match git.run(folder.path(), Call { remote: Some(&[]), ..Call::new(["fetch"]) }) {
                // As above.
                Err(GitError::Failed { stderr, .. }) if stderr.contains("busy") => {}
                outcome => return outcome,
            }
        }
    }

    #[test]
    fn a_remote_call_is_killed_with_the_process_that_runs_it() {
        let folder = tempfile::tempdir().unwrap();
        let git = fake_git(folder.path(), "sleep 600 & sleep 600", LONG_LIMIT);
        let result = loop {
            let call = Call { remote: Some(&[]), ..Call::new(["fetch"]) };
            let mut running = git.start(folder.path(), call).unwrap();
            // As if this process was killed.
            running.watcher = None;
            match running.output() {
                // As above.
                Err(GitError::Failed { stderr, .. }) if stderr.contains("busy") => {}
                result => break result,
            }
        };
        assert!(matches!(&result, Err(GitError::Failed { exit: None, .. })), "{result:?}");
    }

    #[test]
    fn a_remote_call_that_ends_leaves_background_processes_alone() {
        let output =
            String::from_utf8(run_remote("sleep 600 >/dev/null 2>&1 & echo $$ $!").unwrap()).unwrap();
        let pids: Vec<i32> = output.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        let (group, background) = (pids[0], pids[1]);
        let members = loop {
            let members = group_members(group);
            // The watcher ends a moment later.
            if members.len() < 2 {
                break members;
            }
        };
        assert_eq!(members, [background]);
        kill_process(Pid::from_raw(background).unwrap(), Signal::KILL).unwrap();
        assert!(matches!(run_remote("exit 3"), Err(GitError::Failed { exit: Some(3), .. })));
    }

    #[test]
    fn a_background_child_does_not_delay_the_result() {
        assert_eq!(
            run_script("sleep 600 & pid=$!; echo here; (sleep 1; kill $pid) & exit 0", b"", LONG_LIMIT)
                .unwrap(),
            b"here\n"
        );
    }

    #[test]
    fn endless_output_is_bounded() {
        assert!(matches!(run_script("exec yes", b"", LONG_LIMIT), Err(GitError::TooMuchOutput { .. })));
        let result = run_script("head -c 1000000 /dev/zero >&2; exit 3", b"", LONG_LIMIT);
        assert!(
            matches!(result, Err(GitError::Failed { exit: Some(3), stderr, .. }) if stderr.len() <= MAX_STDERR)
        );
    }

    #[test]
    fn only_variables_that_locate_user_config_are_passed_on() {
        let folder = tempfile::tempdir().unwrap();
        let git = fake_git(folder.path(), "env", LONG_LIMIT);
        let environment =
            [("HOME", "/home/dev"), ("GIT_DIR", "/evil"), ("GIT_SSH", "/evil"), ("LD_PRELOAD", "/evil.so")];
        let environment = environment.map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        let git = Git {
            user_config_env: Git::new(git.program.clone(), environment, LONG_LIMIT).user_config_env,
            ..git
        };
        let command = git.command(folder.path(), &Call::new(["status"]));
        let names: Vec<String> =
            command.get_envs().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert!(names.contains(&"HOME".to_owned()));
        for banned in ["GIT_DIR", "GIT_SSH", "LD_PRELOAD"] {
            assert!(!names.contains(&banned.to_owned()), "{names:?}");
        }
    }
}
