//! Submits a task to a provider: row first, then the provider, then the provider's id in the row, so that a
//! task that the provider accepted is never lost.
//!
//! The submitting process holds the lock of the task: a row whose provider has not reported yet and whose
//! lock is free belongs to an interrupted submission. If the submitter chose the id, the id is in the row
//! before the call, so the provider decides whether it has the task; otherwise that is unknown.

use std::time::Duration;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{FailureKind, Provider, TaskEnd, TaskId, TaskLocation};
use delegator_registry::{
    Finish, LockAttempt, NewTask, Registry, RemoteEnvironment, RemoteRef, RemoteReport, Submission, Task,
};

use super::provider::{RemoteProvider, RemoteRequest, RemoteSubmission};
use crate::error::{EngineError, Result};
use crate::provider_error::ProviderError;
use crate::shared::notifications::task_notify;
use crate::shared::task_of_process::own_task;
use crate::submit::chain::without_key;
use crate::submit::nesting::check_mode;
use crate::upkeep::rescue::may_lock_soon;
use crate::{Engine, RemoteTasks};

/// Pauses before a submission without an answer is repeated with the same id.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

impl RemoteTasks<'_> {
    /// Submits a task. If the provider refuses it, there is no task. If there is no answer, the error names
    /// the task: the next query decides whether the provider has it, or the task has failed if no query can
    /// decide that.
    pub fn submit(&self, submission: &RemoteSubmission) -> Result<Submission> {
        let provider = submission.environment.provider;
        if let (Provider::Fleet, Some(caller)) =
            (provider, own_task(self.engine)?.and_then(|caller| caller.task))
        {
            check_mode(&caller, submission.environment.mode)?;
        }
        let service = self.engine.providers.get(provider).map_err(EngineError::provider(provider, None))?;
        let (mut registry, submitted) = self.engine.system.with_fresh_id(TaskLocation::Cloud, |id| {
            let mut registry = self.engine.open_registry()?;
            let task = NewTask { notify: task_notify(self.engine)?, ..new_task(submission, id) };
            let submitted = registry.submit(&task, b"", self.engine.now_ms())?;
            Ok((registry, submitted))
        })?;
        let id = submitted.task.id.clone();
        if submitted.replayed {
            return repeat_submission(self.engine, &mut registry, submission, submitted.task);
        }
        let lock = registry.dir().task(&id).try_lock()?;
        let chosen = service.choose_id();
        if let Some(chosen) = &chosen {
            let reference = RemoteRef { id: chosen.clone(), url: None };
            registry.accept_remote(&id, &reference, self.engine.now_ms())?;
        }
        crash_point(CrashPoint::BeforeResponse);
        let accepted = call_submit(self.engine, service, submission, &id, chosen.as_deref());
        let outcome = match accepted {
            Ok(accepted) => {
                let replayed = chosen.as_ref().is_some_and(|chosen| *chosen != accepted.id);
                registry.accept_remote(&id, &accepted, self.engine.now_ms())?;
                if chosen.is_some() {
                    // Distinguishes a task that the provider has from one with an id that was only chosen.
                    registry.record_remote(&id, &RemoteReport::Queued, self.engine.now_ms())?;
                }
                let task = registry.get(&id)?.unwrap_or(submitted.task);
                Ok(Submission { task, replayed })
            }
            Err(error) if error.may_have_accepted() => {
                if chosen.is_none() {
                    let end = unconfirmed(provider, &error.to_string());
                    registry.record_remote(&id, &end, self.engine.now_ms())?;
                }
                Err(EngineError::provider(provider, Some(&id))(error))
            }
            Err(error) => Err(EngineError::provider(provider, None)(error)),
        };
        drop(lock);
        if let Err(EngineError::Provider { task: None, .. }) = &outcome {
            registry.withdraw_remote(&id, chosen.as_deref())?;
        }
        outcome
    }
}

/// The task that already has the idempotency key. If its own submission got no answer, it is submitted
/// again with the same id: otherwise the answer would be that a task is accepted which the provider may
/// not have.
fn repeat_submission(
    engine: &Engine,
    registry: &mut Registry,
    submission: &RemoteSubmission,
    task: Task,
) -> Result<Submission> {
    let provider = submission.environment.provider;
    let chosen = task.remote.as_ref().and_then(|remote| remote.accepted.as_ref());
    let chosen = chosen
        .filter(|_| !task.state.is_terminal() && is_unreported(&task) && lets_choose_ids(engine, provider));
    let (Some(chosen), LockAttempt::Locked(_lock)) = (chosen, registry.dir().task(&task.id).try_lock()?)
    else {
        return Ok(Submission { task, replayed: true });
    };
    let service = engine.providers.get(provider);
    let accepted =
        service.and_then(|service| call_submit(engine, service, submission, &task.id, Some(&chosen.id)));
    let accepted = accepted.map_err(EngineError::provider(provider, Some(&task.id)))?;
    registry.accept_remote(&task.id, &accepted, engine.now_ms())?;
    registry.record_remote(&task.id, &RemoteReport::Queued, engine.now_ms())?;
    Ok(Submission { task: registry.get(&task.id)?.unwrap_or(task), replayed: true })
}

