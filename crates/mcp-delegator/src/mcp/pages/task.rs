//! One task: what its agent claims and what was observed, its question, and what can be done with it.

use delegator_domain::task::Verification;
use delegator_domain::text::first_line;
use delegator_engine::{Snapshot, TaskFiles, WorktreeState};
use delegator_transcript::{PlanStep, Report};
use maud::{Markup, html};

use crate::commands::prelude::*;
use crate::commands::show::{ShownTask, shown_task};
use crate::mcp::pages::chart;
use crate::mcp::pages::evidence::evidence;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::question::question;
use crate::mcp::pages::reply::{Reply, reply_form};
use crate::mcp::pages::task_row::look_of_end;
use crate::mcp::pages::view::{View, copyable, dollars};
use crate::output::data::conversation::QuestionData;
use crate::output::data::notification::append_notifications;
use crate::output::data::stored_task::RunTimes;
use crate::output::data::task::TaskResult;
use crate::output::data::task_line::short_age;
use crate::output::data::warnings;

pub(super) struct TaskData<'a> {
    pub(super) task: &'a Task,
    pub(super) files: &'a TaskFiles,
    shown: &'a ShownTask,
}

impl TaskData<'_> {
    fn result(&self) -> Option<&TaskResult> {
        self.shown.result.as_ref()
    }

    fn report(&self) -> Option<&Report> {
        self.files.record.as_ref().map(|record| &record.report)
    }

    fn snapshot(&self) -> Option<&Snapshot> {
        self.files.snapshot.as_ref().filter(|_| !self.task.state.is_terminal())
    }

    fn has_changes(&self) -> bool {
        self.result().is_some_and(|result| {
            let report = &result.report;
            report.metadata.file_operations.may_have_changes(report.git.as_ref())
        })
    }
}

pub(super) fn page(view: &View<'_>, given: &TaskRef) -> Result<Page, AppError> {
    let engine = engine(view.context)?;
    let task = engine.results().task(&resolve_task(&engine, given)?)?;
    let files = engine.results().files(&task.id)?;
    let shown = shown_task(view.context, &engine, &task, &files)?;
    if task.state.is_terminal() && view.may_answer() && view.request.is_looked_at {
        mark_read(&engine, &task.id);
    }
    let data = TaskData { task: &task, files: &files, shown: &shown };
    let questions: Vec<QuestionData> = files.open_questions.iter().map(Into::into).collect();
    let main = html! {
        (header(view, &task, "overview"))
        @for open in &questions { (question(view, task.id.as_str(), open)) }
        @for warning in warnings::for_task(&task, &files) { p class="problem" { (view.text(&warning.message)) } }
        @if let Some((result, report)) = data.result().zip(data.report()) { (evidence(view, result, report)) }
        (actions(view, &data))
        (activity(view, &data)?)
        (messages(view, &data))
        (plan(view, &data))
        (details(view, &data))
        @if let Some(usage) = data.report().and_then(|report| report.usage.as_ref()) { (chart::tokens(usage.own)) }
        @if let Some(cost) = data.report().and_then(|report| report.cost) { p class="facts" { "Cost, as reported: " (dollars(cost.own)) } }
    };
    let title = if questions.is_empty() {
        view.text(&task.title)
    } else {
        format!("Waiting: {}", view.text(&task.title))
    };
    Ok(Page { title, live: Live::Tasks(vec![task.id.to_string()]), main })
}

