//! Hosted Codex as a provider, through the command `codex cloud`. The command reports only the state, the
//! title and the diff of a task, and does not distinguish a queued task from a running one, or a cancelled
//! task from a failed one. There are no events, and it cannot cancel.

use std::path::PathBuf;
use std::time::Duration;

use delegator_codex_cloud::{CloudError, CodexCloud, HostedState, NewHostedTask, back_off};
use delegator_domain::agents::ConfiguredAgent;
use delegator_domain::task::{FailureKind, Provider, TaskEnd};
use delegator_registry::RemoteRef;
use delegator_supervisor::agent::{Agent, UntrustedTrees, Variables, allowed_variables, variable};

use super::provider::{
    CancelProgress, EventPage, EventPosition, RemoteEnd, RemoteProvider, RemoteRequest, RemoteStatus,
    TaskAnswer,
};
use crate::provider_error::{ProviderError, UnsupportedAction};
use crate::supervise::diff_evidence::record_of_diff;

/// Tasks in one page of the list; the maximum of `codex cloud list`.
const PAGE: u8 = 20;
/// Pages that are searched for a task before its state is queried by its own command.
const MAX_PAGES: usize = 3;

#[derive(Debug)]
pub struct HostedCodex {
    codex: ConfiguredAgent,
    variables: Variables,
    /// Where `codex cloud` runs: it writes a log into its directory.
    scratch: PathBuf,
    /// Spreads the queries of several processes.
    jitter: u32,
}

impl HostedCodex {
    /// Uses the program of the configured Codex agent, with the variables that the agent would get.
    pub fn new(codex: ConfiguredAgent, variables: Variables, scratch: PathBuf) -> HostedCodex {
        HostedCodex { codex, variables, scratch, jitter: std::process::id().wrapping_mul(0x9E37_79B9) }
    }

    fn command(&self) -> Result<CodexCloud, ProviderError> {
        let path = variable(&self.variables, "PATH");
        let agent = Agent::locate(&self.codex, path, &UntrustedTrees::default()).map_err(|problem| {
            ProviderError::Program { program: self.codex.name.clone(), problem: problem.to_string() }
        })?;
        let allowed = allowed_variables(agent.kind(), &self.variables, &self.codex.variables);
        let cloud = CodexCloud::new(agent.program, allowed.into_iter().collect(), self.scratch.clone());
        Ok(cloud.with_leading_args(agent.args))
    }
}

impl RemoteProvider for HostedCodex {
    fn submit(&self, request: &RemoteRequest<'_>) -> Result<RemoteRef, ProviderError> {
        let submission = request.submission;
        let task = NewHostedTask {
            environment: submission.environment.id.clone(),
            prompt: submission.text.clone(),
            attempts: submission.attempts,
            branch: submission.branch.clone(),
        };
        let accepted = self.command()?.submit(&task).map_err(convert)?;
        Ok(RemoteRef { id: accepted.id, url: Some(accepted.url) })
    }

    fn query(&self, tasks: &[RemoteRef]) -> Result<Vec<TaskAnswer>, ProviderError> {
        let cloud = self.command()?;
        let mut listed = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = cloud.list(None, PAGE, cursor.as_deref()).map_err(convert)?;
            listed.extend(page.tasks);
            cursor = page.cursor;
            let is_listed = |task: &RemoteRef| listed.iter().any(|listed| listed.id == task.id);
            if cursor.is_none() || tasks.iter().all(is_listed) {
                break;
            }
        }
        let state_of = |task: &RemoteRef| match listed.iter().find(|listed| listed.id == task.id) {
            Some(listed) => Ok((listed.state, milliseconds(&listed.updated_at))),
            None => cloud.status(&task.id).map(|status| (status.state, None)).map_err(convert),
        };
        let answer = |task: &RemoteRef| {
            let (state, at_ms) = state_of(task)?;
            status(&cloud, &task.id, state, at_ms)
        };
        Ok(tasks.iter().map(answer).collect())
    }

    fn diff(&self, task: &RemoteRef, attempt: u8) -> Result<Option<Vec<u8>>, ProviderError> {
        let diff = self.command()?.diff(&task.id, Some(attempt)).map_err(convert)?;
        Ok(diff.map(String::into_bytes))
    }

    fn cancel(&self, task: &RemoteRef, _reason: Option<&str>) -> Result<CancelProgress, ProviderError> {
        Err(unsupported(task, UnsupportedAction::Cancel))
    }

    fn has_events(&self) -> bool {
        false
    }

    fn events(&self, task: &RemoteRef, _: EventPosition, _: usize) -> Result<EventPage, ProviderError> {
        Err(unsupported(task, UnsupportedAction::ShowEvents))
    }

    fn query_interval(&self, queries: u32) -> Duration {
        back_off(queries.saturating_sub(1), self.jitter)
    }
}

fn unsupported(task: &RemoteRef, action: UnsupportedAction) -> ProviderError {
    ProviderError::Unsupported { provider: PROVIDER, action, url: task.url.clone() }
}

fn status(
    cloud: &CodexCloud,
    id: &str,
    state: HostedState,
    at_ms: Option<i64>,
) -> Result<RemoteStatus, ProviderError> {
    let end = match state {
        HostedState::Pending => return Ok(RemoteStatus::Working { started_at_ms: None }),
        HostedState::Ready | HostedState::Applied => TaskEnd::Completed,
        HostedState::Error => TaskEnd::failed(
            FailureKind::RemoteFailed,
            "hosted Codex reports that the task failed or was cancelled; its page says why",
        ),
    };
    let diff = cloud.diff(id, None).map_err(convert)?;
    let record = record_of_diff(diff.as_deref()).map_err(|error| ProviderError::UnexpectedOutput {
        command: "codex cloud diff".to_owned(),
        output: error.to_string(),
    })?;
    Ok(RemoteStatus::Ended(Box::new(RemoteEnd {
        end,
        record,
        diff: diff.map(String::into_bytes),
        setup_output: None,
        facts: None,
        started_at_ms: None,
        at_ms,
        tokens: None,
    })))
}

fn milliseconds(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

const PROVIDER: Provider = Provider::CodexCloud;

fn convert(error: CloudError) -> ProviderError {
    let provider = PROVIDER;
    match error {
        CloudError::Start { program, source } => {
            ProviderError::Program { program: program.display().to_string(), problem: source.to_string() }
        }
        CloudError::Io { doing, path, source } => ProviderError::Program {
            program: "codex cloud".to_owned(),
            problem: format!("cannot {doing} {}: {source}", path.display()),
        },
        CloudError::NotSignedIn { output } => ProviderError::NotSignedIn { output },
        CloudError::NotFound { id } => ProviderError::UnknownTask { provider, id },
        CloudError::EnvironmentNotFound { output, .. }
        | CloudError::AttemptNotFound { output, .. }
        | CloudError::Refused { output, .. } => ProviderError::Refused { provider, output },
        CloudError::Timeout { output, .. } | CloudError::Unreachable { output, .. } => {
            ProviderError::Unreachable { provider, output }
        }
        CloudError::UnexpectedOutput { command, problem, output } => ProviderError::UnexpectedOutput {
            command: format!("codex cloud {command}"),
            output: format!("{problem}: {output}"),
        },
    }
}