/// Repeated without an answer if the id was chosen here. If any call had none, the task may be accepted.
fn call_submit(
    engine: &Engine,
    service: &dyn RemoteProvider,
    submission: &RemoteSubmission,
    task: &TaskId,
    chosen: Option<&str>,
) -> Result<RemoteRef, ProviderError> {
    let request = RemoteRequest { task, id: chosen, submission };
    let mut pauses = RETRY_PAUSES.into_iter().filter(|_| chosen.is_some());
    let mut unanswered = None;
    loop {
        let error = match service.submit(&request) {
            Ok(accepted) => return Ok(accepted),
            Err(error) => error,
        };
        let pause = pauses.next().filter(|_| error.is_transient());
        if unanswered.is_none() && error.may_have_accepted() {
            unanswered = Some(error.clone());
        }
        match pause {
            Some(pause) => engine.system.sleep(pause),
            None => return Err(unanswered.unwrap_or(error)),
        }
    }
}

pub(super) fn lets_choose_ids(engine: &Engine, provider: Provider) -> bool {
    engine.providers.get(provider).is_ok_and(|service| service.choose_id().is_some())
}

/// Ends a task whose submission was interrupted. The provider does not have the task, or it is unknown
/// under which id. Returns the error of a provider that could not confirm that.
pub(super) fn end_interrupted_submission(
    engine: &Engine,
    registry: &mut Registry,
    task: &Task,
    provider: Provider,
) -> Result<Option<ProviderError>> {
    if may_lock_soon(engine, task.created_at_ms) {
        return Ok(None);
    }
    let LockAttempt::Locked(_lock) = registry.dir().task(&task.id).try_lock()? else { return Ok(None) };
    // The submission may have completed before the lock was taken.
    let Some(current) = registry.get(&task.id)?.filter(is_unreported) else { return Ok(None) };
    let accepted = current.remote.and_then(|remote| remote.accepted);
    if accepted.as_ref() != task.remote.as_ref().and_then(|remote| remote.accepted.as_ref()) {
        return Ok(None);
    }
    let end = match accepted {
        Some(reference) => {
            match engine.providers.get(provider).and_then(|service| service.refuse(&reference)) {
                Ok(true) => not_accepted(provider),
                // It was accepted meanwhile; the next query reports about it.
                Ok(false) => return Ok(None),
                Err(error) => return Ok(Some(error)),
            }
        }
        None if lets_choose_ids(engine, provider) => not_accepted(provider),
        None => unconfirmed(provider, "the submission was interrupted"),
    };
    registry.record_remote(&task.id, &end, engine.now_ms())?;
    Ok(None)
}

fn new_task(submission: &RemoteSubmission, id: TaskId) -> NewTask {
    NewTask {
        id,
        working_dir: submission.working_dir.clone(),
        work_trees: Vec::new(),
        allow_parallel_writes: true,
        mode: submission.environment.mode,
        sandbox: None,
        agent: submission.agent.clone(),
        fallbacks: 0,
        model: None,
        title: submission.title.clone(),
        text: submission.text.clone(),
        labels: submission.labels.clone(),
        input: without_key(submission.input.clone()),
        resumed_thread: None,
        idempotency: submission.idempotency.clone(),
        environment: Some(RemoteEnvironment {
            provider: submission.environment.provider,
            id: submission.environment.id.clone(),
        }),
        worktree: None,
        follows: None,
        group: None,
        notify: None,
    }
}

/// To run the task again could run it twice, so that is left to the user.
fn unconfirmed(provider: Provider, cause: &str) -> RemoteReport {
    let what = format!("it is unknown whether {} has accepted the task", provider.description());
    failure(FailureKind::SubmissionUnconfirmed, &what, cause)
}

fn not_accepted(provider: Provider) -> RemoteReport {
    let what = format!("{} has not accepted the task", provider.description());
    failure(FailureKind::NotAccepted, &what, "its submission was interrupted")
}

pub(super) fn failure(kind: FailureKind, what: &str, cause: &str) -> RemoteReport {
    let end = TaskEnd::failed(kind, format!("{what}: {cause}"));
    let finish = Finish { summary: Some(format!("Failed: {what}")), ..Finish::bare(end) };
    RemoteReport::Ended { finish, started_at_ms: None, at_ms: None }
}

/// Whether the provider has never confirmed that it has the task.
pub(super) fn is_unreported(task: &Task) -> bool {
    task.remote.as_ref().is_some_and(|remote| remote.checks == 0)
}
