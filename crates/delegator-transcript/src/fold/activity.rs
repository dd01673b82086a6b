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

/// The open items in the order in which they were started, with their types.
#[derive(Debug, Default)]
pub(super) struct OpenItems {
    open: VecDeque<(OpenItem, &'static str)>,
}

impl OpenItems {
    pub(super) fn start(&mut self, item: &Item<'_>, workdir: Option<&str>) {
        self.complete(&item.id);
        if self.open.len() >= MAX_OPEN_ITEMS {
            self.open.pop_front();
        }
        let id = beginning(&item.id.resolve(), MAX_ID_BYTES).to_owned();
        let activity = describe_item(&item.details, workdir);
        self.open.push_back((OpenItem { id, activity }, item.details.type_name()));
    }

    /// Returns whether the item was open.
    pub(super) fn complete(&mut self, id: &Text<'_>) -> bool {
        let id = id.resolve();
        let id = beginning(&id, MAX_ID_BYTES);
        let at = self.open.iter().rposition(|(open, _)| open.id == id);
        at.and_then(|at| self.open.remove(at)).is_some()
    }

    /// Skips plans: they stay open during the whole turn and are not an activity.
    pub(super) fn latest_activity(&self) -> Option<String> {
        let (latest, _) = self.open.iter().rev().find(|(_, kind)| *kind != "todo_list")?;
        Some(latest.activity.clone())
    }

    pub(super) fn mcp_calls(&self) -> u64 {
        self.open.iter().filter(|(_, kind)| *kind == "mcp_tool_call").count() as u64
    }

    pub(super) fn report(&self) -> Vec<OpenItem> {
        self.open.iter().map(|(item, _)| item.clone()).collect()
    }
}

pub(crate) fn describe_item(details: &ItemDetails<'_>, workdir: Option<&str>) -> String {
    let bounded = |text: &Text<'_>| BoundedText::new(text, MAX_SUBJECT_BYTES).resolve();
    one_line(&match details {
        ItemDetails::CommandExecution(command) => {
            format!("Running {}", shell::unwrap(&bounded(&command.command)))
        }
        ItemDetails::FileChange { changes } => {
            let path = changes.first().map(|change| bounded(&change.path)).unwrap_or_default();
            let path = relative_to_workdir(&path, workdir);
            match changes.len().saturating_sub(1) {
                0 => format!("Editing {path}"),
                more => format!("Editing {path} and {more} more"),
            }
        }
        ItemDetails::McpToolCall(call) => match &*call.server.resolve() {
            "" | "agent" => format!("Calling {}", bounded(&call.tool)),
            server => {
                let name = Text::owned(format!("{server}.{}", call.tool.resolve()));
                format!("Calling {}", bounded(&name))
            }
        },
        ItemDetails::WebSearch { query, action: Some(action) } if opens_page(action) => {
            format!("Reading {}", bounded(query))
        }
        ItemDetails::WebSearch { query, .. } if query.is_empty() => "Searching the web".to_owned(),
        ItemDetails::WebSearch { query, .. } => format!("Searching the web for {}", bounded(query)),
        ItemDetails::CollabToolCall(call) => match &*call.tool.resolve() {
            "spawn_agent" => "Starting a sub-agent".to_owned(),
            "wait" => "Waiting for sub-agents".to_owned(),
            "close_agent" => "Closing a sub-agent".to_owned(),
            _ => "Talking to a sub-agent".to_owned(),
        },
        ItemDetails::TodoList { .. } => "Planning".to_owned(),
        ItemDetails::Other { kind } if !kind.is_empty() => format!("Working ({})", bounded(kind)),
        _ => "Working".to_owned(),
    })
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
