//! Asks providers about their unfinished tasks, and records the answers; cancels their tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use delegator_domain::environment::FleetObstacle;
use delegator_domain::task::{FailureKind, Provider, State, TaskEnd, TaskId, TaskLocation};
use delegator_registry::{Finish, Registry, RemoteRef, RemoteReport, RemoteTask, Task, TaskFile};

use super::event_mirror::{lock_files, mirror_for_progress};
use super::provider::{CancelProgress, RemoteEnd, RemoteStatus};
use super::submit_remote::{end_interrupted_submission, failure, is_unreported, lets_choose_ids};
use crate::error::{EngineError, Result};
use crate::provider_error::{ProviderError, UnsupportedAction};
use crate::shared::format_version::encode;
use crate::supervise::summary::one_sentence_summary;
use crate::supervise::task_report::changed_lines;
use crate::upkeep::delivery::start_delivery_if_due;
use crate::{Engine, RemoteTasks};

/// A provider deletes a task days after its end. If it does not know a younger task, the configuration
/// probably names another provider, and the task must not end because of that.
const GONE_AFTER_MS: i64 = 24 * 3600 * 1000;

/// A provider that could not be queried. What is recorded about its tasks may be outdated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderProblem {
    pub provider: Provider,
    /// The task, if the provider answered about others.
    pub task: Option<TaskId>,
    pub error: ProviderError,
}

impl ProviderProblem {
    pub(crate) fn for_task(&self, id: &TaskId) -> EngineError {
        EngineError::provider(self.provider, Some(id))(self.error.clone())
    }

    pub(crate) fn concerns(&self, task: &Task) -> bool {
        let is_provider = |remote: &RemoteTask| remote.environment.provider == self.provider;
        task.remote.as_ref().is_some_and(is_provider) && self.task.as_ref().is_none_or(|id| *id == task.id)
    }
}

impl RemoteTasks<'_> {
    pub fn check_events(&self, task: &Task) -> Result<()> {
        let Some(remote) = &task.remote else { return Ok(()) };
        let provider = remote.environment.provider;
        match self.engine.providers.get(provider) {
            Ok(service) if service.has_events() => Ok(()),
            Ok(_) => Err(unsupported(&task.id, remote, UnsupportedAction::ShowEvents)),
            Err(error) => Err(EngineError::provider(provider, Some(&task.id))(error)),
        }
    }

    /// Queued tasks that wait for an operator, by obstacle. An error counts as none: this is only a hint.
    pub fn obstacles<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a TaskId>,
    ) -> BTreeMap<FleetObstacle, Vec<TaskId>> {
        // Most calls are about tasks of this machine, and need no registry for this.
        let cloud: Vec<_> = ids.into_iter().filter(|id| id.location() == TaskLocation::Cloud).collect();
        if cloud.is_empty() {
            return BTreeMap::new();
        }
        let Ok(Some(registry)) = self.engine.find_registry() else { return BTreeMap::new() };
        let mut queued: BTreeMap<Provider, Vec<(TaskId, RemoteRef)>> = BTreeMap::new();
        for task in cloud.into_iter().filter_map(|id| registry.get(id).ok().flatten()) {
            if let Some(RemoteTask { environment, accepted: Some(accepted), .. }) = task.remote
                && task.state == State::Queued
            {
                queued.entry(environment.provider).or_default().push((task.id, accepted));
            }
        }
        let mut found: BTreeMap<FleetObstacle, Vec<TaskId>> = BTreeMap::new();
        for (provider, tasks) in queued {
            let (ids, references): (Vec<TaskId>, Vec<RemoteRef>) = tasks.into_iter().unzip();
            let answers =
                self.engine.providers.get(provider).and_then(|service| service.obstacles(&references));
            for (id, obstacle) in ids.into_iter().zip(answers.unwrap_or_default()) {
                if let Some(obstacle) = obstacle {
                    found.entry(obstacle).or_default().push(id);
                }
            }
        }
        found
    }
}

