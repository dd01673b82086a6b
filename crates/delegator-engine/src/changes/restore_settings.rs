//! Reverts changes of git's own settings (configuration, hooks, attributes) that were made during a task. A
//! file that is not as the task left it is an overlap, which refuses the whole restore. An undo writes back
//! what the task had left.

use std::path::PathBuf;

use delegator_domain::task::{FailureKind, TaskEnd, TaskId};
use delegator_git::{GitSettings, Overlap, OverlapPart};
use delegator_registry::Registry;

use crate::error::{EngineError, Result};
use crate::restore_points::lookup::FoundPoints;
use crate::restore_points::record::RestorePointRecord;

#[derive(Debug)]
pub(super) struct SettingsRestore {
    /// The files to write, each with the settings to write it from.
    files: Vec<(PathBuf, GitSettings)>,
    /// The supervisor was lost, so what the task left is not known.
    is_lost: bool,
}

impl SettingsRestore {
    pub(super) fn check(
        task: &TaskId,
        registry: Option<&Registry>,
        record: &RestorePointRecord,
        whole_tree: bool,
        undo: bool,
    ) -> Result<SettingsRestore> {
        let is_lost = whole_tree && is_lost(task, registry)?;
        let (mut files, mut overlaps) = (Vec::new(), Vec::new());
        for recorded in &record.settings {
            let (before, now) = (&recorded.before, recorded.before.read_again());
            let (from, to) = match (&recorded.after, undo) {
                (Some(after), false) => (after, before),
                (Some(after), true) if recorded.is_restored => (before, after),
                (None, false) if is_lost => (&now, before),
                _ => continue,
            };
            for path in from.differing_files(to).filter(|path| to.is_stored(path)) {
                if now.agrees_on(path, to) {
                    continue;
                }
                if whole_tree || now.agrees_on(path, from) {
                    files.push((path.clone(), to.clone()));
                } else {
                    overlaps.push(Overlap { path: path.clone(), part: OverlapPart::File });
                }
            }
        }
        if !overlaps.is_empty() {
            return Err(EngineError::RestoreOverlap { overlaps });
        }
        // The same file may be recorded for a repository and its submodule. A link is removed before files
        // are written to the directory that it replaced.
        files.sort_by_key(|(path, to)| (to.contains(path), path.clone()));
        files.dedup_by(|a, b| a.0 == b.0);
        Ok(SettingsRestore { files, is_lost })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.files.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Writes the files, after the record says which way.
    pub(super) fn apply(&self, found: &mut FoundPoints, undo: bool) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        for recorded in &mut found.record.settings {
            if self.is_lost && recorded.after.is_none() {
                recorded.after = Some(recorded.before.read_again());
            }
            recorded.is_restored = !undo;
        }
        found.save_record()?;
        for (path, to) in &self.files {
            to.write(path).map_err(EngineError::io("restore the settings of git"))?;
        }
        Ok(())
    }
}

fn is_lost(task: &TaskId, registry: Option<&Registry>) -> Result<bool> {
    let row = registry.map(|registry| registry.get(task)).transpose()?.flatten();
    let end = row.and_then(|row| row.ended).map(|ended| ended.end);
    Ok(matches!(end, Some(TaskEnd::Failed { kind: FailureKind::SupervisorLost, .. })))
}
