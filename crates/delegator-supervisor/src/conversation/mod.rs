//! What is written to an agent's standard input, and when.
//!
//! A `Conversation` is pure: it gets the lines of the agent and the wishes of the user (`Control`) and fills an
//! `Outbox` with lines to send and `Step`s that the supervision loop acts upon. It never decides whether a turn
//! succeeded: the dialect of the agent does, from the stored lines of both sides (`delegator-transcript`).
//!
//! Invariants: no prompt is sent while a turn runs, and none after an interrupt.

mod acp;
mod app_server;
mod claude;
mod idle_queue;
mod once;
mod open_questions;
mod permissions;

use std::ffi::OsString;

use delegator_domain::message::{Delivery, MessageNumber};
use delegator_domain::question::{Answer, Question, QuestionNumber};

use acp::Acp;
pub use acp::{AcpPlan, AcpSetting, SettingValue};
use app_server::AppServer;
pub use app_server::AppServerPlan;
use claude::Claude;
pub use claude::ClaudePlan;
use idle_queue::IdleQueue;
pub(crate) use idle_queue::TOOL_ERROR;
use once::Once;
pub use permissions::PermissionPolicy;

/// The conversation that an agent is started for. Data.
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
    /// Whether the stored stream contains the lines that we send, too.
    pub(crate) fn records_sent_lines(&self) -> bool {
        !matches!(self, ConversationPlan::Once { .. })
    }
}

/// A wish of the user, or of the supervision loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Control {
    /// Only while [`Conversation::can_take`] allows it.
    Message {
        number: MessageNumber,
        text: String,
        delivery: Delivery,
    },
    Answer {
        question: QuestionNumber,
        answer: Answer,
    },
    /// All messages that were queued by now are delivered.
    QueueEmpty,
    /// Stop the running turn. The process is ended afterwards.
    Interrupt,
    /// No further turn follows: let the agent exit.
    Finish,
    /// The run was successful, so the agent has read everything.
    Completed,
}

/// What happened in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The agent has the prompt.
    Ready,
    /// The agent waits for an answer.
    Asked(Question),
    /// The agent waits for the result of a tool call, which this command gives.
    ToolCalled {
        question: QuestionNumber,
        command: Vec<OsString>,
        /// A line, without its end.
        call: String,
    },
    /// The agent no longer waits for it.
    Withdrawn(QuestionNumber),
    /// The agent confirmed a message or began to work on it.
    Accepted(MessageNumber),
    Refused {
        message: MessageNumber,
        reason: String,
    },
    /// No turn runs: the next message can be delivered.
    TurnEnded,
    /// The agent works although it had ended its turn.
    Working,
    /// The agent says that it has ended its session and will exit.
    Done,
    /// The agent takes nothing more: the handshake or its session failed.
    Over,
}

/// What a conversation wants to be done.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) lines: Vec<Vec<u8>>,
    pub(crate) steps: Vec<Step>,
    pub(crate) closes_stdin: bool,
}

impl Outbox {
    /// Sends bytes as they are if they are all of the input, else a line, which must not contain a line end.
    pub(crate) fn send(&mut self, line: Vec<u8>) {
        self.lines.push(line);
    }

    pub(crate) fn report(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Closes standard input after everything was written.
    pub(crate) fn close_stdin(&mut self) {
        self.closes_stdin = true;
    }
}

#[derive(Debug)]
pub(crate) enum Conversation {
    Once(Once),
    IdleQueue(IdleQueue),
    Claude(Claude),
    Acp(Acp),
    AppServer(AppServer),
}

impl Conversation {
    pub(crate) fn new(plan: ConversationPlan) -> Conversation {
        match plan {
            ConversationPlan::Once { stdin } => Conversation::Once(Once::new(stdin)),
            ConversationPlan::IdleQueue { prompt, tool_command } => {
                Conversation::IdleQueue(IdleQueue::new(prompt, tool_command))
            }
            ConversationPlan::Claude(plan) => Conversation::Claude(Claude::new(plan)),
            ConversationPlan::Acp(plan) => Conversation::Acp(Acp::new(plan)),
            ConversationPlan::AppServer(plan) => Conversation::AppServer(AppServer::new(plan)),
        }
    }

    /// Begins the conversation; called once, when the agent has been started.
    pub(crate) fn open(&mut self, out: &mut Outbox) {
        match self {
            Conversation::Once(once) => once.open(out),
            Conversation::IdleQueue(idle) => idle.open(out),
            Conversation::Claude(claude) => claude.open(out),
            Conversation::Acp(acp) => acp.open(out),
            Conversation::AppServer(app_server) => app_server.open(out),
        }
    }

    /// Processes a line of the agent, without its line end.
    pub(crate) fn on_line(&mut self, line: &str, out: &mut Outbox) {
        match self {
            Conversation::Once(_) => {}
            Conversation::IdleQueue(idle) => idle.on_line(line, out),
            Conversation::Claude(claude) => claude.on_line(line, out),
            Conversation::Acp(acp) => acp.on_line(line, out),
            Conversation::AppServer(app_server) => app_server.on_line(line, out),
        }
    }

    pub(crate) fn on_control(&mut self, control: Control, out: &mut Outbox) {
        match self {
            // It has no turns, asks nothing and takes no messages.
            Conversation::Once(_) => {}
            Conversation::IdleQueue(idle) => idle.on_control(control, out),
            Conversation::Claude(claude) => claude.on_control(control, out),
            Conversation::Acp(acp) => acp.on_control(control, out),
            Conversation::AppServer(app_server) => app_server.on_control(control, out),
        }
    }

    /// Whether the agent may still have messages to read although it has ended a turn.
    pub(crate) fn may_have_input(&self) -> bool {
        matches!(self, Conversation::IdleQueue(idle) if idle.may_have_input())
    }

    /// Whether a message of this kind can be delivered now.
    pub(crate) fn can_take(&self, delivery: Delivery) -> bool {
        match self {
            Conversation::Once(_) => false,
            Conversation::IdleQueue(idle) => idle.can_take(delivery),
            Conversation::Claude(claude) => claude.can_take(delivery),
            Conversation::Acp(acp) => acp.can_take(delivery),
            Conversation::AppServer(app_server) => app_server.can_take(delivery),
        }
    }
}
