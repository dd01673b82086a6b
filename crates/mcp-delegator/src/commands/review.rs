//! `review`: have an agent review the changes of another task.
//!
//! A review is a read-only task in the directory of the other task. Its prompt quotes the report and the
//! changes of that task as data. It answers with findings: agents with an output schema get one, the others
//! get the format in the prompt.

use delegator_engine::Reviewed;

use crate::commands::Started;
use crate::commands::inputs::MODEL;
use crate::commands::local::followers::build_submission;
use crate::commands::local::review_prompt::{add_output_schema, review_text};
use crate::commands::local::run::attend;
use crate::commands::local::task_input::stored_input;
use crate::commands::prelude::*;

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
    #[serde(flatten)]
    pub detach: DetachInput,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "The review is a read-only task of its own; results returns its findings.",
    category: Category::ExecutionAck,
    shape: Shape::Action("review_submitted"),
    network: true,
    failures: &[ErrorCode::NotReady],
    examples: &[example(
        "mcp-delegator review T-local-… --instructions 'look at error handling'",
        "the id of the review; results shows its findings",
    )],
    ..CommandSpec::new::<Review, ExecutionAck>(&["review"], "Review the changes of a finished task")
};

pub fn run(context: &Context<'_>, input: Review) -> Result<Started, AppError> {
    let (engine, detach) = (engine(context)?, input.detach);
    let task = ended(engine.results().task(&resolve_task(&engine, &input.target.task_id)?)?)?;
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
    let submitted = engine.submissions().submit(build_submission(context, &engine, request)?)?;
    attend(context, &engine, submitted, detach, Some(("reviews", task.id)))
}
