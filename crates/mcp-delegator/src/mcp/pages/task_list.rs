//! The list of tasks: what needs a person on top, grouped by repository.

use std::collections::BTreeSet;

use delegator_domain::attention::Section;
use delegator_engine::{LiveRow, LiveState, LiveTask};
use maud::{Markup, html};

use crate::commands::prelude::*;
use crate::mcp::api::queries::tasks::Tasks;
use crate::mcp::pages::forms::{choice, query_with};
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::task_row::row;
use crate::mcp::pages::view::View;
use crate::output::data::live_task::{LiveOverallData, LiveTaskData};

/// Tasks of one page.
const PAGE_SIZE: usize = 200;

fn heading(section: Section) -> &'static str {
    match section {
        Section::NeedsYou => "Needs you",
        Section::Working => "Working",
        Section::Waiting => "Waiting",
        Section::FinishedUnread => "Finished, not read",
        Section::Finished => "Finished",
    }
}

/// The section in which a task stands: that of its group or chain, if it has one.
fn section_of(task: &LiveTask) -> Section {
    task.submission_section.unwrap_or(task.section)
}

fn agent_and_directory(task: &LiveTask) -> (&str, &str) {
    match &task.row {
        LiveRow::Running(running) => (&running.task.agent, &running.task.working_dir),
        LiveRow::Queued(queued) => (&queued.task.agent, &queued.task.working_dir),
        LiveRow::Stored(task) => (&task.agent, &task.working_dir),
    }
}

pub(super) fn working_dir(task: &LiveTask) -> &str {
    agent_and_directory(task).1
}

/// Where the shown tasks work.
pub(super) fn directories(state: &LiveState) -> BTreeSet<String> {
    state.tasks.values().map(|task| agent_and_directory(task).1.to_owned()).collect()
}

/// What belongs together, in its order.
fn grouped<'a, T, K: PartialEq>(items: &[&'a T], key: impl Fn(&'a T) -> K) -> Vec<(K, Vec<&'a T>)> {
    let mut groups: Vec<(K, Vec<&T>)> = Vec::new();
    for item in items {
        let own = key(item);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, items)) => items.push(item),
            None => groups.push((own, vec![item])),
        }
    }
    groups
}

pub(super) fn page(view: &View<'_>, filter: &Tasks, state: &LiveState, number: usize) -> Page {
    let mut tasks = filter.select(state, view.context);
    tasks.sort_by_key(|task| section_of(task));
    let count = |section| tasks.iter().filter(|task| section_of(task) == section).count();
    let waiting = count(Section::NeedsYou);
    let pages = tasks.len().div_ceil(PAGE_SIZE).max(1);
    let number = number.clamp(1, pages);
    let shown: Vec<&LiveTask> =
        tasks.iter().skip((number - 1) * PAGE_SIZE).take(PAGE_SIZE).copied().collect();
    let main = html! {
        h1 class="only-read" { "Tasks" }
        (overall(view, &state.overall.as_ref().into()))
        (filters(view, filter, state))
        @if tasks.is_empty() { (empty(filter)) }
        @for (section, tasks) in grouped(&shown, section_of) {
            section class="tasks" aria-labelledby=(section.name()) data-key=(section.name()) {
                h2 id=(section.name()) { (heading(section)) " " span class="count" { (count(section)) } }
                @for (dir, tasks) in grouped(&tasks, |task| agent_and_directory(task).1) {
                    div class="repository" data-key=(dir) {
                        h3 { (view.text(dir)) }
                        (rows(view, &tasks, state))
                    }
                }
            }
        }
        (page_links(view, number, pages, tasks.len()))
    };
    let title = if waiting > 0 { format!("{waiting} waiting · Tasks") } else { "Tasks".to_owned() };
    Page { title, live: Live::All, main }
}

