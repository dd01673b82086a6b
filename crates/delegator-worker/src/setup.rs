//! The setup script of an environment, run once for each revision.
//!
//! A revision is an environment, its repository, its script, the branch and the commit: what a script
//! installs depends on the files of the commit, so another commit needs another run. The script runs in a
//! checkout of its own, which is then copied for each task; so its effect is in the work tree of the task,
//! and tasks do not see each other's changes. Older revisions of the environment are deleted, and those that
//! are not used for long.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use delegator_domain::task::{ExitStatus, TaskId, TaskLocation};
use delegator_domain::text::last_line;
use delegator_engine::{EngineError, remove_directory, untrusted_trees};
use delegator_fleet::TaskSpec;
use delegator_git::{BaseCommit, Mirror, RemoteError};
use delegator_registry::remove_if_exists;
use delegator_supervisor::agent::{Variables, locate, variable};
use delegator_supervisor::process::{Owner, SweepLimits, sweep_lost};
use delegator_supervisor::setup_script::{SetupEnd, SetupRun, SetupScript};

use crate::attempt::Attempt;
use crate::port::WorkerEvent;
use crate::worker_state::WorkerState;
use crate::workspace::{SetupLocks, copy_directory, file_name, hash};

/// Installing the dependencies of a large project takes minutes.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// Length of the line of output that is part of the failure's message.
const QUOTED_CHARS: usize = 300;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error(transparent)]
    Checkout(#[from] RemoteError),
    #[error("{cause}")]
    Script { cause: String, output: Vec<u8> },
    #[error("the setup was cancelled")]
    Cancelled,
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// The directory of one revision: `work` is the checkout, `output` what the script printed; `output` exists
/// only if the script has succeeded.
struct Revision {
    dir: PathBuf,
}

impl Revision {
    fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    fn output(&self) -> PathBuf {
        self.dir.join("output")
    }

    /// Names the processes of the script, so that the next worker can end them.
    fn mark(&self) -> PathBuf {
        self.dir.join("mark")
    }

    /// The modification time of the output is when the revision was used last.
    fn record_use(&self, now: SystemTime) -> io::Result<()> {
        File::options().append(true).open(self.output())?.set_modified(now)
    }

    /// Deletes the output first: what an interrupted deletion leaves is no prepared checkout.
    fn remove(&self) -> io::Result<()> {
        remove_if_exists(&self.output())?;
        remove_directory(&self.dir)
    }
}

/// The name of a revision; that of another revision of the same environment begins with the same text.
fn revision_name(spec: &TaskSpec, base: &BaseCommit, script: &str) -> String {
    let parts = [spec.repo_url.as_str(), script, &base.commit, base.branch.as_deref().unwrap_or_default()];
    let joined: Vec<String> = parts.iter().map(|part| format!("{}:{part}", part.len())).collect();
    format!("{}{}", environment_prefix(&spec.environment), hash(joined.concat().as_bytes()))
}

fn environment_prefix(environment: &str) -> String {
    format!("{}.", file_name(environment))
}

/// Creates the checkout of an attempt, after running the script if this revision has not been prepared yet.
/// Returns the redacted output of the script.
pub(crate) fn create_prepared_checkout(
    attempt: &Attempt<'_>,
    script: &str,
    mirror: &Mirror,
    base: &BaseCommit,
) -> Result<Vec<u8>, SetupError> {
    let Attempt { shared, control, spec, files } = attempt;
    let name = revision_name(spec, base, script);
    let revision = Revision { dir: shared.workspace.dirs.setups().join(&name) };
    let _lock = shared.setups.lock(&revision.dir, &control.interrupt()).ok_or(SetupError::Cancelled)?;
    if !revision.output().is_file() {
        let (task, environment) = (control.log_name.clone(), spec.environment.clone());
        shared.report(&WorkerEvent::SetupStarted { task, environment });
        if let Err(error) = prepare(attempt, &revision, script, mirror, base) {
            let _ = remove_directory(&revision.dir);
            return Err(error);
        }
        remove_older(shared, &environment_prefix(&spec.environment), &name);
    }
    let output = fs::read(revision.output()).map_err(EngineError::io("read the output of a setup script"))?;
    let used = revision.record_use(shared.now());
    used.map_err(EngineError::io("record the use of a prepared checkout"))?;
    copy_directory(&revision.work(), &files.work()).map_err(EngineError::io("copy a prepared checkout"))?;
    Ok(output)
}

fn prepare(
    attempt: &Attempt<'_>,
    revision: &Revision,
    script: &str,
    mirror: &Mirror,
    base: &BaseCommit,
) -> Result<(), SetupError> {
    let io = |doing| EngineError::io(doing);
    remove_directory(&revision.dir).map_err(io("remove an interrupted setup"))?;
    fs::create_dir(&revision.dir).map_err(io("create a directory for a setup"))?;
    mirror.check_out(base, &revision.work())?;
    let run = run_script(attempt, revision, script)?;
    // Secrets of this machine must not reach the database.
    let text = String::from_utf8_lossy(&run.output).into_owned();
    let output = attempt.shared.settings.redactor.redact_str(&text).into_owned().into_bytes();
    let cause = match run.end {
        SetupEnd::Exited(ExitStatus::Code(0)) => {
            fs::write(revision.output(), output).map_err(io("store the output of a setup script"))?;
            return Ok(());
        }
        SetupEnd::Cancelled => return Err(SetupError::Cancelled),
        SetupEnd::TimedOut => format!("the setup script did not end within {} minutes", LIMIT.as_secs() / 60),
        SetupEnd::Exited(ExitStatus::Code(code)) => format!("the setup script failed with exit code {code}"),
        SetupEnd::Exited(ExitStatus::Signal(signal)) => {
            format!("the setup script was killed by signal {signal}")
        }
    };
    let cause = format!("{cause}{}", quoted_line(&output));
    Err(SetupError::Script { cause, output })
}

fn run_script(attempt: &Attempt<'_>, revision: &Revision, script: &str) -> Result<SetupRun, SetupError> {
    let Attempt { shared, control, .. } = attempt;
    let variables = script_variables(&shared.settings.variables);
    let path = variable(&variables, "PATH");
    let shell = locate(OsStr::new("bash"), path, &untrusted_trees([&*revision.work()]));
    let shell = shell.map_err(|problem| SetupError::Script {
        cause: format!("bash could not be started: {problem}"),
        output: Vec::new(),
    })?;
    let mark = TaskId::from_random(TaskLocation::Local, shared.engine.random_bytes()?);
    let file = revision.dir.join("script");
    let write = || -> io::Result<()> {
        fs::write(revision.mark(), mark.as_str())?;
        fs::write(&file, script)
    };
    write().map_err(EngineError::io("write a setup script"))?;
    let setup = SetupScript {
        mark: &mark,
        shell: &shell,
        script: &file,
        working_dir: &revision.work(),
        variables: &variables,
        limit: LIMIT,
    };
    Ok(setup.run(&control.interrupt()).map_err(EngineError::io("run a setup script"))?)
}

/// The environment of the worker without its database and its configuration.
fn script_variables(variables: &Variables) -> Variables {
    let is_own = |name: &str| name.starts_with("MCP_DELEGATOR_") || name.starts_with("PGPASS");
    variables.iter().filter(|(name, _)| !is_own(&name.to_string_lossy())).cloned().collect()
}

/// The last line of the output, for the message of a failure; `logs` shows all of it.
fn quoted_line(output: &[u8]) -> String {
    let line = last_line(&String::from_utf8_lossy(output), QUOTED_CHARS);
    line.map(|line| format!(": {line}")).unwrap_or_default()
}

/// Deletes the other revisions of an environment, unless a thread uses them: those are deleted later.
fn remove_older(shared: &WorkerState<'_>, prefix: &str, current: &str) {
    for entry in fs::read_dir(shared.workspace.dirs.setups()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(prefix) || name == current {
            continue;
        }
        if let Some(_lock) = shared.setups.try_lock(&entry.path()) {
            let _ = Revision { dir: entry.path() }.remove();
        }
    }
}

/// Deletes the revisions that were used last before this time, unless a thread uses them.
pub(crate) fn remove_unused(setups: &Path, locks: &SetupLocks, used_before: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(setups)?.flatten() {
        let revision = Revision { dir: entry.path() };
        let Some(_lock) = locks.try_lock(&revision.dir) else { continue };
        let used_at = fs::metadata(revision.output()).and_then(|found| found.modified());
        if used_at.is_ok_and(|used_at| used_at < used_before) {
            revision.remove()?;
        }
    }
    Ok(())
}

/// Ends scripts that a killed worker has left, and deletes what they have not finished.
pub(crate) fn clean_interrupted(shared: &WorkerState<'_>) {
    for entry in fs::read_dir(shared.workspace.dirs.setups()).into_iter().flatten().flatten() {
        let revision = Revision { dir: entry.path() };
        if revision.output().is_file() {
            continue;
        }
        let mark = fs::read_to_string(revision.mark()).ok().and_then(|text| text.parse::<TaskId>().ok());
        if let Some(mark) = mark {
            // What cannot be swept is not reported: there is no attempt that it belongs to.
            let _ = sweep_lost(&mark, &|_| Owner::ThisTask, SweepLimits::default());
        }
        let _ = remove_directory(&revision.dir);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use delegator_domain::task::Mode;

    use super::*;

    fn spec(environment: &str, repo_url: &str) -> TaskSpec {
        TaskSpec {
            environment: environment.to_owned(),
            repo_url: repo_url.to_owned(),
            branch: None,
            setup: None,
            mode: Mode::WorkspaceWrite,
            push: false,
            text: String::new(),
            title: String::new(),
            labels: BTreeMap::new(),
            submitter_task: None,
        }
    }

    #[test]
    fn a_revision_is_environment_repository_script_branch_and_commit() {
        let base = |commit: &str| BaseCommit { commit: commit.to_owned(), branch: None };
        let name = |environment: &str, url: &str, script: &str, commit: &str| {
            revision_name(&spec(environment, url), &base(commit), script)
        };
        let on_branch = BaseCommit { branch: Some("main".to_owned()), ..base("c1") };
        let first = name("e", "/r", "make", "c1");
        assert_eq!(name("e", "/r", "make", "c1"), first);
        for other in [
            name("f", "/r", "make", "c1"),
            name("e", "/s", "make", "c1"),
            name("e", "/r", "make all", "c1"),
            name("e", "/r", "make", "c2"),
            name("e", "/rm", "ake", "c1"),
            revision_name(&spec("e", "/r"), &on_branch, "make"),
        ] {
            assert_ne!(other, first);
        }
        assert!(first.starts_with("e.") && !name("e2", "/r", "make", "c1").starts_with("e."));
    }

    #[test]
    fn only_revisions_that_are_not_used_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let revision = |name: &str| Revision { dir: folder.path().join(name) };
        let now = fs::metadata(folder.path()).unwrap().modified().unwrap();
        let old = now - Duration::from_secs(61);
        for name in ["old.1", "busy.1", "used.1", "new.1"] {
            fs::create_dir_all(revision(name).work()).unwrap();
            fs::write(revision(name).output(), "x").unwrap();
            File::options().append(true).open(revision(name).output()).unwrap().set_modified(old).unwrap();
        }
        // Its script still runs.
        fs::remove_file(revision("new.1").output()).unwrap();
        revision("used.1").record_use(now).unwrap();
        let locks = SetupLocks::default();
        let busy = locks.try_lock(&revision("busy.1").dir);
        remove_unused(folder.path(), &locks, now - Duration::from_secs(60)).unwrap();
        drop(busy);
        let exists = ["old.1", "busy.1", "used.1", "new.1"].map(|name| revision(name).dir.exists());
        assert_eq!(exists, [false, true, true, true]);
    }

    #[test]
    fn a_script_gets_no_database_password() {
        let given = ["PATH", "GITHUB_TOKEN", "MCP_DELEGATOR_DATABASE_URL", "PGPASSWORD", "PGPASSFILE"];
        let given = given.map(|name| (name.into(), "x".into())).to_vec();
        let passed: Vec<_> = script_variables(&given).into_iter().map(|(name, _)| name).collect();
        assert_eq!(passed, ["PATH", "GITHUB_TOKEN"]);
    }

    #[test]
    fn the_message_quotes_the_last_line_of_the_output() {
        assert_eq!(quoted_line(b"  \n"), "");
        assert_eq!(quoted_line(b"a\nnpm: not found\n"), ": npm: not found");
        assert_eq!(quoted_line("\u{fc}".repeat(5000).as_bytes()).chars().count(), QUOTED_CHARS + 2);
    }
}
