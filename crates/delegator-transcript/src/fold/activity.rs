//! Describes what the agent is doing, in plain words: "Running cargo test", "Editing src/lib.rs and 2 more".
//! Open items are tracked in bounded memory; the activity shown is that of the latest one.

use std::collections::VecDeque;

use delegator_domain::text::beginning;
use serde::{Deserialize, Serialize};

use super::bounded_text::BoundedText;
use crate::control;
use crate::error_locations::relative_to_workdir;
use crate::event::{Item, ItemDetails};
use crate::json::{Object, Text};
use crate::shell;

/// Open items that are tracked; agents have a handful.
const MAX_OPEN_ITEMS: usize = 256;
const MAX_SUBJECT_BYTES: usize = 1 << 10;
const MAX_ID_BYTES: usize = 256;
const MAX_ACTIVITY_CHARS: usize = 120;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenItem {
    /// `item_N`
    pub id: String,
    /// What the item does, in plain words.
    pub activity: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ActivityKind {
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
struct OpenEntry {
    id: String,
    kind: ActivityKind,
    subject: BoundedText,
    /// Files beyond the first of a patch.
    further_files: usize,
}

/// The open items, in the order in which they were started.
#[derive(Debug, Default)]
pub(super) struct OpenItems {
    open: VecDeque<OpenEntry>,
    /// Buffers for reuse.
    spare: Vec<OpenEntry>,
}

impl OpenItems {
    pub(super) fn start(&mut self, item: &Item<'_>) {
        let id = item.id.resolve();
        let id = beginning(&id, MAX_ID_BYTES);
        let known = self.open.iter().rposition(|open| open.id == id);
        let mut open =
            known.and_then(|at| self.open.remove(at)).or_else(|| self.spare.pop()).unwrap_or_default();
        if self.open.len() >= MAX_OPEN_ITEMS {
            self.open.pop_front();
        }
        open.id.clear();
        open.id.push_str(id);
        open.set_details(&item.details);
        self.open.push_back(open);
    }

    /// Returns whether the item was open.
    pub(super) fn complete(&mut self, id: &Text<'_>) -> bool {
        let id = id.resolve();
        let id = beginning(&id, MAX_ID_BYTES);
        let Some(at) = self.open.iter().rposition(|open| open.id == id) else { return false };
        if let Some(open) = self.open.remove(at).filter(|_| self.spare.len() < 16) {
            self.spare.push(open);
        }
        true
    }

    /// Skips plans: they stay open during the whole turn and are not an activity.
    pub(super) fn latest_activity(&self, workdir: Option<&str>) -> Option<String> {
        let latest = self.open.iter().rev().find(|open| open.kind != ActivityKind::Planning)?;
        Some(latest.activity(workdir))
    }

    /// Number of MCP tool calls among them.
    pub(super) fn mcp_calls(&self) -> u64 {
        self.open.iter().filter(|open| open.kind == ActivityKind::Calling).count() as u64
    }

    pub(super) fn report(&self, workdir: Option<&str>) -> Vec<OpenItem> {
        let item = |open: &OpenEntry| OpenItem { id: open.id.clone(), activity: open.activity(workdir) };
        self.open.iter().map(item).collect()
    }
}

pub(crate) fn describe_item(details: &ItemDetails<'_>, workdir: Option<&str>) -> String {
    let mut open = OpenEntry::default();
    open.set_details(details);
    open.activity(workdir)
}

impl OpenEntry {
    fn set_details(&mut self, details: &ItemDetails<'_>) {
        self.further_files = 0;
        let subject = |target: &mut BoundedText, text: &Text<'_>| target.set(text, MAX_SUBJECT_BYTES);
        self.kind = match details {
            ItemDetails::CommandExecution(command) => {
                subject(&mut self.subject, &command.command);
                ActivityKind::Running
            }
            ItemDetails::FileChange { changes } => {
                self.further_files = changes.len().saturating_sub(1);
                subject(&mut self.subject, changes.first().map_or(&Text::default(), |change| &change.path));
                ActivityKind::Editing
            }
            ItemDetails::McpToolCall(call) => {
                let name = match call.server.resolve() {
                    server if server.is_empty() || server == "agent" => call.tool.clone(),
                    server => Text::owned(format!("{server}.{}", call.tool.resolve())),
                };
                subject(&mut self.subject, &name);
                ActivityKind::Calling
            }
            ItemDetails::WebSearch { query, action } => {
                subject(&mut self.subject, query);
                if action.is_some_and(opens_page) { ActivityKind::Reading } else { ActivityKind::Searching }
            }
            ItemDetails::CollabToolCall(call) => {
                subject(&mut self.subject, &call.tool);
                ActivityKind::Collaborating
            }
            ItemDetails::TodoList { .. } => {
                self.subject.clear();
                ActivityKind::Planning
            }
            ItemDetails::Other { kind } => {
                subject(&mut self.subject, kind);
                ActivityKind::Working
            }
            ItemDetails::AgentMessage { .. } | ItemDetails::Reasoning { .. } | ItemDetails::Error { .. } => {
                self.subject.clear();
                ActivityKind::Working
            }
        };
    }

    fn activity(&self, workdir: Option<&str>) -> String {
        let subject = self.subject.resolve();
        let text = match self.kind {
            ActivityKind::Running => format!("Running {}", shell::unwrap(&subject)),
            ActivityKind::Editing => {
                let path = relative_to_workdir(&subject, workdir);
                match self.further_files {
                    0 => format!("Editing {path}"),
                    more => format!("Editing {path} and {more} more"),
                }
            }
            ActivityKind::Calling => format!("Calling {subject}"),
            ActivityKind::Searching if subject.is_empty() => "Searching the web".to_owned(),
            ActivityKind::Searching => format!("Searching the web for {subject}"),
            ActivityKind::Reading => format!("Reading {subject}"),
            ActivityKind::Planning => "Planning".to_owned(),
            ActivityKind::Collaborating => match subject.as_str() {
                "spawn_agent" => "Starting a sub-agent".to_owned(),
                "wait" => "Waiting for sub-agents".to_owned(),
                "close_agent" => "Closing a sub-agent".to_owned(),
                _ => "Talking to a sub-agent".to_owned(),
            },
            ActivityKind::Working if subject.is_empty() => "Working".to_owned(),
            ActivityKind::Working => format!("Working ({subject})"),
        };
        one_line(&text)
    }
}

fn opens_page(action: &str) -> bool {
    Object::read(action).has_text("type", "open_page")
}

pub(crate) fn describe_retry(message: &str) -> String {
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

/// Returns the first line without control sequences and characters, at most [`MAX_ACTIVITY_CHARS`] long.
pub(crate) fn one_line(text: &str) -> String {
    let text = &*control::strip_control_sequences(text);
    let line = text.lines().next().unwrap_or_default();
    let more_follows = text.trim_end().len() > line.len();
    let mut short: String =
        line.chars().take(MAX_ACTIVITY_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if more_follows || line.chars().nth(MAX_ACTIVITY_CHARS).is_some() {
        short.push('…');
    }
    short
}
