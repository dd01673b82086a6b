//! Removes what dead processes left in task directories, above all launch files: they contain the prompt and
//! the submitter's variables.
//!
//! A submit that was killed before its row was committed is recognised by its entry. Files without an entry
//! (after a power cut) and launch files of ended tasks are found by an hourly scan of all directories, which
//! is slow, so a process that serves waits runs it on a separate thread.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use delegator_registry::{Registry, TaskDir, TaskFile};

use crate::shared::directories::remove_directory;

use crate::Engine;
use crate::error::Result;

const SCAN_INTERVAL_MS: i64 = 60 * 60 * 1000;

/// During a submit there is a directory without a row for a moment; only older ones are leftovers.
pub(crate) const MIN_LEFTOVER_AGE_MS: i64 = 60 * 60 * 1000;

/// Scans all directories, unless a process did so in the last hour.
pub(crate) fn remove_orphaned_launches(engine: &Engine, registry: &mut Registry) -> Result<()> {
    if registry.claim_periodic_job("leftovers", SCAN_INTERVAL_MS, engine.now_ms())? {
        scan(engine, registry)
    } else {
        Ok(())
    }
}

pub(crate) fn remove_orphaned_launches_in_background(engine: &Engine, registry: &mut Registry) -> Result<()> {
    if !registry.claim_periodic_job("leftovers", SCAN_INTERVAL_MS, engine.now_ms())? {
        return Ok(());
    }
    let cloned = engine.clone();
    let scan = move || cloned.find_registry()?.map_or(Ok(()), |mut registry| scan(&cloned, &mut registry));
    engine.system.run_in_background("leftovers", Box::new(scan))
}

fn scan(engine: &Engine, registry: &mut Registry) -> Result<()> {
    let found = registry.orphaned_launches(engine.now_ms() - MIN_LEFTOVER_AGE_MS)?;
    registry.remove_orphans(&found)?;
    Ok(())
}

pub(crate) fn remove_wake_socket(dir: &TaskDir) {
    if let Ok(Some(path)) = dir.published_socket() {
        let _ = std::fs::remove_file(path);
    }
}

/// Begins the names of the temporary directories of enclosed agents.
pub(crate) const TEMPORARY_DIR_PREFIX: &str = "delegator-";

/// Removes the temporary directory of an enclosed agent, if it has one. What cannot be removed stays.
pub(crate) fn remove_temporary_dir(dir: &TaskDir) {
    let Ok(Some(recorded)) = dir.read(TaskFile::TemporaryDir) else { return };
    let path = PathBuf::from(OsString::from_vec(recorded));
    let name = path.file_name().unwrap_or_default().as_bytes();
    // Created by another user, if it was there before.
    let is_ours = std::fs::symlink_metadata(&path)
        .is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw());
    if name.starts_with(TEMPORARY_DIR_PREFIX.as_bytes()) && is_ours {
        let _ = remove_directory(&path);
    }
    let _ = std::fs::remove_file(dir.file(TaskFile::TemporaryDir));
}

/// Removes temporary directories that a lost supervisor used to compare files, and texts of messages.
pub(crate) fn remove_scratch_dirs(dir: &TaskDir) {
    for entry in std::fs::read_dir(dir.path()).into_iter().flatten().flatten() {
        // A task directory has no other subdirectories.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
