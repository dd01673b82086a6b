//! The live view of all tasks: what they look like now, and what changes from then on.
//!
//! [`state`] is what all tasks look like at one moment. [`model`] reads it when the registry has changed and
//! records the differences in [`change_log`]. [`feed`] does that in one thread for all readers of a process:
//! a reader gets a snapshot and then the changes in their order, or another snapshot if it was too slow.

pub(crate) mod change_log;
pub(crate) mod feed;
mod model;
pub(crate) mod state;

#[cfg(all(test, debug_assertions))]
pub(crate) use model::{LiveModel, TaskReader};
