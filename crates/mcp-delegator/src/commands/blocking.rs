//! Commands that block until tasks end.
//!
//! Such a command defines its start and its end; the caller does the waiting in between. The command line waits in the
//! calling thread; a server waits for all calls in one thread.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use serde_json::{Map, Value};

use crate::commands::context::Context;
use crate::error::AppError;
use crate::output::outcome::CommandOutput;

#[derive(Debug, Clone, Copy)]
pub struct BlockingCommand {
    pub begin: fn(&Context<'_>, &Value) -> Result<Started, AppError>,
    pub end: fn(&Context<'_>, &Value, GroupWaitOutcome) -> Result<CommandOutput, AppError>,
}

/// Result of starting the command.
#[derive(Debug)]
pub enum Started {
    /// Finished; there is nothing to wait for.
    Finished(Box<CommandOutput>),
    Waiting(TaskWait),
}

/// The tasks to wait for.
#[derive(Debug, Clone)]
pub struct TaskWait {
    pub ids: Vec<TaskId>,
    pub goal: WaitGoal,
    /// `None`: no limit.
    pub timeout: Option<Duration>,
    /// Facts known at the start, added to the output.
    pub facts: Map<String, Value>,
}
