//! What is written to an agent's standard input, and when.
//!
//! A `Conversation` is pure: it gets the lines of the agent and the wishes of the user (`Control`) and fills
//! an `Outbox` with lines to send and `Step`s that the supervision loop acts upon. It never decides whether a
//! turn succeeded: the dialect of the agent does, from the stored lines of both sides
//! (`delegator-transcript`).
//!
//! Invariants: no prompt is sent while a turn runs, and none after an interrupt.

mod acp;
mod app_server;
mod claude;
mod idle_queue;
mod open_questions;
mod outbox;
mod permissions;
#[cfg(test)]
mod recorded_lines;
mod sent_requests;

use std::ffi::OsString;

use acp::Acp;
pub use acp::{AcpPlan, AcpSetting, SettingValue};
use app_server::AppServer;
pub use app_server::AppServerPlan;
use claude::Claude;
pub use claude::ClaudePlan;
use idle_queue::IdleQueue;
pub(crate) use idle_queue::TOOL_ERROR;
use outbox::Once;
pub(crate) use outbox::{Control, Conversation, Outbox, Step};
pub use permissions::PermissionPolicy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationPlan {
    /// The agent reads all of its input, then works. It takes no messages.
    Once {
        stdin: Vec<u8>,
    },
    /// The agent reads one message after the other and reports when it is idle.
    IdleQueue {
        prompt: String,
        /// Answers its tool calls: an absolute path and arguments. Empty: the user does.
        tool_command: Vec<OsString>,
    },
    Claude(ClaudePlan),
    Acp(AcpPlan),
    AppServer(AppServerPlan),
}

impl ConversationPlan {
    pub(crate) fn start(self) -> Box<dyn Conversation> {
        match self {
            ConversationPlan::Once { stdin } => Box::new(Once { stdin }),
            ConversationPlan::IdleQueue { prompt, tool_command } => {
                Box::new(IdleQueue::new(prompt, tool_command))
            }
            ConversationPlan::Claude(plan) => Box::new(Claude::new(plan)),
            ConversationPlan::Acp(plan) => Box::new(Acp::new(plan)),
            ConversationPlan::AppServer(plan) => Box::new(AppServer::new(plan)),
        }
    }

    /// Whether the stored stream contains the lines that we send, too.
    pub(crate) fn records_sent_lines(&self) -> bool {
        !matches!(self, ConversationPlan::Once { .. })
    }
}
