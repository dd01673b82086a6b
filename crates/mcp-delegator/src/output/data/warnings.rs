//! All warnings about an ended task.

use std::collections::BTreeMap;

use delegator_domain::environment::FleetObstacle;
use delegator_engine::{ProviderProblem, RunningTask, Salvage, Source, TaskFiles};
use delegator_registry::AgentPause;
use delegator_transcript::{Dialect, Report, looks_like_test_run};

use crate::error::truncate_quote;
use crate::output::data::agent_pauses::PauseData;
use crate::output::data::diff::omission_warnings;
use crate::output::data::{files, findings, structured_output, verification, work_trees};
use crate::output::prelude::*;

pub fn for_task(task: &Task, files: &TaskFiles) -> Vec<Warning> {
    let record = files.record.as_ref();
    let mut warnings = work_trees::warnings(files.restore_point.as_ref());
    warnings.extend(files::warnings(record));
    warnings.extend(files.remote.iter().flat_map(|facts| omission_warnings(&facts.omissions)));
    warnings.extend(attempts_of_provider(task));
    warnings.extend(test_warning(task, record));
    warnings.extend(verification::warnings(task, record));
    warnings.extend(structured_output::warnings(task, record));
    warnings.extend(findings::warning(task, record));
    let recorded = record.map(|record| record.warnings.as_slice()).unwrap_or_default();
    warnings.extend(skipped_agents(task, record));
    warnings.extend(record.and_then(|record| record.salvage.as_ref()).map(salvage));
    warnings.extend(record.and_then(refused_calls));
    warnings.extend(recorded.iter().map(|text| Warning::new(WarningCode::AgentNotice, text.clone())));
    warnings.sort_by_key(|warning| warning.code != WarningCode::GitSettingsChanged);
    warnings
}

/// The result of a provider that made several attempts shows the first one.
fn attempts_of_provider(task: &Task) -> Option<Warning> {
    task.remote.as_ref()?;
    let attempts = task.input["attempts"].as_u64().filter(|attempts| *attempts > 1)?;
    let id = &task.id;
    let message = format!(
        "the task has {attempts} attempts, and this is the first; to see another one, run 'mcp-delegator diff {id} --attempt 2', \
         and to apply it, 'mcp-delegator cloud apply {id} --attempt 2'"
    );
    Some(Warning::new(WarningCode::MoreAttempts, message).fact("attempts", attempts))
}

/// Agents that came first in the list of the task and could not run.
fn skipped_agents(task: &Task, record: Option<&Record>) -> impl Iterator<Item = Warning> {
    let skipped = record.map(|record| record.skipped_agents.as_slice()).unwrap_or_default();
    skipped.iter().map(|skipped| {
        let message =
            format!("{} did not run, {} did: {}", skipped.agent, task.agent, truncate_quote(&skipped.reason));
        Warning::new(WarningCode::AgentSkipped, message).fact("agent", skipped.agent.as_str())
    })
}

/// What the supervisor has noticed so far: budgets that are nearly used.
pub fn of_running_task(running: &RunningTask) -> impl Iterator<Item = Warning> {
    let noticed = running.snapshot.iter().flat_map(|snapshot| &snapshot.warnings);
    noticed.map(|text| Warning::new(WarningCode::AgentNotice, text).fact("task_id", running.task.id.as_str()))
}

/// Where the final message of a task that a limit ended comes from.
fn salvage(salvage: &Salvage) -> Warning {
    let message = match salvage {
        Salvage::BeforeLimit => {
            "a limit was near, so the agent was asked to stop; its final message is its report".to_owned()
        }
        Salvage::AfterLimit => {
            "a time limit ended the work; the final message is the agent's report, from a read-only turn afterwards"
                .to_owned()
        }
        Salvage::Failed { reason } => format!(
            "a time limit ended the work, and the agent gave no report: {}",
            truncate_quote(reason)
        ),
    };
    Warning::new(WarningCode::Salvaged, message)
}

/// Queued tasks do not start until a user resumes the queue.
pub fn queue_paused() -> Warning {
    Warning::new(
        WarningCode::QueuePaused,
        "the queue is paused, so no queued task starts; to resume it, run 'mcp-delegator queue resume'",
    )
}

