//! Creates the worktree of an isolated task before its agent starts: the files of the commit, the user's
//! uncommitted changes, copies of untracked files, then the setup script. Its output is the setup log of the
//! task. It can be cancelled and counts neither as idle time nor as running time of the agent.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use delegator_domain::task::{ExitStatus, FailureKind, TaskEnd};
use delegator_domain::text::last_line;
use delegator_git::{CreatedWorktree, Git, GitError, TaskWorktree, WorktreeError};
use delegator_registry::{TaskDir, TaskFile, WorktreeEvent};
use delegator_supervisor::agent::{locate, variable};
use delegator_supervisor::run::Ports;
use delegator_supervisor::setup_script::{SetupEnd, SetupScript};

use super::run_ports::TaskPorts;
use crate::error::{EngineError, IsolationError, Result};
use crate::shared::directories::remove_directory;
use crate::shared::git_program::git;
use crate::shared::work_tree::untrusted_trees;
use crate::submit::launch_file::Launch;
use crate::worktrees::plan::WorktreePlan;
use crate::worktrees::recorded::{RecordedWorktree, WorktreeChanges, WorktreeState, worktree_changes};

/// For git. Writing a hundred thousand files takes seconds.
const GIT_LIMIT: Duration = Duration::from_secs(10 * 60);
/// Installing the dependencies of a large project takes minutes.
const SETUP_LIMIT: Duration = Duration::from_secs(30 * 60);
/// How soon a cancelled step ends.
const CANCEL_POLL: Duration = Duration::from_millis(100);
const QUOTED_CHARS: usize = 300;

enum StepError {
    Failed(FailureKind, String),
    Cancelled,
}

impl<T: Into<EngineError>> From<T> for StepError {
    fn from(error: T) -> StepError {
        match error.into() {
            EngineError::Isolation(IsolationError::Worktree(WorktreeError::Git(GitError::Cancelled {
                ..
            }))) => StepError::Cancelled,
            error => StepError::Failed(FailureKind::CheckoutFailed, error.to_string()),
        }
    }
}

/// The error is the end of a task that cannot begin.
pub(super) fn prepare_worktree(launch: &Launch, ports: &TaskPorts) -> Result<(), TaskEnd> {
    let Some(plan) = &launch.settings.worktree else { return Ok(()) };
    let cancel = AtomicBool::new(false);
    let step = Step { plan, launch, dir: &ports.dir, cancel: &cancel };
    step.prepare(ports).map_err(|error| match error {
        StepError::Cancelled => {
            TaskEnd::Cancelled { reason: ports.cancel_requested().and_then(|request| request.reason) }
        }
        StepError::Failed(kind, cause) => TaskEnd::failed(kind, cause),
    })
}

struct Step<'a> {
    plan: &'a WorktreePlan,
    launch: &'a Launch,
    dir: &'a TaskDir,
    cancel: &'a AtomicBool,
}

