//! Queries about tasks, messages and answers to a running one, and what can be done with the result of one.
//! Most queries first make an upkeep pass, so that a task whose supervisor died is not reported as running.

pub(crate) mod apply;
pub(crate) mod groups;
pub(crate) mod import;
pub(crate) mod messages;
pub(crate) mod overview;
pub(crate) mod questions;
pub(crate) mod restore;
mod restore_settings;
pub(crate) mod task_queries;
pub(crate) mod worktree_quota;
pub(crate) mod worktrees;
