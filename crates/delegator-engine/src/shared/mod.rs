//! What several folders use: stored records and files of a task, directories, connections, the task of a
//! process.

pub(crate) mod agent_lookup;
pub(crate) mod allowed_paths;
pub(crate) mod connection_pool;
pub(crate) mod dashboard_address;
pub(crate) mod directories;
pub(crate) mod estimate;
pub(crate) mod format_version;
pub(crate) mod git_program;
pub(crate) mod mount_alias;
pub(crate) mod notifications;
pub(crate) mod screens;
pub(crate) mod snapshot_file;
pub(crate) mod task_of_process;
pub(crate) mod work_tree;
pub(crate) mod worker_contact;
