//! Commands that wait for tasks.
//!
//! Such a command starts something and returns which tasks to wait for and how to continue afterwards. The
//! caller does the waiting in between: the command line in the calling thread, a server for all calls in one
//! thread.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};

use crate::commands::context::Context;
use crate::commands::local::{run, wait};
use crate::error::AppError;
use crate::output::outcome::CommandOutput;

/// Result of starting a command.
#[derive(Debug)]
pub enum Started {
    /// Finished; there is nothing to wait for.
    Finished(Box<CommandOutput>),
    Waiting(TaskWait, AfterWait),
}

impl From<CommandOutput> for Started {
    fn from(output: CommandOutput) -> Started {
        Started::Finished(Box::new(output))
    }
}

/// The tasks to wait for.
#[derive(Debug, Clone)]
pub struct TaskWait {
    pub ids: Vec<TaskId>,
    pub goal: WaitGoal,
    /// `None`: no limit.
    pub timeout: Option<Duration>,
}

/// How a command continues after its wait.
#[derive(Debug)]
pub enum AfterWait {
    Run {
        id: TaskId,
        /// The task was found by its idempotency key.
        replayed: bool,
    },
    Wait(wait::ResolvedWait),
}

impl AfterWait {
    pub fn output(
        &self,
        context: &Context<'_>,
        outcome: GroupWaitOutcome,
    ) -> Result<CommandOutput, AppError> {
        match self {
            AfterWait::Run { replayed, .. } => run::after_wait(context, outcome, *replayed),
            AfterWait::Wait(wait) => wait::after_wait(context, outcome, wait),
        }
    }
}
