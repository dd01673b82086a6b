//! Sends messages to the agent of a task: stores them durably, then wakes the supervisor, which alone
//! delivers them. A queued task gets its messages once it runs.

use delegator_domain::message::Delivery;
use delegator_domain::task::{State, TaskId};
use delegator_registry::{EnqueueOutcome, MAX_QUEUED_MESSAGES, Message, MessageCounts, Registry, Task};
use delegator_supervisor::agent::MessageSupport;

use crate::Conversations;
use crate::error::{ConversationError, EngineError, Result};
use crate::provider_error::UnsupportedAction;
use crate::remote::refresh::unsupported;
use crate::supervise::wake_socket;
use crate::upkeep::rescue::rescue_task;

pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Messages that are listed; the others are only counted.
const MAX_LISTED: u32 = 20;

#[derive(Debug)]
pub struct SentMessage {
    pub message: Message,
    /// The state of the task before.
    pub state: State,
    /// Messages of the task that are not delivered yet, this one included.
    pub queued: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskMessages {
    pub counts: MessageCounts,
    /// The last ones, oldest first.
    pub last: Vec<Message>,
}

impl TaskMessages {
    pub(crate) fn read(registry: &Registry, id: &TaskId) -> Result<TaskMessages> {
        let counts = registry.message_counts(id)?;
        let last = if counts.total() > 0 { registry.last_messages(id, MAX_LISTED)? } else { Vec::new() };
        Ok(TaskMessages { counts, last })
    }
}

impl Conversations<'_> {
    /// `support` is what the task's agent takes.
    pub fn send(
        &self,
        id: &TaskId,
        text: &str,
        delivery: Delivery,
        support: MessageSupport,
    ) -> Result<SentMessage> {
        let unknown = || EngineError::unknown(id);
        let mut registry = self.engine.registry_of(id)?;
        rescue_task(self.engine, &mut registry, id)?;
        let task = registry.get(id)?.ok_or_else(unknown)?;
        check_recipient(&task, delivery, support)?;
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(
                ConversationError::MessageTooLong { bytes: text.len(), allowed: MAX_MESSAGE_BYTES }.into()
            );
        }
        let file = self.engine.system.fresh_nonce()?;
        let message = match registry.enqueue(id, text, delivery, &file, self.engine.now_ms())? {
            EnqueueOutcome::Queued(message) => message,
            EnqueueOutcome::Ended { state } => {
                return Err(EngineError::AlreadyEnded { task: id.clone(), state });
            }
            EnqueueOutcome::Full => {
                return Err(ConversationError::TooManyMessages {
                    task: id.clone(),
                    allowed: MAX_QUEUED_MESSAGES,
                }
                .into());
            }
            EnqueueOutcome::Unknown => return Err(unknown()),
        };
        wake_socket::wake(&registry.dir().task(id));
        let queued = registry.message_counts(id)?.queued;
        Ok(SentMessage { message, state: task.state, queued })
    }
}

fn check_recipient(task: &Task, delivery: Delivery, support: MessageSupport) -> Result<()> {
    if task.state.is_terminal() {
        return Err(EngineError::AlreadyEnded { task: task.id.clone(), state: task.state });
    }
    if let Some(remote) = &task.remote {
        return Err(unsupported(&task.id, remote, UnsupportedAction::SendMessage));
    }
    let agent = || task.agent.clone();
    match support {
        MessageSupport::None => Err(ConversationError::NoMessages { agent: agent() }.into()),
        support if !support.takes(delivery) => Err(ConversationError::NotSteerable { agent: agent() }.into()),
        _ => Ok(()),
    }
}
