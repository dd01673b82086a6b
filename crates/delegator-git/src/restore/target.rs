//! What a work tree shall be after a restore, and which paths a restore must not touch.
//!
//! Restoring the whole tree has the state before the task as its target. Restoring a task's changes has the
//! present state as its target, with these changes reverted (`task_changes`). Everything after that is the
//! same for both.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::capture::{Survey, TreeState};
use crate::error::{GitError, Result};
use crate::index::{IndexEntry, IndexFile};
use crate::records::{FileVersion, GITLINK, RepoPath, TreeFiles, display_path};
use crate::restore_point::{Doubt, EndState, RestorePoint, SavedState};
use crate::scratch::Scratch;
use crate::tree_writer::TreeChanges;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreScope {
    /// Everything, including what changed after the task.
    WholeTree,
    /// The changes of the task. Refused where later changes overlap.
    TaskChanges,
    /// The changes of a restore, if the restore point is its undo point. Refused where later changes overlap.
    RestoreChanges,
}

/// Why a path that differs is left unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeepReason {
    #[error("a submodule")]
    Submodule,
    #[error("it was left out of the restore point")]
    LeftOut,
    #[error("its present content could not be stored")]
    NotStorable,
    #[error("it was ignored in the state of the restore point")]
    IgnoredBefore,
    #[error("a file in place of a directory")]
    FileInPlaceOfDirectory,
    #[error("changed after the task")]
    ChangedLater,
    #[error("changed after the restore")]
    ChangedAfterRestore,
    #[error("changed during the task, but nothing attributes it to the agent")]
    NotByAgent,
}

/// A change of the task, or of a restore, that was changed again: it cannot be reverted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overlap {
    /// Relative to the top of the work tree; empty for the work tree itself.
    pub path: PathBuf,
    pub part: OverlapPart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverlapPart {
    /// The file in the work tree: its content, its type, or whether it exists.
    File,
    /// The permission bits of a file or directory.
    Permissions,
    Index,
    /// HEAD or its branch, of the whole work tree.
    Head,
}

impl Overlap {
    pub(crate) fn new(path: &[u8], part: OverlapPart) -> Overlap {
        Overlap { path: OsStr::from_bytes(path).into(), part }
    }
}

#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) files: TreeFiles,
    pub(crate) survey: Survey,
    pub(crate) index: IndexTarget,
    pub(crate) keep: Vec<(String, KeepReason)>,
    pub(crate) merged: Vec<String>,
    /// Where changes of the task and later changes overlap. If there are any, nothing may be restored.
    pub(crate) overlaps: Vec<Overlap>,
    pub(crate) head: HeadTarget,
}

#[derive(Debug)]
pub(crate) enum IndexTarget {
    Unchanged,
    /// The index of the restore point.
    Saved(IndexFile),
    /// The present index with other entries for some paths.
    Edited(IndexEdits),
}

#[derive(Debug, Default)]
pub(crate) struct IndexEdits {
    /// All entries of these paths are replaced.
    pub(crate) paths: BTreeSet<RepoPath>,
    pub(crate) entries: Vec<IndexEntry>,
}

/// Whether HEAD or its branch has to move to reach the state before the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadTarget {
    Unchanged,
    /// A restore of HEAD moves it.
    Moves,
    /// The task moved it, and it was moved again: a restore of HEAD is refused.
    Overlaps,
    /// It was moved during the task, but not certainly by the agent: it stays.
    NotByAgent,
}

impl Target {
    pub(crate) fn whole_tree(
        point: &RestorePoint,
        files: TreeFiles,
        saved: SavedState,
        present: &TreeState,
        has_head_moved: bool,
    ) -> Target {
        let is_index_same = !saved.index_differs(point, &present.index);
        Target {
            files,
            survey: saved.survey,
            index: if is_index_same { IndexTarget::Unchanged } else { IndexTarget::Saved(saved.index) },
            keep: Vec::new(),
            merged: Vec::new(),
            overlaps: Vec::new(),
            head: if has_head_moved { HeadTarget::Moves } else { HeadTarget::Unchanged },
        }
    }
}

#[derive(Debug)]
pub(crate) struct Untouchable {
    pub(crate) left_out_before: BTreeSet<String>,
    pub(crate) left_out_now: BTreeSet<String>,
    ignored_before: BTreeSet<RepoPath>,
}

impl Untouchable {
    pub(crate) fn find(
        scratch: &Scratch,
        point: &RestorePoint,
        saved: &SavedState,
        present: &TreeState,
        before: &TreeFiles,
        now: &TreeFiles,
    ) -> Result<Untouchable> {
        let removable = now.keys().filter(|path| !before.contains_key(*path)).map(Vec::as_slice);
        let mut ignored_before = ignored_before(scratch, before, &removable.collect::<Vec<_>>())?;
        ignored_before.retain(|path| !saved.written.contains(path));
        let left_out_now = present.captured.files.left_out.iter().map(|entry| entry.path.clone());
        Ok(Untouchable {
            left_out_before: point.left_out.iter().map(|entry| entry.path.clone()).collect(),
            left_out_now: left_out_now.collect(),
            ignored_before,
        })
    }

    /// Why a path must stay although its version before the task and the present one differ.
    pub(crate) fn reason(&self, path: &RepoPath, versions: [Option<&FileVersion>; 2]) -> Option<KeepReason> {
        let name = display_path(path);
        if versions.into_iter().flatten().any(|(mode, _)| mode == GITLINK) {
            Some(KeepReason::Submodule)
        } else if self.left_out_before.contains(&name) {
            Some(KeepReason::LeftOut)
        } else if self.left_out_now.contains(&name) {
            Some(KeepReason::NotStorable)
        } else if self.ignored_before.contains(path) {
            Some(KeepReason::IgnoredBefore)
        } else {
            None
        }
    }
}

/// Returns those of the paths that the ignore files of the restore point match.
fn ignored_before(scratch: &Scratch, before: &TreeFiles, paths: &[&[u8]]) -> Result<BTreeSet<RepoPath>> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rules_dir = scratch.path("rules");
    fs::create_dir(&rules_dir).map_err(GitError::io("create", &rules_dir))?;
    let rules = before.iter().filter(|(path, _)| *path == b".gitignore" || path.ends_with(b"/.gitignore"));
    let index = "rules-index";
    scratch.fill_index(index, rules)?;
    let prefix = format!("--prefix={}/", rules_dir.display());
    scratch.run(index, ["checkout-index", "--all", "--force", &prefix], b"")?;
    scratch.ignored_in(index, &rules_dir, paths)
}

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
