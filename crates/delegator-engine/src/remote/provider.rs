//! The port to the services that run tasks elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use delegator_domain::environment::{Environment, FleetObstacle};
pub use delegator_domain::event_page::{EventPage, EventPosition};
use delegator_domain::task::{Provider, TaskEnd, TaskId};
use delegator_registry::{Idempotency, RemoteRef, TaskDir, TaskFile, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::provider_error::ProviderError;
use crate::shared::format_version::{FormatVersion, encode, read_record};
use crate::supervise::task_report::Record;
use crate::worktrees::recorded::DiffOmissions;

/// A service that runs tasks in its environments.
///
/// Every call may take long and fails with [`ProviderError`]. A provider never invents a fact: an answer that
/// it does not understand is an error that contains the answer.
pub trait RemoteProvider: fmt::Debug + Send + Sync {
    /// A new id for a task, if the provider lets the submitter choose it. Then a submission may be repeated
    /// with the same id, and [`RemoteProvider::query`] and [`RemoteProvider::refuse`] decide whether an
    /// interrupted one was accepted.
    fn choose_id(&self) -> Option<String> {
        None
    }

    /// Starts a task. If this returns, the provider has accepted the task and will run it even if this
    /// process dies. The id is another than the chosen one if a task with the same idempotency key was
    /// accepted before.
    fn submit(&self, request: &RemoteRequest<'_>) -> Result<RemoteRef, ProviderError>;

    /// Makes final that a task whose id was chosen was not accepted: a submission that is still under way has
    /// no effect afterwards. False if the provider has accepted the task.
    fn refuse(&self, _task: &RemoteRef) -> Result<bool, ProviderError> {
        Ok(false)
    }

    /// What the provider knows about these tasks, in the same order; the error of one task does not affect
    /// the others. The end of a task is final: later calls report the same end.
    fn query(&self, tasks: &[RemoteRef]) -> Result<Vec<TaskAnswer>, ProviderError>;

    /// The diff of one of several attempts, the first being 1; `None` if it changed nothing.
    fn diff(&self, task: &RemoteRef, attempt: u8) -> Result<Option<Vec<u8>>, ProviderError>;

    /// Requests the end of a task; [`RemoteProvider::query`] reports the end later.
    fn cancel(&self, task: &RemoteRef, reason: Option<&str>) -> Result<CancelProgress, ProviderError>;

    /// Whether the events of a task are available while it runs and afterwards.
    fn has_events(&self) -> bool;

    /// The next events of a task, about `max_bytes` at most. If the task has ended, no bytes means that there
    /// are no more.
    fn events(
        &self,
        task: &RemoteRef,
        from: EventPosition,
        max_bytes: usize,
    ) -> Result<EventPage, ProviderError>;

    /// What keeps queued tasks from starting until an operator changes it, in the same order.
    fn obstacles(&self, tasks: &[RemoteRef]) -> Result<Vec<Option<FleetObstacle>>, ProviderError> {
        Ok(vec![None; tasks.len()])
    }

    /// How long to wait after this many queries about a task before the next one.
    fn query_interval(&self, queries: u32) -> Duration;
}

#[derive(Debug, Clone, Copy)]
pub struct RemoteRequest<'a> {
    /// The id of the task on this machine.
    pub task: &'a TaskId,
    /// What [`RemoteProvider::choose_id`] returned.
    pub id: Option<&'a str>,
    pub submission: &'a RemoteSubmission,
}

#[derive(Debug, Clone)]
pub struct RemoteSubmission {
    pub environment: Environment,
    pub text: String,
    pub attempts: u8,
    /// The branch to start from, for the fleet also a tag or commit; that of the environment, unless the
    /// caller named another.
    pub branch: Option<String>,
    /// The directory of the caller, to which the changes can be applied.
    pub working_dir: String,
    /// The first line of the text, redacted.
    pub title: String,
    pub agent: String,
    pub labels: BTreeMap<String, String>,
    /// The validated input without the text, for display and for retries.
    pub input: Value,
    pub idempotency: Option<Idempotency>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelProgress {
    /// Its agent runs until the provider has ended it.
    Ending,
    /// It waited and is cancelled, or it had ended before.
    Ended,
}

pub type TaskAnswer = Result<RemoteStatus, ProviderError>;

#[derive(Debug, Clone, PartialEq)]
pub enum RemoteStatus {
    Queued,
    Working {
        /// By the provider's clock.
        started_at_ms: Option<i64>,
    },
    Ended(Box<RemoteEnd>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct RemoteEnd {
    pub end: TaskEnd,
    pub record: Record,
    /// The unified diff of its changes; `None` if it changed nothing.
    pub diff: Option<Vec<u8>>,
    pub setup_output: Option<Vec<u8>>,
    pub facts: Option<ProviderRecord>,
    /// When its agent started, by the provider's clock.
    pub started_at_ms: Option<i64>,
    /// When it ended, by the provider's clock.
    pub at_ms: Option<i64>,
    pub tokens: Option<Tokens>,
}

/// What a provider reports about an ended task besides its report, stored as `remote.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderRecord {
    pub version: FormatVersion<1>,
    pub base_commit: Option<String>,
    /// The branch of that commit.
    pub branch: Option<String>,
    pub pushed_branch: Option<String>,
    pub worker: Option<String>,
    pub omissions: DiffOmissions,
}

impl ProviderRecord {
    pub(super) fn write(&self, dir: &TaskDir) -> Result<()> {
        let encoded = encode("encode the facts of a task", self)?;
        Ok(dir.write_durably(TaskFile::ProviderRecord, encoded.as_bytes())?)
    }

    pub(crate) fn read(dir: &TaskDir) -> Result<Option<ProviderRecord>> {
        read_record(dir, TaskFile::ProviderRecord)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Providers(BTreeMap<Provider, Arc<dyn RemoteProvider>>);

impl Providers {
    #[must_use]
    pub fn with(mut self, name: Provider, provider: Arc<dyn RemoteProvider>) -> Providers {
        self.0.insert(name, provider);
        self
    }

    pub(crate) fn get(&self, provider: Provider) -> Result<&dyn RemoteProvider, ProviderError> {
        let missing = || ProviderError::NotAvailable { provider, reason: "it is not configured".to_owned() };
        self.0.get(&provider).map(AsRef::as_ref).ok_or_else(missing)
    }
}
