//! The only crate that runs git.
//!
//! A repository's configuration can name commands (fsmonitor, hooks, filters, external diffs, signing,
//! credential helpers) that git runs even for harmless queries. So git never reads a repository's
//! configuration where a command could come from it:
//!
//! - Files and indexes are processed in a **git directory of our own** (`scratch`): empty configuration, no
//!   hooks, the repository's object store, a copy of its index, its work tree. Our attributes file overrides
//!   the repository's and turns every conversion off, so files are stored and restored byte for byte.
//! - Only refs and HEAD are read and changed in the repository itself, with plumbing commands that run
//!   nothing but hooks, and hooks are disabled.
//!
//! git reads and writes its own files: work trees, objects, packs, refs. This crate reads two of git's
//! formats itself: the index (`index`), because no git command prints all of it, and HEAD
//! (`repository::open`), because one process less is worth it. Where HEAD is in doubt, git decides. See
//! `docs/adr/0009-git-internals.md`.
//!
//! git gets an environment built here, a deadline and an output limit. It never gets a caller's `GIT_*`
//! variables. Calls that reach another repository (`remote`) use the user's own configuration, for
//! credentials and proxies.
//!
//! ```text
//! find_repository ─▶ Repository ─▶ capture (index, work tree) ─▶ RestorePoint ─▶ ref
//!                                      restore: prepare_restore ─▶ PreparedRestore ─▶ create_undo_point ─▶ apply
//!                        ├▶ diff: prepare_diff ─▶ PreparedDiff ─▶ create_point ─▶ apply
//!                        └▶ Baseline ── the agent works ──▶ compare ─▶ Comparison ─▶ end state, beside the point
//!                                      RestorePoint, end state ─▶ diff_of_task ─▶ TreeDiff
//! RemoteUrl ─▶ Mirror ─▶ BaseCommit ─▶ checkout ─▶ TreeListing ── the agent works ──▶ WorkTreeDiff ─▶ push
//! ```

mod apply_diff;
mod baseline;
mod capture;
mod diff;
mod error;
mod files;
mod index;
mod records;
mod remote;
mod repository;
mod restore;
mod restore_point;
mod run;
mod scratch;
mod task_diff;
mod tree_writer;
mod worktree;

pub use apply_diff::{
    AppliedFile, ApplyError, ApplyReport, ApplyRequest, Conflict, ConflictReason, PlannedCommit,
    PreparedDiff, prepare_diff,
};
pub use baseline::{Baseline, Commits, Comparison, CreatedPoint, create_restore_point};
pub use capture::{LeftOut, LeftOutReason, Limits, TOOL_DIRECTORIES};
pub use diff::{
    ChangeKind, DiffHunk, FileChange, FileDiff, HunkRange, NotADiff, parse_complete_diff, parse_unified_diff,
};
pub use error::{EndStateProblem, GitError, Operation, RestoreError, WriteError};
pub use records::display_path;
pub use remote::{BaseCommit, Mirror, RemoteAccess, RemoteError, RemoteUrl, delete_unused_mirrors};
pub use repository::{GitSettings, Head, Repository, find_repository, protected_settings};
pub use restore::{
    HeadTarget, KeepReason, Overlap, OverlapPart, Plan, PossibleEdit, PreparedRestore, RestoreScope,
    prepare_restore,
};
pub use restore_point::{
    AgentChanges, Doubt, EmptyWorkTree, RestorePoint, StoredIndex, StoredPoint, delete_dropped_objects,
    drop_point, holds_unique_content, merge_packs, stored_points, stored_points_named,
};
pub use run::Git;
pub use task_diff::{
    DiffPaths, DiffText, NewCommit, TaskCheckout, TreeDiff, TreeListing, WorkTreeDiff, diff_of_task,
    diff_until_now,
};
pub use tree_writer::{Recovery, recover_interrupted};
pub use worktree::{
    CreatedWorktree, ResultComparison, TaskWorktree, WorktreeError, WorktreeSource, find_source,
};
