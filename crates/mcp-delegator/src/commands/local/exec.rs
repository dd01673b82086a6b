//! `local exec`: delegate a task and let go of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::time::{Duration, Instant};

use delegator_engine::{Engine, SubmitOutcome};
use serde_json::{Map, Value, json};

use super::AGENT_FAILURES;
use super::tasks::{TaskRequest, build_submission, engine};
use crate::commands::inputs::{AgentInputs, ModeInput, SubmissionInputs, check_agent_inputs};
use crate::commands::preflight::agent_problems;
use crate::error::AppError;
use crate::outcome::CommandOutput;
use crate::run::Context;
use crate::spec::{Category, CommandSpec, Example, Shape, Toolset, run_typed};
use crate::views::{estimate, task as view};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exec {
    #[serde(flatten)]
    pub submission: SubmissionInputs,
    /// What it may do
    #[serde(default)]
    pub mode: ModeInput,
    #[serde(flatten)]
    pub agent: AgentInputs,
    /// How many agents try it, each in a worktree of its own
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4), extend("x-advanced" = true, "x-unbuilt" = true))]
    pub attempts: Option<u8>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Answers at once with its id for wait, status and results.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_submitted"),
    network: true,
    toolset: Toolset::Local,
    failures: AGENT_FAILURES,
    check: check_agent_inputs,
    preflight: agent_problems,
    examples: &[Example {
        command: "mcp-delegator local exec 'fix the failing test' --mode workspace-write",
        shows: "the task's id; the task runs on in the background",
    }],
    describe: crate::views::task_document::accepted,
    run: Some(|context, input| run_typed(context, input, run)),
    ..CommandSpec::declare::<Exec>(&["local", "exec"], "Delegate a coding task in the background")
};

/// How long an answer waits for the agent to announce its thread.
const THREAD_WAIT: Duration = Duration::from_millis(1500);

fn run(context: &Context<'_>, input: Exec) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let request = TaskRequest {
        submission: &input.submission,
        agent: &input.agent,
        mode: input.mode.into(),
        preview: false,
        resume: None,
        thread: None,
        input: json!(input),
        program: None,
        call_budget: None,
    };
    let submitted = engine.submit(build_submission(context, &engine, request)?)?;
    accepted_outcome(&engine, submitted, "background")
}

/// The answer to an accepted task, with its thread if the agent announces it soon.
pub fn accepted_outcome(
    engine: &Engine,
    submitted: SubmitOutcome,
    capability: &str,
) -> Result<CommandOutput, AppError> {
    let deadline = Instant::now() + THREAD_WAIT;
    let id = submitted.task.id.clone();
    let task = match submitted.queue_position {
        0 => engine.wait_for_thread(&id, deadline)?,
        _ => submitted.task.clone(),
    };
    let mut data = acknowledgement(&task, capability);
    if let Some(expected) = submitted.expected {
        data.insert("expected_duration".into(), estimate::format_estimate(expected).into());
    }
    // One that has ended, the first of its key perhaps, stands in no queue.
    let has_ended = task.ended.is_some();
    if has_ended {
        data.insert("summary".into(), view::summary(&task).into());
    }
    let mut answer = CommandOutput::done(Value::Object(data));
    if !has_ended {
        answer.facts.insert("queue_position".into(), submitted.queue_position.into());
    }
    if let Some(start_ms) = submitted.estimated_start_ms {
        answer.facts.insert("estimated_start_ms".into(), start_ms.into());
    }
    if submitted.replayed {
        answer.facts.insert("replayed".into(), true.into());
    }
    if let Some(blocker) = &submitted.waiting_for {
        answer.facts.insert("waiting_for".into(), view::waiting_for(blocker));
    }
    if submitted.queue_paused {
        answer.facts.insert("queue_paused".into(), true.into());
    }
    answer.message = Some(format!("Task {id} accepted"));
    Ok(answer)
}

pub fn acknowledgement(task: &delegator_registry::Task, capability: &str) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("task_id".into(), task.id.as_str().into());
    if let Some(thread) = view::thread(task) {
        data.insert("thread_id".into(), thread.into());
    }
    data.insert("accepted".into(), true.into());
    data.insert("capability".into(), capability.into());
    data.insert("started_at".into(), view::format_timestamp(task.created_at_ms).into());
    data.insert("state".into(), task.state.public_name().into());
    data
}
