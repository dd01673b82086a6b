//! `queue pause` and `queue resume`: the whole queue, or the tasks of one agent.
//!
//! A pause is stored in the registry, so it affects all processes that use the state directory. It never
//! stops a running task. An agent is also paused when it reports that its usage limit is reached.

use delegator_engine::QueueStatus;

use crate::commands::prelude::*;
use crate::input::agent_selection::select_agent;
use crate::output::data::agent_pauses::PauseData;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Queue {
    /// Only the tasks of this agent
    #[schemars(length(min = 1, max = 64))]
    pub agent: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QueueState {
    /// Whether the whole queue is paused.
    pub is_paused: bool,
    /// Whether this call paused or resumed something.
    pub is_changed: bool,
    /// The agent that the call paused or resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Agents of which no queued task starts for now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent_pauses: Vec<PauseData>,
    pub running_count: u64,
    pub queued_count: u64,
}

pub const PAUSE: CommandSpec = CommandSpec {
    details: "Running tasks continue, and new tasks are still accepted. This affects every user of the state directory.",
    shape: Shape::Action("queue_paused"),
    idempotent: true,
    ..CommandSpec::new::<Queue, QueueState>(
        &["queue", "pause"],
        "Pause the queue: start no queued task until it is resumed",
    )
};

pub const RESUME: CommandSpec = CommandSpec {
    path: &["queue", "resume"],
    about: "Resume the queue: start queued tasks again",
    details: "With an agent: ends its pause, also one that its usage limit caused.",
    shape: Shape::Action("queue_resumed"),
    examples: &[example(
        "mcp-delegator queue resume --agent codex",
        "the queue, with the tasks of this agent started again",
    )],
    ..PAUSE
};

pub fn pause(context: &Context<'_>, input: Queue) -> Result<CommandOutput, AppError> {
    // A pause of an unknown agent would have no effect.
    check_agent(context, &input)?;
    set_paused(&engine(context)?, input, true).map(CommandOutput::done)
}

pub fn resume(context: &Context<'_>, input: Queue) -> Result<CommandOutput, AppError> {
    let state = set_paused(&engine(context)?, input.clone(), false)?;
    // A paused agent may have been removed from the configuration.
    if !state.is_changed {
        check_agent(context, &input)?;
    }
    Ok(CommandOutput::done(state))
}

fn check_agent(context: &Context<'_>, input: &Queue) -> Result<(), AppError> {
    let Some(agent) = &input.agent else { return Ok(()) };
    Ok(select_agent(context.config, agent).map(drop)?)
}

fn set_paused(engine: &Engine, input: Queue, paused: bool) -> Result<QueueState, AppError> {
    let status = match &input.agent {
        Some(agent) => engine.queue().set_agent_paused(agent, paused)?,
        None => engine.queue().set_paused(paused)?,
    };
    let QueueStatus { is_changed, is_paused, agent_pauses, queued, running } = status;
    Ok(QueueState {
        is_paused,
        is_changed,
        agent: input.agent,
        agent_pauses: agent_pauses.iter().map(Into::into).collect(),
        running_count: running,
        queued_count: queued,
    })
}

impl CommandData for QueueState {
    fn document(&self) -> Document {
        let already = if self.is_changed { "" } else { "already " };
        let resume = NextCall::new(&["queue", "resume"]);
        let (subject, is_paused, resume) = match &self.agent {
            Some(agent) => (
                format!("The agent {agent}"),
                self.agent_pauses.iter().any(|pause| pause.agent == *agent),
                resume.with("agent", agent.as_str()),
            ),
            None => ("The queue".to_owned(), self.is_paused, resume),
        };
        let state = if is_paused { "paused" } else { "open" };
        let (running, queued) = (self.running_count, self.queued_count);
        let title = format!("{subject} is {already}{state}: {running} running, {queued} queued");
        let mut document = Document::titled(title);
        if !self.agent_pauses.is_empty() {
            document = document.block(Block::Facts(self.agent_pauses.iter().map(PauseData::fact).collect()));
        }
        if is_paused {
            document
                .block(Block::ForPeople(Suggestion::with_call("To start queued tasks again: {call}", resume)))
        } else {
            document
        }
    }
}
