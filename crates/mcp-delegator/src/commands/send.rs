//! `send`: queue a message for the agent of a running task.
//!
//! The message is stored durably before the command returns. The supervisor of the task delivers it when the
//! agent can take it; the status and the results of the task say what became of it.

use delegator_domain::message::Delivery;
use delegator_engine::{Capabilities, ConversationError, MAX_MESSAGE_BYTES, SentMessage};

use crate::commands::prelude::*;
use crate::output::data::conversation::MessageData;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Send {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Message text
    #[schemars(
        length(min = 1, max = MAX_MESSAGE_BYTES),
        extend("x-markers" = [Marker::Positional, Marker::Stdin, Marker::StdinFlag])
    )]
    pub text: String,
    /// Deliver it into the running turn; not every agent can do that
    #[serde(default)]
    pub now: bool,
    /// Deliver it as the next turn, when the running one has ended; the default
    #[serde(default)]
    pub next: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SentData {
    pub task_id: String,
    /// The state of the task.
    pub state: &'static str,
    pub message: MessageData,
    /// Messages to the task that are not delivered yet, this one included.
    pub queued_count: u64,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "The message is stored and delivered in order; status and results show what became of it. A task that has not started yet gets it once it runs.",
    shape: Shape::Action("message_queued"),
    toolset: Toolset::Worktree,
    failures: &[ErrorCode::WrongState, ErrorCode::NotReady, ErrorCode::Unsupported],
    examples: &[
        example("mcp-delegator send T-local-… 'Also update the changelog.'", "the number of the message"),
        example(
            "git diff | mcp-delegator send T-local-… --stdin",
            "the same, with a text from another program",
        ),
    ],
    input: InputType::with_rules::<Send>(),
    ..CommandSpec::new::<Send, SentData>(&["send"], "Queue a message for a running agent")
};

impl InputRules for Send {
    fn problems(&self) -> Vec<Problem> {
        let together = (self.now && self.next).then(|| Problem::excluded("now", "next"));
        let is_blank = self.text.trim().is_empty();
        let blank = is_blank.then(|| Problem::invalid("text", "must not be blank"));
        together.into_iter().chain(blank).collect()
    }
}

pub fn run(context: &Context<'_>, input: Send) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.task.task_id)?;
    let agent = engine.results().recorded_task(&id)?.agent;
    let configured = context.config.agent(&agent).ok_or_else(|| not_configured(&agent))?;
    let delivery = if input.now { Delivery::Now } else { Delivery::Next };
    let capabilities = Capabilities::of(configured.kind());
    let SentMessage { message, state, queued } = engine
        .conversations()
        .send(&id, &input.text, delivery, capabilities.messages)
        .map_err(|error| refusal(error, &id, capabilities.threads))?;
    let output = CommandOutput::done(SentData {
        task_id: id.to_string(),
        state: state.public_name(),
        message: (&message).into(),
        queued_count: queued,
    });
    Ok(output.message(format!("Message {} to {id} queued", message.number)))
}

/// The error, with what the user can do instead if the agent takes no further message in this task.
fn refusal(error: EngineError, id: &TaskId, has_threads: bool) -> AppError {
    let is_final = matches!(
        error,
        EngineError::Conversation(ConversationError::NoMessages { .. }) | EngineError::AlreadyEnded { .. }
    );
    let error = AppError::from(error);
    match (is_final, has_threads) {
        (false, _) => error,
        (true, true) => error.suggest_call(
            "Continue its thread with another task: {call}",
            NextCall::new(&["local", "resume"]).with("task", "…").with("task_id", id.as_str()),
        ),
        (true, false) => error.suggest("Submit the text as a new task: the agent has no threads."),
    }
}

/// Without its protocol it is unknown which messages the agent takes.
fn not_configured(agent: &str) -> AppError {
    let message = format!("The agent {agent} of the task is not configured any more.");
    AppError::new(ErrorCode::Unsupported, message)
        .context("agent", agent)
        .suggest("Wait for the end of the task.")
}

impl CommandData for SentData {
    fn document(&self) -> Document {
        let SentData { task_id, state, message, queued_count } = self;
        Document::titled(format!("Message {} to {task_id} queued", message.message_number))
            .block(Block::facts([
                ("task state", Some((*state).to_owned())),
                ("delivery", Some(message.delivery.to_owned())),
                ("not delivered yet", Some(queued_count.to_string())),
            ]))
            .block(Block::Next(NextCall::for_task(&["local", "status"], task_id)))
    }
}
