//! Deletes old tasks from the database, and unused mirrors and prepared checkouts from the workspace.
//!
//! It works beside the heartbeats: deleting much takes longer than a heartbeat may wait.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime};

use delegator_git::{GitError, delete_unused_mirrors};

use crate::setup::remove_unused;
use crate::worker_state::WorkerState;
use crate::workspace::{SetupLocks, WorkspaceDirs};

/// A mirror or prepared checkout that no task used for so long is deleted.
const UNUSED_AFTER: Duration = Duration::from_secs(14 * 24 * 3600);
const WORKSPACE_INTERVAL: Duration = Duration::from_secs(3600);

#[derive(Debug, Default)]
pub(crate) struct Pruning {
    /// The problems of the thread that runs.
    running: Option<Receiver<Vec<String>>>,
    /// When the workspace was pruned last.
    workspace_at: Option<Instant>,
    has_failed: bool,
}

impl Pruning {
    /// Begins to prune, unless that is under way. The worker does not wait for the thread, not even when it
    /// exits.
    pub(crate) fn begin(&mut self, shared: &WorkerState<'_>) {
        if let Some(running) = &self.running {
            match running.try_recv() {
                Err(TryRecvError::Empty) => return,
                Ok(problems) => self.note_problems(shared, &problems),
                Err(TryRecvError::Disconnected) => {}
            }
        }
        let (sender, receiver) = channel();
        let (database, retention, now) = (shared.database.clone(), shared.settings.retention, shared.now());
        let files =
            self.is_workspace_due().then(|| (shared.workspace.dirs.clone(), Arc::clone(&shared.setups)));
        let spawned = std::thread::Builder::new().name("prune".to_owned()).spawn(move || {
            let pruned = database.prune(&retention).err();
            let mut problems: Vec<String> = pruned
                .iter()
                .map(|error| format!("could not delete old tasks from the fleet's database: {error}"))
                .collect();
            let pruned = files.and_then(|(dirs, locks)| delete_unused(&dirs, &locks, now).err());
            problems.extend(
                pruned.map(|error| format!("could not delete unused files of the workspace: {error}")),
            );
            // The session may have ended meanwhile.
            let _ = sender.send(problems);
        });
        match spawned {
            Ok(_) => self.running = Some(receiver),
            Err(error) => {
                self.running = None;
                self.note_problems(shared, &[format!("could not start to delete old tasks: {error}")]);
            }
        }
    }

    fn is_workspace_due(&mut self) -> bool {
        let is_due = self.workspace_at.is_none_or(|last| last.elapsed() >= WORKSPACE_INTERVAL);
        if is_due {
            self.workspace_at = Some(Instant::now());
        }
        is_due
    }

    /// Another worker, or this one later, deletes what is due; but the operator should know.
    fn note_problems(&mut self, shared: &WorkerState<'_>, problems: &[String]) {
        if !self.has_failed {
            for message in problems {
                shared.report_problem(message.clone());
            }
        }
        self.has_failed = !problems.is_empty();
    }
}

/// Deletes unused mirrors and prepared checkouts: they grow with the repositories and environments that the
/// worker has ever used.
///
/// Checkouts read the objects of their mirror, and each of them begins with a use of it. So the mirrors
/// that were not used are free, unless there is a task that is as old.
fn delete_unused(dirs: &WorkspaceDirs, locks: &SetupLocks, now: SystemTime) -> Result<(), GitError> {
    let Some(used_before) = now.checked_sub(UNUSED_AFTER) else { return Ok(()) };
    let failed = |path| move |source| GitError::Io { doing: "delete unused files of", path, source };
    remove_unused(&dirs.setups(), locks, used_before).map_err(failed(dirs.setups()))?;
    let tasks = fs::read_dir(dirs.tasks()).map_err(failed(dirs.tasks()))?.flatten();
    let mut begun_at = tasks.map(|task| task.metadata().and_then(|found| found.modified()));
    // What cannot be examined counts as old.
    if begun_at.any(|time| !time.is_ok_and(|time| time >= used_before)) {
        Ok(())
    } else {
        delete_unused_mirrors(&dirs.mirrors(), used_before)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn unused_mirrors_are_deleted_unless_a_task_is_as_old() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let dirs = &workspace.dirs;
        let mirror = dirs.mirrors().join("app-1.git");
        fs::create_dir(&mirror).unwrap();
        fs::write(mirror.with_extension("lock"), "").unwrap();
        let task = dirs.tasks().join("t-1");
        fs::create_dir(&task).unwrap();
        let locks = SetupLocks::default();
        let now = fs::metadata(&task).unwrap().modified().unwrap();
        delete_unused(dirs, &locks, now).unwrap();
        assert!(mirror.exists(), "it was used today");
        let later = now + UNUSED_AFTER + Duration::from_secs(1);
        delete_unused(dirs, &locks, later).unwrap();
        assert!(mirror.exists(), "the task may still read its objects");
        File::open(&task).unwrap().set_modified(later).unwrap();
        delete_unused(dirs, &locks, later).unwrap();
        assert!(!mirror.exists());
    }
}
