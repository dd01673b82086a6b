//! The tasks of this machine that belong to attempts, and their checkouts.
//!
//! A local error says nothing about an agent, which runs in a process of its own. So a query is repeated
//! until it has an answer, and a checkout counts as unused only when the registry says that its tasks have
//! ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_engine::{EngineError, remove_directory};
use delegator_fleet::OwnedTask;
use delegator_registry::{Filter, Task};

use crate::attempt_control::{AttemptControl, NOT_OWNED};
use crate::decisions::back_off;
use crate::worker_state::WorkerState;
use crate::workspace::Workspace;

const CANCEL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one step of it waits: the worker may be stopped for good meanwhile.
const CANCEL_STEP: Duration = Duration::from_secs(1);

/// Repeats a local call until it has an answer. `None` if the attempt is lost, or if the worker was stopped
/// for good.
pub(crate) fn repeat_local<T>(
    shared: &WorkerState<'_>,
    control: &AttemptControl,
    mut call: impl FnMut() -> Result<T, EngineError>,
) -> Option<T> {
    let mut failures = 0;
    loop {
        let error = match call() {
            Ok(done) => return Some(done),
            Err(error) => error,
        };
        if control.is_lost() || shared.signals.is_abandoning() {
            return None;
        }
        failures += 1;
        if failures == 1 {
            let task = &control.log_name;
            shared.report_problem(format!("could not look for {task} here: {error}; trying again"));
        }
        control.pause(back_off(failures));
    }
}

/// Cancels the tasks that work in a directory, and waits for their end. False if they may still run.
pub(crate) fn end_local_tasks(shared: &WorkerState<'_>, dir: &Path) -> bool {
    let deadline = Instant::now() + CANCEL_TIMEOUT;
    let mut failures = 0;
    while !shared.signals.is_abandoning() {
        let problem = match cancel_tasks(shared, dir) {
            Ok(true) => return true,
            Ok(false) => "it still runs".to_owned(),
            Err(error) => error.to_string(),
        };
        failures += 1;
        let pause = back_off(failures);
        if Instant::now() + pause >= deadline {
            shared.report_problem(format!("could not stop the task in {}: {problem}", dir.display()));
            return false;
        }
        shared.pause(pause);
    }
    false
}

/// Whether no task works in the directory; if one does, it is cancelled.
fn cancel_tasks(shared: &WorkerState<'_>, dir: &Path) -> Result<bool, EngineError> {
    let ids: Vec<_> = unfinished_in(shared, dir)?.into_iter().map(|task| task.id).collect();
    if ids.is_empty() {
        return Ok(true);
    }
    shared.engine.cancellations().cancel_all(&ids, Some(NOT_OWNED), CANCEL_STEP)?;
    Ok(unfinished_in(shared, dir)?.is_empty())
}

fn unfinished_in(shared: &WorkerState<'_>, dir: &Path) -> Result<Vec<Task>, EngineError> {
    let filter = Filter { working_dir: Some(dir.display().to_string()), ..Filter::default() };
    shared.engine.results().unfinished_tasks(&filter)
}

pub(crate) fn remove_checkout(shared: &WorkerState<'_>, dir: &Path) {
    if let Err(error) = remove_directory(dir) {
        shared.report_problem(format!("could not remove {}: {error}", dir.display()));
    }
}

/// The directories of attempts that no longer belong to this worker.
pub(crate) fn leftovers(workspace: &Workspace, owned: &[OwnedTask]) -> Vec<PathBuf> {
    let owned: BTreeSet<_> = owned.iter().map(|task| workspace.attempt(&task.claim)).collect();
    let entries = std::fs::read_dir(workspace.dirs.tasks()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| !owned.contains(path)).collect()
}

/// Stops the task of a checkout, and removes it when the task has ended.
pub(crate) fn remove_leftover(shared: &WorkerState<'_>, dir: &Path) {
    if end_local_tasks(shared, dir) {
        remove_checkout(shared, dir);
    }
}
