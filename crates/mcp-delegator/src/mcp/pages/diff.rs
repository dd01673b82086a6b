//! The changes of a task, for review: comments on lines go back to the agent as one message.

use delegator_engine::{TaskDiff, parse_unified_diff};
use maud::{Markup, html};

use crate::commands::diff::Diff;
use crate::commands::prelude::*;
use crate::mcp::pages::diff_lines::{Layout, hunks};
use crate::mcp::pages::forms::query_with;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::reply::{Reply, reply_form};
use crate::mcp::pages::task::header;
use crate::mcp::pages::view::{View, lines};
use crate::output::data::diff::{FileDiffData, TaskDiffData};
use crate::spec::paging::fingerprint;

/// What only the page knows of its query: how lines stand, and one file whole.
pub(super) const OWN_QUERY: [&str; 2] = ["view", "file"];

/// Files with more changed lines are folded, and so are all further ones after this many lines in all.
const MAX_FILE_LINES: u64 = 400;
const MAX_PAGE_LINES: u64 = 3_000;

pub(super) fn page(
    view: &View<'_>,
    task: &Task,
    input: &Diff,
    diff: &TaskDiff,
    notes: &[Warning],
) -> Result<Page, AppError> {
    let data = whole_diff(view, &task.id, diff);
    let layout = if view.request.value("view") == Some("split") { Layout::Split } else { Layout::Unified };
    let title = format!("Changes · {}", view.text(&task.title));
    let live = Live::Tasks(vec![task.id.to_string()]);
    if let Some(path) = view.request.value("file") {
        let selected = data.files.iter().find(|file| file.path == path);
        let main = html! {
            (header(view, task, "diff"))
            p { a href=(query_with(view.request, "file", "")) { "All files" } }
            @match selected {
                Some(selected) => (file(view, selected, layout, true)),
                None => p class="empty" { "No change of " (view.name(path)) "." },
            }
        };
        return Ok(Page { title, live, main });
    }
    let reply = Reply::to(view, task).filter(|_| !is_against_other(input));
    let main = html! {
        (header(view, task, "diff"))
        @for note in notes { p class="note" { (view.text(&note.message)) } }
        (choices(view, task, input, layout))
        @if data.files.is_empty() { p class="empty" { "Nothing changed." } }
        (summary(view, &data))
        div id="diff" data-task=(task.id.as_str()) data-owner=(owner(task)) data-commentable[reply.as_ref().is_some_and(Reply::takes_comments)] {
            @for (file_data, is_open) in opened(&data.files) { (file(view, file_data, layout, is_open)) }
        }
        @if let Some(reply) = reply.filter(|_| !data.files.is_empty()) { (review(view, task, &reply)) }
    };
    Ok(Page { title, live, main })
}

/// All files of a diff with their lines, without secrets.
pub(super) fn whole_diff(view: &View<'_>, id: &TaskId, diff: &TaskDiff) -> TaskDiffData {
    // Before it is parsed: a secret may have several lines.
    let text = view.context.screen.printer.redact(&String::from_utf8_lossy(&diff.text));
    let files = parse_unified_diff(text.as_bytes());
    TaskDiffData::of(id, diff, &files.iter().collect::<Vec<_>>(), true)
}

/// The lines of another attempt are not those that the agent of this task knows.
fn is_against_other(input: &Diff) -> bool {
    input.against.as_ref().is_some_and(|other| other.as_str() != "review")
}

/// Whose files these are: the tasks of one worktree share the marks of what was viewed.
fn owner(task: &Task) -> &str {
    task.worktree.as_ref().map_or(task.id.as_str(), |worktree| worktree.as_str())
}

/// Each file, and whether its lines are shown at once.
fn opened(files: &[FileDiffData]) -> impl Iterator<Item = (&FileDiffData, bool)> {
    files.iter().scan(0, |shown, file| {
        let own = file.lines_added + file.lines_deleted;
        let is_open = own <= MAX_FILE_LINES && *shown + own <= MAX_PAGE_LINES;
        *shown += if is_open { own } else { 0 };
        Some((file, is_open))
    })
}

fn choices(view: &View<'_>, task: &Task, input: &Diff, layout: Layout) -> Markup {
    let (other, name) = match layout {
        Layout::Unified => ("split", "Side by side"),
        Layout::Split => ("", "One below the other"),
    };
    let reviewed = engine(view.context).and_then(|engine| Ok(engine.changes().reviewed_before(task)?));
    html! {
        div class="actions" {
            a href=(query_with(view.request, "view", other)) { (name) }
            button type="button" data-wrap aria-pressed="false" { "Wrap lines" }
            @match (&input.against, reviewed) {
                (Some(other), _) => {
                    span { @if other.as_str() == "review" { "Only since the review" } @else { "Compared with the result of " (other.as_str()) } }
                    a href=(query_with(view.request, "against", "")) { "All changes" }
                },
                (None, Ok(Some(_))) => a href=(query_with(view.request, "against", "review")) { "Only since the review" },
                (None, _) => {},
            }
        }
    }
}

fn anchor(file: &FileDiffData) -> String {
    format!("f-{}", fingerprint(&file.path.as_str().into()))
}

fn name(view: &View<'_>, file: &FileDiffData) -> Markup {
    html! {
        @if let Some(old) = &file.old_path { (view.name(old)) " → " }
        (view.name(&file.path))
    }
}

fn summary(view: &View<'_>, data: &TaskDiffData) -> Markup {
    html! {
        @if data.files.len() > 1 {
            details class="summary" open[data.files.len() <= 20] {
                summary { (plural(data.file_count, "file")) ", " (lines(Some(data.lines_added), Some(data.lines_deleted))) }
                ul class="files" { @for file in &data.files {
                    li { a href=(format!("#{}", anchor(file))) { (name(view, file)) } " " (lines(Some(file.lines_added), Some(file.lines_deleted))) }
                } }
            }
        }
    }
}

fn file(view: &View<'_>, file: &FileDiffData, layout: Layout, is_open: bool) -> Markup {
    // A mark that it was viewed counts as long as the changes are the same.
    let version = fingerprint(&json!(file.hunks));
    let own_page = query_with(view.request, "file", &file.path);
    let hunks_of = file.hunks.as_deref().filter(|_| is_open);
    html! {
        div class="file" id=(anchor(file)) data-key=(anchor(file)) data-path=(file.path) data-version=(version) {
            label class="check viewed" { input type="checkbox" data-viewed; "Viewed" }
            details open[is_open] data-load=[hunks_of.is_none().then_some(&own_page)] {
                summary {
                    h2 { (name(view, file)) }
                    span class="note" { (file.change) @if file.old_mode.is_some() { ", mode changed" } }
                    (lines(Some(file.lines_added), Some(file.lines_deleted)))
                }
                div class="content" {
                    @match (hunks_of, file.is_binary) {
                        (_, true) => p class="note" { "A binary file." },
                        (Some([]), _) => p class="note" { "No line changed." },
                        (Some(found), _) => (hunks(found, layout)),
                        (None, _) => p { a href=(own_page) { "Show " (file.lines_added + file.lines_deleted) " changed lines of " (view.name(&file.path)) } },
                    }
                }
            }
        }
    }
}

/// The comments, and where they go.
fn review(view: &View<'_>, task: &Task, reply: &Reply) -> Markup {
    html! {
        section id="review" aria-labelledby="review-title" {
            h2 id="review-title" { "Review" }
            @if reply.takes_comments() {
                p class="note" data-comments { "Choose a line number, or press c on a line, to comment on it." }
            }
            (reply_form(view, task, reply, true))
        }
    }
}
