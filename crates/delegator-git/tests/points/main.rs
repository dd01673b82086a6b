//! Restore points in real repositories of every kind.

#![expect(clippy::unwrap_used, reason = "a failed setup step should stop the test")]

mod apply_diff;
mod apply_diff_crash;
mod apply_diff_property;
mod comparing;
mod exact;
mod git_processes;
mod hidden;
mod hostile;
mod merging;
mod mirrors;
mod private;
mod random_trees;
mod repository_kinds;
mod restoring;
mod task_changes;
mod task_diff;
mod worktrees;
mod world;
