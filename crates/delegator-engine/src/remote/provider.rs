//! The port to the services that run tasks elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use delegator_domain::task::{Provider, TaskEnd};
use delegator_registry::{RemoteRef, Tokens};

use crate::provider_error::ProviderError;
use crate::supervise::task_report::Record;

/// A service that runs tasks in its environments.
///
/// Every call may take long and fails with [`ProviderError`]. A provider never invents a fact: an answer that it does not
/// understand is an error that contains the answer.
pub trait RemoteProvider: fmt::Debug + Send + Sync {
    /// Starts a task. If this returns, the provider has accepted the task and will run it even if this process dies.
    fn submit(&self, request: &RemoteRequest<'_>) -> Result<RemoteRef, ProviderError>;

    /// What the provider knows about these tasks, in the same order; the error of one task does not affect the others. The
    /// end of a task is final: later calls report the same end.
    fn query(&self, tasks: &[RemoteRef]) -> Result<Vec<TaskAnswer>, ProviderError>;

    /// The diff of one of several attempts, the first being 1; `None` if it changed nothing.
    fn diff(&self, task: &RemoteRef, attempt: u8) -> Result<Option<String>, ProviderError>;

    /// Requests the end of a task; [`RemoteProvider::query`] reports the end later.
    fn cancel(&self, task: &RemoteRef, reason: Option<&str>) -> Result<(), ProviderError>;

    /// Whether the events of a task are available while it runs and afterwards.
    fn has_events(&self) -> bool;

    /// How long to wait after this many queries about a task before the next one.
    fn query_interval(&self, queries: u32) -> Duration;
}

/// A task for a provider.
#[derive(Debug, Clone, Copy)]
pub struct RemoteRequest<'a> {
    /// The provider's own id of the environment.
    pub environment: &'a str,
    pub text: &'a str,
    /// Number of solutions to try.
    pub attempts: u8,
    pub branch: Option<&'a str>,
}

/// The answer to a query about one task.
pub type TaskAnswer = Result<RemoteStatus, ProviderError>;

/// What a provider reports about a task.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoteStatus {
    Queued,
    Working,
    Ended(Box<RemoteEnd>),
}

/// How a task ended, and what it did.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteEnd {
    pub end: TaskEnd,
    pub record: Record,
    /// The unified diff of its changes; `None` if it changed nothing.
    pub diff: Option<String>,
    /// When it ended, by the provider's clock.
    pub at_ms: Option<i64>,
    pub tokens: Option<Tokens>,
}

/// The providers that an engine can use.
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