/// Title, state and the pages of a task.
pub(super) fn header(view: &View<'_>, task: &Task, here: &str) -> Markup {
    let base = format!("/ui/tasks/{}", task.id);
    let pages = [("overview", "Overview", ""), ("diff", "Changes", "/diff"), ("log", "Log", "/log")];
    let verification = task.ended.as_ref().and_then(|ended| ended.verification).map(Verification::status);
    html! {
        p class="path" {
            a href="/" { "Tasks" }
            @if let Some(member) = &task.group {
                " › " a href=(format!("/ui/groups/{}", member.group)) { "Attempt " (member.attempt) " of a group" }
            }
            @if let Some(follows) = &task.follows {
                " › " a href=(format!("/ui/tasks/{}", follows.task)) { "follows " (follows.task.as_str()) }
            }
        }
        h1 { (view.text(&task.title)) }
        p class="facts" {
            span class=(format!("badge {} {}", task.state.public_name(), look_of_end(task.state.public_name(), verification))) {
                (end_words(task)) @if verification == Some("verified") { ", verified" }
            }
            span { (view.text(&task.agent)) @if let Some(model) = &task.model { " (" (view.text(model)) ")" } }
            span { (task.mode.name()) }
            span { "submitted " (view.time(&UtcTime::from_ms(task.created_at_ms))) }
            @if task.state.is_terminal() { span { "took " (short_age(RunTimes::of(task).duration_seconds())) } }
            (copyable(task.id.as_str(), "the task id"))
        }
        nav class="tabs" aria-label="Pages of the task" {
            @for (name, text, path) in pages {
                a href=(format!("{base}{path}")) aria-current=[(name == here).then_some("page")] { (text) }
            }
        }
    }
}

fn end_words(task: &Task) -> String {
    crate::output::data::stored_task::end_name(task).replace('_', " ")
}

/// A longer final message is folded.
const MAX_OPEN_MESSAGE_LINES: usize = 30;

/// What a task that has not ended does now, or waits for; the last words of one that has.
fn activity(view: &View<'_>, data: &TaskData<'_>) -> Result<Markup, AppError> {
    let state = view.live.state()?;
    let live = state.tasks.get(&data.task.id).map(|task| view.live_data(&state, task));
    Ok(html! {
        @if let Some(unfinished) = &data.shown.unfinished {
            section aria-labelledby="now" {
                h2 id="now" { "Now" }
                p { (view.text(live.as_ref().map_or(data.task.state.public_name(), |live| &live.line))) }
                @match &unfinished.progress {
                    None => {},
                    Some(progress) => {
                        @if let Some(percent) = progress.percent { progress max="100" value=(percent) aria-label="Progress" {} }
                        @if let Some(counts) = progress.counts_text() { p class="note" { (counts) } }
                    },
                }
                @if let Some(message) = data.snapshot().and_then(|snapshot| snapshot.last_message.as_deref()) {
                    h3 { "Last message" }
                    pre { (view.text(message)) }
                }
            }
        } @else if let Some(message) = data.result().and_then(|result| result.report.final_message.as_deref()) {
            section aria-labelledby="message" {
                h2 id="message" { "Final message" }
                @let text = view.text(message);
                @if text.lines().count() > MAX_OPEN_MESSAGE_LINES {
                    details data-key="message" { summary { (first_line(&text, 200)) } div class="prose" { (text) } }
                } @else {
                    div class="prose" { (text) }
                }
            }
        }
    })
}

/// A button whose check is shown before anything happens.
fn checked(id: &TaskId, action: &str, text: &str) -> Markup {
    html! {
        button type="button" data-check=(format!("/ui/tasks/{id}/check/{action}")) { (text) }
    }
}

