//! `local resume`: continue an earlier thread.
//!
//! The thread is given by its id or by one of its tasks. The new task runs in the directory of the earlier
//! task, unless `working_dir` is given.

use delegator_engine::{Capabilities, check_resumable};

use crate::commands::Started;
use crate::commands::inputs::THREAD_ID;
use crate::commands::local::followers::build_submission;
use crate::commands::local::preflight::resumed_agent_problems;
use crate::commands::local::run::attend;
use crate::commands::prelude::*;
use crate::input::agent_selection::select_agent;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Resume {
    #[serde(flatten)]
    pub submission: SubmissionInputs,
    /// Thread id
    #[schemars(regex(pattern = THREAD_ID), extend("x-markers" = [Marker::SelfExplanatory]))]
    pub thread_id: Option<String>,
    /// Any task of the thread
    pub task_id: Option<TaskRef>,
    /// Sandbox mode; CLI: without it, default_mode of the configuration
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = Mode::NAMES, "x-markers" = [Marker::SelfExplanatory, Marker::DefaultMode]))]
    pub mode: Mode,
    /// Required for mode danger-full-access
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Consent]))]
    pub confirm: Option<bool>,
    #[serde(flatten)]
    pub detach: DetachInput,
    #[serde(flatten)]
    pub agent: AgentInputs,
}

impl Resume {
    fn task_input(&self) -> TaskInput {
        TaskInput {
            submission: self.submission.clone(),
            thread_id: self.thread_id.clone(),
            task_id: self.task_id.clone(),
            mode: RunMode::Sandbox(self.mode),
            agent: self.agent.clone(),
            ..TaskInput::default()
        }
    }
}

impl InputRules for Resume {
    fn problems(&self) -> Vec<Problem> {
        self.task_input().problems()
    }

    fn confirmation(&self, surface: Surface) -> Option<Problem> {
        self.task_input().command_line_confirmation(self.confirm, surface)
    }

    fn preflight(&self, context: &PreflightContext<'_>) -> Vec<Problem> {
        resumed_agent_problems(&self.task_input(), context)
    }
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Returns the new task's id; wait returns the result.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_resumed"),
    network: true,
    toolset: Toolset::Local,
    failures: &[ErrorCode::ThreadNotFound],
    exactly_one_of: &["thread_id", "task_id"],
    input: InputType::with_rules::<Resume>(),
    ..CommandSpec::new::<Resume, ExecutionAck>(&["local", "resume"], "Continue an earlier thread")
};

pub fn run(context: &Context<'_>, input: Resume) -> Result<Started, AppError> {
    let engine = engine(context)?;
    let earlier = match (&input.task_id, &input.thread_id) {
        (Some(task), _) => Some(engine.results().task(&resolve_task(&engine, task)?)?),
        (None, Some(thread)) => engine.results().last_task_of_thread(thread)?,
        (None, None) => None,
    };
    if let Some(task) = &earlier {
        check_resumable(task)?;
        check_agent(context, &input, &task.agent)?;
    }
    let thread = input.thread_id.clone().or_else(|| earlier.as_ref().and_then(|task| task.thread_id.clone()));
    let Some(thread) = thread else {
        let message = "The task has no thread to continue: its agent never announced one.";
        return Err(AppError::new(ErrorCode::ThreadNotFound, message)
            .optional_context("task_id", earlier.map(|task| task.id.to_string()))
            .suggest_call("Start a new task with {call}.", NextCall::new(&["local", "exec"])));
    };
    let request =
        TaskRequest { resume: earlier, thread: Some(thread), ..TaskRequest::new(input.task_input()) };
    let submitted = engine.submissions().submit(build_submission(context, &engine, request)?)?;
    attend(context, &engine, submitted, input.detach, None)
}

/// A thread belongs to the agent that began it, and not every agent has threads.
fn check_agent(context: &Context<'_>, input: &Resume, agent: &str) -> Result<(), AppError> {
    let configured = select_agent(context.config, agent)?;
    if !Capabilities::of(configured.kind()).threads {
        return Err(EngineError::NoThreads { agent: configured.name }.into());
    }
    match &input.agent.agent {
        Some(given) if given.names() != [agent] => {
            let problem = Problem::invalid("agent", format!("is not the agent of the thread, {agent}"));
            let suggestion = "Remove {input:agent}, or start a new task.";
            Err(problem.value(json!(given)).suggest(Some(suggestion)).into())
        }
        _ => Ok(()),
    }
}
