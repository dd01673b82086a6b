//! The document of a task: key facts first, then labelled quotes of the agent, the next useful call last.

use std::collections::BTreeMap;

use delegator_domain::task::SandboxKind;

use crate::error::suggestion::NextCall;
use crate::output::command_data::{CommandData, TaskState};
use crate::output::data::acknowledgement::ExecutionAck;
use crate::output::data::chain::{self, FollowerData, FollowsData};
use crate::output::data::conversation::MessagesData;
use crate::output::data::error_context::{ErrorContext, ReportedLocation};
use crate::output::data::events::EventsPage;
use crate::output::data::findings;
use crate::output::data::group::MemberData;
use crate::output::data::output::AgentOutput;
use crate::output::data::progress::Progress;
use crate::output::data::remote::{DiffData, RemoteData};
use crate::output::data::structured_output::Violation;
use crate::output::data::task::{
    EndedItem, ResultSet, TaskReport, TaskResult, TestResults, UnfinishedTask, WaitBatch, WaitedTask,
    WaitedTasks,
};
use crate::output::documents::document::{Block, Document, cell, known_facts};
use crate::output::documents::{agent_output, conversation};
use crate::output::truncation::plan::{Sizes, TruncationPlan};

/// Error locations that are shown.
const MAX_LOCATIONS: usize = 3;

impl CommandData for ExecutionAck {
    fn document(&self) -> Document {
        let document = match &self.report {
            Some(report) => EndedView::of_run(self, report).document(),
            None => self.accepted(),
        };
        match (&self.group, &self.report) {
            (Some(group), _) => group.append_to(document),
            (None, Some(_)) => document,
            // Also for a task that has ended already: waiting for it returns its result.
            (None, None) => document.block(next_wait(&self.task_id)),
        }
    }

    fn shrink(&mut self, plan: TruncationPlan) {
        if let Some(report) = &mut self.report {
            report.shrink(plan);
        }
    }

    fn part_sizes(&self) -> Sizes {
        self.report.as_ref().map_or_else(Sizes::default, TaskReport::sizes)
    }

    fn task(&self) -> Option<TaskState<'_>> {
        Some(TaskState { task_id: &self.task_id, state: self.state })
    }
}

impl ExecutionAck {
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

    fn shrink(&mut self, plan: TruncationPlan) {
        TaskResult::shrink(self, plan);
    }

    fn part_sizes(&self) -> Sizes {
        self.sizes()
    }

    fn task(&self) -> Option<TaskState<'_>> {
        Some(TaskState { task_id: &self.task_id, state: self.state })
    }
}

impl CommandData for ResultSet {
    fn document(&self) -> Document {
        EndedView { events: Some(&self.events), ..EndedView::of_result(&self.result) }.document()
    }

    fn shrink(&mut self, plan: TruncationPlan) {
        ResultSet::shrink(self, plan);
    }

    fn part_sizes(&self) -> Sizes {
        self.sizes()
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

    fn shrink(&mut self, plan: TruncationPlan) {
        WaitedTasks::shrink(self, plan);
    }

    fn part_sizes(&self) -> Sizes {
        self.sizes()
    }
}

impl CommandData for WaitBatch {
    fn document(&self) -> Document {
        self.data.document()
    }

    fn shrink(&mut self, plan: TruncationPlan) {
        self.data.shrink(plan);
    }

    fn part_sizes(&self) -> Sizes {
        self.data.sizes()
    }
}

/// What a document shows of an ended task.
#[derive(Debug, Clone, Copy)]
struct EndedView<'a> {
    task_id: &'a str,
    state: &'static str,
    summary: Option<&'a String>,
    working_dir: &'a String,
    sandbox: Option<&'static str>,
    remote: Option<&'a RemoteData>,
    follows: Option<&'a FollowsData>,
    followers: &'a [FollowerData],
    member: Option<&'a MemberData>,
    report: &'a TaskReport,
    diff: Option<&'a DiffData>,
    output: Option<&'a AgentOutput>,
    events: Option<&'a EventsPage>,
    agent_exit_code: Option<i32>,
}

