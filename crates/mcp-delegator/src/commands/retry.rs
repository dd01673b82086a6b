//! `retry`: start an ended task again as a new task.
//!
//! It reuses the stored text and inputs. A stored value with a redacted secret cannot be reused: the call is
//! refused instead of running with the marker.

use delegator_engine::{Reviewed, SubmitOutcome};
use delegator_registry::TaskFile;

use crate::commands::Started;
use crate::commands::cloud;
use crate::commands::cloud::submit::Submit;
use crate::commands::inputs::blank_task_problem;
use crate::commands::local::followers::build_submission;
use crate::commands::local::run::attend;
use crate::commands::local::task_input::{stored_input, unconfirmed_problem};
use crate::commands::prelude::*;
use crate::commands::terminal_prompt;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Retry {
    #[serde(flatten)]
    pub target: TaskIdInput,
    /// New task text (default: the same)
    #[schemars(length(min = 1, max = 100_000), extend("x-markers" = [Marker::Stdin]))]
    pub task: Option<String>,
    /// Sandbox mode (default: the same)
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = Mode::NAMES))]
    pub mode: Option<Mode>,
    /// Required for mode danger-full-access
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Consent]))]
    pub confirm: bool,
    #[serde(flatten)]
    pub detach: DetachInput,
}

impl InputRules for Retry {
    fn problems(&self) -> Vec<Problem> {
        self.task.as_deref().and_then(blank_task_problem).into_iter().collect()
    }
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Uses the same inputs, directory and thread, unless task or mode is given, with the current environment and configuration.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_retried"),
    network: true,
    failures: &[
        ErrorCode::WrongState,
        ErrorCode::NotReady,
        ErrorCode::SubmissionUnconfirmed,
        ErrorCode::ThreadNotFound,
    ],
    input: InputType::with_rules::<Retry>(),
    ..CommandSpec::new::<Retry, ExecutionAck>(&["retry"], "Start an ended task again as a new task")
};

pub fn run(context: &Context<'_>, input: Retry) -> Result<Started, AppError> {
    let engine = engine(context)?;
    let task = ended(engine.results().task(&resolve_task(&engine, &input.target.task_id)?)?)?;
    let text = match &input.task {
        Some(text) => text.clone(),
        None => stored_text(&task, engine.results().read_stored(&task.id, TaskFile::Text)?)?,
    };
    if let Some(input) = redacted_input(&task) {
        let problem = format!("The input {input} of {} contained a secret, which was not stored.", task.id);
        return Err(AppError::new(ErrorCode::WrongState, problem)
            .context("task_id", task.id.as_str())
            .suggest("Submit a new task with all inputs."));
    }
    if task.remote.is_some() {
        let output = retry_remote(context, &task, text, input.mode)?;
        return Ok(output.fact("retry_of", task.id.as_str()).into());
    }
    let submitted = retry_local(context, &engine, &task, text, &input)?;
    attend(context, &engine, submitted, input.detach, Some(("retry_of", task.id)))
}

fn retry_remote(
    context: &Context<'_>,
    task: &Task,
    text: String,
    mode: Option<Mode>,
) -> Result<CommandOutput, AppError> {
    if mode.is_some() {
        let problem = Problem::invalid("mode", "cannot be given for a cloud task")
            .suggest(Some("Set the mode of its environment instead."));
        return Err(problem.into());
    }
    let mut input: Submit = stored_input(task, text)?;
    input.submission.idempotency_key = None;
    input.retry_of = Some(task.id.clone());
    cloud::submit::accepted_output(context, cloud::submit::submit(context, &input)?)
}

fn retry_local(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    text: String,
    given: &Retry,
) -> Result<SubmitOutcome, AppError> {
    let mut input: TaskInput = stored_input(task, text)?;
    input.mode = match given.mode {
        None if input.mode == RunMode::Preview => RunMode::Preview,
        mode => RunMode::Sandbox(mode.unwrap_or(task.mode)),
    };
    // Over MCP `max_mode` decides, as for exec.
    if context.surface == Surface::CommandLine
        && !given.confirm
        && let Some(problem) = unconfirmed_problem(input.mode.sandbox())
    {
        terminal_prompt::consent(context, problem.into())?;
    }
    if !input.submission.allow_destructive_git
        && let Some(problem) = input.history_rewrite_problem()
    {
        // The task keeps its inputs, so this call cannot permit it.
        return Err(Problem { permitted_by: None, ..problem }.into());
    }
    // An idempotency key belongs to one task, which has ended.
    input.submission.idempotency_key = None;
    input.agent.working_dir = Some(PathBuf::from(&task.working_dir));
    // The default agent may be another one now.
    input.agent.agent.get_or_insert_with(|| AgentNames::One(task.agent.clone()));
    input.retry_of = Some(task.id.clone());
    if input.review {
        let predecessor = task.follows.as_ref().map(|follows| follows.task.clone());
        input.reviews = input.reviews.or(predecessor);
    }
    let request = TaskRequest {
        thread: task.resumed_thread.clone(),
        reviews: input.reviews.clone().map(Reviewed::Task),
        // The new task follows no other one, but it needs the same report.
        report_of: task.follows.as_ref().map(|follows| follows.task.clone()),
        resume: task
            .resumed_thread
            .as_deref()
            .map(|thread| engine.results().last_task_of_thread(thread))
            .transpose()?
            .flatten(),
        ..TaskRequest::new(input)
    };
    Ok(engine.submissions().submit(build_submission(context, engine, request)?)?)
}

/// The stored task text. A text with a redacted secret cannot be used again.
fn stored_text(task: &Task, stored: Vec<u8>) -> Result<String, AppError> {
    let refuse = |reason: &str| {
        AppError::new(ErrorCode::WrongState, format!("The text of {} {reason}.", task.id))
            .context("task_id", task.id.as_str())
            .suggest("Give the text as {input:task}.")
    };
    match String::from_utf8(stored) {
        Ok(text) if text.contains("[REDACTED:") => Err(refuse("contained a secret, which was not stored")),
        Ok(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(refuse("was not stored")),
    }
}

/// The first input with a redacted secret. Labels are ignored: they only describe a task.
fn redacted_input(task: &Task) -> Option<&str> {
    let inputs = task.input.as_object().into_iter().flatten();
    let mut functional = inputs.filter(|(key, _)| key.as_str() != "labels");
    functional.find(|(_, value)| value.to_string().contains("[REDACTED:")).map(|(key, _)| key.as_str())
}
