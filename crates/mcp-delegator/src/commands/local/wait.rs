//! `local wait`: until a task ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

use delegator_domain::task::State;
use delegator_engine::{Engine, Waited};
use delegator_registry::Task;
use serde_json::{Value, json};

use super::attach::attach;
use super::run::failure;
use super::tasks::{ended_answer, engine, resolved, with_times};
use crate::commands::inputs::TASK_ID;
use crate::fault::{AppError, ErrorCode, Problem};
use crate::outcome::{Answer, ChildExit, Completion};
use crate::registry::{Category, CommandSpec, Danger, Shape, Toolset, typed};
use crate::run::Context;
use crate::views::{restore_point, task as view};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    #[default]
    All,
    Any,
}

fn task_id_item() -> Value {
    json!({"type": "string", "pattern": TASK_ID})
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// The task (or task_ids)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TASK_ID), extend("x-positional" = true))]
    pub task_id: Option<String>,
    /// Several tasks
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = task_id_item(), "default" = null))]
    pub task_ids: Vec<String>,
    /// With task_ids: when all have ended, or the first
    #[serde(default)]
    pub until: Until,
    /// Seconds to wait; on the command line unlimited unless given
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600), extend("x-default" = 50))]
    pub timeout_sec: Option<u32>,
    /// Include output
    #[serde(default)]
    pub include_output: bool,
    /// Budget for that output, both streams together
    #[serde(default = "super::output_budget")]
    #[schemars(range(min = 1024, max = 1_048_576), extend("x-advanced" = true))]
    pub max_output_bytes: u32,
    /// Answer with an error when the task did not complete (exit 80, 10 or 130)
    #[serde(default)]
    #[schemars(extend("x-advanced" = true))]
    pub exit_status: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Answers as soon as it ends. If the time is over first, the state is working: call again.",
    category: Category::WaitResult,
    shape: Shape::Show("task"),
    danger: Danger::Safe,
    idempotent: true,
    open_ended: true,
    toolset: Toolset::Local,
    failures: &[
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::Incomplete,
        ErrorCode::AgentFailed,
        ErrorCode::TimeoutIdle,
        ErrorCode::TimeoutHard,
    ],
    check,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<Wait>(&["local", "wait"], "Wait until a task ends")
};

pub fn check(input: &Value) -> Vec<Problem> {
    let several = input.get("task_ids").and_then(Value::as_array).is_some_and(|ids| !ids.is_empty());
    match (input.get("task_id").is_some(), several) {
        (true, true) => vec![
            Problem::new(ErrorCode::InvalidValue, "task_ids", "cannot be given together with task_id")
                .suggest(Some("Put all ids into task_ids.")),
        ],
        (false, false) => vec![Problem::new(ErrorCode::MissingArgument, "task_id", "is missing")],
        _ => Vec::new(),
    }
}

fn run(context: &Context<'_>, input: Wait) -> Result<Answer, AppError> {
    let engine = engine(context)?;
    let deadline = input.timeout_sec.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
    if let Some(given) = &input.task_id {
        let waited = attach(context, &engine, &resolved(&engine, given)?, deadline)?;
        return one(&engine, &input, waited);
    }
    several(context, &engine, &input, deadline)
}

fn one(engine: &Engine, input: &Wait, waited: Waited) -> Result<Answer, AppError> {
    let Waited { task, expired } = waited;
    if expired {
        return Ok(Answer::new(Completion::Incomplete(still_working(engine, &task)?)));
    }
    let files = engine.files(&task.id)?;
    engine.mark_read(&task.id)?;
    let data = ended_answer(engine, &task, &files, input.include_output, input.max_output_bytes)?;
    let data = Value::Object(data);
    let failed = if input.exit_status { failure(&task, &files) } else { None };
    let completion = match failed {
        // The caller asked for the task's own fate, whatever stage it failed at.
        Some(error) if task.state == State::Failed => {
            Completion::Failed(Box::new(AppError { code: ErrorCode::AgentFailed, ..error }), Some(data))
        }
        Some(error) => Completion::Failed(Box::new(error), Some(data)),
        None => Completion::Done(data),
    };
    let mut answer = with_times(Answer::new(completion), &task);
    answer.warnings.extend(restore_point::warnings(files.restore_point.as_ref()));
    answer.child = view::exit_code(&task).map(|code| ChildExit { code: Some(code) });
    Ok(answer)
}

fn still_working(engine: &Engine, task: &Task) -> Result<Value, AppError> {
    let files = engine.files(&task.id)?;
    Ok(json!({
        "task_id": task.id.as_str(),
        "state": task.state.shown(),
        "progress": view::progress(files.snapshot.as_ref()),
    }))
}

/// Waits for the first of several, or for all of them, one after the other: the last to end decides either way.
fn several(
    context: &Context<'_>,
    engine: &Engine,
    input: &Wait,
    deadline: Option<Instant>,
) -> Result<Answer, AppError> {
    let ids = input.task_ids.iter().map(|given| resolved(engine, given)).collect::<Result<Vec<_>, _>>()?;
    if input.until == Until::Any {
        let (first, pending) = engine.wait_any(&ids, deadline)?;
        let pending: Vec<String> = pending.iter().map(ToString::to_string).collect();
        let mut answer = one(engine, input, first)?;
        answer.facts.insert("pending".into(), pending.into());
        return Ok(answer);
    }
    let mut tasks = Vec::new();
    let mut pending = Vec::new();
    for id in &ids {
        let waited = attach(context, engine, id, deadline)?;
        if waited.expired {
            pending.push(id.to_string());
            tasks.push(still_working(engine, &waited.task)?);
        } else {
            engine.mark_read(id)?;
            let (task, files) = (&waited.task, engine.files(id)?);
            let (output, budget) = (input.include_output, input.max_output_bytes);
            tasks.push(Value::Object(ended_answer(engine, task, &files, output, budget)?));
        }
    }
    let data = json!({"tasks": tasks});
    let mut answer = match pending.is_empty() {
        true => Answer::done(data),
        false => Answer::new(Completion::Incomplete(data)),
    };
    if !pending.is_empty() {
        answer.facts.insert("pending".into(), pending.into());
    }
    Ok(answer)
}
