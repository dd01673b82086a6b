//! The log of a task: what its agent did, searched and filtered.

use maud::{Markup, html};

use crate::commands::prelude::*;
use crate::mcp::api::queries::log::{LogInput, LogList, NumberedEntry, entries};
use crate::mcp::pages::forms::query_with;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::task::header;
use crate::mcp::pages::view::View;

pub(super) fn page(view: &View<'_>, input: &LogInput) -> Result<Page, AppError> {
    let engine = engine(view.context)?;
    let task = engine.results().task(&resolve_task(&engine, &input.range.task.task_id)?)?;
    let list = entries(view.context, input)?;
    let main = html! {
        (header(view, &task, "log"))
        form class="filters" role="search" data-filter {
            label { "Search the log" input type="search" name="q" value=[input.q.as_deref()] maxlength="1000"; }
            label class="check" { input type="checkbox" name="failed" value="true" checked[input.failed]; "Only what failed" }
            button { "Filter" }
            a href=(format!("/ui/tasks/{}/log", task.id)) { "All" }
        }
        (entries_of(view, input, &list))
    };
    Ok(Page {
        title: format!("Log · {}", view.text(&task.title)),
        live: Live::Tasks(vec![task.id.to_string()]),
        main,
    })
}

fn entries_of(view: &View<'_>, input: &LogInput, list: &LogList) -> Markup {
    html! {
        @if input.range.from > 1 {
            p { a href=(query_with(view.request, "from", "")) { "From the beginning" } }
        }
        @if list.entries.is_empty() { p class="empty" { "Nothing matches." } }
        ol class="log" {
            @for item in &list.entries { (entry(view, item)) }
        }
        @if list.has_more {
            p { a rel="next" href=(query_with(view.request, "from", &list.next_from.to_string())) { "Further entries" } }
        }
    }
}

fn entry(view: &View<'_>, entry: &NumberedEntry) -> Markup {
    let text = view.text(&entry.text);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let class = if entry.has_failed { "entry failed" } else { "entry" };
    html! {
        li class=(class) data-key=(entry.number) value=(entry.number) {
            span class="kind" { (entry.kind) }
            @if rest.trim().is_empty() {
                span class="line" { (first) }
            } @else if matches!(entry.kind, "message" | "plan") {
                pre { (text) }
            } @else {
                details open[entry.has_failed] { summary { (first) } pre { (rest) } }
            }
        }
    }
}
