//! Waiting for tasks to end.
//!
//! [`blocking`] waits in the calling thread, [`wait_thread`] serves many waits of one process from one
//! thread. Both run [`wait_loop`]. Ending a wait never ends the task; only `cancel` does.

pub(crate) mod blocking;
mod change_events;
mod remote_watch;
mod task_watch;
pub(crate) mod wait_loop;
pub mod wait_thread;
