//! Commands that stay with tasks until they end.
//!
//! Such a command says how it begins and what it answers when the wait is over; the waiting is done by whoever runs it:
//! in its own thread on the command line, all together in one thread in a server.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use serde_json::{Map, Value};

use crate::error::AppError;
use crate::outcome::CommandOutput;
use crate::run::Context;

#[derive(Debug, Clone, Copy)]
pub struct BlockingCommand {
    pub begin: fn(&Context<'_>, &Value) -> Result<Started, AppError>,
    pub end: fn(&Context<'_>, &Value, GroupWaitOutcome) -> Result<CommandOutput, AppError>,
}

/// How it began.
#[derive(Debug)]
pub enum Started {
    /// There is nothing to wait for.
    Finished(Box<CommandOutput>),
    Waiting(TaskWait),
}

/// What is awaited.
#[derive(Debug, Clone)]
pub struct TaskWait {
    pub ids: Vec<TaskId>,
    pub goal: WaitGoal,
    /// For how long; `None`: as long as it takes.
    pub timeout: Option<Duration>,
    /// What the beginning already knows about the answer.
    pub facts: Map<String, Value>,
}
