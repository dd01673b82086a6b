//! Which of the files that a restore changes may hold edits of the user.
//!
//! Known from the state after the task: files that changed since, and files whose changes during the task are not
//! certainly the agent's. An edit that the user made during the task, in a file that the agent changed afterwards, leaves
//! no trace and is not found.

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

/// What is needed to find later changes, if a restore reverts them.
#[derive(Clone, Copy)]
pub(crate) struct LaterChanges<'a> {
    pub(crate) top_level: &'a Path,
    pub(crate) before: &'a TreeFiles,
    pub(crate) now: &'a TreeFiles,
}

impl LaterChanges<'_> {
    fn contain(&self, path: &RepoPath, end: &EndState) -> bool {
        match end.unread.get(path) {
            Some(stamp) => Stamp::at(&on_disk(self.top_level, path)) != *stamp,
            None => {
                let after = end.changed.get(path).map_or(self.before.get(path), Option::as_ref);
                self.now.get(path) != after
            }
        }
    }
}

/// The files that these changes concern and that may hold edits of the user.
pub(crate) fn possible_edits(
    changes: &TreeChanges,
    end: &EndState,
    later: Option<LaterChanges<'_>>,
) -> Vec<(String, PossibleEdit)> {
    let reason = |path: &RepoPath| {
        if later.is_some_and(|later| later.contain(path, end)) {
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
