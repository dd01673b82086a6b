//! Commands that wait for tasks.
//!
//! Such a command starts something and returns which tasks to wait for and how to continue afterwards. The
//! caller does the waiting in between: the command line in the calling thread, a server for all calls in one
//! thread.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::WaitGoal;

#[derive(Debug, Clone)]
pub struct TaskWait {
    pub ids: Vec<TaskId>,
    pub goal: WaitGoal,
    /// `None`: no limit.
    pub timeout: Option<Duration>,
}
