//! Past tasks, searched by their words.

use maud::html;

use crate::commands::history::{History, HistoryList, PastTask};
use crate::mcp::pages::forms::query_with;
use crate::mcp::pages::layout::{Live, Page as HtmlPage};
use crate::mcp::pages::task_row::look_of_end;
use crate::mcp::pages::view::View;
use crate::spec::paging::Page;

pub(super) fn page(view: &View<'_>, input: &History, list: &HistoryList, found: &Page) -> HtmlPage {
    let main = html! {
        h1 { "History" }
        form class="filters" role="search" data-filter {
            label { "Words" input type="search" name="query" value=[input.query.as_deref()] maxlength="1000"; }
            label { "Agent" input name="agent" value=[input.agent.as_deref()] maxlength="64"; }
            label { "Repository" input name="repo" value=[input.repo.as_deref()]; }
            label { "Since" input name="since" value=[input.since.as_deref()] placeholder="7d" size="4"; }
            label class="check" { input type="checkbox" name="verified" value="true" checked[input.verified]; "Verified" }
            label class="check" { input type="checkbox" name="failed" value="true" checked[input.failed]; "Failed" }
            button { "Find" }
            a href="/ui/history" { "All" }
        }
        @if list.tasks.is_empty() { p class="empty" { "No task was found." } }
        ul class="plain" { @for task in &list.tasks { (past(view, task)) } }
        @if let Some(cursor) = &found.next_cursor {
            p { a rel="next" href=(query_with(view.request, "cursor", cursor)) { "Older tasks" } }
        }
    };
    HtmlPage { title: "History".to_owned(), live: Live::Nothing, main }
}

fn past(view: &View<'_>, task: &PastTask) -> maud::Markup {
    let state = task.verification.filter(|status| *status != "not_run").unwrap_or(task.state);
    html! {
        li class="task" data-key=(task.task_id) {
            div {
                a class="title" href=(format!("/ui/tasks/{}", task.task_id)) { (view.text(&task.title)) }
                p class="facts" {
                    span class=(format!("badge {}", look_of_end(task.state, task.verification))) { (state.replace('_', " ")) }
                    span { (view.text(&task.agent)) }
                    span { (view.time(&task.created_ts)) }
                    span { (view.text(&task.working_dir)) }
                }
                @if let Some(summary) = &task.summary { p { (view.text(summary)) } }
            }
        }
    }
}
