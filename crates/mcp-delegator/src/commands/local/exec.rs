//! `local exec`: delegate a task and let go of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::time::{Duration, Instant};

use delegator_engine::{Engine, Submitted};
use serde_json::{Map, Value, json};

use super::AGENT_FAILURES;
use super::tasks::{Asked, engine, submission};
use crate::commands::beforehand::of_agent;
use crate::commands::inputs::{AgentInputs, Mode, Submission, check_agent_inputs};
use crate::fault::AppError;
use crate::outcome::Answer;
use crate::registry::{Category, CommandSpec, Example, Shape, Toolset, typed};
use crate::run::Context;
use crate::views::{estimate, task as view};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exec {
    #[serde(flatten)]
    pub submission: Submission,
    /// What it may do
    #[serde(default)]
    pub mode: Mode,
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
    look: of_agent,
    examples: &[Example {
        command: "mcp-delegator local exec 'fix the failing test' --mode workspace-write",
        shows: "the task's id; the task runs on in the background",
    }],
    describe: crate::views::task_document::accepted,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<Exec>(&["local", "exec"], "Delegate a coding task in the background")
};

/// How long an answer waits for the agent to announce its thread.
const THREAD_MAY_TAKE: Duration = Duration::from_millis(1500);

fn run(context: &Context<'_>, input: Exec) -> Result<Answer, AppError> {
    let engine = engine(context)?;
    let asked = Asked {
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
    let submitted = engine.submit(submission(context, &engine, asked)?)?;
    accepted(&engine, submitted, "background")
}

/// The answer to an accepted task, with its thread if the agent announces it soon.
pub fn accepted(engine: &Engine, submitted: Submitted, capability: &str) -> Result<Answer, AppError> {
    let deadline = Instant::now() + THREAD_MAY_TAKE;
    let id = submitted.task.id.clone();
    let task = match submitted.queue_position {
        0 => engine.wait_for_thread(&id, deadline)?,
        _ => submitted.task.clone(),
    };
    let mut data = acknowledged(&task, capability);
    if let Some(expected) = submitted.expected {
        data.insert("expected_duration".into(), estimate::words(expected).into());
    }
    // One that has ended, the first of its key perhaps, stands in no queue.
    let has_ended = task.ended.is_some();
    if has_ended {
        data.insert("summary".into(), view::summary(&task).into());
    }
    let mut answer = Answer::done(Value::Object(data));
    if !has_ended {
        answer.facts.insert("queue_position".into(), submitted.queue_position.into());
    }
    if let Some(start_ms) = submitted.estimated_start_ms {
        answer.facts.insert("estimated_start_ms".into(), start_ms.into());
    }
    if submitted.replayed {
        answer.facts.insert("replayed".into(), true.into());
    }
    if let Some(waits) = &submitted.waiting_for {
        answer.facts.insert("waiting_for".into(), view::waiting_for(waits));
    }
    if submitted.queue_paused {
        answer.facts.insert("queue_paused".into(), true.into());
    }
    answer.message = Some(format!("Task {id} accepted"));
    Ok(answer)
}

pub fn acknowledged(task: &delegator_registry::Task, capability: &str) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("task_id".into(), task.id.as_str().into());
    if let Some(thread) = view::thread(task) {
        data.insert("thread_id".into(), thread.into());
    }
    data.insert("accepted".into(), true.into());
    data.insert("capability".into(), capability.into());
    data.insert("started_at".into(), view::at(task.created_at_ms).into());
    data.insert("state".into(), task.state.shown().into());
    data
}
