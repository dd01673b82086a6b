//! Reads the metadata of a session file, so that a past session can be added to the registry.
//!
//! The first line has the thread id and working directory; the prompt and model follow a few lines later, so
//! the beginning of a file is enough for everything but the time of the last line.

use crate::decode::{Event, decode};
use crate::framer::{Framer, Line};
use crate::json::Text;
use crate::protocol::{ProtocolEvent, ResponseItem, RolloutHead, RolloutLine, RolloutPayload};

/// Longest prompt that is stored; a task has at most 100,000 characters.
const MAX_PROMPT_BYTES: usize = 512 << 10;

#[derive(Debug, Default)]
pub struct RolloutReader {
    head: RolloutHead,
    has_thread_id: bool,
    /// The first user text in the model's input, in case no event has the prompt. Context that the program
    /// added looks similar.
    fallback_prompt: Option<String>,
}

fn owned(text: Text<'_>) -> String {
    text.resolve().into_owned()
}

fn first(slot: &mut Option<String>, text: Option<Text<'_>>) {
    if slot.is_none() {
        *slot = text.map(owned);
    }
}

impl RolloutReader {
    /// Reads a whole file or its beginning. Returns `None` if it is not a session file.
    pub fn read(bytes: &[u8]) -> Option<RolloutHead> {
        let mut reader = Self::default();
        let mut framer = Framer::default();
        framer.push(bytes, |line| reader.push_line(&line));
        framer.finish(|line| reader.push_line(&line));
        reader.head.prompt = reader.head.prompt.or(reader.fallback_prompt);
        reader.has_thread_id.then_some(reader.head)
    }

    fn push_line(&mut self, line: &Line<'_>) {
        let text = line.text();
        let Event::Rollout(RolloutLine { timestamp, payload }) = decode(&text) else { return };
        if let Some(timestamp) = timestamp {
            self.head.last_at = Some(owned(timestamp));
        }
        match payload {
            RolloutPayload::SessionMeta(head) => self.session(*head),
            RolloutPayload::TurnContext { model, cwd } => {
                first(&mut self.head.model, model);
                first(&mut self.head.cwd, cwd);
            }
            RolloutPayload::Event(ProtocolEvent::UserMessage { message }) => {
                first(&mut self.head.prompt, Some(message).filter(|text| text.len() <= MAX_PROMPT_BYTES));
            }
            RolloutPayload::Response(ResponseItem::UserText(text)) => {
                let text = owned(text);
                let is_context = text.starts_with('<') || text.starts_with("# AGENTS.md");
                if self.fallback_prompt.is_none() && !is_context && text.len() <= MAX_PROMPT_BYTES {
                    self.fallback_prompt = Some(text);
                }
            }
            RolloutPayload::Event(_) | RolloutPayload::Response(_) | RolloutPayload::Other => {}
        }
    }

    /// A fork repeats its parent's line, so only the first counts.
    fn session(&mut self, session: RolloutHead) {
        if self.has_thread_id || session.thread_id.is_empty() {
            return;
        }
        self.has_thread_id = true;
        let RolloutHead { cwd, last_at, model, prompt, .. } = std::mem::take(&mut self.head);
        self.head = RolloutHead { cwd: cwd.or(session.cwd), last_at, model, prompt, ..session };
    }
}
