//! The log of a task: what its agent did, searched and filtered.

use maud::{Markup, html};

use crate::commands::prelude::*;
use crate::mcp::api::queries::log::{LogInput, LogList, NumberedEntry, entries, latest};
use crate::mcp::pages::chart;
use crate::mcp::pages::forms::query_with;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::task::header;
use crate::mcp::pages::view::View;
use crate::output::data::task_line::short_age;

/// A shorter time between two entries needs no line.
const MIN_PAUSE_MS: u64 = 30_000;

pub(super) fn page(view: &View<'_>, input: &LogInput) -> Result<Page, AppError> {
    let engine = engine(view.context)?;
    let task = engine.results().task(&resolve_task(&engine, &input.range.task.task_id)?)?;
    let is_filtered = input.q.is_some() || input.failed;
    // Without a place or a search, what the agent did last.
    let is_latest = !is_filtered && view.request.value("from").is_none();
    let list = if is_latest { latest(view.context, input)? } else { entries(view.context, input)? };
    let main = html! {
        (header(view, &task, "log"))
        form class="filters" role="search" data-filter {
            label { "Search the log" input type="search" name="q" value=[input.q.as_deref()] maxlength="1000"; }
            label class="check" { input type="checkbox" name="failed" value="true" checked[input.failed]; "Only what failed" }
            button { "Filter" }
            a href=(format!("/ui/tasks/{}/log", task.id)) { "All" }
        }
        (turns(view, &list))
        (entries_of(view, &list, !is_filtered))
    };
    Ok(Page {
        title: format!("Log · {}", view.text(&task.title)),
        live: Live::Tasks(vec![task.id.to_string()]),
        main,
    })
}

fn turns(view: &View<'_>, list: &LogList) -> Markup {
    let bar = |(number, (at_ms, tokens)): (usize, &(Option<i64>, i64))| {
        let at = at_ms.map(|at_ms| format!(", {}", view.clock(at_ms))).unwrap_or_default();
        (format!("turn {number}{at}"), *tokens)
    };
    let bars: Vec<(String, i64)> = (1..).zip(&list.turns).map(bar).collect();
    chart::bars("Tokens of each turn", &bars)
}

/// `has_all`: between two of the entries there are no others.
fn entries_of(view: &View<'_>, list: &LogList, has_all: bool) -> Markup {
    let begins_later = has_all && list.entries.first().is_some_and(|first| first.number > list.first_number);
    html! {
        @if begins_later {
            p { a href=(query_with(view.request, "from", "1")) { "From the beginning" } }
        }
        @if list.entries.is_empty() { p class="empty" { "Nothing matches." } }
        ol class="log" {
            @for (at, item) in list.entries.iter().enumerate() {
                @let before = at.checked_sub(1).filter(|_| has_all);
                @if let Some(seconds) = before.and_then(|before| pause(&list.entries[before], item)) {
                    li class="entry pause" { span class="kind" { "pause" } span { "nothing for " (short_age(seconds)) } }
                }
                (entry(view, item))
            }
        }
        @if list.has_more {
            p {
                a rel="next" href=(query_with(view.request, "from", &list.next_from.to_string())) { "Further entries" } " "
                a href=(query_with(view.request, "from", "")) { "The latest entries" }
            }
        }
    }
}

/// A long time in which the agent wrote nothing, in seconds.
fn pause(before: &NumberedEntry, after: &NumberedEntry) -> Option<u64> {
    let ms = after.at_ms?.abs_diff(before.at_ms?);
    (ms >= MIN_PAUSE_MS).then_some(ms / 1000)
}

fn entry(view: &View<'_>, entry: &NumberedEntry) -> Markup {
    let text = view.text(&entry.text);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let class = if entry.has_failed { "entry failed" } else { "entry" };
    html! {
        li class=(class) data-key=(entry.number) value=(entry.number) {
            span class="kind" {
                (entry.kind)
                @if let Some(at) = entry.at_ms { " " time class="clock" { (view.clock(at)) } }
            }
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
