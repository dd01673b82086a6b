//! A task as a row of a list.

use delegator_domain::attention::Section;
use maud::{Markup, html};

use crate::mcp::pages::question::question;
use crate::mcp::pages::view::{View, dollars, lines};
use crate::output::data::live_task::LiveTaskData;

/// The time that matters in its state, and the word before it.
fn age(view: &View<'_>, task: &LiveTaskData) -> Markup {
    let task = &task.task;
    let (word, at) = match (&task.completed_ts, &task.started_ts) {
        (Some(ended), _) => ("ended ", ended),
        (None, Some(started)) => ("started ", started),
        (None, None) => ("queued ", &task.created_ts),
    };
    html! { span { (word) (view.time(at)) } }
}

/// The class of the colour of its state.
fn look(task: &LiveTaskData) -> &'static str {
    match Section::from_name(task.task.section) {
        Some(Section::NeedsYou) => "needs",
        Some(Section::Working) => "working",
        Some(Section::Waiting) => "waiting",
        _ => look_of_end(task.task.state, task.verification),
    }
}

/// The class of the colour of a task that has ended.
pub(super) fn look_of_end(state: &str, verification: Option<&str>) -> &'static str {
    match (state, verification) {
        (_, Some("verify_failed")) | ("failed", _) => "bad",
        ("completed", _) => "good",
        _ => "other",
    }
}

pub(super) fn row(view: &View<'_>, live: &LiveTaskData) -> Markup {
    let task = &live.task;
    let id = &task.task_id;
    let href = format!("/ui/tasks/{id}");
    let title = view.text(&task.title);
    html! {
        li class="task" id=(format!("t-{id}")) data-key=(id) data-state=(task.state) {
            @if view.may_answer() {
                input type="checkbox" class="choose" value=(id) aria-label=(format!("Choose {title}"));
            }
            div {
                a class="title" href=(href) { (title) }
                @if live.is_unread { span class="unread" { "unread" } }
                p class="state" {
                    span class=(look(live)) { (view.text(&live.line)) }
                }
                p class="facts" {
                    span { (view.text(&live.agent)) }
                    (age(view, live))
                    (lines(live.lines_added, live.lines_deleted))
                    @if let Some(cost) = live.cost_microdollars { span { (dollars(cost)) } }
                    @if let Some(percent) = task.progress.as_ref().and_then(|progress| progress.percent_text()) {
                        span { (percent) }
                    }
                    @for (name, value) in &task.labels { span class="label" { (view.text(name)) "=" (view.text(value)) } }
                }
                @for open in &live.conversation.waiting_for_answer { (question(view, id, open)) }
            }
        }
    }
}
