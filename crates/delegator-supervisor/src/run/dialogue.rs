//! Connects a conversation with the agent's standard input, which is written without blocking.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ChildStdin;

use delegator_transcript::wire::sent_line;
use delegator_transcript::{Line, LineText};
use rustix::fs::{OFlags, fcntl_setfl};

use crate::conversation::{Control, Conversation, ConversationPlan, Outbox, Step};

/// An agent that does not read what we answer must not fill our memory.
const MAX_WAITING: usize = 64 << 20;

pub(crate) struct Dialogue {
    pub(crate) conversation: Box<dyn Conversation>,
    outbox: Outbox,
    pub(crate) stdin: StdinWriter,
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

    /// Whether everything that was sent so far was written.
    pub(crate) fn is_written(&self) -> bool {
        self.outbox.lines.is_empty() && self.stdin.waiting() == 0
    }

    /// Whether the agent does not read what it is sent.
    pub(crate) fn is_overflowing(&self) -> bool {
        self.stdin.waiting() > MAX_WAITING
    }
}

pub(crate) struct StdinWriter {
    pipe: Option<ChildStdin>,
    bytes: Vec<u8>,
    written: usize,
    closes_when_written: bool,
}

impl StdinWriter {
    pub(crate) fn new(pipe: Option<ChildStdin>) -> std::io::Result<StdinWriter> {
        if let Some(pipe) = &pipe {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        Ok(StdinWriter { pipe, bytes: Vec::new(), written: 0, closes_when_written: false })
    }

    /// Adds bytes to what is to be written. Ignored if the pipe is closed.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        if self.pipe.is_some() {
            self.bytes.extend_from_slice(&bytes);
        }
    }

    pub(crate) fn close_when_written(&mut self) {
        self.closes_when_written = true;
    }

    pub(crate) fn close(&mut self) {
        self.pipe = None;
        self.bytes = Vec::new();
        self.written = 0;
    }

    /// The pipe to poll; `None` while there is nothing to write or to close.
    pub(crate) fn pending_fd(&self) -> Option<BorrowedFd<'_>> {
        let is_pending = self.waiting() > 0 || self.closes_when_written;
        self.pipe.as_ref().filter(|_| is_pending).map(|pipe| pipe.as_fd())
    }

    /// Number of bytes that the agent has not read yet.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Writes as much as the pipe takes. Closes it if the agent has closed its end.
    pub(crate) fn write_some(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            if self.written == self.bytes.len() {
                self.bytes = Vec::new();
                self.written = 0;
                if self.closes_when_written {
                    self.close();
                }
                return;
            }
            match pipe.write(&self.bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The agent closed its end: it does not want the rest.
                Err(_) => {
                    self.close();
                    return;
                }
            }
        }
    }
}
