//! Waiting for tasks to end, and cancelling them.
//!
//! [`blocking`] waits in the calling thread, [`wait_thread`] serves many waits of one process from one
//! thread. Both run [`wait_loop`], which watches tasks through [`task_watch`], queries providers
//! ([`remote_watch`]) and makes upkeep passes. Ending a wait never ends the task; only
//! [`cancel`] does.
//!
//! This is the highest folder: it may use all others.

pub(crate) mod blocking;
pub(crate) mod cancel;
mod change_events;
mod remote_watch;
mod task_watch;
pub(crate) mod wait_loop;
pub mod wait_thread;