/// Queries the providers of those tasks for which a query is due. Returns who did not answer.
pub(crate) fn refresh_remote(
    engine: &Engine,
    registry: &mut Registry,
    tasks: &[Task],
) -> Result<Vec<ProviderProblem>> {
    let mut due: BTreeMap<Provider, Vec<&Task>> = BTreeMap::new();
    for task in tasks {
        if let Some(remote) = &task.remote
            && !task.state.is_terminal()
            && query_due_in(engine, remote).is_zero()
        {
            due.entry(remote.environment.provider).or_default().push(task);
        }
    }
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    for (provider, tasks) in due {
        problems.extend(refresh_from(engine, registry, provider, &tasks)?);
    }
    // A task may have ended. If this fails, the next pass starts the delivery.
    let _ = start_delivery_if_due(engine, registry);
    Ok(problems)
}

/// Requests the end of a task that a provider runs. `None` if no provider runs it, or it has ended.
pub(crate) fn request_remote_cancel(
    engine: &Engine,
    registry: &Registry,
    id: &TaskId,
    reason: Option<&str>,
) -> Result<Option<CancelProgress>> {
    if id.location() == TaskLocation::Local {
        return Ok(None);
    }
    let task = registry.get(id)?.filter(|task| !task.state.is_terminal());
    let Some(remote) = task.and_then(|task| task.remote) else { return Ok(None) };
    let provider = remote.environment.provider;
    let cancelled = engine.providers.get(provider).and_then(|service| match &remote.accepted {
        Some(accepted) => service.cancel(accepted, reason),
        None => {
            let reason = "the submission of the task has not been confirmed yet".to_owned();
            Err(ProviderError::NotAvailable { provider, reason })
        }
    });
    cancelled.map(Some).map_err(EngineError::provider(provider, Some(id)))
}

pub(crate) fn query_due_in(engine: &Engine, remote: &RemoteTask) -> Duration {
    let Some(checked_at_ms) = remote.checked_at_ms else { return Duration::ZERO };
    let Ok(provider) = engine.providers.get(remote.environment.provider) else { return Duration::ZERO };
    // If the clock was set back, the time since the last query is unknown.
    let Ok(passed_ms) = u64::try_from(engine.now_ms() - checked_at_ms) else { return Duration::ZERO };
    let interval = provider.query_interval(remote.checks);
    interval.saturating_sub(Duration::from_millis(passed_ms))
}

fn refresh_from(
    engine: &Engine,
    registry: &mut Registry,
    provider: Provider,
    tasks: &[&Task],
) -> Result<Vec<ProviderProblem>> {
    let to_problem = |task: &Task, error| ProviderProblem { provider, task: Some(task.id.clone()), error };
    let (mut accepted, mut problems) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.remote.as_ref().and_then(|remote| remote.accepted.clone()) {
            Some(reference) => accepted.push((*task, reference)),
            None => {
                let problem = end_interrupted_submission(engine, registry, task, provider)?;
                problems.extend(problem.map(|error| to_problem(task, error)));
            }
        }
    }
    if accepted.is_empty() {
        return Ok(problems);
    }
    let references: Vec<_> = accepted.iter().map(|(_, reference)| reference.clone()).collect();
    let answers = match engine.providers.get(provider).and_then(|service| service.query(&references)) {
        Ok(answers) => answers,
        Err(error) => {
            problems.push(ProviderProblem { provider, task: None, error });
            return Ok(problems);
        }
    };
    for ((task, _), answer) in accepted.into_iter().zip(answers) {
        let problem = match answer {
            Ok(status) => record_status(engine, registry, task, status)?,
            Err(error) => record_failed_query(engine, registry, task, error)?,
        };
        problems.extend(problem.map(|error| to_problem(task, error)));
    }
    Ok(problems)
}

