//! The document of a task: key facts first, then labelled quotes of the agent, the next useful call last.

use std::collections::BTreeMap;

use delegator_domain::task::{EndKind, SandboxKind};

use crate::output::command_data::{CommandData, TaskState};
use crate::output::data::acknowledgement::ExecutionAck;
use crate::output::data::chain::{self, FollowsData};
use crate::output::data::conversation::MessagesData;
use crate::output::data::error_context::{ErrorContext, ReportedLocation};
use crate::output::data::events::EventsPage;
use crate::output::data::findings;
use crate::output::data::group::MemberData;
use crate::output::data::progress::Progress;
use crate::output::data::remote::{DiffData, RemoteData};
use crate::output::data::structured_output::Violation;
use crate::output::data::task::{
    EndedItem, ResultSet, TaskReport, TaskResult, UnfinishedTask, WaitedTask, WaitedTasks,
};
use crate::output::data::verification::{TestResults, VerificationData};
use crate::output::documents::{agent_output, conversation};
use crate::output::prelude::*;
use crate::output::truncation::apply::{json_size, retain_first};

const MAX_LOCATIONS: usize = 3;

impl CommandData for ExecutionAck {
    fn document(&self) -> Document {
        let document = match &self.report {
            Some(report) => self.result(report).document(),
            None => self.accepted(),
        };
        match (&self.group, &self.report) {
            (Some(group), _) => group.append_to(document),
            (None, Some(_)) => document,
            // Also for a task that has ended already: waiting for it returns its result.
            (None, None) => document.block(next_wait(&self.task_id)),
        }
    }

    fn shrink(&mut self, plan: TruncationPlan) -> Sizes {
        self.report.as_mut().map(|report| report.shrink(plan)).unwrap_or_default()
    }

    fn task(&self) -> Option<TaskState<'_>> {
        Some(TaskState { task_id: &self.task_id, state: self.state })
    }
}

impl ExecutionAck {
    /// What the result of a task that was waited for after its submission shows: neither a diff nor output.
    fn result(&self, report: &TaskReport) -> TaskResult {
        TaskResult {
            task_id: self.task_id.clone(),
            state: self.state,
            summary: self.summary.clone().unwrap_or_default(),
            working_dir: self.working_dir.clone(),
            sandbox: self.sandbox,
            remote: self.remote.clone(),
            followers: self.followers.clone(),
            report: report.clone(),
            ..TaskResult::default()
        }
    }

    fn accepted(&self) -> Document {
        let document = match &self.group {
            Some(group) => Document::titled(format!("Group {} accepted", group.group_id)),
            None => Document::titled(format!("Task {} accepted", self.task_id)),
        };
        let mut facts = known_facts([
            ("state", Some(self.state.to_owned())),
            ("directory", Some(self.working_dir.clone())),
            ("environment", self.remote.as_ref().map(|remote| remote.environment.clone())),
            ("page", self.remote.as_ref().and_then(|remote| remote.url.clone())),
            ("thread", self.thread_id.clone()),
            ("runs in", Some(self.capability.name().to_owned())),
            ("expected duration", self.expected_duration.clone()),
            ("sandbox", sandbox(self.sandbox)),
        ]);
        facts.extend(progress_facts(self.elapsed_seconds, self.progress.as_ref().and_then(Option::as_ref)));
        let document = document.block(Block::Facts(facts));
        let document = conversation::append_questions(document, &self.task_id, &self.waiting_for_answer);
        chain::append_to(document, &self.followers)
    }
}

impl CommandData for TaskResult {
    fn document(&self) -> Document {
        EndedView::of_result(self).document()
    }

    fn shrink(&mut self, plan: TruncationPlan) -> Sizes {
        let output_bytes = self.output.size();
        self.output.shrink(plan.output_bytes);
        self.report.shrink(plan).max(Sizes { output_bytes, ..Sizes::default() })
    }

    fn task(&self) -> Option<TaskState<'_>> {
        Some(TaskState { task_id: &self.task_id, state: self.state })
    }
}

impl CommandData for ResultSet {
    fn document(&self) -> Document {
        EndedView { events: Some(&self.events), ..EndedView::of_result(&self.result) }.document()
    }

    fn shrink(&mut self, plan: TruncationPlan) -> Sizes {
        let event_count = self.events.items.as_ref().map_or(0, Vec::len);
        self.events.shrink(&self.result.task_id, plan);
        self.result.shrink(plan).max(Sizes { event_count, ..Sizes::default() })
    }

    fn task(&self) -> Option<TaskState<'_>> {
        self.result.task()
    }
}

