//! Which of the files that a restore changes may hold edits of the user.
//!
//! Known from the state after the task: files that changed since, and files whose changes during the task are
//! not certainly the agent's. An edit that the user made during the task, in a file that the agent changed
//! afterwards, leaves no trace and is not found.

use std::path::Path;

use super::target::KeepReason;
use crate::file_version::TreeFiles;
use crate::records::{RepoPath, display_path, on_disk};
use crate::restore_point::{Doubt, EndState};
use crate::stamp::Stamp;
use crate::tree_writer::TreeChanges;

/// Why a file that a restore changes may hold edits of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PossibleEdit {
    /// It changed after the task, or after the restore that is undone.
    #[error("changed later")]
    Later,
    /// It changed during the task, and nothing attributes that to the agent.
    #[error("{}", KeepReason::NotByAgent)]
    NotByAgent,
    /// It changed during the task, and not certainly by the agent alone.
    #[error("{0}")]
    Doubtful(Doubt),
}

/// Whether a file changed after the task.
pub(crate) fn is_changed_later(
    top_level: &Path,
    path: &RepoPath,
    end: &EndState,
    before: &TreeFiles,
    now: &TreeFiles,
) -> bool {
    match end.unread.get(path) {
        Some(stamp) => Stamp::at(&on_disk(top_level, path)) != *stamp,
        None => now.get(path) != end.changed.get(path).map_or(before.get(path), Option::as_ref),
    }
}

/// The files that these changes concern and that may hold edits of the user. Only a restore of the whole tree
/// reverts files that changed later.
pub(crate) fn possible_edits(
    changes: &TreeChanges,
    end: &EndState,
    is_changed_later: impl Fn(&RepoPath) -> bool,
) -> Vec<(String, PossibleEdit)> {
    let reason = |path: &RepoPath| {
        if is_changed_later(path) {
            Some(PossibleEdit::Later)
        } else if end.agent.unattributed.contains(path) {
            Some(PossibleEdit::NotByAgent)
        } else {
            end.agent.doubtful.get(path).copied().map(PossibleEdit::Doubtful)
        }
    };
    let paths = changes.write.keys().chain(&changes.remove);
    paths.filter_map(|path| Some((display_path(path), reason(path)?))).collect()
}
