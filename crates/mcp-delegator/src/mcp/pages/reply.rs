//! What a person writes to the agent of a task.

use delegator_engine::{Capabilities, MessageSupport};
use maud::{Markup, html};

use crate::commands::prelude::*;
use crate::mcp::pages::view::View;

/// How a text reaches the agent.
pub(super) enum Reply {
    /// As a message while it works.
    Message(Recipient),
    /// As the next task of its thread, in this mode.
    NextTurn(Recipient, Mode),
    /// Only when it has ended.
    Later,
    /// Its agent has no thread that could be continued.
    Never,
}

pub(super) struct Recipient {
    action: String,
    /// The name of the text in the input.
    field: &'static str,
}

impl Reply {
    /// `None` if the session may not write to agents.
    pub(super) fn to(view: &View<'_>, task: &Task) -> Option<Reply> {
        let id = &task.id;
        if task.state.is_terminal() {
            let action = format!("/api/v1/tasks/{id}/resume");
            let has_thread = task.thread_id.is_some();
            let reply = if has_thread {
                Reply::NextTurn(Recipient { action, field: "task" }, task.mode)
            } else {
                Reply::Never
            };
            return view.may_write().then_some(reply);
        }
        let agent = view.context.config.agent(&task.agent);
        let support = agent.map_or(MessageSupport::None, |agent| Capabilities::of(agent.kind()).messages);
        let recipient = Recipient { action: format!("/api/v1/tasks/{id}/send"), field: "text" };
        let reply = if support == MessageSupport::None { Reply::Later } else { Reply::Message(recipient) };
        view.may_answer().then_some(reply)
    }

    pub(super) fn takes_comments(&self) -> bool {
        !matches!(self, Reply::Never)
    }
}

/// The form of a text. With `is_review` comments on lines go with it.
pub(super) fn reply_form(view: &View<'_>, task: &Task, reply: &Reply, is_review: bool) -> Markup {
    let (recipient, mode) = match reply {
        Reply::Message(recipient) => (recipient, None),
        Reply::NextTurn(recipient, mode) => (recipient, Some(*mode)),
        Reply::Later => return later(view, task, is_review),
        Reply::Never => return html! { p class="note" { (never(view, task)) } },
    };
    let is_next_turn = mode.is_some();
    let label = match (is_review, is_next_turn) {
        (true, _) => "In general",
        (false, true) => "Continue with the agent, in a new task of its thread",
        (false, false) => "Message to the agent",
    };
    html! {
        form data-action=(recipient.action) data-open[is_next_turn] data-review=[is_review.then_some(recipient.field)] data-task=(task.id.as_str()) {
            @if let Some(mode) = mode { input type="hidden" name="mode" value=(mode.name()); }
            label {
                (label)
                textarea name=(recipient.field) rows="3" required[!is_review] data-draft=(draft(task, is_review)) {}
            }
            button { @if is_review && is_next_turn { "Request changes" } @else { "Send" } }
            @if is_review {
                p class="note" {
                    @if is_next_turn { "Starts the next turn of the agent, in the same worktree." }
                    @else { "The agent gets it while it works." }
                }
            }
        }
    }
}

fn draft(task: &Task, is_review: bool) -> String {
    format!("{}-{}", if is_review { "review" } else { "message" }, task.id)
}

/// The text can be written already.
fn later(view: &View<'_>, task: &Task, is_review: bool) -> Markup {
    html! {
        label { "For its next turn" textarea rows="3" data-draft=(draft(task, is_review)) {} }
        p class="note" { (view.text(&task.agent)) " takes no messages while it works. This can be sent when it has ended." }
    }
}

fn never(view: &View<'_>, task: &Task) -> String {
    format!(
        "{} has no thread that could be continued. Start a new task with what is to be changed.",
        view.text(&task.agent)
    )
}