impl Step<'_> {
    fn prepare(&self, ports: &TaskPorts) -> Result<(), StepError> {
        let (owner, worktree) = (&self.plan.owner, &self.plan.worktree);
        let recorded = RecordedWorktree::read(&ports.registry.borrow(), owner)?;
        let state = recorded.map(|recorded| recorded.state);
        if state == Some(WorktreeState::Present) {
            self.store_start(
                || worktree_changes(&ports.registry.borrow(), owner, &self.launch.variables),
                ports,
            );
            return Ok(());
        }
        if *owner != ports.id {
            if state != Some(WorktreeState::Unchanged) {
                return Err(IsolationError::Gone { task: owner.clone() }.into());
            }
            self.store_start(|| Ok(WorktreeChanges::default()), ports);
            // A supervisor that was killed while it created it again left these.
            for left in [&worktree.path, &worktree.own_dir()] {
                remove_directory(left).map_err(EngineError::io("remove the worktree"))?;
            }
        }
        let created = self.create_and_record(ports)?;
        self.in_background(ports, || self.fill(created))
    }

    /// Stores what earlier tasks changed in the worktree, so that the own changes can be shown without it.
    fn store_start(&self, changes: impl FnOnce() -> Result<WorktreeChanges>, ports: &TaskPorts) {
        if self.plan.owner == ports.id || !self.launch.settings.run.mode.writes() {
            return;
        }
        let stored = changes().and_then(|changes| match changes.too_large {
            Some(_) => Ok(()),
            None => Ok(self.dir.write(TaskFile::StartDiff, &changes.diff)?),
        });
        // The task does not need it: without it a comparison is refused.
        let _: Result<()> = stored;
    }

    /// Runs a part of the step in another thread, so that a request to cancel is noticed.
    fn in_background<T: Send>(
        &self,
        ports: &TaskPorts,
        work: impl FnOnce() -> Result<T, StepError> + Send,
    ) -> Result<T, StepError> {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            scope.spawn(move || sender.send(work()));
            loop {
                match receiver.recv_timeout(CANCEL_POLL) {
                    Ok(outcome) => return outcome,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        if ports.cancel_requested().is_some() {
                            self.cancel.store(true, Ordering::Relaxed);
                        }
                    }
                    // Only a panic drops the sender without a message; the scope reports it.
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Err(StepError::Cancelled),
                }
            }
        })
    }

    /// Creates the worktree and records it when it is complete: the missing files of an incomplete one would
    /// look like changes of the agent. Returns what the user should know about it.
    fn create_and_record(&self, ports: &TaskPorts) -> Result<CreatedWorktree, StepError> {
        let git = self.git()?;
        let created = self.in_background(ports, || {
            let created = self.plan.worktree.create(&git, self.dir.path())?;
            if self.cancel.load(Ordering::Relaxed) { Err(StepError::Cancelled) } else { Ok(created) }
        });
        let recorded = created.and_then(|created| {
            let now_ms = ports.engine.now_ms();
            let mut registry = ports.registry.borrow_mut();
            registry.record_worktree(&self.plan.owner, WorktreeEvent::Created, now_ms)?;
            Ok(created)
        });
        if recorded.is_err() {
            // What cannot be removed now is removed by `discard`, or with the task.
            let _ = remove_directory(&self.plan.worktree.path);
            let _ = remove_directory(&self.plan.worktree.own_dir());
            let _ = self.plan.worktree.remove(&git);
        }
        recorded
    }

    fn git(&self) -> Result<Git> {
        git(&self.launch.variables, &self.plan.worktree.source.repository.top_level, GIT_LIMIT)
    }

    /// Copies files and runs the setup script in a new worktree.
    fn fill(&self, created: CreatedWorktree) -> Result<(), StepError> {
        let mut log = String::new();
        if created.has_submodules {
            log += "The submodules of the repository are not checked out in the worktree.\n";
        }
        if created.has_lfs_pointers {
            log += "Files that Git LFS manages are pointers in the worktree.\n";
        }
        let copied = copy_files(&self.plan.worktree, &self.plan.copy)
            .map_err(EngineError::io("copy files to the worktree"))?;
        log.extend(copied.iter().map(|path| format!("Copied {path}.\n")));
        self.write_log(log.as_bytes())?;
        if let Some(script) = &self.plan.setup {
            self.run_setup(script, log)?;
        }
        if self.plan.setup.is_some() || !copied.is_empty() {
            delegator_registry::make_private_path(&self.plan.worktree.store)
                .map_err(EngineError::io("create the directory for the state after the setup"))?;
            let recorded = self.plan.worktree.record_setup(&self.git()?, self.dir.path());
            recorded.map_err(WorktreeError::from)?;
        }
        Ok(())
    }

    fn write_log(&self, log: &[u8]) -> Result<()> {
        if !log.is_empty() {
            self.dir.write(TaskFile::Setup, log)?;
        }
        Ok(())
    }

    fn run_setup(&self, script: &str, log: String) -> Result<(), StepError> {
        let worktree = &self.plan.worktree;
        let mut variables = self.launch.variables.clone();
        variables.push(("SOURCE_TREE".into(), worktree.source.repository.top_level.clone().into()));
        let failed = |cause| StepError::Failed(FailureKind::SetupFailed, cause);
        let shell =
            locate(OsStr::new("bash"), variable(&variables, "PATH"), &untrusted_trees([&*worktree.path]));
        let shell = shell.map_err(|problem| failed(format!("bash could not be started: {problem}")))?;
        let file = self.dir.path().join("worktree-setup");
        fs::write(&file, script).map_err(EngineError::io("write the setup script"))?;
        let setup = SetupScript {
            mark: self.dir.id(),
            shell: &shell,
            script: &file,
            working_dir: &worktree.path,
            variables: &variables,
            limit: SETUP_LIMIT,
        };
        let run = setup.run(self.cancel).map_err(EngineError::io("run the setup script"))?;
        let _ = fs::remove_file(&file);
        let output = self.launch.redactor().redact_str(&String::from_utf8_lossy(&run.output)).into_owned();
        self.write_log((log + &output).as_bytes())?;
        let cause = match run.end {
            SetupEnd::Exited(ExitStatus::Code(0)) => return Ok(()),
            SetupEnd::Cancelled => return Err(StepError::Cancelled),
            SetupEnd::TimedOut => format!("did not end within {} minutes", SETUP_LIMIT.as_secs() / 60),
            SetupEnd::Exited(ExitStatus::Code(code)) => format!("failed with exit code {code}"),
            SetupEnd::Exited(ExitStatus::Signal(signal)) => format!("was killed by signal {signal}"),
        };
        let quoted = last_line(&output, QUOTED_CHARS).map(|line| format!(": {line}"));
        Err(failed(format!("the setup of the worktree {cause}{}", quoted.unwrap_or_default())))
    }
}

/// Existing files, links and what lies outside of the work tree are left out.
fn copy_files(worktree: &TaskWorktree, patterns: &[String]) -> io::Result<Vec<String>> {
    let top = &worktree.source.repository.top_level;
    let mut copied = Vec::new();
    for pattern in patterns {
        let full = format!("{}/{pattern}", glob::Pattern::escape(&top.display().to_string()));
        let matches = glob::glob(&full).map_err(io::Error::other)?;
        for path in matches.filter_map(Result::ok) {
            let Ok(inside) = path.strip_prefix(top) else { continue };
            let target = worktree.path.join(inside);
            if is_copied(&path, inside) && fs::symlink_metadata(&target).is_err() {
                fs::create_dir_all(target.parent().unwrap_or(&worktree.path))?;
                fs::copy(&path, &target)?;
                copied.push(inside.display().to_string());
            }
        }
    }
    Ok(copied)
}

fn is_copied(path: &Path, inside: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    is_file && inside.components().all(|part| part.as_os_str() != ".git" && part.as_os_str() != "..")
}
