//! Connects a conversation with the agent's standard input.

use std::os::fd::BorrowedFd;
use std::process::ChildStdin;

use delegator_domain::message::Delivery;
use delegator_transcript::wire::sent_line;
use delegator_transcript::{Line, LineText};

use super::stdin_writer::StdinWriter;
use crate::conversation::{Control, Conversation, ConversationPlan, Outbox, Step};

/// An agent that does not read what we answer must not fill our memory.
const MAX_WAITING: usize = 64 << 20;

pub(crate) struct Dialogue {
    conversation: Box<dyn Conversation>,
    outbox: Outbox,
    stdin: StdinWriter,
    /// Whether the stored stream contains our lines, too.
    is_recorded: bool,
}

impl Dialogue {
    pub(crate) fn new(plan: ConversationPlan, stdin: Option<ChildStdin>) -> std::io::Result<Dialogue> {
        let is_recorded = plan.records_sent_lines();
        let mut dialogue = Dialogue {
            conversation: plan.start(),
            outbox: Outbox::default(),
            stdin: StdinWriter::new(stdin)?,
            is_recorded,
        };
        dialogue.conversation.open(&mut dialogue.outbox);
        Ok(dialogue)
    }

    pub(crate) fn on_line(&mut self, line: &Line<'_>) {
        let text = line.text();
        let (LineText::Whole(text) | LineText::Truncated { head: text, .. }) = &text;
        self.conversation.on_line(text, &mut self.outbox);
    }

    pub(crate) fn control(&mut self, control: Control) {
        self.conversation.on_control(control, &mut self.outbox);
    }

    pub(crate) fn can_take(&self, delivery: Delivery) -> bool {
        self.conversation.can_take(delivery)
    }

    pub(crate) fn may_have_input(&self) -> bool {
        self.conversation.may_have_input()
    }

    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.outbox.steps)
    }

    /// Passes what is to be sent on to the writer, each line after `record` has stored it.
    pub(crate) fn flush(&mut self, mut record: impl FnMut(&[u8])) {
        for mut line in std::mem::take(&mut self.outbox.lines) {
            if self.is_recorded {
                let mut stored = sent_line(&line);
                stored.push(b'\n');
                record(&stored);
                line.push(b'\n');
            }
            self.stdin.push(line);
        }
        if std::mem::take(&mut self.outbox.closes_stdin) {
            self.stdin.close_when_written();
        }
    }

    pub(crate) fn write_some(&mut self) {
        self.stdin.write_some();
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin.close();
    }

    pub(crate) fn pending_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stdin.pending_fd()
    }

    /// Whether everything that was sent so far was written.
    pub(crate) fn is_written(&self) -> bool {
        self.outbox.lines.is_empty() && self.stdin.waiting() == 0
    }

    /// Whether nothing of what was sent was refused.
    pub(crate) fn is_delivered(&self) -> bool {
        self.stdin.is_delivered()
    }

    /// Whether the agent does not read what it is sent.
    pub(crate) fn is_overflowing(&self) -> bool {
        self.stdin.waiting() > MAX_WAITING
    }
}
