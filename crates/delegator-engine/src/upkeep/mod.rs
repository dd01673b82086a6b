//! Keeping the registry in order: rescue, cleanup, retention and removal of leftovers.
//!
//! There is no daemon, so every process that is alive performs upkeep: waiting calls and servers every few seconds,
//! supervisors every half minute, every other call once. A pass touches nothing that a live process owns: the lock of a
//! task proves that its supervisor is gone.
//!
//! May use `submit` (to start the next tasks) and nothing above.

pub(crate) mod clean;
pub(crate) mod leftovers;
pub(crate) mod process_owner;
pub(crate) mod queue_pause;
pub(crate) mod remove_directory;
pub(crate) mod rescue;
pub(crate) mod restore_record;
pub(crate) mod retained_points;
pub(crate) mod retention;
mod retention_clock;
