//! The only crate that runs git.
//!
//! A repository's configuration can name commands (fsmonitor, hooks, filters, external diffs, signing, credential
//! helpers) that git runs even for harmless queries. So git never reads a repository's configuration where a command
//! could come from it:
//!
//! - Files and indexes are processed in a **git directory of our own** (`scratch`): empty configuration, no hooks,
//!   the repository's object store, a copy of its index, its work tree. Our attributes file overrides the repository's
//!   and turns every conversion off, so files are stored and restored byte for byte.
//! - Only refs and HEAD are read and changed in the repository itself, with plumbing commands that run nothing but
//!   hooks, and hooks are disabled.
//!
//! git reads and writes its own files: work trees, objects, packs, refs. This crate reads two of git's formats itself: the
//! index (`index_file`), because no git command prints all of it, and HEAD (`opened`), because one process less is worth it.
//! Where HEAD is in doubt, git decides. See `docs/adr/0009-git-internals.md`.
//!
//! git gets an environment built here, a deadline and an output limit. It never gets a caller's `GIT_*` variables. Calls
//! that reach another repository (`remote`) use the user's own configuration, for credentials and proxies.
//!
//! ```text
//! find_repository ─▶ Repository ─▶ capture (index, work tree) ─▶ RestorePoint ─▶ ref
//!                                      restore: prepare_restore ─▶ PreparedRestore ─▶ create_undo_point ─▶ apply
//!                        ├▶ diff: prepare_diff ─▶ PreparedDiff ─▶ create_point ─▶ apply
//!                        └▶ Baseline ── the agent works ──▶ compare ─▶ Comparison ─▶ end state, beside the point
//!                                      RestorePoint, end state ─▶ diff_of_task ─▶ TreeDiff
//! RemoteUrl ─▶ Mirror ─▶ BaseCommit ─▶ checkout ─▶ TreeListing ── the agent works ──▶ WorkTreeDiff ─▶ push
//! ```

mod add_to_index;
mod apply;
mod apply_diff;
mod author;
mod baseline;
mod capture;
mod compare;
mod content_merge;
mod deleted_submodule;
mod diff;
mod directory_modes;
mod end_state;
mod error;
mod examine;
mod git_settings;
mod ignored;
mod index_file;
mod listing;
mod merge_packs;
mod opened;
mod read_file;
mod remote;
mod repository;
mod restore_plan;
mod restore_point;
mod restore_target;
mod run;
mod saved_state;
mod scratch;
mod settings;
mod setup_edits;
mod stamp;
mod state;
mod store;
mod task_changes;
mod task_diff;
mod three_way;
mod tracked;
mod tree_listing;
mod tree_writer;
mod unified_diff;
mod unique;
mod user_edits;
mod work_tree_diff;
mod worktree;
mod write_restore_point;

pub use apply_diff::{
    AppliedFile, ApplyError, ApplyReport, ApplyRequest, Conflict, ConflictReason, HunkRange, PlannedCommit,
    PreparedDiff, prepare_diff,
};
pub use baseline::Baseline;
pub use capture::{LeftOut, LeftOutReason, Limits};
pub use compare::{Commits, Comparison};
pub use deleted_submodule::EmptyWorkTree;
pub use diff::{ChangeKind, FileChange};
pub use end_state::{AgentChanges, Doubt};
pub use error::{EndStateProblem, GitError, RestoreError, WriteError};
pub use git_settings::{GitSettings, protected_settings};
pub use ignored::TOOL_DIRECTORIES;
pub use listing::display_path;
pub use merge_packs::{delete_dropped_objects, merge_packs};
pub use remote::{BaseCommit, Mirror, RemoteAccess, RemoteError, RemoteUrl, delete_unused_mirrors};
pub use repository::{Head, Repository, find_repository};
pub use restore_plan::{Plan, PreparedRestore, prepare_restore};
pub use restore_point::{
    CreatedPoint, RestorePoint, StoredIndex, StoredPoint, create_restore_point, drop_point, stored_points,
    stored_points_named,
};
pub use restore_target::{HeadTarget, KeepReason, Overlap, OverlapPart, RestoreScope};
pub use run::Git;
pub use task_diff::{DiffPaths, TreeDiff, diff_of_task, diff_until_now};
pub use tree_listing::TreeListing;
pub use tree_writer::{Operation, Recovery, recover_interrupted};
pub use unified_diff::{DiffHunk, FileDiff, NotADiff, parse_complete_diff, parse_unified_diff};
pub use unique::holds_unique_content;
pub use user_edits::PossibleEdit;
pub use work_tree_diff::{DiffText, NewCommit, WorkTreeDiff};
pub use worktree::{CreatedWorktree, TaskWorktree, WorktreeError, WorktreeSource, find_source};