impl CommandData for UnfinishedTask {
    fn document(&self) -> Document {
        let messages = self.conversation.messages.as_ref();
        let mut facts = known_facts([
            ("directory", Some(self.working_dir.clone())),
            ("environment", self.remote.as_ref().map(|remote| remote.environment.clone())),
            ("page", self.remote.as_ref().and_then(|remote| remote.url.clone())),
            ("thread", self.thread_id.clone()),
            ("sandbox", sandbox(self.sandbox)),
        ]);
        facts.extend(progress_facts(self.elapsed_seconds, self.progress.as_ref()));
        facts.extend(messages.map(|messages| ("messages".to_owned(), messages.counts_text())));
        let document = Document::titled(format!("Task {} {}", self.task_id, self.state));
        let document = conversation::append_messages(document.block(Block::Facts(facts)), messages);
        let open = &self.conversation.waiting_for_answer;
        conversation::append_questions(document, &self.task_id, open).block(next_wait(&self.task_id))
    }

    fn task(&self) -> Option<TaskState<'_>> {
        Some(TaskState { task_id: &self.task_id, state: self.state })
    }
}

impl CommandData for WaitedTasks {
    fn document(&self) -> Document {
        match self.tasks.as_slice() {
            [WaitedTask::Ended(only)] => EndedView::of_item(only).document(),
            [WaitedTask::Unfinished(only)] => only.document(),
            tasks => several(tasks),
        }
    }

    fn shrink(&mut self, plan: TruncationPlan) -> Sizes {
        let ended = self.tasks.iter_mut().filter_map(|task| match task {
            WaitedTask::Ended(ended) => Some(ended.result.shrink(plan)),
            WaitedTask::Unfinished(_) => None,
        });
        let sizes = ended.fold(Sizes::default(), Sizes::max);
        retain_first(&mut self.tasks, plan.task_list_bytes, json_size);
        sizes
    }
}

#[derive(Debug, Clone, Copy)]
struct EndedView<'a> {
    result: &'a TaskResult,
    events: Option<&'a EventsPage>,
    agent_exit_code: Option<i32>,
}