impl<'a> EndedView<'a> {
    fn of_result(task: &'a TaskResult) -> EndedView<'a> {
        EndedView {
            task_id: &task.task_id,
            state: task.state,
            summary: Some(&task.summary),
            working_dir: &task.working_dir,
            sandbox: task.sandbox,
            remote: task.remote.as_ref(),
            follows: task.follows.as_ref(),
            followers: &task.followers,
            member: task.group.as_ref(),
            report: &task.report,
            diff: task.diff.as_ref(),
            output: Some(&task.output),
            events: None,
            agent_exit_code: None,
        }
    }

    fn of_item(item: &'a EndedItem) -> EndedView<'a> {
        EndedView { agent_exit_code: item.agent_exit_code, ..EndedView::of_result(&item.result) }
    }

    /// A task that was waited for after its submission.
    fn of_run(task: &'a ExecutionAck, report: &'a TaskReport) -> EndedView<'a> {
        EndedView {
            task_id: &task.task_id,
            state: task.state,
            summary: task.summary.as_ref(),
            working_dir: &task.working_dir,
            sandbox: task.sandbox,
            remote: task.remote.as_ref(),
            follows: None,
            followers: &task.followers,
            member: None,
            report,
            diff: None,
            output: None,
            events: None,
            agent_exit_code: None,
        }
    }

    fn document(self) -> Document {
        self.append_to(Document::titled(format!("Task {} {}", self.task_id, self.state)))
    }

    /// Everything that is known about the task.
    fn append_to(self, document: Document) -> Document {
        let report = self.report;
        let context = report.metadata.error_context.as_ref();
        let mut document = document.block(Block::Facts(self.facts()));
        if let Some(context) = context {
            document = append_failure(document, context);
        }
        document = append_violations(document, &report.structured_output_violations);
        if let Some(findings) = &report.findings {
            document = findings::append_to(document, findings);
        }
        if let Some(verification) = &report.verification {
            document = verification.append_to(document);
        }
        document.blocks.extend(report.denied_write.as_ref().map(|denied| denied.block()));
        if let Some(message) = context.and_then(|context| context.agent_message.as_ref()) {
            document = document.quote("Reported by the agent:", message.as_str());
        }
        let (message, stdout) = agent_output::distinct_texts(
            report.final_message.as_deref(),
            self.output.and_then(|output| output.stdout.as_deref()),
        );
        if let Some(message) = message {
            document = append_message(document, message, report);
        }
        document = conversation::append_messages(document, report.messages.as_ref());
        if let Some(diff) = self.diff {
            document = append_diff(document, diff);
        }
        document = chain::append_to(document, self.followers);
        if let Some(output) = self.output {
            document = agent_output::append_to(document, self.task_id, output, stdout);
        }
        match self.events {
            Some(events) => events.append_to(document, self.task_id),
            None => document,
        }
    }

    fn facts(self) -> Vec<(String, String)> {
        let (report, metadata) = (self.report, &self.report.metadata);
        let files = &metadata.file_operations;
        let remote = |field: fn(&RemoteData) -> Option<&String>| self.remote.and_then(field).cloned();
        let mut facts = known_facts([
            ("summary", self.summary.cloned()),
            ("seconds", Some(metadata.duration.to_string())),
            ("directory", Some(self.working_dir.clone())),
            ("environment", remote(|remote| Some(&remote.environment))),
            ("page", remote(|remote| remote.url.as_ref())),
            ("worker", remote(|remote| remote.worker.as_ref())),
            ("branch", remote(|remote| remote.branch.as_ref())),
            ("started from", remote(|remote| remote.base_commit.as_ref())),
            ("pushed to", remote(|remote| remote.pushed_branch.as_ref())),
            ("sandbox", sandbox(self.sandbox)),
            ("follows", self.follows.map(FollowsData::text)),
            ("attempt", self.member.map(MemberData::text)),
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
                ("apply", worktree.and_then(|worktree| worktree.apply_command.clone())),
                ("revert", point.and_then(|point| point.restore_command.clone())),
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
    match diff.is_truncated {
        true => document.block(Block::Text(format!(
            "Parts of this diff of {} bytes are left out; the command 'diff' prints all of it.",
            diff.bytes
        ))),
        false => document,
    }
}

/// The final message of a task; if a part is missing, how much it is and how to read it.
fn append_message(document: Document, message: &str, report: &TaskReport) -> Document {
    let missing = report.final_message_truncated.as_ref();
    let extent =
        missing.map(|missing| format!(" ({} of {} bytes)", missing.shown_bytes, missing.total_bytes));
    let label = format!("The agent's final message{}:", extent.unwrap_or_default());
    let mut document = document.block(Block::Text(label)).block(Block::FinalMessage(message.to_owned()));
    let hint = missing.and_then(|missing| missing.suggestion.clone());
    document.blocks.extend(hint.map(Block::Text));
    document
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

/// Error locations and suggestions.
fn append_failure(document: Document, context: &ErrorContext) -> Document {
    let locations = context.error_locations.iter().take(MAX_LOCATIONS).map(format_location);
    let locations: Vec<String> = locations.collect();
    let document = match locations.is_empty() {
        true => document,
        false => document.quote("Where its commands failed:", locations.join("\n")),
    };
    let suggested = context.suggestions.iter().map(|text| ("suggestion".to_owned(), text.clone()));
    match context.suggestions.is_empty() {
        true => document,
        false => document.block(Block::Facts(suggested.collect())),
    }
}

fn format_location(location: &ReportedLocation) -> String {
    let ReportedLocation { position, message, kind, command } = location;
    let column = position.column.map(|column| format!(":{column}")).unwrap_or_default();
    let kind = kind.as_ref().map(|kind| format!("{kind}: ")).unwrap_or_default();
    format!("{}:{}{column}: {kind}{message} ({command})", position.file, position.line)
}

/// The violations of the output schema.
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
                (&task.task_id, task.state, Some(&task.summary), &task.working_dir)
            }
            WaitedTask::Unfinished(task) => {
                let activity = task.progress.as_ref().and_then(|progress| progress.current_activity.as_ref());
                (&task.task_id, task.state, activity, &task.working_dir)
            }
        };
        vec![id.clone(), state.to_owned(), cell(summary), directory_cell(directory, common)]
    };
    let document = match tasks.is_empty() {
        true => Document::titled("No task to wait for"),
        false => Document::titled(format!("{} of {} tasks ended", ended().count(), tasks.len())),
    };
    let rows = tasks.iter().map(row).collect();
    let mut document = document.table(&["task", "state", "summary", "directory"], rows);
    // Facts about the call are added to the first block of facts, so there is one before those of the tasks.
    document = document.block(Block::facts([("directory", common.map(str::to_owned))]));
    for task in tasks {
        if let WaitedTask::Unfinished(task) = task
            && !task.conversation.waiting_for_answer.is_empty()
        {
            let label = format!("Task {} waits for an answer:", task.task_id);
            let open = &task.conversation.waiting_for_answer;
            document =
                conversation::append_questions(document.block(Block::Text(label)), &task.task_id, open);
        }
    }
    for task in ended() {
        document =
            task.append_to(document.block(Block::Text(format!("Task {} {}:", task.task_id, task.state))));
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
    Block::Next(NextCall::new(&["local", "wait"]).with("task_id", task_id))
}
