//! Describes what the agent is doing, in plain words: "Running cargo test", "Editing src/lib.rs and 2 more".
//! Open items are tracked in bounded memory; the activity shown is that of the latest one.

use std::collections::VecDeque;

use delegator_domain::text::beginning;
use serde::{Deserialize, Serialize};

use super::bounded_text::BoundedText;
use crate::control_sequences;
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
    pub activity: String,
}

/// What an item does. Together with its subject it becomes a sentence.
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

/// An open item as it is stored for every start; its sentence is made only for a report.
#[derive(Debug, Default)]
struct OpenEntry {
    id: String,
    kind: ActivityKind,
    subject: BoundedText,
    /// Files beyond the first of a patch.
    further_files: usize,
}

/// The open items in the order in which they were started.
#[derive(Debug, Default)]
pub(super) struct OpenItems {
    open: VecDeque<OpenEntry>,
    /// The entry that was removed last; its buffers are used again.
    spare: OpenEntry,
}

impl OpenItems {
    pub(super) fn start(&mut self, item: &Item<'_>) {
        self.complete(&item.id);
        if self.open.len() >= MAX_OPEN_ITEMS {
            self.open.pop_front();
        }
        let mut entry = std::mem::take(&mut self.spare);
        entry.id.clear();
        entry.id.push_str(beginning(&item.id.resolve(), MAX_ID_BYTES));
        entry.set_details(&item.details);
        self.open.push_back(entry);
    }

    /// Returns whether the item was open.
    pub(super) fn complete(&mut self, id: &Text<'_>) -> bool {
        let id = id.resolve();
        let id = beginning(&id, MAX_ID_BYTES);
        let at = self.open.iter().rposition(|open| open.id == id);
        let Some(closed) = at.and_then(|at| self.open.remove(at)) else { return false };
        self.spare = closed;
        true
    }

    /// Skips plans: they stay open during the whole turn and are not an activity.
    pub(super) fn latest_activity(&self, workdir: Option<&str>) -> Option<String> {
        let latest = self.open.iter().rev().find(|open| open.kind != ActivityKind::Planning)?;
        Some(latest.activity(workdir))
    }

    pub(super) fn mcp_calls(&self) -> u64 {
        self.open.iter().filter(|open| open.kind == ActivityKind::Calling).count() as u64
    }

    pub(super) fn report(&self, workdir: Option<&str>) -> Vec<OpenItem> {
        let item = |open: &OpenEntry| OpenItem { id: open.id.clone(), activity: open.activity(workdir) };
        self.open.iter().map(item).collect()
    }
}

pub(crate) fn describe_item(details: &ItemDetails<'_>, workdir: Option<&str>) -> String {
    let mut entry = OpenEntry::default();
    entry.set_details(details);
    entry.activity(workdir)
}

impl OpenEntry {
    fn set_details(&mut self, details: &ItemDetails<'_>) {
        self.further_files = 0;
        let mut set = |kind, subject: &Text<'_>| {
            self.subject.set(subject, MAX_SUBJECT_BYTES);
            self.kind = kind;
        };
        match details {
            ItemDetails::CommandExecution(command) => set(ActivityKind::Running, &command.command),
            ItemDetails::FileChange { changes } => {
                let first = changes.first().map(|change| &change.path);
                set(ActivityKind::Editing, first.unwrap_or(&Text::default()));
                self.further_files = changes.len().saturating_sub(1);
            }
            ItemDetails::McpToolCall(call) => match &*call.server.resolve() {
                "" | "agent" => set(ActivityKind::Calling, &call.tool),
                server => {
                    let name = Text::owned(format!("{server}.{}", call.tool.resolve()));
                    set(ActivityKind::Calling, &name);
                }
            },
            ItemDetails::WebSearch { query, action } => {
                let is_page = action.is_some_and(opens_page);
                set(if is_page { ActivityKind::Reading } else { ActivityKind::Searching }, query);
            }
            ItemDetails::CollabToolCall(call) => set(ActivityKind::Collaborating, &call.tool),
            ItemDetails::TodoList { .. } => set(ActivityKind::Planning, &Text::default()),
            ItemDetails::Other { kind } => set(ActivityKind::Working, kind),
            ItemDetails::AgentMessage { .. } | ItemDetails::Reasoning { .. } | ItemDetails::Error { .. } => {
                set(ActivityKind::Working, &Text::default());
            }
        }
    }

    fn activity(&self, workdir: Option<&str>) -> String {
        let subject = self.subject.resolve();
        one_line(&match self.kind {
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
        })
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
    let text = &*control_sequences::strip_control_sequences(text);
    let line = text.lines().next().unwrap_or_default();
    let more_follows = text.trim_end().len() > line.len();
    let mut short: String =
        line.chars().take(MAX_ACTIVITY_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if more_follows || line.chars().nth(MAX_ACTIVITY_CHARS).is_some() {
        short.push('…');
    }
    short
}
