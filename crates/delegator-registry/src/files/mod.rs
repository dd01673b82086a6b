//! Files of the state directory: durable writes, task directories, locks, reserved space and socket paths.

pub(crate) mod durable;
pub(crate) mod file_system;
pub(crate) mod lock;
pub(crate) mod message_files;
pub(crate) mod reserve_file;
pub(crate) mod socket;
pub(crate) mod task_dir;
