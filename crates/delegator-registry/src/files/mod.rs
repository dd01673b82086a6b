//! Files and directories: what is synced when, who may lock what, and where sockets go.

pub(crate) mod durable;
pub(crate) mod file_system;
pub(crate) mod lock;
pub(crate) mod reserve_file;
pub(crate) mod socket;
pub(crate) mod submit_entry;
pub(crate) mod task_dir;
