//! Removing launch files that nothing will start any more: they hold the prompt and the submitter's variables.
//!
//! A submit that was killed before its row was committed is known to be dead by its entry, and every pass over the
//! registry removes what it left. What has no entry (after a power cut, or of an earlier version) and launch files of ended
//! tasks are looked for once an hour, in all directories: that may take a while, so a process that serves waits does it on
//! a thread of its own.

use delegator_registry::{Registry, TaskDir};

use crate::Engine;
use crate::clock::now_ms;
use crate::error::EngineError;

const SCAN_EVERY_MS: i64 = 60 * 60 * 1000;

/// A submit that is under way has a directory and no row for a moment.
pub(crate) const MIN_LEFTOVER_AGE_MS: i64 = 60 * 60 * 1000;

/// Errors are left to the next pass: a directory that cannot be removed must not keep tasks from being rescued.
pub(crate) fn remove_dead_submits(registry: &mut Registry) {
    let _ = registry.remove_dead_submits();
}

impl Engine {
    /// Scans all directories, if no process did so in the last hour.
    pub(crate) fn remove_orphaned_launches(&self, registry: &mut Registry) -> Result<(), EngineError> {
        match registry.claim_periodic_job("leftovers", SCAN_EVERY_MS, now_ms())? {
            true => scan(registry),
            false => Ok(()),
        }
    }

    /// The same, without holding up the caller.
    pub(crate) fn remove_orphaned_launches_in_background(
        &self,
        registry: &mut Registry,
    ) -> Result<(), EngineError> {
        if !registry.claim_periodic_job("leftovers", SCAN_EVERY_MS, now_ms())? {
            return Ok(());
        }
        #[cfg(all(test, debug_assertions))]
        if crate::simulation::in_simulation(|_| ()).is_some() {
            return scan(registry);
        }
        let engine = self.clone();
        let scan_in_thread =
            move || engine.find_registry()?.map_or(Ok(()), |mut registry| scan(&mut registry));
        std::thread::Builder::new()
            .name("leftovers".to_owned())
            .spawn(scan_in_thread)
            .map(drop)
            .map_err(EngineError::io("start a thread"))
    }
}

fn scan(registry: &mut Registry) -> Result<(), EngineError> {
    let found = registry.orphaned_launches(now_ms() - MIN_LEFTOVER_AGE_MS)?;
    registry.remove_orphans(&found)?;
    Ok(())
}

/// Removes the wake socket of a supervisor.
pub(crate) fn remove_wake_socket(dir: &TaskDir) {
    if let Ok(Some(path)) = dir.published_socket() {
        let _ = std::fs::remove_file(path);
    }
}

/// Removes what a supervisor that was lost in between had put into its task's directory for comparing.
pub(crate) fn remove_scratch_dirs(dir: &TaskDir) {
    for entry in std::fs::read_dir(dir.path()).into_iter().flatten().flatten() {
        // Nothing else there is a directory.
        if entry.file_type().is_ok_and(|found| found.is_dir()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
