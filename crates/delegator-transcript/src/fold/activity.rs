//! What the agent is doing, in plain words.

use std::collections::VecDeque;

use serde::Serialize;

use super::kept::KeptText;
use crate::control;
use crate::event::{Item, ItemDetails};
use crate::json::{Cursor, Text};
use crate::shell;

/// Items remembered as open at most; agents have a handful.
const MOST_OPEN: usize = 256;
const LONGEST_SUBJECT: usize = 1 << 10;
const LONGEST_ID: usize = 256;
/// Longest activity, in characters.
const LONGEST_WORDS: usize = 120;

/// An item that began and did not end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenItem {
    /// `item_N`
    pub id: String,
    /// In plain words.
    pub activity: String,
}

/// What kind of thing an open item is; with its subject it becomes words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doing {
    Running,
    Editing,
    Calling,
    Searching,
    Reading,
    Planning,
    Collaborating,
    #[default]
    Working,
}

#[derive(Debug, Default)]
struct Open {
    id: String,
    doing: Doing,
    subject: KeptText,
    /// Files beyond the first of a patch.
    more: usize,
}

/// The items that are open, in the order they began.
#[derive(Debug, Default)]
pub(super) struct OpenItems {
    open: VecDeque<Open>,
    /// Buffers to use again.
    spare: Vec<Open>,
    forgotten: u64,
}

impl OpenItems {
    /// Whether it was not open already.
    pub(super) fn start(&mut self, item: &Item<'_>) -> bool {
        let id = item.id.resolve();
        let id = id.get(..id.floor_char_boundary(LONGEST_ID)).unwrap_or_default();
        let known = self.open.iter().rposition(|open| open.id == id);
        let mut open =
            known.and_then(|at| self.open.remove(at)).or_else(|| self.spare.pop()).unwrap_or_default();
        if self.open.len() >= MOST_OPEN {
            self.open.pop_front();
            self.forgotten += 1;
        }
        open.id.clear();
        open.id.push_str(id);
        open.describe(&item.details);
        self.open.push_back(open);
        known.is_none()
    }

    /// Whether it was open.
    pub(super) fn complete(&mut self, id: &Text<'_>) -> bool {
        let id = id.resolve();
        let id = id.get(..id.floor_char_boundary(LONGEST_ID)).unwrap_or_default();
        let Some(at) = self.open.iter().rposition(|open| open.id == id) else { return false };
        if let Some(open) = self.open.remove(at).filter(|_| self.spare.len() < 16) {
            self.spare.push(open);
        }
        true
    }

    /// A plan stays open all through the turn and is not an activity.
    pub(super) fn latest_words(&self, workdir: Option<&str>) -> Option<String> {
        let latest = self.open.iter().rev().find(|open| open.doing != Doing::Planning)?;
        Some(latest.words(workdir))
    }

    pub(super) fn report(&self, workdir: Option<&str>) -> Vec<OpenItem> {
        let item = |open: &Open| OpenItem { id: open.id.clone(), activity: open.words(workdir) };
        self.open.iter().map(item).collect()
    }
}

/// What doing this is, in plain words.
pub(crate) fn words_of(details: &ItemDetails<'_>, workdir: Option<&str>) -> String {
    let mut open = Open::default();
    open.describe(details);
    open.words(workdir)
}

