//! The fleet as a provider: our own workers, around the database of `delegator-fleet`.
//!
//! The submitter chooses the id of a task, so every call can be repeated. A queued task and one that a worker
//! prepares look the same here: its agent does not run yet.

use std::sync::Arc;
use std::time::Duration;

use delegator_domain::environment::FleetObstacle;
use delegator_domain::task::Provider;
use delegator_engine::{
    CancelProgress, EventPage, EventPosition, ProviderError, ProviderRecord, RemoteEnd, RemoteProvider,
    RemoteRequest, RemoteStatus, ServiceError, TaskAnswer, UnsupportedAction,
};
use delegator_fleet::{
    BlobName, Database, FleetEnd, FleetError, FleetState, FleetTask, IdempotencyKey, NewFleetTask, TaskSpec,
    new_id,
};
use delegator_registry::RemoteRef;

use crate::fleet_result::FleetResult;

const PROVIDER: Provider = Provider::Fleet;
/// A query reads one row by its key.
const QUERY_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct FleetProvider {
    database: Database,
}

impl FleetProvider {
    pub fn new(database: Database) -> FleetProvider {
        FleetProvider { database }
    }

    fn answer(&self, found: Result<FleetTask, FleetError>) -> TaskAnswer {
        let found = found.map_err(convert)?;
        match &found.state {
            FleetState::Queued | FleetState::Claimed => Ok(RemoteStatus::Queued),
            FleetState::Running => Ok(RemoteStatus::Working { started_at_ms: found.started_at_ms }),
            FleetState::Ended(end) => Ok(RemoteStatus::Ended(Box::new(self.end(&found, end)?))),
        }
    }

    fn end(&self, task: &FleetTask, FleetEnd { end, result }: &FleetEnd) -> Result<RemoteEnd, ProviderError> {
        // A task that ended without a worker has no result.
        let result = result.as_deref().map(FleetResult::from_json).transpose();
        let result = result.map_err(|error| ProviderError::UnexpectedOutput {
            command: "mcp-delegator worker".to_owned(),
            output: error.to_string(),
        })?;
        let blob = |name| self.database.blob(&task.id, name).map_err(convert);
        let (diff, setup_output) = (blob(BlobName::Diff)?, blob(BlobName::Setup)?);
        let tokens = result.as_ref().and_then(FleetResult::tokens);
        let (record, facts) = match result {
            Some(FleetResult { record, base_commit, branch, pushed_branch, worker, omissions, .. }) => {
                let (version, worker) = (Default::default(), Some(worker));
                (record, ProviderRecord { version, base_commit, branch, pushed_branch, worker, omissions })
            }
            None => {
                let facts = ProviderRecord { worker: task.worker.clone(), ..ProviderRecord::default() };
                (Default::default(), facts)
            }
        };
        Ok(RemoteEnd {
            end: end.clone(),
            record,
            diff: diff.filter(|diff| !diff.is_empty()),
            setup_output,
            facts: Some(facts),
            started_at_ms: task.started_at_ms,
            at_ms: task.ended_at_ms,
            tokens,
        })
    }
}

impl RemoteProvider for FleetProvider {
    fn choose_id(&self) -> Option<String> {
        Some(new_id())
    }

    fn submit(&self, request: &RemoteRequest<'_>) -> Result<RemoteRef, ProviderError> {
        if request.submission.attempts > 1 {
            return Err(no_attempts());
        }
        let submitted = self.database.submit(&new_task(request)).map_err(convert)?;
        Ok(RemoteRef { id: submitted.id, url: None })
    }

    fn refuse(&self, task: &RemoteRef) -> Result<bool, ProviderError> {
        self.database.refuse(&task.id).map_err(convert)
    }

    fn query(&self, tasks: &[RemoteRef]) -> Result<Vec<TaskAnswer>, ProviderError> {
        let found = self.database.tasks(&ids(tasks)).map_err(convert)?;
        Ok(found.into_iter().map(|found| self.answer(found)).collect())
    }

    fn diff(&self, _task: &RemoteRef, _attempt: u8) -> Result<Option<Vec<u8>>, ProviderError> {
        Err(no_attempts())
    }

    fn cancel(&self, task: &RemoteRef, reason: Option<&str>) -> Result<CancelProgress, ProviderError> {
        let is_running = self.database.cancel(&task.id, reason).map_err(convert)?;
        Ok(if is_running { CancelProgress::Ending } else { CancelProgress::Ended })
    }

    fn has_events(&self) -> bool {
        true
    }

    fn events(
        &self,
        task: &RemoteRef,
        from: EventPosition,
        max_bytes: usize,
    ) -> Result<EventPage, ProviderError> {
        self.database.events(&task.id, from, max_bytes).map_err(convert)
    }

    fn query_interval(&self, _queries: u32) -> Duration {
        QUERY_INTERVAL
    }

    fn obstacles(&self, tasks: &[RemoteRef]) -> Result<Vec<Option<FleetObstacle>>, ProviderError> {
        self.database.obstacles(&ids(tasks)).map_err(convert)
    }
}

fn ids(tasks: &[RemoteRef]) -> Vec<String> {
    tasks.iter().map(|task| task.id.clone()).collect()
}

fn new_task(request: &RemoteRequest<'_>) -> NewFleetTask {
    let RemoteRequest { task, id, submission } = request;
    let environment = &submission.environment;
    NewFleetTask {
        id: id.map_or_else(new_id, str::to_owned),
        idempotency: submission.idempotency.as_ref().map(|given| IdempotencyKey {
            key: given.stored_key(),
            request_hash: given.request_hash.clone(),
        }),
        spec: TaskSpec {
            environment: environment.id.clone(),
            repo_url: environment.repo_url.clone(),
            branch: submission.branch.clone(),
            setup: environment.setup.clone(),
            mode: environment.mode,
            push: environment.push,
            text: submission.text.clone(),
            title: submission.title.clone(),
            labels: submission.labels.clone(),
            submitter_task: Some(task.to_string()),
        },
        labels: environment.labels.clone(),
        priority: environment.priority,
        on_lost: environment.on_lost,
        max_claims: u32::try_from(environment.max_claims).unwrap_or(u32::MAX),
    }
}

fn no_attempts() -> ProviderError {
    ProviderError::Unsupported { provider: PROVIDER, action: UnsupportedAction::Attempts, url: None }
}

fn convert(error: FleetError) -> ProviderError {
    match error {
        FleetError::UnknownTask { id } => ProviderError::UnknownTask { provider: PROVIDER, id },
        FleetError::KeyConflict => ProviderError::KeyConflict { provider: PROVIDER },
        error => ProviderError::Service(ServiceError {
            is_transient: error.is_transient(),
            may_have_accepted: matches!(error, FleetError::Unreachable { .. }),
            error: Arc::new(error),
        }),
    }
}