/// The tasks of a group or chain stand below its line.
fn rows(view: &View<'_>, tasks: &[&LiveTask], state: &LiveState) -> Markup {
    let tasks: Vec<LiveTaskData> = tasks.iter().map(|task| view.live_data(state, task)).collect();
    let tasks: Vec<&LiveTaskData> = tasks.iter().collect();
    html! {
        @for (submission, tasks) in grouped(&tasks, |task| task.submission_id.as_deref()) {
            @match submission {
                None => ul { @for task in &tasks { (row(view, task)) } },
                Some(id) => div class="submission" data-key=(id) {
                    p {
                        @if id.starts_with("G-") {
                            a href=(format!("/ui/groups/{id}")) { "Compare " (plural(tasks.len(), "attempt")) }
                        } @else {
                            "Chain of " (plural(tasks.len(), "task"))
                        }
                    }
                    ul { @for task in &tasks { (row(view, task)) } }
                },
            }
        }
    }
}

fn overall(view: &View<'_>, overall: &LiveOverallData) -> Markup {
    html! {
        @if let Some(problem) = &overall.problem { p class="problem" role="alert" { (view.text(problem)) } }
        @if overall.is_queue_paused {
            p class="note" { "The queue is paused. " code { "mcp-delegator queue resume" } " continues it." }
        }
        @for pause in &overall.agent_pauses { p class="note" { (view.text(&format!("{} is paused {}: {}", pause.agent, pause.until(), pause.reason))) } }
    }
}

fn filters(view: &View<'_>, filter: &Tasks, state: &LiveState) -> Markup {
    let sections = Section::ALL.map(|section| (section.name().to_owned(), heading(section).to_owned()));
    let agents = state.tasks.values().map(|task| agent_and_directory(task).0.to_owned());
    let agents: BTreeSet<String> = agents.chain(filter.agent.clone()).collect();
    let agents = agents.into_iter().map(|agent| (agent.clone(), agent));
    html! {
        form class="filters" role="search" data-filter {
            label { "Search" input type="search" name="q" value=[filter.q.as_deref()] maxlength="1000"; }
            details class="more" open[filter.section.is_some() || filter.agent.is_some() || filter.repo.is_some()] {
                summary { "More filters" }
                (choice("section", "Section", filter.section.as_deref(), sections))
                (choice("agent", "Agent", filter.agent.as_deref(), agents))
                label {
                    "Directory"
                    input name="repo" list="directories" value=[filter.repo.as_deref()];
                }
            }
            datalist id="directories" { @for dir in directories(state) { option value=(view.text(&dir)); } }
            @for (name, value) in &filter.label { input type="hidden" name="label" value=(format!("{name}={value}")); }
            button { "Filter" }
            a href="/ui/tasks" { "All" }
        }
        @if view.may_answer() {
            div class="bulk" role="toolbar" aria-label="Chosen tasks" hidden data-bulk {
                span data-chosen {}
                button type="button" data-each="read" { "Mark as read" }
                @if view.may_write() {
                    button type="button" data-each="cancel" class="careful" { "Cancel" }
                    button type="button" data-each="discard" class="careful" { "Discard" }
                }
                button type="button" data-choose="all" { "Choose all" }
                button type="button" data-choose="none" { "Choose none" }
            }
        }
    }
}

fn empty(filter: &Tasks) -> Markup {
    html! {
        @if filter.is_filtered() {
            p class="empty" { "No task matches. Older tasks are in the " a href="/ui/history" { "history" } "." }
        } @else {
            p class="empty" {
                "No task yet. Begin one with " a href="/ui/tasks/new" { "New task" } ", or on the command line: "
                code { "mcp-delegator exec 'fix the failing test'" }
            }
        }
    }
}

fn page_links(view: &View<'_>, number: usize, pages: usize, total: usize) -> Markup {
    html! {
        @if pages > 1 {
            nav class="pages" aria-label="Pages of the list" {
                @if number > 1 { a rel="prev" href=(query_with(view.request, "page", &(number - 1).to_string())) { "Previous" } }
                span { "Page " (number) " of " (pages) ", " (total) " tasks" }
                @if number < pages { a rel="next" href=(query_with(view.request, "page", &(number + 1).to_string())) { "Next" } }
            }
        }
    }
}
