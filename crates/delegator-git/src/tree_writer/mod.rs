//! The only way in which a user's work tree, index and branches are changed: completely, or not at all.
//!
//! ```text
//! open: lock, finish what a killed process left ─▶ stage new files ─▶ journal ─▶ steps ─▶ refs ─▶ decided ─▶ index
//! ```
//!
//! If a step fails, all steps are taken back. If the process is killed, the next one that opens the work tree
//! takes the steps back, or completes the operation if it was decided. Files that the user edits meanwhile
//! stay as they are and are named. Everything is in a directory inside the git directory, which exists as
//! long as an operation has not ended.

mod journal;
mod recover;
mod steps;
mod writer;

pub(crate) use journal::RefChange;
pub use recover::{Recovery, recover_interrupted};
pub(crate) use steps::TreeChanges;
pub(crate) use writer::{TreeWriter, WritePlan};
