//! How an attempt ended, before it is reported.

use delegator_domain::task::{FailureKind, TaskEnd, TaskId};

use super::attempt_control::{AttemptControl, Stop};
use super::attempt_files::PreparedAttempt;
use crate::error::EngineError;

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The task has ended: report it.
    Ended(Box<Ended>),
    /// The task goes back to the queue; its agent was not started.
    Released,
    /// The task cannot be continued: report the worker as lost for it.
    GivenUp(String),
    /// The task belongs to others: report nothing.
    Dropped,
}

/// A task that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: TaskEnd,
    /// `None` if the repository could not be checked out.
    pub(super) base: Option<PreparedAttempt>,
    /// The task of this machine; `None` if the agent was not started.
    pub(super) local: Option<TaskId>,
    pub(super) setup_output: Option<Vec<u8>>,
    /// What the worker could not do for the task.
    pub(super) warnings: Vec<String>,
}

impl Ended {
    pub(super) fn new(end: TaskEnd) -> Ended {
        Ended { end, base: None, local: None, setup_output: None, warnings: Vec::new() }
    }
}

impl Outcome {
    pub(super) fn internal(error: &EngineError) -> Outcome {
        Outcome::Ended(Box::new(Ended::new(failed(FailureKind::Internal, error.to_string()))))
    }

    /// Whether the task here has ended, as far as the worker knows.
    pub(super) fn is_ended_here(&self) -> bool {
        matches!(self, Outcome::Ended(ended) if ended.local.is_some())
    }
}

/// The outcome of an attempt that was stopped before its agent was started.
pub(super) fn stopped(control: &AttemptControl) -> Outcome {
    match control.stop() {
        Some(Stop::Cancel { reason }) => Outcome::Ended(Box::new(Ended::new(TaskEnd::Cancelled { reason }))),
        Some(Stop::CutOff) => Outcome::GivenUp("the worker had no connection to the database".to_owned()),
        Some(Stop::Lost) => Outcome::Dropped,
        Some(Stop::Release) | None => Outcome::Released,
    }
}

pub(super) fn failed(kind: FailureKind, message: String) -> TaskEnd {
    TaskEnd::Failed { kind, message, retry_at_ms: None }
}
