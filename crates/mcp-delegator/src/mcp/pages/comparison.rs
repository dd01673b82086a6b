//! The changes of all attempts of a group beside each other, file by file, and attempt against attempt.

use std::collections::BTreeMap;

use delegator_domain::task::GroupId;
use delegator_engine::{ComparedAttempt, ComparedGroup};
use maud::{Markup, html};

use crate::commands::diff::find_diff;
use crate::commands::prelude::*;
use crate::mcp::pages::diff::whole_diff;
use crate::mcp::pages::diff_lines::{Layout, hunks};
use crate::mcp::pages::forms::encoded;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::view::{View, lines};
use crate::output::data::diff::FileDiffData;

/// Files are folded after this many lines in all.
const MAX_LINES: u64 = 3_000;

/// The changes of one attempt; an error if they are not known.
type Changes = Result<Vec<FileDiffData>, String>;

pub(super) fn page(view: &View<'_>, group: &GroupId, compared: &ComparedGroup) -> Page {
    let all: Vec<(&ComparedAttempt, Changes)> =
        compared.attempts.iter().map(|attempt| (attempt, changes(view, attempt))).collect();
    let mut paths: BTreeMap<&str, u64> = BTreeMap::new();
    for file in all.iter().flat_map(|(_, changes)| changes.iter().flatten()) {
        *paths.entry(&file.path).or_default() += file.lines_added + file.lines_deleted;
    }
    // Each file with whether its lines are shown at once.
    let opened = paths.into_iter().scan(0, |shown, (path, count)| {
        let is_open = *shown + count <= MAX_LINES;
        *shown += if is_open { count } else { 0 };
        Some((path, is_open))
    });
    let files: Vec<(&str, bool)> = opened.collect();
    let main = html! {
        p class="path" { a href="/" { "Tasks" } " › " a href=(format!("/ui/groups/{group}")) { "Attempts" } }
        h1 { "The changes of each attempt" }
        (pairs(&compared.attempts))
        @for (attempt, changes) in &all {
            @if let Err(problem) = changes { p class="problem" { "Attempt " (attempt.number) ": " (view.text(problem)) } }
        }
        @for (path, is_open) in &files {
            details class="file" data-key=(path) open[*is_open] {
                summary { h2 { (view.name(path)) } }
                div class="attempts" { @for (attempt, changes) in &all { (side(attempt, changes, path, *is_open)) } }
            }
        }
    };
    Page { title: "Changes of each attempt".to_owned(), live: Live::Nothing, main }
}

fn changes(view: &View<'_>, attempt: &ComparedAttempt) -> Changes {
    let engine = engine(view.context).map_err(|error| error.message)?;
    let diff = find_diff(view.context, &engine, &attempt.task, 1).map_err(|error| error.message)?;
    Ok(whole_diff(view, &attempt.task.id, &diff).files)
}

fn pairs(attempts: &[ComparedAttempt]) -> Markup {
    html! {
        p {
            "One against another: "
            @for (at, one) in attempts.iter().enumerate() {
                @for other in &attempts[..at] {
                    a class="button" href=(format!("/ui/tasks/{}/diff?against={}", one.task.id, other.task.id)) {
                        (one.number) " against " (other.number)
                    } " "
                }
            }
        }
    }
}

fn side(attempt: &ComparedAttempt, changes: &Changes, path: &str, is_open: bool) -> Markup {
    let file = changes.iter().flatten().find(|file| file.path == path);
    html! {
        section class="attempt" {
            h3 { "Attempt " (attempt.number) " " @if let Some(file) = file { (lines(Some(file.lines_added), Some(file.lines_deleted))) } }
            @match file {
                None => p class="note" { "Not changed." },
                Some(file) if file.is_binary => p class="note" { "A binary file, " (file.change) "." },
                Some(_) if !is_open => p { a href=(format!("/ui/tasks/{}/diff?file={}", attempt.task.id, encoded(path))) { "Show the lines" } },
                Some(file) => (hunks(file.hunks.as_deref().unwrap_or_default(), Layout::Unified)),
            }
        }
    }
}