/// Returns the error, unless it is the end of the task.
fn record_failed_query(
    engine: &Engine,
    registry: &mut Registry,
    task: &Task,
    error: ProviderError,
) -> Result<Option<ProviderError>> {
    match &error {
        ProviderError::UnknownTask { provider, .. } if lets_choose_ids(engine, *provider) => {
            if is_unreported(task) {
                return end_interrupted_submission(engine, registry, task, *provider);
            }
            if engine.now_ms() - task.created_at_ms < GONE_AFTER_MS {
                return Ok(Some(error));
            }
            let what = format!("{} no longer has the task", provider.description());
            // So how it ended is unknown.
            let cause = "it was deleted, or this is not where the task was submitted";
            let end = failure(FailureKind::RemoteGone, &what, cause);
            registry.record_remote(&task.id, &end, engine.now_ms())?;
            engine.event_folds.remove(&task.id);
            Ok(None)
        }
        _ => Ok(Some(error)),
    }
}

fn record_status(
    engine: &Engine,
    registry: &mut Registry,
    task: &Task,
    status: RemoteStatus,
) -> Result<Option<ProviderError>> {
    let is_working = matches!(status, RemoteStatus::Working { .. });
    let report = match status {
        RemoteStatus::Queued => RemoteReport::Queued,
        RemoteStatus::Working { started_at_ms } => RemoteReport::Working { started_at_ms },
        RemoteStatus::Ended(ended) => {
            record_end(engine, registry, task, *ended)?;
            return Ok(None);
        }
    };
    registry.record_remote(&task.id, &report, engine.now_ms())?;
    if !is_working {
        engine.event_folds.remove(&task.id);
        return Ok(None);
    }
    match mirror_for_progress(engine, registry, task) {
        Ok(()) => Ok(None),
        Err(EngineError::Provider { source, .. }) => Ok(Some(source)),
        Err(error) => Err(error),
    }
}

/// Does nothing if another process was first or is about to do it.
fn record_end(engine: &Engine, registry: &mut Registry, task: &Task, ended: RemoteEnd) -> Result<()> {
    engine.event_folds.remove(&task.id);
    let Some(_lock) = lock_files(engine, &registry.dir().task(&task.id))? else { return Ok(()) };
    if registry.get(&task.id)?.is_none_or(|task| task.state.is_terminal()) {
        return Ok(());
    }
    let (started_at_ms, at_ms) = (ended.started_at_ms, ended.at_ms);
    let finish = store_files(registry, task, ended)?;
    let report = RemoteReport::Ended { finish, started_at_ms, at_ms };
    registry.record_remote(&task.id, &report, engine.now_ms())?;
    Ok(())
}

pub(crate) fn unsupported(id: &TaskId, remote: &RemoteTask, action: UnsupportedAction) -> EngineError {
    let provider = remote.environment.provider;
    let url = remote.accepted.as_ref().and_then(|accepted| accepted.url.clone());
    EngineError::provider(provider, Some(id))(ProviderError::Unsupported { provider, action, url })
}

/// An error if a provider runs the task: only a task of this machine can be continued.
pub fn check_resumable(task: &Task) -> Result<()> {
    match &task.remote {
        Some(remote) => Err(unsupported(&task.id, remote, UnsupportedAction::Continue)),
        None => Ok(()),
    }
}

/// Writes the files of an ended task, before the row says that it has ended.
fn store_files(registry: &Registry, task: &Task, ended: RemoteEnd) -> Result<Finish> {
    let RemoteEnd { end, record, diff, setup_output, facts, tokens, .. } = ended;
    let dir = registry.dir().task(&task.id);
    if let Some(diff) = &diff {
        dir.write_durably(TaskFile::Diff, diff)?;
    }
    if let Some(output) = &setup_output {
        dir.write_durably(TaskFile::Setup, output)?;
    }
    if let Some(facts) = &facts {
        facts.write(&dir)?;
    }
    dir.write_report(encode("encode a report", &record)?.as_bytes())?;
    let end = match (end, &task.cancel) {
        // The provider reports the end; the reason was given here.
        (TaskEnd::Cancelled { reason: None }, Some(request)) => {
            TaskEnd::Cancelled { reason: request.reason.clone() }
        }
        (end, _) => end,
    };
    let summary = Some(one_sentence_summary(&end, None, &record));
    let verification = record.check.as_ref().map(|check| check.outcome);
    Ok(Finish { summary, tokens, verification, lines: changed_lines(&record), ..Finish::bare(end) })
}