/// Queued tasks of the agent do not start until the pause is over.
pub fn agent_paused(pause: &AgentPause) -> Warning {
    let (AgentPause { agent, reason, .. }, until) = (pause, PauseData::from(pause).until());
    let message = format!(
        "the agent {agent} is paused {until} ({}), so none of its queued tasks starts; to resume it, run 'mcp-delegator queue resume --agent {agent}'",
        truncate_quote(reason)
    );
    Warning::new(WarningCode::AgentPaused, message)
}

/// One warning for each obstacle: queued tasks of the fleet wait until an operator removes it.
pub fn fleet_obstacles(obstacles: &BTreeMap<FleetObstacle, Vec<TaskId>>) -> impl Iterator<Item = Warning> {
    obstacles.iter().map(|(obstacle, tasks)| {
        let waiting = match tasks.as_slice() {
            [only] => format!("{only} waits"),
            tasks => format!("{} tasks wait", tasks.len()),
        };
        let message = format!("{waiting}: {}", obstacle_sentence(*obstacle));
        let tasks: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
        Warning::new(WarningCode::FleetObstacle, message)
            .fact("obstacle", json!({ "kind": obstacle.name(), "task_ids": tasks }))
    })
}

fn obstacle_sentence(obstacle: FleetObstacle) -> &'static str {
    match obstacle {
        FleetObstacle::FleetPaused => {
            "the fleet is paused, so no worker claims tasks; to resume it, run 'mcp-delegator fleet resume'"
        }
        FleetObstacle::NoWorker => {
            "no worker with the labels of the environment is running; start one with 'mcp-delegator worker', or see the workers with 'mcp-delegator fleet status'"
        }
        FleetObstacle::WorkersDraining => {
            "every worker with the labels of the environment is draining; start another one with 'mcp-delegator worker'"
        }
        FleetObstacle::WorkersPaused => {
            "every worker with the labels of the environment is paused; 'mcp-delegator fleet status' lists them, 'mcp-delegator fleet resume WORKER' resumes one"
        }
    }
}

/// What is recorded about the tasks of this provider may be outdated.
pub fn provider_not_queried(problem: &ProviderProblem) -> Warning {
    let message = format!("{}, so the state of its tasks may be outdated", problem.error);
    let mut warning =
        Warning::new(WarningCode::ProviderNotQueried, message).fact("provider", problem.provider.name());
    let output = problem.error.output().map(truncate_quote);
    warning.context.extend(output.map(|output| ("provider_message".to_owned(), output.into())));
    warning
}

fn refused_calls(record: &Record) -> Option<Warning> {
    let refused = &record.refused;
    (refused.count > 0).then(|| {
        let message = match refused.count {
            1 => "1 call of the agent was refused".to_owned(),
            count => format!("{count} calls of the agent were refused"),
        };
        Warning::new(WarningCode::AgentNotice, message).fact("agent_messages", refused.last.clone())
    })
}

/// Warns if a completed agent ran no tests or its last tests failed. A requested verification replaces the
/// former.
fn test_warning(task: &Task, record: Option<&Record>) -> Option<Warning> {
    let record = record.filter(|_| task.state == State::Completed)?;
    let Report { tests, commands, .. } = &record.report;
    let failed = tests.as_ref().map_or(0, |tests| tests.failed);
    if failed > 0 {
        let tests = if failed == 1 { "test" } else { "tests" };
        let message = format!("the agent completed, but {failed} {tests} failed in its last test run");
        return Some(Warning::new(WarningCode::TestsFailed, message));
    }
    let changed = record.evidence.as_ref().map_or(0, |evidence| evidence.attributed.files());
    let ran_none =
        tests.is_none() && !commands.list.iter().any(|command| looks_like_test_run(&command.command));
    // The commands of an agent that prints text are unknown, and those of a task of which there is only the
    // diff.
    let is_known = record.report.dialect != Some(Dialect::Plain)
        && record.evidence.as_ref().is_none_or(|evidence| evidence.source != Source::Diff);
    (changed > 0 && ran_none && is_known && record.check.is_none())
        .then(|| Warning::new(WarningCode::NoTests, "the agent changed files but ran no known test command"))
}
