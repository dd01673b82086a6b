//! Tasks of the fleet: what a submitter stores, and what the database reports about them.

use std::collections::BTreeMap;

use delegator_domain::environment::OnLost;
use delegator_domain::task::{FailureKind, LimitKind, Mode, State, TaskEnd};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::FleetError;

/// A worker claims only tasks whose specification has at most the version that it knows.
pub(crate) const SPEC_VERSION: i32 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFleetTask {
    /// Chosen by the submitter, so that it can repeat a submission whose answer was lost. See [`new_id`].
    pub id: String,
    pub idempotency: Option<IdempotencyKey>,
    pub spec: TaskSpec,
    /// Labels that the worker must have.
    pub labels: BTreeMap<String, String>,
    /// Tasks with a greater number run first.
    pub priority: i64,
    pub on_lost: OnLost,
    /// How often the task may be started if its workers are lost.
    pub max_claims: u32,
}

/// A key of the user, and the hash of the request that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    pub request_hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// The submitter's id of the environment.
    pub environment: String,
    pub repo_url: String,
    /// A branch, tag or commit; `None`: the default branch of the repository.
    pub branch: Option<String>,
    /// A script that prepares a checkout.
    pub setup: Option<String>,
    pub mode: Mode,
    /// Whether the changes are pushed as a branch.
    pub push: bool,
    pub text: String,
    /// The first line of the text, redacted.
    pub title: String,
    pub labels: BTreeMap<String, String>,
    /// The id that the task has on the machine that submitted it.
    pub submitter_task: Option<String>,
}

impl TaskSpec {
    pub(crate) fn parse(text: &str) -> Result<TaskSpec, FleetError> {
        parse_json("the specification of a task", text)
    }

    /// The task in a log: by the id that its submitter sees, if that is known, and by the fleet's own.
    pub fn log_name(&self, id: &str) -> String {
        match &self.submitter_task {
            Some(submitter_task) => format!("{submitter_task} ({id})"),
            None => id.to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The id of the task that has the idempotency key, which may be older than this submission.
    pub id: String,
    pub replayed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetTask {
    pub id: String,
    pub state: FleetState,
    /// Number of claims so far.
    pub attempt: i32,
    /// Who runs it, or ran it last.
    pub worker: Option<String>,
    pub created_at_ms: i64,
    pub started_at_ms: Option<i64>,
    pub ended_at_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetState {
    Queued,
    /// A worker prepares it; the agent does not run yet.
    Claimed,
    Running,
    Ended(Box<FleetEnd>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetEnd {
    pub end: TaskEnd,
    /// What the worker stored; `None` if the task ended without one.
    pub result: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct EndColumns {
    pub state: String,
    pub failure_kind: Option<String>,
    pub limit_kind: Option<String>,
    pub message: Option<String>,
    pub retry_at_ms: Option<i64>,
}

impl EndColumns {
    pub(crate) fn of(end: &TaskEnd) -> EndColumns {
        let columns = EndColumns { state: end.state().name().to_owned(), ..EndColumns::default() };
        match end {
            TaskEnd::Completed => columns,
            TaskEnd::Failed { kind, message, retry_at_ms } => EndColumns {
                failure_kind: Some(kind.name().to_owned()),
                message: Some(storable(message)),
                retry_at_ms: *retry_at_ms,
                ..columns
            },
            TaskEnd::Cancelled { reason } => {
                EndColumns { message: reason.as_deref().map(storable), ..columns }
            }
            TaskEnd::Timeout(limit) => EndColumns { limit_kind: Some(limit.name().to_owned()), ..columns },
        }
    }

    pub(crate) fn parse(self) -> Result<TaskEnd, FleetError> {
        let corrupt = |problem: String| FleetError::Corrupt { what: "the end of a task", problem };
        match State::from_name(&self.state) {
            Some(State::Completed) => Ok(TaskEnd::Completed),
            Some(State::Cancelled) => Ok(TaskEnd::Cancelled { reason: self.message }),
            Some(State::Timeout) => {
                let limit = self.limit_kind.as_deref().and_then(LimitKind::from_name);
                limit.map(TaskEnd::Timeout).ok_or_else(|| corrupt(format!("limit {:?}", self.limit_kind)))
            }
            Some(State::Failed) => {
                // A newer worker may report a kind that this program does not know.
                let kind = self.failure_kind.as_deref().and_then(FailureKind::from_name);
                Ok(TaskEnd::Failed {
                    kind: kind.unwrap_or(FailureKind::RemoteFailed),
                    message: self.message.unwrap_or_default(),
                    retry_at_ms: self.retry_at_ms,
                })
            }
            _ => Err(corrupt(format!("state {}", self.state))),
        }
    }
}

/// A random id for a task or a session.
pub fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A text as PostgreSQL can store it: without NUL.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

pub(crate) fn parse_json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, FleetError> {
    serde_json::from_str(text).map_err(|error| FleetError::Corrupt { what, problem: error.to_string() })
}

/// Labels as stored: equal maps give equal texts.
pub(crate) fn labels_text(labels: &BTreeMap<String, String>) -> String {
    serde_json::json!(labels).to_string()
}
