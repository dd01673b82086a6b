//! `GET /tasks/{id}/messages`: the messages to the agent of a task, and its open questions.

use crate::commands::prelude::*;
use crate::output::data::conversation::Conversation;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskConversation {
    pub task_id: String,
    #[serde(flatten)]
    pub conversation: Conversation,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Show("conversation"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    ..CommandSpec::read_only::<TaskIdInput, TaskConversation>(
        &["task", "messages"],
        "Show the messages to the agent of a task, and its questions",
    )
};

pub fn run(context: &Context<'_>, input: TaskIdInput) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.task_id)?;
    let files = engine.results().files(&id)?;
    let conversation = Conversation::of(&files.open_questions, &files.messages);
    Ok(CommandOutput::done(TaskConversation { task_id: id.to_string(), conversation }))
}

impl CommandData for TaskConversation {}
