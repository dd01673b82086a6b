//! `retry`: an ended task again, as a new one.

use delegator_domain::task::Mode;
use delegator_engine::EngineError;
use delegator_registry::{Task, TaskFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::inputs::{self, AgentInputs, TaskIdInput, check_task_text};
use super::local::AGENT_FAILURES;
use super::local::exec::accepted_outcome;
use super::local::tasks::{TaskRequest, build_submission, engine, resolve_task};
use crate::error::{AppError, ErrorCode};
use crate::outcome::CommandOutput;
use crate::run::Context;
use crate::spec::{Category, CommandSpec, Shape, run_typed};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retry {
    #[serde(flatten)]
    pub of: TaskIdInput,
    /// What to do instead (default: the same)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100_000))]
    pub task: Option<String>,
}

/// What a task was given, as it was kept; inputs of commands that differ are left alone.
#[derive(Debug, Deserialize)]
struct StoredInputs {
    #[serde(flatten)]
    submission: inputs::SubmissionInputs,
    #[serde(flatten)]
    agent: AgentInputs,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "With the same inputs, in the same directory and on the same thread; with today's environment and configuration.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_retried"),
    network: true,
    failures: AGENT_FAILURES,
    check: check_task_text,
    describe: crate::views::task_document::accepted,
    run: Some(|context, input| run_typed(context, input, run)),
    ..CommandSpec::declare::<Retry>(&["retry"], "Start an ended task again as a new one")
};

fn run(context: &Context<'_>, input: Retry) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let task = engine.task(&resolve_task(&engine, &input.of.task_id)?)?;
    if !task.state.is_terminal() {
        return Err(EngineError::NotEnded { task: task.id, state: task.state }.into());
    }
    let text = match input.task {
        Some(text) => text,
        None => stored_text(&task, engine.read_stored(&task.id, TaskFile::Text)?)?,
    };
    let mut stored = stored_inputs(&task, &text)?;
    if let Some(input) = redacted_input(&task) {
        let problem = format!("The input {input} of {} held a secret, which was not kept.", task.id);
        return Err(AppError::new(ErrorCode::WrongState, problem)
            .context("task_id", task.id.as_str())
            .suggest("Submit the task anew."));
    }
    // A key names one task, and that one has ended.
    stored.submission.idempotency_key = None;
    stored.agent.working_dir = Some(task.working_dir.clone());
    let mut record = task.input.clone();
    if let Some(object) = record.as_object_mut() {
        object.shift_remove("idempotency_key");
        object.shift_remove("parent_task_id");
        object.insert("retry_of".to_owned(), task.id.as_str().into());
    }
    let request = TaskRequest {
        submission: &stored.submission,
        agent: &stored.agent,
        mode: task.mode,
        preview: task.mode == Mode::ReadOnly && task.input["mode"] == "preview",
        thread: task.resumed_thread.clone(),
        resume: task
            .resumed_thread
            .as_deref()
            .map(|thread| engine.last_task_of_thread(thread))
            .transpose()?
            .flatten(),
        input: record,
        program: None,
        call_budget: None,
    };
    let submitted = engine.submit(build_submission(context, &engine, request)?)?;
    let mut answer = accepted_outcome(&engine, submitted, "background")?;
    answer.facts.insert("retry_of".into(), task.id.as_str().into());
    Ok(answer)
}

/// The text as it was kept. One from which a secret was taken is not the same task any more.
fn stored_text(task: &Task, stored: Vec<u8>) -> Result<String, AppError> {
    let refuse = |reason: &str| {
        AppError::new(ErrorCode::WrongState, format!("The text of {} {reason}.", task.id))
            .context("task_id", task.id.as_str())
            .suggest("Give it again with --task.")
    };
    match String::from_utf8(stored) {
        Ok(text) if text.contains("[REDACTED:") => Err(refuse("held a secret, which was not kept")),
        Ok(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(refuse("was not kept")),
    }
}

/// An input from which a secret was taken. Labels only describe a task; it starts without their secrets, too.
fn redacted_input(task: &Task) -> Option<&str> {
    let inputs = task.input.as_object().into_iter().flatten();
    let mut functional = inputs.filter(|(key, _)| key.as_str() != "labels");
    functional.find(|(_, value)| value.to_string().contains("[REDACTED:")).map(|(key, _)| key.as_str())
}

fn stored_inputs(task: &Task, text: &str) -> Result<StoredInputs, AppError> {
    let mut stored = task.input.as_object().cloned().unwrap_or_default();
    stored.insert("task".to_owned(), text.into());
    serde_json::from_value(Value::Object(stored)).map_err(|error| {
        AppError::new(ErrorCode::Internal, format!("The inputs of {} cannot be read: {error}.", task.id))
            .context("input", json!(task.input))
    })
}
