//! Removes the checkouts of attempts that have ended, and of those that no longer belong to this worker.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use delegator_engine::remove_directory;
use delegator_fleet::OwnedTask;

use crate::local_tasks::end_local_tasks;
use crate::port::WorkerEvent;
use crate::shared::Shared;
use crate::workspace::Workspace;

pub(crate) fn remove_checkout(shared: &Shared<'_>, dir: &Path) {
    if let Err(error) = remove_directory(dir) {
        let message = format!("could not remove {}: {error}", dir.display());
        shared.report(&WorkerEvent::Problem { message });
    }
}

/// The directories of attempts that no longer belong to this worker.
pub(crate) fn leftovers(workspace: &Workspace, owned: &[OwnedTask]) -> Vec<PathBuf> {
    let owned: BTreeSet<_> = owned.iter().map(|task| workspace.attempt(&task.claim)).collect();
    let entries = std::fs::read_dir(workspace.tasks()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| !owned.contains(path)).collect()
}

/// Stops the task of a checkout, and removes it when the task has ended.
pub(crate) fn remove_leftover(shared: &Shared<'_>, dir: &Path) {
    if end_local_tasks(shared, dir) {
        remove_checkout(shared, dir);
    }
}
