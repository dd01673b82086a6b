//! `local run`: delegate a task and stay with it.

use delegator_domain::task::{End, FailureKind, LimitKind, Mode};
use delegator_engine::resident::{Goal, Watched};
use delegator_engine::{Engine, Waited};
use delegator_registry::Task;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

use super::AGENT_FAILURES;
use super::attach::stay;
use super::exec::{accepted, acknowledged};
use super::tasks::{Asked, as_they_stand, engine, first_of, submission};
use crate::commands::beforehand::of_agent;
use crate::commands::inputs::{AgentInputs, Submission, check_agent_inputs};
use crate::fault::{AppError, ErrorCode, Problem};
use crate::outcome::{Answer, ChildExit, Completion, Parting, WayBack};
use crate::registry::stay::{Begun, Stay, Staying};
use crate::registry::{Category, CommandSpec, Example, Shape, Toolset, refused};
use crate::run::Context;
use crate::views::failure::told;
use crate::views::{error_context, task as view, verification, warnings};

/// How far the agent may go; `preview` plans and does not act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    #[default]
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
    Preview,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    #[serde(flatten)]
    pub submission: Submission,
    /// What it may do
    #[serde(default)]
    pub mode: RunMode,
    /// Must be true to write
    #[serde(default)]
    pub confirm: bool,
    /// Answer at once
    #[serde(default, rename = "async")]
    pub is_async: bool,
    #[serde(flatten)]
    pub agent: AgentInputs,
    /// Answer with what there is after this many seconds, while the task goes on; CLI: no limit
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400), extend("x-advanced" = true, "x-default" = 50))]
    pub call_budget_sec: Option<u32>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Answers when it ends or the call budget is over; the task goes on.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_run"),
    network: true,
    open_ended: true,
    toolset: Toolset::Local,
    failures: AGENT_FAILURES,
    check,
    look: of_agent,
    examples: &[Example {
        command: "mcp-delegator local run 'explain the build' ",
        shows: "the agent's answer, with progress on the way",
    }],
    describe: crate::views::task_document::accepted,
    run: Some(|context, input| stay(context, &input, &STAY)),
    stay: Some(STAY),
    ..CommandSpec::declare::<Run>(&["local", "run"], "Delegate a coding task and stay with it")
};

fn check(input: &Value) -> Vec<Problem> {
    let mut problems = check_agent_inputs(input);
    let writes =
        matches!(input.get("mode").and_then(Value::as_str), Some("workspace-write" | "danger-full-access"));
    if writes && input.get("confirm") != Some(&Value::Bool(true)) {
        problems.push(
            Problem::new(ErrorCode::ConfirmationRequired, "confirm", "must be true for a mode that writes")
                .suggest(Some("Set confirm to true, or use mode read-only or preview.")),
        );
    }
    problems
}

const STAY: Stay = Stay { begin: |context, input| begin(context, read(input)?), end };

fn read(input: &Value) -> Result<Run, AppError> {
    serde_json::from_value(input.clone()).map_err(refused)
}

fn begin(context: &Context<'_>, input: Run) -> Result<Begun, AppError> {
    let engine = engine(context)?;
    let (mode, preview) = match input.mode {
        RunMode::ReadOnly => (Mode::ReadOnly, false),
        RunMode::Preview => (Mode::ReadOnly, true),
        RunMode::WorkspaceWrite => (Mode::WorkspaceWrite, false),
        RunMode::DangerFullAccess => (Mode::DangerFullAccess, false),
    };
    let budget = input.call_budget_sec.map(|seconds| Duration::from_secs(seconds.into()));
    let within = budget.or(context.call_budget);
    let asked = Asked {
        submission: &input.submission,
        agent: &input.agent,
        mode,
        preview,
        resume: None,
        thread: None,
        input: json!(input),
        program: None,
        call_budget: within,
    };
    let submitted = engine.submit(submission(context, &engine, asked)?)?;
    if input.is_async {
        return Ok(Begun::Over(Box::new(accepted(&engine, submitted, "background")?)));
    }
    let facts = submitted.replayed.then(|| ("replayed".to_owned(), true.into())).into_iter().collect();
    Ok(Begun::Staying(Staying { ids: vec![submitted.task.id], goal: Goal::All, within, facts }))
}

fn end(context: &Context<'_>, _: &Value, watched: Watched) -> Result<Answer, AppError> {
    let engine = engine(context)?;
    foreground(&engine, first_of(as_they_stand(&engine, watched)?)?)
}

