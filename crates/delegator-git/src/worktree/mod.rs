//! Git worktrees in which tasks work without disturbing each other or the user.
//!
//! ```text
//! find_source ─▶ WorktreeSource ─▶ TaskWorktree ─ carry (uncommitted changes) ─▶ create ─ setup ─▶ record_setup
//!                                     the agent works ─▶ diff ─▶ WorkTreeDiff ─▶ branch, or apply_diff in the user's tree
//!                                     remove
//! ```
//!
//! A worktree is linked to a git directory that only its agent uses. It reads the objects of the user's
//! repository and writes to its own, so an enclosed agent needs no right to write in the repository. Commits
//! come over when a branch is created. Nothing that the repository configures is executed; files are written
//! byte for byte.
//!
//! The agent owns that git directory, so no git process of ours uses it: comparisons use a git directory and
//! an index of ours. What the worktree started from beyond its commit is in a store of ours. Older versions
//! created linked worktrees.

mod agent_files;
mod compare;
mod create;
mod finish;
mod source;
mod task_worktree;

pub use compare::ResultComparison;
pub use create::CreatedWorktree;
pub use source::{WorktreeError, WorktreeSource, find_source};
pub use task_worktree::TaskWorktree;
