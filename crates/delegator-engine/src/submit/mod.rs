//! From a request to a started supervisor. A task is durable before any caller learns its id, so a crash at
//! any point loses no acknowledged task.

pub(crate) mod budget_use;
pub(crate) mod chain;
pub(crate) mod detach;
pub(crate) mod enclosure;
pub(crate) mod launch_file;
pub(crate) mod nesting;
pub(crate) mod promote;
pub(crate) mod submission;
pub(crate) mod submit_task;
pub(crate) mod thread_check;
pub(crate) mod verification;
pub(crate) mod worktree;
