//! `local resume`: continue an earlier thread.
//!
//! The thread is given by its id or by one of its tasks. The new task runs in the directory of the earlier task,
//! unless `working_dir` is given.

use delegator_domain::task::Mode;
use delegator_engine::{Capabilities, Engine, EngineError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commands::context::Context;
use crate::commands::inputs::{self, AgentInputs, SubmissionInputs, THREAD_ID, TaskRef, check_agent_inputs};
use crate::commands::local::exec::accepted_output;
use crate::commands::local::tasks::{TaskRequest, build_submission, engine, resolve_task};
use crate::commands::{Command, prepare};
use crate::error::suggestion::{NextCall, Suggestion};
use crate::error::{AppError, ErrorCode, Problem};
use crate::input::agent_selection::select_agent;
use crate::input::preflight::resumed_agent_problems;
use crate::output::data::acknowledgement::{Capability, ExecutionAck};
use crate::output::outcome::CommandOutput;
use crate::spec::{Category, CommandSpec, Shape, Toolset};

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resume {
    #[serde(flatten)]
    pub submission: SubmissionInputs,
    /// Thread id
    #[schemars(regex(pattern = THREAD_ID), extend("x-self-explanatory" = true))]
    pub thread_id: Option<String>,
    /// Any task of the thread
    pub task_id: Option<TaskRef>,
    /// Sandbox mode
    #[serde(default)]
    #[schemars(schema_with = "inputs::modes", extend("x-self-explanatory" = true))]
    pub mode: Mode,
    /// Required for mode danger-full-access
    #[serde(default, skip_serializing)]
    #[schemars(extend("x-consent" = true))]
    pub confirm: bool,
    #[serde(flatten)]
    pub agent: AgentInputs,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Returns the new task's id; wait returns the result.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_resumed"),
    network: true,
    toolset: Toolset::Local,
    failures: &[
        ErrorCode::ConfirmationRequired,
        ErrorCode::TaskNotFound,
        ErrorCode::ThreadNotFound,
        ErrorCode::Unsupported,
    ],
    exactly_one_of: &["thread_id", "task_id"],
    check: check_agent_inputs,
    confirmation: inputs::command_line_confirmation,
    preflight: resumed_agent_problems,
    ..CommandSpec::new::<Resume, ExecutionAck>(&["local", "resume"], "Continue an earlier thread")
};

pub const COMMAND: Command = Command::new(&SPEC, |input| prepare(input, run));

fn run(context: &Context<'_>, input: Resume) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let earlier = match (&input.task_id, &input.thread_id) {
        (Some(task), _) => Some(engine.task(&resolve_task(&engine, task)?)?),
        (None, Some(thread)) => engine.last_task_of_thread(thread)?,
        (None, None) => None,
    };
    if let Some(task) = &earlier {
        Engine::check_resumable(task)?;
        check_agent(context, &input, &task.agent)?;
    }
    let thread = input.thread_id.clone().or_else(|| earlier.as_ref().and_then(|task| task.thread_id.clone()));
    let Some(thread) = thread else {
        let message = "The task has no thread to continue: its agent never announced one.";
        let error = AppError::new(ErrorCode::ThreadNotFound, message).suggest(Suggestion::with_call(
            "Start a new task with {call}.",
            NextCall::new(&["local", "exec"]),
        ));
        return Err(match earlier {
            Some(task) => error.context("task_id", task.id.as_str()),
            None => error,
        });
    };
    let request = TaskRequest {
        resume: earlier,
        thread: Some(thread),
        ..TaskRequest::new(&input.submission, &input.agent, input.mode, json!(input))
    };
    let submitted = engine.submit(build_submission(context, &engine, request)?)?;
    accepted_output(&engine, submitted, Capability::Background)
}

/// A thread belongs to the agent that began it, and not every agent has threads.
fn check_agent(context: &Context<'_>, input: &Resume, agent: &str) -> Result<(), AppError> {
    let refuse = |problem: Problem| AppError::from_problems(vec![problem]);
    let configured = select_agent(context.config, agent).map_err(refuse)?;
    if !Capabilities::of(configured.kind()).threads {
        return Err(EngineError::NoThreads { agent: configured.name }.into());
    }
    match &input.agent.agent {
        Some(given) if given.names() != [agent] => Err(refuse(
            Problem::new(
                ErrorCode::InvalidValue,
                "agent",
                format!("is not the agent of the thread, {agent}"),
            )
            .value(json!(given))
            .suggest(Some("Remove {input:agent}, or start a new task.")),
        )),
        _ => Ok(()),
    }
}