fn actions(view: &View<'_>, data: &TaskData<'_>) -> Markup {
    let (task, id) = (data.task, &data.task.id);
    let worktree = data.files.worktree.as_ref();
    let is_present =
        data.result().and_then(|result| result.report.worktree.as_ref()).is_some_and(|own| own.is_present());
    // The diff of a cloud task, and of a worktree that was discarded, is stored.
    let is_discarded = worktree.is_some_and(|worktree| worktree.state == WorktreeState::Discarded);
    let can_apply_stored = is_discarded || (task.remote.is_some() && data.has_changes());
    let restore = data.result().and_then(|result| result.report.restore_point.as_ref());
    let may_undo = task.worktree.is_none() && restore.is_some_and(|point| point.undo_command.is_some());
    html! {
        @if let Some(worktree) = worktree {
            p class="facts" {
                "Worktree " (copyable(&worktree.path.display().to_string(), "the path of the worktree"))
                "branch " (copyable(&worktree.branch, "the name of the branch"))
            }
        }
        p class="facts" { "Directory " (copyable(&task.working_dir, "the directory")) }
        @if view.may_write() {
            div class="actions" role="group" aria-label="Actions" {
                @if task.state.is_terminal() {
                    @if data.has_changes() || is_present { a class="button main" href=(format!("/ui/tasks/{id}/diff")) { "Review the changes" } }
                    @if is_present || can_apply_stored { (checked(id, "apply", "Apply …")) }
                    @if is_present {
                        (checked(id, "branch", "Create a branch …"))
                        (checked(id, "discard", "Discard …"))
                    }
                    @if may_undo && data.has_changes() { (checked(id, "undo", "Undo …")) }
                    form data-action=(format!("/api/v1/tasks/{id}/retry")) data-open data-confirm=(format!("Run this task again with {}, as a new task?", view.text(&task.agent))) {
                        @if task.remote.is_none() { input type="hidden" name="mode" value=(task.mode.name()); }
                        button { "Retry" }
                    }
                    @if data.has_changes() {
                        form data-action=(format!("/api/v1/tasks/{id}/review")) data-open data-confirm="Start an agent that reviews the changes, as a new task?" { button { "Let an agent review it" } }
                    }
                } @else {
                    form data-action=(format!("/api/v1/tasks/{id}/cancel")) data-confirm="Cancel this task? Its agent is ended." {
                        button class="careful" { "Cancel" }
                    }
                }
            }
        }
    }
}

fn messages(view: &View<'_>, data: &TaskData<'_>) -> Markup {
    let conversation = data.shown.unfinished.as_ref().map(|unfinished| &unfinished.conversation);
    let of_result = data.result().and_then(|result| result.report.messages.as_ref());
    let sent = conversation.and_then(|conversation| conversation.messages.as_ref()).or(of_result);
    let reply = Reply::to(view, data.task);
    html! {
        @if sent.is_some() || reply.is_some() {
            section aria-labelledby="messages" {
                h2 id="messages" { "Messages" }
                @if let Some(sent) = sent {
                    ul { @for message in &sent.items {
                        li data-key=(message.message_number) {
                            (view.text(&message.excerpt)) " "
                            span class="note" { (message.state) ", " (view.time(&message.sent_at)) }
                            @if let Some(reason) = &message.reason { span class="bad" { " " (view.text(reason)) } }
                        }
                    } }
                }
                @if let Some(reply) = reply { (reply_form(view, data.task, &reply, false)) }
            }
        }
    }
}

fn plan(view: &View<'_>, data: &TaskData<'_>) -> Markup {
    let of_snapshot = data.snapshot().map(|snapshot| snapshot.plan.as_slice());
    let steps: &[PlanStep] =
        of_snapshot.or(data.report().map(|report| report.plan.as_slice())).unwrap_or_default();
    html! {
        @if !steps.is_empty() {
            section aria-labelledby="plan" {
                h2 id="plan" { "Plan" }
                ul class="plan" { @for step in steps {
                    li class=(if step.completed { "done" } else { "open" }) {
                        span class="only-read" { (if step.completed { "Done: " } else { "Open: " }) }
                        (view.text(&step.text))
                    }
                } }
            }
        }
    }
}

fn details(view: &View<'_>, data: &TaskData<'_>) -> Markup {
    html! {
        section aria-labelledby="details" {
            h2 id="details" { "Details" }
            details data-key="text" { summary { "Task text" } pre { (view.text(&data.shown.ask)) } }
            @if let Some(result) = data.result() {
                details data-key="result" { summary { "Everything about the result" } (result.document().to_html()) }
            }
            @if !data.shown.notifications.is_empty() {
                details data-key="notifications" { summary { (plural(data.shown.notifications.len(), "notification")) }
                    (append_notifications(Document::default(), "", &data.shown.notifications).to_html())
                }
            }
            details data-key="commands" { summary { "On the command line" }
                dl { @for next in &data.shown.next_commands { div { dt { (next.shows) } dd { code { (next.command) } } } } }
            }
        }
    }
}
