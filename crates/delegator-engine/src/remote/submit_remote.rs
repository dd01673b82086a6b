//! Submits a task to a provider: row first, then the provider, then the provider's id in the row.
//!
//! The row comes first, so that a task that the provider accepted is never lost. The submitting process holds the lock of
//! the task: a row without an id whose lock is free belongs to a submission that was interrupted, and it is unknown whether
//! the provider accepted it.

use std::collections::BTreeMap;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{FailureKind, Mode, Provider, TaskEnd, TaskId, TaskLocation};
use delegator_registry::{
    Finish, Idempotency, LockAttempt, NewTask, Registry, RemoteEnvironment, RemoteReport, Submission, Task,
};
use serde_json::Value;

use super::provider::RemoteRequest;
use crate::Engine;
use crate::error::EngineError;
use crate::provider_error::ProviderError;
use crate::submit::submission::without_key;

/// A task for an environment of a provider.
#[derive(Debug, Clone)]
pub struct RemoteSubmission {
    pub environment: RemoteEnvironment,
    pub text: String,
    pub attempts: u8,
    pub branch: Option<String>,
    pub mode: Mode,
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

impl Engine {
    /// Submits a task. If the provider refuses it, there is no task. If it is unknown whether the provider accepted it, the
    /// task has failed, and the error names it.
    pub fn submit_remote(&self, submission: &RemoteSubmission) -> Result<Submission, EngineError> {
        let provider = submission.environment.provider;
        let service = self.providers.get(provider).map_err(|error| provider_error(provider, None, error))?;
        let (mut registry, submitted) = self.with_fresh_id(TaskLocation::Cloud, |id| {
            let mut registry = self.open_registry()?;
            let submitted = registry.submit(&new_task(submission, id), b"", self.now_ms())?;
            Ok((registry, submitted))
        })?;
        let id = submitted.task.id.clone();
        if submitted.replayed {
            return Ok(submitted);
        }
        let lock = registry.dir().task(&id).try_lock()?;
        crash_point(CrashPoint::BeforeResponse);
        let request = RemoteRequest {
            environment: &submission.environment.id,
            text: &submission.text,
            attempts: submission.attempts,
            branch: submission.branch.as_deref(),
        };
        let accepted = service.submit(&request);
        let outcome = match accepted {
            Ok(accepted) => {
                registry.accept_remote(&id, &accepted, self.now_ms())?;
                let task = registry.get(&id)?.unwrap_or(submitted.task);
                Ok(Submission { task, replayed: false })
            }
            Err(error) if error.may_have_accepted() => {
                record_unconfirmed(&mut registry, &id, provider, &error.to_string(), self.now_ms())?;
                Err(provider_error(provider, Some(&id), error))
            }
            Err(error) => Err(provider_error(provider, None, error)),
        };
        drop(lock);
        if let Err(EngineError::Provider { task: None, .. }) = &outcome {
            registry.withdraw_remote(&id)?;
        }
        outcome
    }

    /// Ends a task whose submission was interrupted before the provider's id was recorded.
    pub(super) fn end_interrupted_submission(
        &self,
        registry: &mut Registry,
        task: &Task,
        provider: Provider,
    ) -> Result<(), EngineError> {
        if self.may_lock_soon(task.created_at_ms) {
            return Ok(());
        }
        let LockAttempt::Locked(_lock) = registry.dir().task(&task.id).try_lock()? else { return Ok(()) };
        // The submission may have completed before the lock was taken.
        let now = registry.get(&task.id)?;
        if now.and_then(|task| task.remote).is_some_and(|remote| remote.accepted.is_none()) {
            record_unconfirmed(
                registry,
                &task.id,
                provider,
                "the submission was interrupted",
                self.now_ms(),
            )?;
        }
        Ok(())
    }
}

fn new_task(submission: &RemoteSubmission, id: TaskId) -> NewTask {
    NewTask {
        id,
        working_dir: submission.working_dir.clone(),
        work_trees: Vec::new(),
        allow_parallel_writes: true,
        mode: submission.mode,
        mode_enforced: true,
        agent: submission.agent.clone(),
        model: None,
        title: submission.title.clone(),
        text: submission.text.clone(),
        labels: submission.labels.clone(),
        input: without_key(submission.input.clone()),
        resumed_thread: None,
        idempotency: submission.idempotency.clone(),
        environment: Some(submission.environment.clone()),
    }
}

/// It is unknown whether the provider has accepted the task. To run it again could run it twice, so that is left to the user.
fn record_unconfirmed(
    registry: &mut Registry,
    id: &TaskId,
    provider: Provider,
    cause: &str,
    now_ms: i64,
) -> Result<(), EngineError> {
    let message = format!("it is unknown whether {} has accepted the task: {cause}", provider.description());
    let end = TaskEnd::Failed { kind: FailureKind::SubmissionUnconfirmed, message, retry_at_ms: None };
    let summary =
        Some(format!("Failed: it is unknown whether {} has accepted the task", provider.description()));
    let finish = Finish { summary, ..Finish::bare(end) };
    registry.record_remote(id, &RemoteReport::Ended { finish, at_ms: None }, now_ms)?;
    Ok(())
}

pub(crate) fn provider_error(
    provider: Provider,
    task: Option<&TaskId>,
    source: ProviderError,
) -> EngineError {
    EngineError::Provider { provider, task: task.cloned(), source }
}
