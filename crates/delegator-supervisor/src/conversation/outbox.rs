//! What goes into a conversation and what comes out of it.

use std::ffi::OsString;
use std::fmt::Debug;

use delegator_domain::message::{Delivery, MessageNumber};
use delegator_domain::question::{Answer, Question, QuestionNumber};

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Ready,
    Question(Question),
    /// The agent waits for the result of a tool call, which this command gives.
    ToolCalled {
        question: QuestionNumber,
        command: Vec<OsString>,
        /// A line, without its end.
        call: String,
    },
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

    pub(crate) fn close_stdin(&mut self) {
        self.closes_stdin = true;
    }
}

pub(crate) trait Conversation: Debug {
    /// Begins the conversation; called once, when the agent has been started.
    fn open(&mut self, out: &mut Outbox);

    /// Processes a line of the agent, without its line end.
    fn on_line(&mut self, line: &str, out: &mut Outbox);

    fn on_control(&mut self, control: Control, out: &mut Outbox);

    /// Whether a message of this kind can be delivered now.
    fn can_take(&self, delivery: Delivery) -> bool;

    /// Whether the agent may still have messages to read although it has ended a turn.
    fn may_have_input(&self) -> bool {
        false
    }
}

/// All of the input at once: `codex exec` and plain programs. They have no turns, ask nothing and take no
/// messages.
#[derive(Debug)]
pub(super) struct Once {
    pub(super) stdin: Vec<u8>,
}

impl Conversation for Once {
    fn open(&mut self, out: &mut Outbox) {
        out.send(std::mem::take(&mut self.stdin));
        out.close_stdin();
        out.report(Step::Ready);
    }

    fn on_line(&mut self, _line: &str, _out: &mut Outbox) {}

    fn on_control(&mut self, _control: Control, _out: &mut Outbox) {}

    fn can_take(&self, _delivery: Delivery) -> bool {
        false
    }
}
