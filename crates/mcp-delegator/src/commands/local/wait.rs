//! `local wait`: until a task ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use delegator_domain::task::State;
use delegator_engine::resident::{Goal, Watched};
use delegator_engine::{Engine, Waited};
use delegator_registry::Task;
use serde_json::{Map, Value, json};

use super::attach::stay;
use super::run::failure;
use super::tasks::{as_they_stand, ended_answer, engine, first_of, resolved, with_times};
use crate::commands::inputs::TASK_ID;
use crate::fault::{AppError, ErrorCode, Problem};
use crate::outcome::{Answer, ChildExit, Completion, Parting, WayBack};
use crate::registry::stay::{Begun, Stay, Staying};
use crate::registry::{Category, CommandSpec, Danger, Shape, Toolset, refused};
use crate::run::Context;
use crate::views::{task as view, warnings};

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
    /// All task_ids, or any
    #[serde(default)]
    pub until: Until,
    /// Seconds to wait; CLI: no limit
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
    details: "If the time is over first, the state is working: call again.",
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
    describe: crate::views::task_document::result,
    run: Some(|context, input| stay(context, &input, &STAY)),
    stay: Some(STAY),
    ..CommandSpec::declare::<Wait>(&["local", "wait"], "Wait until a task ends")
};

pub fn check(input: &Value) -> Vec<Problem> {
    // Something else than a list is not nothing; that it is no list is told already.
    let several = match input.get("task_ids") {
        Some(Value::Array(ids)) => !ids.is_empty(),
        given => given.is_some(),
    };
    match (input.get("task_id").is_some(), several) {
        (true, true) => vec![
            Problem::new(ErrorCode::InvalidValue, "task_ids", "cannot be given together with task_id")
                .suggest(Some("Put all ids into task_ids.")),
        ],
        (false, false) => vec![
            Problem::new(ErrorCode::MissingArgument, "task_id", "is missing, and so is task_ids")
                .suggest(Some("Give one of them.")),
        ],
        _ => Vec::new(),
    }
}

const STAY: Stay = Stay { begin: |context, input| begin(context, &read(input)?), end };

fn read(input: &Value) -> Result<Wait, AppError> {
    serde_json::from_value(input.clone()).map_err(refused)
}

fn begin(context: &Context<'_>, input: &Wait) -> Result<Begun, AppError> {
    let engine = engine(context)?;
    let given = input.task_id.iter().chain(&input.task_ids);
    let ids = given.map(|given| resolved(&engine, given)).collect::<Result<Vec<_>, _>>()?;
    let goal = match input.until {
        Until::Any => Goal::Any,
        Until::All => Goal::All,
    };
    let asked = input.timeout_sec.map(|seconds| Duration::from_secs(seconds.into()));
    let within = asked.or(context.call_budget);
    Ok(Begun::Staying(Staying { ids, goal, within, facts: Map::new() }))
}

fn end(context: &Context<'_>, input: &Value, watched: Watched) -> Result<Answer, AppError> {
    let (engine, input) = (engine(context)?, read(input)?);
    let watched = as_they_stand(&engine, watched)?;
    match (&input.task_id, input.until) {
        (None, Until::All) => all(&engine, &input, &watched.tasks),
        (None, Until::Any) => {
            let pending = ids(watched.tasks.iter().filter(|task| !task.state.is_terminal()));
            Ok(one(&engine, &input, first_of(watched)?)?.fact("pending", pending))
        }
        (Some(_), _) => one(&engine, &input, first_of(watched)?),
    }
}

fn ids<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<String> {
    tasks.map(|task| task.id.to_string()).collect()
}

fn one(engine: &Engine, input: &Wait, waited: Waited) -> Result<Answer, AppError> {
    let Waited { task, expired } = waited;
    if expired {
        // Of several, all are waited for again.
        let way_back = input.task_id.is_some().then(|| WayBack::to(&task.id));
        let data = still_working(engine, &task)?;
        return Ok(Answer::new(Completion::Incomplete(data, Parting::TimeIsUp(way_back))));
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
    answer.warnings.extend(warnings::of(&task, &files));
    answer.child = view::exit_code(&task).map(|code| ChildExit { code: Some(code) });
    Ok(answer)
}

fn still_working(engine: &Engine, task: &Task) -> Result<Value, AppError> {
    let files = engine.files(&task.id)?;
    Ok(view::unfinished(task, files.snapshot.as_ref()))
}

/// Each as it stands.
fn all(engine: &Engine, input: &Wait, tasks: &[Task]) -> Result<Answer, AppError> {
    let (mut told, mut warned) = (Vec::new(), Vec::new());
    for task in tasks {
        if !task.state.is_terminal() {
            told.push(still_working(engine, task)?);
            continue;
        }
        engine.mark_read(&task.id)?;
        let (files, output) = (engine.files(&task.id)?, input.include_output);
        warned.extend(warnings::of(task, &files));
        told.push(Value::Object(ended_answer(engine, task, &files, output, input.max_output_bytes)?));
    }
    let data = json!({"tasks": told});
    let pending = ids(tasks.iter().filter(|task| !task.state.is_terminal()));
    let answer = match pending.is_empty() {
        true => Answer::done(data),
        false => Answer::new(Completion::Incomplete(data, Parting::TimeIsUp(None))).fact("pending", pending),
    };
    Ok(Answer { warnings: warned, ..answer })
}
