//! The attempts of a group side by side: what each changed, proved and cost, and which one is recommended.

use delegator_domain::task::{GroupId, Verification};
use delegator_engine::{ComparedAttempt, ComparedGroup, Target};
use maud::{Markup, html};

use crate::commands::local::attempts::compare;
use crate::commands::prelude::*;
use crate::commands::usage::grouped;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::task_row::row;
use crate::mcp::pages::view::{View, dollars, lines};
use crate::output::data::stored_task::{RunTimes, end_name, summary};
use crate::output::data::task_line::short_age;
use crate::output::data::warnings;

pub(super) fn group_id(engine: &Engine, given: &str) -> Result<GroupId, AppError> {
    match engine.results().resolve_target(given)? {
        Target::Group(id) => Ok(id),
        Target::Task(id) => Err(AppError::new(ErrorCode::NotFound, format!("{id} is a task, not a group."))),
    }
}

pub(super) fn page(view: &View<'_>, engine: &Engine, group: &GroupId) -> Result<Page, AppError> {
    let tasks = engine.results().group(group)?;
    let has_ended = tasks.iter().all(|task| task.state.is_terminal());
    let title = tasks.first().map_or_else(String::new, |task| view.text(&task.title));
    let main = html! {
        p class="path" { a href="/" { "Tasks" } }
        h1 { (title) }
        p class="facts" { (plural(tasks.len(), "attempt")) " " (crate::mcp::pages::view::copyable(group.as_str(), "the id of the group")) }
        @if has_ended {
            (compared(view, engine, group, &compare(view.context, engine, group)?)?)
        } @else {
            p { "The attempts are compared when all of them have ended." }
            @let state = view.live.state()?;
            @let shown = tasks.iter().filter_map(|task| state.tasks.get(&task.id));
            ul class="plain" { @for task in shown { (row(view, &view.live_data(&state, task))) } }
            @if view.may_write() {
                form data-action=(format!("/api/v1/groups/{group}/cancel")) data-confirm="Cancel all attempts?" {
                    button class="careful" { "Cancel all" }
                }
            }
        }
    };
    let live = Live::Tasks(tasks.iter().map(|task| task.id.to_string()).collect());
    Ok(Page { title: format!("Attempts · {title}"), live, main })
}

fn compared(
    view: &View<'_>,
    engine: &Engine,
    group: &GroupId,
    compared: &ComparedGroup,
) -> Result<Markup, AppError> {
    let recommended = &compared.recommendation;
    let mut columns = Vec::new();
    for attempt in &compared.attempts {
        columns.push(column(view, engine, attempt, recommended.attempt == Some(attempt.number))?);
        if view.may_answer() {
            mark_read(engine, &attempt.task.id);
        }
    }
    Ok(html! {
        p class="recommendation" {
            @match recommended.attempt {
                Some(number) => { strong { "Attempt " (number) " is recommended" } ", because " (view.text(&recommended.reason)) "." },
                None => { strong { "No attempt is recommended" } ": " (view.text(&recommended.reason)) "." },
            }
        }
        div class="actions" {
            a class="button main" href=(format!("/ui/groups/{group}/diffs")) { "Compare the changes" }
            @if view.may_write() {
                button type="button" data-check=(format!("/ui/groups/{group}/check/discard")) { "Discard all …" }
            }
        }
        div class="attempts" { @for column in columns { (column) } }
    })
}

/// What nothing has proved.
fn unverified(view: &View<'_>, engine: &Engine, attempt: &ComparedAttempt) -> Result<Vec<String>, AppError> {
    let mut gaps = Vec::new();
    match attempt.verification {
        None => gaps.push("no verify command".to_owned()),
        Some(Verification::Verified) => {}
        Some(outcome) => gaps.push(format!("the check: {}", outcome.name().replace('_', " "))),
    }
    if attempt.tests.is_none() {
        gaps.push("no test was counted".to_owned());
    }
    let files = engine.results().files(&attempt.task.id)?;
    gaps.extend(warnings::for_task(&attempt.task, &files).iter().map(|warning| view.text(&warning.message)));
    Ok(gaps)
}

fn column(
    view: &View<'_>,
    engine: &Engine,
    attempt: &ComparedAttempt,
    is_recommended: bool,
) -> Result<Markup, AppError> {
    let (task, report) = (&attempt.task, attempt.record.as_ref().map(|record| &record.report));
    let tokens = report
        .and_then(|report| report.usage.as_ref())
        .map(|usage| usage.own.input_tokens.saturating_add(usage.own.output_tokens));
    let cost = report.and_then(|report| report.cost).map(|cost| cost.own);
    let gaps = unverified(view, engine, attempt)?;
    let is_verified = attempt.verification == Some(Verification::Verified);
    Ok(html! {
        section class=(if is_recommended { "attempt recommended" } else { "attempt" }) data-key=(task.id.as_str()) {
            h2 { a href=(format!("/ui/tasks/{}", task.id)) { "Attempt " (attempt.number) } }
            p { (view.text(&task.agent)) @if let Some(model) = &task.model { " (" (view.text(model)) ")" } }
            p class=(if is_verified { "good" } else { "other" }) { (end_name(task).replace('_', " ")) @if is_verified { ", verified" } }
            dl {
                div { dt { "Changes" } dd {
                    @match attempt.changes {
                        None => "unknown",
                        Some(changes) => { (plural(changes.files, "file")) " " (lines(Some(changes.lines_added), Some(changes.lines_deleted))) },
                    }
                } }
                div { dt { "Tests" } dd {
                    @match attempt.tests {
                        None => "none counted",
                        Some(tests) => { (tests.passed) " passed, " (tests.failed) " failed" },
                    }
                } }
                div { dt { "Time" } dd { (short_age(RunTimes::of(task).duration_seconds())) } }
                div { dt { "Tokens" } dd { (tokens.map_or_else(|| "unknown".to_owned(), grouped)) } }
                div { dt { "Cost" } dd { (cost.map_or_else(|| "not reported".to_owned(), dollars)) } }
            }
            p { (view.text(&summary(task))) }
            h3 { "Left unverified" }
            ul { @for gap in &gaps { li { (gap) } } @if gaps.is_empty() { li class="note" { "nothing" } } }
            div class="actions" {
                a class="button" href=(format!("/ui/tasks/{}/diff", task.id)) { "Review" }
                @if view.may_write() && task.worktree.is_some() {
                    button type="button" data-check=(format!("/ui/groups/{}/check/adopt?attempt={}", group_of(task), attempt.number)) {
                        "Adopt …"
                    }
                }
            }
        }
    })
}

fn group_of(task: &Task) -> &str {
    task.group.as_ref().map_or("", |member| member.group.as_str())
}
