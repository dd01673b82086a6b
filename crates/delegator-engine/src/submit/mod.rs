//! From a request to a started supervisor.
//!
//! [`submission`] checks a request, stores the task and starts what may start. [`promote`] claims queued tasks and starts
//! one detached supervisor process per claim ([`detach`]). A task is durable before any caller learns its id, so a crash
//! at any point loses no acknowledged task.
//!
//! This is the lowest folder: it must not use any other.

pub(crate) mod agent_lookup;
pub(crate) mod allowed_dir;
pub(crate) mod allowed_file;
pub(crate) mod budget_use;
pub(crate) mod caller;
pub(crate) mod chain;
pub(crate) mod detach;
pub(crate) mod disk_usage;
pub(crate) mod enclosure;
pub(crate) mod estimate;
pub(crate) mod fallback;
pub(crate) mod git_program;
pub(crate) mod launch;
pub(crate) mod mount_alias;
pub(crate) mod nesting;
pub(crate) mod notifications;
pub(crate) mod promote;
pub(crate) mod remove_directory;
pub(crate) mod submission;
pub(crate) mod thread_check;
pub(crate) mod verification;
pub(crate) mod work_tree;
pub(crate) mod worker_contact;
pub(crate) mod worktree;
