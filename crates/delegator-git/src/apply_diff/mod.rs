//! Applies a diff to a work tree, three-way, all or nothing.
//!
//! ```text
//! diff ─▶ sections ─▶ path checks ─▶ capture of the work tree (ours)
//!            └▶ base versions ─▶ git apply in our own index (theirs) ─▶ merge ─▶ ApplyReport
//! PreparedDiff::apply: restore point ─▶ new files in a staging directory ─▶ one rename per file
//! ```
//!
//! Everything is decided before anything is written. Index and HEAD never change, and changes of the user are merged or
//! reported as conflicts, never overwritten.

mod commit;
mod conflict_hunks;
mod decide;
mod line_endings;
mod paths;
mod prepare;
mod report;
mod sections;
mod staging;
mod theirs;
mod versions;
mod write;

pub use commit::PlannedCommit;
pub use prepare::{ApplyRequest, PreparedDiff, prepare_diff};
pub use report::{AppliedFile, ApplyError, ApplyReport, Conflict, ConflictReason, HunkRange};
pub(crate) use write::remove_empty_parents;