impl Open {
    fn describe(&mut self, details: &ItemDetails<'_>) {
        self.more = 0;
        let subject = |kept: &mut KeptText, text: &Text<'_>| kept.set(text, LONGEST_SUBJECT);
        self.doing = match details {
            ItemDetails::CommandExecution(command) => {
                subject(&mut self.subject, &command.command);
                Doing::Running
            }
            ItemDetails::FileChange { changes } => {
                self.more = changes.len().saturating_sub(1);
                subject(&mut self.subject, changes.first().map_or(&Text::default(), |change| &change.path));
                Doing::Editing
            }
            ItemDetails::McpToolCall(call) => {
                let name = match call.server.resolve() {
                    server if server.is_empty() || server == "agent" => call.tool.clone(),
                    server => Text::owned(format!("{server}.{}", call.tool.resolve())),
                };
                subject(&mut self.subject, &name);
                Doing::Calling
            }
            ItemDetails::WebSearch { query, action } => {
                subject(&mut self.subject, query);
                if action.is_some_and(opens_page) { Doing::Reading } else { Doing::Searching }
            }
            ItemDetails::CollabToolCall(call) => {
                subject(&mut self.subject, &call.tool);
                Doing::Collaborating
            }
            ItemDetails::TodoList { .. } => {
                self.subject.clear();
                Doing::Planning
            }
            ItemDetails::Other { kind } => {
                subject(&mut self.subject, kind);
                Doing::Working
            }
            ItemDetails::AgentMessage { .. } | ItemDetails::Reasoning { .. } | ItemDetails::Error { .. } => {
                self.subject.clear();
                Doing::Working
            }
        };
    }

    fn words(&self, workdir: Option<&str>) -> String {
        let subject = self.subject.resolve();
        let words = match self.doing {
            Doing::Running => format!("Running {}", shell::unwrap(&subject)),
            Doing::Editing => {
                let path = relative(&subject, workdir);
                match self.more {
                    0 => format!("Editing {path}"),
                    more => format!("Editing {path} and {more} more"),
                }
            }
            Doing::Calling => format!("Calling {subject}"),
            Doing::Searching if subject.is_empty() => "Searching the web".to_owned(),
            Doing::Searching => format!("Searching the web for {subject}"),
            Doing::Reading => format!("Reading {subject}"),
            Doing::Planning => "Planning".to_owned(),
            Doing::Collaborating => match subject.as_str() {
                "spawn_agent" => "Starting a sub-agent".to_owned(),
                "wait" => "Waiting for sub-agents".to_owned(),
                "close_agent" => "Closing a sub-agent".to_owned(),
                _ => "Talking to a sub-agent".to_owned(),
            },
            Doing::Working if subject.is_empty() => "Working".to_owned(),
            Doing::Working => format!("Working ({subject})"),
        };
        one_line(&words)
    }
}

fn opens_page(action: &str) -> bool {
    let mut kind = None;
    let _ = Cursor::new(action).object(|cursor, key| {
        match key.simple() {
            Some("type") if kind.is_none() => kind = cursor.text()?,
            _ => cursor.skip()?,
        }
        Ok(())
    });
    kind.is_some_and(|kind| kind == *"open_page")
}

/// A path below the working directory, seen from there.
fn relative<'p>(path: &'p str, workdir: Option<&str>) -> &'p str {
    let below = workdir.and_then(|dir| path.strip_prefix(dir.trim_end_matches('/'))?.strip_prefix('/'));
    below.unwrap_or(path)
}

/// What a retry the agent announced is, in plain words.
pub(crate) fn words_of_error(message: &str) -> String {
    let Some(rest) = message.strip_prefix("Reconnecting") else {
        return "Retrying after an error".to_owned();
    };
    let rest = rest.trim_start_matches(['.', '…', ' ']);
    let state = rest.split(" (").next().unwrap_or_default().trim();
    if state.is_empty() {
        return "Reconnecting to the model".to_owned();
    }
    one_line(&format!("Reconnecting to the model ({state})"))
}

/// The first line, without control sequences and characters, not too long.
pub(crate) fn one_line(words: &str) -> String {
    let words = &*control::without_sequences(words);
    let line = words.lines().next().unwrap_or_default();
    let more_follows = words.trim_end().len() > line.len();
    let mut short: String =
        line.chars().take(LONGEST_WORDS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if more_follows || line.chars().nth(LONGEST_WORDS).is_some() {
        short.push('…');
    }
    short
}
