//! What a person writes to the agent of a task.

use maud::{Markup, html};

use crate::commands::prelude::*;
use crate::mcp::pages::view::View;

/// How a text reaches the agent: as a message, or as the next task of its thread.
pub(super) struct Reply {
    pub(super) action: String,
    /// The name of the text in the input.
    pub(super) field: &'static str,
    pub(super) mode: Option<Mode>,
}

impl Reply {
    /// `None` if its agent has no thread that could be continued.
    pub(super) fn to(task: &Task) -> Option<Reply> {
        let id = &task.id;
        if !task.state.is_terminal() {
            return Some(Reply { action: format!("/api/v1/tasks/{id}/send"), field: "text", mode: None });
        }
        task.thread_id.as_ref()?;
        let action = format!("/api/v1/tasks/{id}/resume");
        Some(Reply { action, field: "task", mode: Some(task.mode) })
    }

    pub(super) fn may_send(&self, view: &View<'_>) -> bool {
        if self.mode.is_some() { view.may_write() } else { view.may_answer() }
    }
}

pub(super) fn reply_form(task: &Task, reply: &Reply) -> Markup {
    let is_next_turn = reply.mode.is_some();
    html! {
        form data-action=(reply.action) data-open[is_next_turn] {
            @if let Some(mode) = reply.mode { input type="hidden" name="mode" value=(mode.name()); }
            label {
                @if is_next_turn { "Continue with the agent, in a new task of its thread" } @else { "Message to the agent" }
                textarea name=(reply.field) rows="3" required data-draft=(format!("message-{}", task.id)) {}
            }
            button { "Send" }
        }
    }
}
