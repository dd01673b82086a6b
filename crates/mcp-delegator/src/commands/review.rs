//! `review`: have an agent review the changes of another task.
//!
//! A review is a read-only task in the directory of the other task. Its prompt quotes the report and the changes of that
//! task as data. It answers with findings: agents with an output schema get one, the others get the format in the prompt.

use std::path::PathBuf;

use delegator_domain::task::Mode;
use delegator_engine::{AgentInput, Capabilities, Reviewed};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::commands::context::Context;
use crate::commands::inputs::{AgentInputs, AgentNames, MODEL, RunMode, SubmissionInputs, TaskIdInput};
use crate::commands::local::exec::accepted_output;
use crate::commands::local::task_input::TaskInput;
use crate::commands::local::tasks::{TaskRequest, build_submission, ended, engine, resolve_task};
use crate::commands::retry::stored_input;
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode};
use crate::input::agent_selection::{running_agent, select_agent};
use crate::output::data::acknowledgement::{Capability, ExecutionAck};
use crate::output::data::findings;
use crate::output::outcome::CommandOutput;
use crate::spec::{Category, CommandSpec, Shape, example};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Review {
    #[serde(flatten)]
    pub target: TaskIdInput,
    /// Agent that reviews (default: the agent of the task)
    #[schemars(length(min = 1, max = 64))]
    pub agent: Option<String>,
    /// Model (default: the agent's)
    #[schemars(regex(pattern = MODEL))]
    pub model: Option<String>,
    /// What to look at in particular
    #[schemars(length(min = 1, max = 100_000))]
    pub instructions: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "The review is a read-only task of its own; results returns its findings.",
    category: Category::ExecutionAck,
    shape: Shape::Action("review_submitted"),
    network: true,
    failures: &[ErrorCode::TaskNotFound, ErrorCode::NotReady, ErrorCode::DependencyMissing],
    examples: &[example(
        "mcp-delegator review T-local-… --instructions 'look at error handling'",
        "the id of the review; results shows its findings",
    )],
    ..CommandSpec::new::<Review, ExecutionAck>(&["review"], "Review the changes of a finished task")
};

pub const COMMAND: Command = Command::new(&SPEC, |input| prepare(input, run));

fn run(context: &Context<'_>, input: Review) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let task = ended(engine.task(&resolve_task(&engine, &input.target.task_id)?)?)?;
    let earlier = stored_input(&task, String::new());
    let mut agent = AgentInputs {
        working_dir: Some(PathBuf::from(&task.working_dir)),
        agent: Some(AgentNames::One(input.agent.unwrap_or_else(|| task.agent.clone()))),
        model: input.model,
        skip_git_repo_check: earlier.is_ok_and(|input: TaskInput| input.agent.skip_git_repo_check),
        ..AgentInputs::default()
    };
    let submission = SubmissionInputs {
        task: review_text(input.instructions.as_deref()),
        labels: task.labels.clone(),
        ..SubmissionInputs::default()
    };
    add_output_schema(context, &mut agent)?;
    let input = TaskInput {
        submission,
        agent,
        mode: RunMode::Sandbox(Mode::ReadOnly),
        review: true,
        reviews: Some(task.id.clone()),
        ..TaskInput::default()
    };
    let request = TaskRequest { reviews: Some(Reviewed::Task(task.id.clone())), ..TaskRequest::new(input) };
    let submitted = engine.submit(build_submission(context, &engine, request)?)?;
    let output = accepted_output(&engine, submitted, Capability::Background)?;
    Ok(output.fact("reviews", task.id.as_str()))
}

/// The prompt of a review. The supervisor adds report and changes of the other task.
pub fn review_text(instructions: Option<&str>) -> String {
    let mut text = "Review the changes of another task, which are quoted below. Change nothing. Look for mistakes: wrong \
        behaviour, missing cases, broken callers, security problems, missing tests. Read the files where the diff is not \
        enough. Report only what you are sure of.\n\nAnswer with JSON only, in this form: {\"findings\": [{\"file\": \
        \"path or null\", \"line\": 1, \"severity\": \"error, warning or note\", \"title\": \"one line\", \"detail\": \
        \"why, and what to do\"}]}. Without findings: {\"findings\": []}."
        .to_owned();
    if let Some(instructions) = instructions {
        text.push_str("\n\nIn particular: ");
        text.push_str(instructions);
    }
    text
}

/// Adds the schema of findings, if all agents of the review support one.
pub fn add_output_schema(context: &Context<'_>, agent: &mut AgentInputs) -> Result<(), AppError> {
    let names = agent.agent.as_ref().map(AgentNames::names).unwrap_or_default();
    for name in names {
        let agent = select_agent(context.config, running_agent(name, agent.live))
            .map_err(|problem| AppError::from_problems(vec![problem]))?;
        if Capabilities::of(agent.kind()).unsupported_inputs.contains(&AgentInput::OutputSchema) {
            return Ok(());
        }
    }
    agent.output_schema = findings::message_schema().as_object().cloned();
    Ok(())
}
