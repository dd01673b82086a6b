//! Restores a work tree: to its state before a task, or without the changes of the task.

mod apply;
mod plan;
mod target;
mod task_changes;

pub use plan::{Plan, PreparedRestore, prepare_restore};
pub use target::{HeadTarget, KeepReason, Overlap, OverlapPart, PossibleEdit, RestoreScope};
