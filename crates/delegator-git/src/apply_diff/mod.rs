//! Applies a diff to a work tree, three-way, all or nothing.
//!
//! ```text
//! diff ─▶ FileDiff ─▶ path checks ─▶ capture of the work tree (ours)
//!            └▶ base versions ─▶ git apply in our own index (theirs) ─▶ merge ─▶ ApplyReport
//! PreparedDiff: create_point ─▶ apply (`tree_writer`)
//! ```
//!
//! Everything is decided before anything is written. Index and HEAD change only with a commit, and changes of
//! the user are merged or reported as conflicts, never overwritten.

mod commit;
mod decide;
mod paths;
mod prepare;
mod report;
mod theirs;
mod versions;
mod write;

pub use commit::PlannedCommit;
pub use prepare::{ApplyRequest, PreparedDiff, prepare_diff};
pub use report::{AppliedFile, ApplyError, ApplyReport, Conflict, ConflictReason};