/// The answer of a run that was stayed with.
pub fn foreground(engine: &Engine, waited: Waited) -> Result<Answer, AppError> {
    let Waited { task, expired } = waited;
    let files = engine.files(&task.id)?;
    let mut data = acknowledged(&task, "foreground");
    if expired {
        data.insert("progress".into(), view::progress(files.snapshot.as_ref()));
        // The same call would start another task.
        let parting = Parting::TimeIsUp(Some(WayBack::to(&task.id)));
        return Ok(Answer::new(Completion::Incomplete(Value::Object(data), parting)));
    }
    let result = view::result(&task, &files, None);
    for key in [
        "summary",
        "final_message",
        "structured_output",
        "structured_output_violations",
        "metadata",
        "labels",
        "git",
        "artifacts",
        "verification",
        "restore_point",
    ] {
        data.extend(result.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    engine.mark_read(&task.id)?;
    let data = Value::Object(data);
    let mut answer = match failure(&task, &files) {
        None => Answer::done(data),
        Some(error) => Answer::new(Completion::Failed(Box::new(error), Some(data))),
    };
    answer.warnings.extend(warnings::of(&task, &files));
    answer.child =
        task.ended.as_ref().and_then(|ended| ended.exit).map(|_| ChildExit { code: view::exit_code(&task) });
    Ok(answer)
}

/// How a task that did not complete is told by the command that ran it.
pub fn failure(task: &Task, files: &delegator_engine::TaskFiles) -> Option<AppError> {
    let ended = task.ended.as_ref()?;
    let error = match &ended.end {
        End::Completed => verification::failure(task, files.record.as_ref())?,
        End::Cancelled { .. } => AppError::new(ErrorCode::Interrupted, "The task was cancelled."),
        End::Timeout(limit) => {
            let code =
                if *limit == LimitKind::Idle { ErrorCode::TimeoutIdle } else { ErrorCode::TimeoutHard };
            let error = AppError::new(code, format!("Task exceeded {} timeout.", limit.name()))
                .context("timeout_type", limit.name())
                .context("elapsed_seconds", view::ran_ms(task) / 1000);
            match &files.record {
                Some(record) => error
                    .context("idle_seconds", record.quiet_ms / 1000)
                    .context("limit_seconds", record.limits.map(|limits| limits.of(*limit)))
                    .context(
                        "partial_results",
                        json!({
                            "last_events": view::last_events(record),
                            "last_output": record.last_output,
                        }),
                    ),
                None => error,
            }
        }
        End::Failed { kind, message, retry_at } => {
            let code = failure_code(*kind, started_anything(files));
            let told = told(*kind, message, view::exit_code(task));
            let error = AppError::new(code, told.message).context("failure_kind", kind.name());
            let error = match told.agent_message {
                Some(words) => error.context("agent_message", words),
                None => error,
            };
            let error = match retry_at {
                Some(retry_at) => error.context("retry_at", retry_at.clone()),
                None => error,
            };
            let tail = files.record.as_ref().map(|record| tail(&record.last_stderr, 1024).to_owned());
            let error = error
                .context("exit_code", json!(view::exit_code(task)))
                .context("stderr_tail", tail.unwrap_or_default());
            let place = error_context::location(files.record.as_ref());
            place.into_iter().fold(error, |error, (key, value)| error.context(&key, value))
        }
    };
    let error = error.context("task_id", task.id.as_str());
    Some(match view::thread(task) {
        Some(thread) => error.context("thread_id", thread),
        None => error,
    })
}

/// Before its first item an agent has done nothing, so the reason may be told as precisely as it is known.
fn failure_code(kind: FailureKind, started: bool) -> ErrorCode {
    match kind {
        FailureKind::Auth if !started => ErrorCode::Unauthenticated,
        FailureKind::UsageLimit if !started => ErrorCode::QuotaExhausted,
        FailureKind::RateLimit if !started => ErrorCode::RateLimited,
        FailureKind::Network if !started => ErrorCode::NetworkError,
        FailureKind::AgentExit | FailureKind::Killed => ErrorCode::AgentExited,
        FailureKind::NoTerminalEvent => ErrorCode::AgentProtocolError,
        _ => ErrorCode::AgentFailed,
    }
}

fn started_anything(files: &delegator_engine::TaskFiles) -> bool {
    let items = files
        .record
        .as_ref()
        .and_then(|record| record.report.pointer("/counts/items"))
        .and_then(Value::as_object);
    items.is_some_and(|items| items.keys().any(|kind| kind != "error"))
}

fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}
