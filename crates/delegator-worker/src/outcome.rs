//! How an attempt ended, before it is reported.

use delegator_domain::task::{FailureKind, TaskEnd, TaskId};
use delegator_engine::EngineError;

use crate::attempt_control::{AttemptControl, Stop};
use crate::attempt_files::PreparedAttempt;

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The task has ended: report it.
    Ended(Box<Ended>),
    /// The task goes back to the queue; its agent was not started.
    Released,
    /// The task cannot be continued: report the worker as lost for it.
    GivenUp(String),
    /// The task belongs to others: report nothing.
    Dropped,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: TaskEnd,
    /// `None` if the repository could not be checked out.
    pub(crate) base: Option<PreparedAttempt>,
    /// The task of this machine; `None` if the agent was not started.
    pub(crate) local: Option<TaskId>,
    pub(crate) setup_output: Option<Vec<u8>>,
    /// What the worker could not do for the task.
    pub(crate) warnings: Vec<String>,
}

impl Ended {
    pub(crate) fn new(end: TaskEnd) -> Ended {
        Ended { end, base: None, local: None, setup_output: None, warnings: Vec::new() }
    }
}

impl Outcome {
    pub(crate) fn internal(error: &EngineError) -> Outcome {
        Outcome::Ended(Box::new(Ended::new(TaskEnd::failed(FailureKind::Internal, error.to_string()))))
    }

    /// Whether the task here has ended, as far as the worker knows.
    pub(crate) fn is_ended_here(&self) -> bool {
        matches!(self, Outcome::Ended(ended) if ended.local.is_some())
    }
}

/// The outcome of an attempt that was stopped before its agent was started.
pub(crate) fn stopped(control: &AttemptControl) -> Outcome {
    match control.stop() {
        Some(Stop::Cancel { reason }) => Outcome::Ended(Box::new(Ended::new(TaskEnd::Cancelled { reason }))),
        Some(Stop::CutOff) => Outcome::GivenUp("the worker had no connection to the database".to_owned()),
        Some(Stop::Lost) => Outcome::Dropped,
        Some(Stop::Release) | None => Outcome::Released,
    }
}