impl<'a> EndedView<'a> {
    fn of_result(result: &'a TaskResult) -> EndedView<'a> {
        EndedView { result, events: None, agent_exit_code: None }
    }

    fn of_item(item: &'a EndedItem) -> EndedView<'a> {
        EndedView { agent_exit_code: item.agent_exit_code, ..EndedView::of_result(&item.result) }
    }

    fn document(self) -> Document {
        self.append_to(Document::titled(self.headline()))
    }

    /// A task whose check failed is not just completed.
    fn headline(self) -> String {
        let TaskResult { task_id, state, .. } = self.result;
        let refuted = if self.is_refuted() { ", verify failed" } else { "" };
        format!("Task {task_id} {state}{refuted}")
    }

    fn is_refuted(self) -> bool {
        self.result.report.verification.as_ref().is_some_and(VerificationData::has_failed)
    }

    fn append_to(self, document: Document) -> Document {
        let TaskResult { task_id, report, output, diff, followers, .. } = self.result;
        let context = report.metadata.error_context.as_ref();
        let (message, stdout) =
            agent_output::distinct_texts(report.final_message.as_deref(), output.stdout.as_deref());
        let document = self.append_isolation(document).block(Block::Facts(self.facts()));
        let document = document.with(context, append_failure);
        let document = append_violations(document, &report.structured_output_violations)
            .with(report.findings.as_deref(), findings::append_to)
            .with(report.verification.as_ref(), |document, verification| verification.append_to(document))
            .with(report.denied_write.as_ref(), |document, denied| document.block(denied.block()))
            .with(context.and_then(|context| context.agent_message.as_ref()), |document, message| {
                document.quote("Reported by the agent:", message.as_str())
            })
            .with(message, |document, message| append_message(document, message, report));
        let document = conversation::append_messages(document, report.messages.as_ref())
            .with(diff.as_ref(), append_diff);
        let document = chain::append_to(document, followers);
        agent_output::append_to(document, task_id, output, stdout)
            .with(self.events, |document, events| events.append_to(document, task_id))
    }

    /// What became of the user's work tree, if the task worked in one of its own, and what to do with that.
    fn append_isolation(self, document: Document) -> Document {
        let report = &self.result.report;
        let Some(worktree) = report.worktree.as_ref().filter(|worktree| worktree.is_present()) else {
            return document;
        };
        if !report.metadata.file_operations.may_have_changes(report.git.as_ref()) {
            return document.text("Your work tree is unchanged; the task changed nothing in its own either.");
        }
        let advice = |text, command| {
            let call = NextCall::for_task(command, worktree.owner.as_str());
            Block::Advice(Suggestion::with_call(text, call))
        };
        document
            .text("Your work tree is unchanged; the changes are in the worktree of the task.")
            .block(advice("Apply them: {call}", &["apply"]))
            .block(advice("Discard them: {call}", &["discard"]))
    }

    fn facts(self) -> Vec<(String, String)> {
        let (result, report) = (self.result, &self.result.report);
        let (metadata, files) = (&report.metadata, &report.metadata.file_operations);
        let remote =
            |field: fn(&RemoteData) -> Option<&String>| result.remote.as_ref().and_then(field).cloned();
        let mut facts = known_facts([
            ("summary", Some(result.summary.clone()).filter(|summary| !summary.is_empty())),
            ("seconds", Some(metadata.duration.to_string())),
            ("directory", Some(result.working_dir.clone())),
            ("environment", remote(|remote| Some(&remote.environment))),
            ("page", remote(|remote| remote.url.as_ref())),
            ("worker", remote(|remote| remote.worker.as_ref())),
            ("branch", remote(|remote| remote.branch.as_ref())),
            ("started from", remote(|remote| remote.base_commit.as_ref())),
            ("pushed to", remote(|remote| remote.pushed_branch.as_ref())),
            ("sandbox", sandbox(result.sandbox)),
            ("follows", result.follows.as_ref().map(FollowsData::text)),
            ("attempt", result.group.as_ref().map(MemberData::text)),
        ]);
        facts.extend(files.facts(report.git.as_ref()));
        facts.extend(metadata.test_results.iter().flat_map(TestResults::facts));
        let (thread, context) = (&metadata.thread_info, metadata.error_context.as_ref());
        facts.extend(known_facts([
            ("thread", thread.thread_id.clone()),
            ("input tokens", thread.token_usage.map(|usage| usage.input_tokens.to_string())),
            ("output tokens", thread.token_usage.map(|usage| usage.output_tokens.to_string())),
            ("failure", context.map(|context| context.failure_kind.to_owned())),
            ("error", context.map(|context| context.error_message.clone())),
            ("retry at", context.and_then(|context| Some(context.retry_at.as_ref()?.0.clone()))),
        ]));
        if files.may_have_changes(report.git.as_ref()) {
            let (worktree, point) = (report.worktree.as_ref(), report.restore_point.as_ref());
            facts.extend(known_facts([
                ("changes", report.diff_command.clone()),
                ("worktree", worktree.map(|worktree| worktree.worktree.clone())),
                ("revert", point.and_then(|point| point.restore_command.clone())),
                ("undo", point.and_then(|point| point.undo_command.clone())),
            ]));
        }
        let exit_code = self.agent_exit_code.filter(|code| *code != 0);
        facts.extend(known_facts([
            ("exit code", exit_code.map(|code| code.to_string())),
            ("messages", report.messages.as_ref().map(MessagesData::counts_text)),
            ("labels", labels(&report.labels)),
        ]));
        facts
    }
}

/// The diff of a cloud task; if a part is missing, how to read all of it.
fn append_diff(document: Document, diff: &DiffData) -> Document {
    let document = document.block(Block::Verbatim(diff.text.clone()));
    document.with(diff.is_truncated.then_some(diff.bytes), |document, bytes| {
        document.text(format!(
            "Parts of this diff of {bytes} bytes are left out; the command 'diff' prints all of it."
        ))
    })
}

/// The final message of a task; if a part is missing, how much it is and how to read it.
fn append_message(document: Document, message: &str, report: &TaskReport) -> Document {
    let missing = report.final_message_truncated.as_ref();
    let extent =
        missing.map(|missing| format!(" ({} of {} bytes)", missing.shown_bytes, missing.total_bytes));
    let label = format!("The agent's final message{}:", extent.unwrap_or_default());
    document
        .text(label)
        .block(Block::FinalMessage(message.to_owned()))
        .with(missing.and_then(|missing| missing.suggestion.as_ref()), Document::text)
}

/// What enforces the mode, unless it is the agent's own sandbox.
pub fn sandbox(name: Option<&'static str>) -> Option<String> {
    name.filter(|name| *name != SandboxKind::Agent.name()).map(str::to_owned)
}

/// Elapsed time, activity, percentage and counts of a task that has not ended.
fn progress_facts(elapsed_seconds: Option<u64>, progress: Option<&Progress>) -> Vec<(String, String)> {
    known_facts([
        ("elapsed", elapsed_seconds.map(|seconds| format!("{seconds} s"))),
        ("activity", progress.and_then(|progress| progress.current_activity.clone())),
        ("progress", progress.and_then(Progress::percent_text)),
        ("so far", progress.and_then(Progress::counts_text)),
    ])
}

fn append_failure(document: Document, context: &ErrorContext) -> Document {
    let locations = context.error_locations.iter().take(MAX_LOCATIONS).map(format_location);
    let locations: Vec<String> = locations.collect();
    let suggested = context.suggestions.iter().map(|text| ("suggestion".to_owned(), text.clone()));
    let suggested: Vec<_> = suggested.collect();
    document
        .with((!locations.is_empty()).then(|| locations.join("\n")), |document, lines| {
            document.quote("Where its commands failed:", lines)
        })
        .with((!suggested.is_empty()).then_some(suggested), |document, facts| {
            document.block(Block::Facts(facts))
        })
}

fn format_location(location: &ReportedLocation) -> String {
    let ReportedLocation { position, message, kind, command } = location;
    let column = position.column.map(|column| format!(":{column}")).unwrap_or_default();
    let kind = kind.as_ref().map(|kind| format!("{kind}: ")).unwrap_or_default();
    format!("{}:{}{column}: {kind}{message} ({command})", position.file, position.line)
}

fn append_violations(document: Document, violations: &[Violation]) -> Document {
    if violations.is_empty() {
        return document;
    }
    let line = |violation: &Violation| match violation.path.as_str() {
        "" => violation.problem.clone(),
        path => format!("{path}: {}", violation.problem),
    };
    let lines: Vec<String> = violations.iter().map(line).collect();
    document.quote("The final message does not match the output schema:", lines.join("\n"))
}

/// A table of several tasks, then the results of those that have ended.
fn several(tasks: &[WaitedTask]) -> Document {
    let ended = || {
        tasks.iter().filter_map(|task| match task {
            WaitedTask::Ended(ended) => Some(EndedView::of_item(ended)),
            WaitedTask::Unfinished(_) => None,
        })
    };
    let directory = |task: &'_ WaitedTask| match task {
        WaitedTask::Ended(ended) => ended.result.working_dir.clone(),
        WaitedTask::Unfinished(task) => task.working_dir.clone(),
    };
    let directories: Vec<String> = tasks.iter().map(directory).collect();
    let common = common_directory(directories.iter().map(String::as_str));
    let row = |task: &WaitedTask| {
        let (id, state, summary, directory) = match task {
            WaitedTask::Ended(ended) => {
                let task = &ended.result;
                let is_refuted = EndedView::of_item(ended).is_refuted();
                let state = if is_refuted { EndKind::VerifyFailed.name() } else { task.state };
                (&task.task_id, state, Some(&task.summary), &task.working_dir)
            }
            WaitedTask::Unfinished(task) => {
                let activity = task.progress.as_ref().and_then(|progress| progress.current_activity.as_ref());
                (&task.task_id, task.state, activity, &task.working_dir)
            }
        };
        vec![id.clone(), state.to_owned(), cell(summary), directory_cell(directory, common)]
    };
    let title = match tasks.len() {
        0 => "No task to wait for".to_owned(),
        count => format!("{} of {count} tasks ended", ended().count()),
    };
    let rows = tasks.iter().map(row).collect();
    let mut document = Document::titled(title).table(&["task", "state", "summary", "directory"], rows);
    // Facts about the call are added to the first block of facts, so there is one before those of the tasks.
    document = document.block(Block::facts([("directory", common.map(str::to_owned))]));
    for task in tasks {
        if let WaitedTask::Unfinished(task) = task
            && !task.conversation.waiting_for_answer.is_empty()
        {
            let label = format!("Task {} waits for an answer:", task.task_id);
            let open = &task.conversation.waiting_for_answer;
            document = conversation::append_questions(document.text(label), &task.task_id, open);
        }
    }
    for task in ended() {
        document = task.append_to(document.text(format!("{}:", task.headline())));
    }
    document
}

/// The directory in which all of these tasks work. If they differ, each has a cell with its own.
pub fn common_directory<'a>(mut directories: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = directories.next()?;
    directories.all(|directory| directory == first).then_some(first)
}

pub fn directory_cell(directory: &str, common: Option<&str>) -> String {
    match common {
        Some(_) => "-".to_owned(),
        None => directory.to_owned(),
    }
}

/// `team=parser, ticket=7`.
pub fn labels(labels: &BTreeMap<String, String>) -> Option<String> {
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}

fn next_wait(task_id: &str) -> Block {
    Block::Next(NextCall::for_task(&["local", "wait"], task_id))
}

#[cfg(test)]
mod tests;
