//! A task in the JSON of the tool envelope, for wait, results and status.

use std::collections::BTreeMap;

use delegator_domain::task::{ExitStatus, Mode, SandboxKind, State, TaskEnd};
use delegator_engine::{Record, TaskFiles};
use delegator_registry::{EndRecord, Task};
use delegator_transcript::{RecentLine, TestReport, Usage, without_repeated_keys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::output::call_syntax::CallSyntax;
use crate::output::data::batch::BatchResult;
use crate::output::data::chain::{self, FollowerData, FollowsData};
use crate::output::data::conversation::{Conversation, MessagesData};
use crate::output::data::denied_write::DeniedWrite;
use crate::output::data::error_context::ErrorContext;
use crate::output::data::events::EventsPage;
use crate::output::data::files::{ArtifactData, FileOperations, GitChanges};
use crate::output::data::final_message::MessageTruncation;
use crate::output::data::findings::{self, Finding};
use crate::output::data::group::{GroupData, MemberData};
use crate::output::data::output::AgentOutput;
use crate::output::data::progress::Progress;
use crate::output::data::remote::{DiffData, RemoteData};
use crate::output::data::restore_point::TaskRestorePoints;
use crate::output::data::structured_output::{MAX_VIOLATIONS, StructuredOutput, Violation};
use crate::output::data::usage::dollars;
use crate::output::data::verification::VerificationData;
use crate::output::data::worktree::WorktreeData;
use crate::output::data::{
    denied_write, error_context, files, final_message, output, restore_point, structured_output, verification,
};
use crate::output::documents::document::known_facts;
use crate::output::values::UtcTime;

/// Marks a truncated text; its length counts.
const MARK: &str = " [truncated]";

/// The names of the states that callers see.
pub fn state_names(include: fn(State) -> bool) -> Vec<&'static str> {
    let mut names: Vec<&str> =
        State::ALL.into_iter().filter(|state| include(*state)).map(State::public_name).collect();
    names.dedup();
    names
}

/// When a task ran, as responses show it: `duration_ms` is always the difference of the two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTimes {
    pub started_ms: i64,
    pub ended_ms: i64,
}

impl RunTimes {
    /// A task that never started took no time, however long it was queued. If the wall clock was set during the run, the
    /// start is counted back from the end by the monotonic clock.
    pub fn of(task: &Task) -> RunTimes {
        let ended_ms = task.ended.as_ref().map_or(task.updated_at_ms, |ended| ended.at_ms);
        let ran_ms = task.ended.as_ref().and_then(|ended| i64::try_from(ended.ran_ms?).ok());
        let by_wall_ms = task.started_at_ms.map(|started| ended_ms - started);
        let duration_ms = match (by_wall_ms, ran_ms) {
            (None, _) => 0,
            (Some(by_wall_ms), Some(ran_ms)) if !is_plausible(by_wall_ms, ran_ms) => ran_ms,
            (Some(by_wall_ms), _) => by_wall_ms.max(0),
        };
        RunTimes { started_ms: ended_ms - duration_ms, ended_ms }
    }

    pub fn duration_ms(self) -> u64 {
        (self.ended_ms - self.started_ms).unsigned_abs()
    }

    pub fn duration_seconds(self) -> u64 {
        self.duration_ms() / 1000
    }
}

/// Whether the wall clock was not set: the whole run lasts as long as the agent ran, plus the time to prepare it and to
/// examine its changes.
fn is_plausible(by_wall_ms: i64, agent_ran_ms: i64) -> bool {
    const MAX_OVERHEAD_MS: i64 = 60 * 60 * 1000;
    (agent_ran_ms..agent_ran_ms.saturating_add(MAX_OVERHEAD_MS)).contains(&by_wall_ms)
}

pub fn exit_code(task: &Task) -> Option<i32> {
    match task.ended.as_ref()?.exit? {
        ExitStatus::Code(code) => Some(code),
        // The shell convention.
        ExitStatus::Signal(signal) => Some(128 + signal),
    }
}

/// The agent's output to include in a result.
#[derive(Debug)]
pub struct OutputExcerpt {
    /// At least the beginning and the end of each stream, as much as the budget.
    pub stdout: String,
    pub stderr: String,
    /// The sizes of the stored streams.
    pub stored_sizes: (u64, u64),
    pub budget: usize,
    /// The caller requested it, and thereby the complete final message.
    pub is_requested: bool,
}

/// The result of an ended task, for `wait`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskResult {
    pub task_id: String,
    #[schemars(extend("enum" = state_names(State::is_terminal)))]
    pub state: &'static str,
    /// The result in one sentence.
    pub summary: String,
    /// The absolute directory in which the agent works; paths of files are relative to it.
    #[schemars(extend("x-optional" = true))]
    pub working_dir: String,
    /// What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere.
    #[schemars(extend("enum" = SandboxKind::NAMES))]
    pub sandbox: Option<&'static str>,
    /// Set for a task that a provider runs.
    pub remote: Option<RemoteData>,
    pub diff: Option<DiffData>,
    /// The task that it follows in a chain.
    pub follows: Option<FollowsData>,
    /// The tasks that directly follow it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub followers: Vec<FollowerData>,
    /// Set if it is one of several attempts.
    #[serde(flatten)]
    #[serialize_always]
    pub group: Option<MemberData>,
    #[serde(flatten)]
    pub report: TaskReport,
    pub output: AgentOutput,
}

/// The result of an ended task, for `results`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResultSet {
    #[serde(flatten)]
    pub result: TaskResult,
    pub duration_seconds: u64,
    pub completed_ts: UtcTime,
    #[schemars(extend("x-optional" = true))]
    pub events: EventsPage,
}

/// The data of `results`: a task, or a group of attempts.
#[derive(Debug, JsonSchema)]
pub struct ResultsData {
    #[serde(flatten)]
    pub task: Option<ResultSet>,
    #[serde(flatten)]
    pub group: Option<GroupData>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResultFacts {
    pub count: u64,
}

/// What a task did.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct TaskReport {
    #[schemars(extend("x-optional" = true))]
    #[serialize_always]
    pub final_message: Option<String>,
    /// Set if a part of the final message is missing.
    pub final_message_truncated: Option<MessageTruncation>,
    /// The final message as JSON, for a task with an output schema.
    pub structured_output: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = MAX_VIOLATIONS))]
    pub structured_output_violations: Vec<Violation>,
    /// What a review found, if its final message can be read.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub findings: Option<Vec<Finding>>,
    pub metadata: Metadata,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub artifacts: Option<Vec<ArtifactData>>,
    pub artifacts_not_listed_count: Option<u64>,
    pub git: Option<GitChanges>,
    /// Shows what the task changed.
    pub diff_command: Option<String>,
    #[serde(flatten)]
    #[serialize_always]
    pub worktree: Option<WorktreeData>,
    pub restore_point: Option<TaskRestorePoints>,
    pub verification: Option<VerificationData>,
    /// For a read-only task that tried to write.
    pub denied_write: Option<DeniedWrite>,
    /// What became of the messages to the agent, if there were any.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub messages: Option<MessagesData>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Metadata {
    /// In seconds.
    pub duration: u64,
    pub file_operations: FileOperations,
    #[schemars(extend("x-optional" = true))]
    pub thread_info: ThreadInfo,
    #[schemars(extend("x-optional" = true))]
    #[serialize_always]
    pub error_context: Option<ErrorContext>,
    pub test_results: Option<TestResults>,
    pub containment: Option<String>,
    #[schemars(extend("enum" = state_names(State::is_terminal)))]
    pub task_status: Option<&'static str>,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ThreadInfo {
    pub thread_id: Option<String>,
    #[schemars(range(min = 0, max = 1))]
    pub cache_hit_rate: Option<f64>,
    #[schemars(with = "Option<BTreeMap<String, i64>>")]
    pub token_usage: Option<Usage>,
    /// In US dollars, if the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Flags are included only if they are set.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TestResults {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    pub failed_tests: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_tests_not_listed_count: Option<u64>,
    /// Some tests ran without being counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_incomplete: bool,
    /// A test command failed although none of its tests did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ended_badly: bool,
}

impl TaskResult {
    pub fn of(
        task: &Task,
        files: &TaskFiles,
        shown: Option<OutputExcerpt>,
        max_mode: Mode,
        syntax: CallSyntax<'_>,
    ) -> TaskResult {
        let record = files.record.as_ref();
        TaskResult {
            task_id: task.id.to_string(),
            state: task.state.public_name(),
            summary: summary(task),
            working_dir: task.working_dir.clone(),
            sandbox: task.sandbox.map(SandboxKind::name),
            remote: RemoteData::of(task, files.remote.as_ref()),
            diff: DiffData::of(
                &files.diff,
                shown.as_ref().filter(|shown| shown.is_requested).map(|shown| shown.budget),
            ),
            follows: task.follows.as_ref().map(FollowsData::from),
            followers: chain::followers(&files.followers),
            group: task.group.as_ref().map(Into::into),
            report: TaskReport::of(task, files, shown.as_ref(), max_mode, syntax),
            output: match shown {
                Some(OutputExcerpt { stdout, stderr, stored_sizes, budget, .. }) => {
                    let received =
                        record.map_or((0, 0), |record| (record.stdout.received, record.stderr.received));
                    let sizes = (received.0.max(stored_sizes.0), received.1.max(stored_sizes.1));
                    output::included(&stdout, &stderr, budget, sizes)
                }
                None => output::excluded("Output excluded by default (use include_output=true)"),
            },
        }
    }
}

impl TaskReport {
    /// The output that the result includes decides how much of the message and of the verification is shown.
    pub fn of(
        task: &Task,
        files: &TaskFiles,
        shown: Option<&OutputExcerpt>,
        max_mode: Mode,
        syntax: CallSyntax<'_>,
    ) -> TaskReport {
        let record = files.record.as_ref();
        let structured = structured_output::from_task(task, record);
        let evidence = record.and_then(|record| record.evidence.as_ref());
        let not_listed = evidence.map(|evidence| evidence.artifacts_not_listed);
        let whole_message = shown.is_some_and(|shown| shown.is_requested);
        let (final_message, final_message_truncated) =
            final_message::of_task(&task.id, record, whole_message, syntax);
        TaskReport {
            final_message,
            final_message_truncated,
            structured_output_violations: structured
                .as_ref()
                .map(StructuredOutput::violations)
                .unwrap_or_default(),
            structured_output: structured.map(|structured| structured.value),
            findings: findings::of_task(task, record),
            metadata: Metadata::of(task, record, syntax, shown.is_some()),
            labels: task.labels.clone(),
            artifacts: evidence.map(files::artifacts),
            artifacts_not_listed_count: not_listed.filter(|count| *count > 0),
            git: evidence.and_then(|evidence| evidence.history.as_ref()).map(files::git_changes),
            worktree: files.worktree.as_ref().map(Into::into),
            diff_command: restore_point::diff_command(task, files.restore_point.as_ref()),
            restore_point: restore_point::of_task(task, files.restore_point.as_ref()),
            verification: verification::of_task(task, record, shown.map(|shown| shown.budget)),
            denied_write: denied_write::of_task(task, record, max_mode, syntax),
            messages: MessagesData::of(&files.messages),
        }
    }
}

impl Metadata {
    fn of(task: &Task, record: Option<&Record>, syntax: CallSyntax<'_>, includes_output: bool) -> Metadata {
        let report = record.map(|record| &record.report);
        let usage = report.and_then(|report| report.usage.as_ref());
        Metadata {
            duration: RunTimes::of(task).duration_seconds(),
            file_operations: files::operations(task, record),
            thread_info: ThreadInfo {
                // Only the report has the thread of a task that a provider ran.
                thread_id: task.thread_id.clone().or_else(|| report?.thread_id.clone()),
                cache_hit_rate: usage.and_then(|usage| usage.cache_hit_rate),
                token_usage: usage.map(|usage| usage.own),
                cost_usd: report.and_then(|report| report.cost).map(|cost| dollars(cost.own)),
            },
            error_context: error_context::of_task(task, record, syntax, includes_output),
            test_results: report.and_then(|report| TestResults::of(report.tests.as_ref()?)),
            containment: task.containment.clone(),
            task_status: task.state.is_terminal().then(|| task.state.name()),
        }
    }
}

/// The result in one sentence.
pub fn summary(task: &Task) -> String {
    match &task.ended {
        Some(EndRecord { summary: Some(summary), .. }) => summary.clone(),
        Some(EndRecord { end: TaskEnd::Cancelled { reason: Some(reason) }, .. }) => {
            format!("Cancelled ({reason}) before it began")
        }
        _ => format!("Task {}", task.state.public_name()),
    }
}

/// The last events as the agent wrote them. A line that is not an event, or was truncated, stays a text.
pub fn last_events(record: &Record) -> Vec<Value> {
    let event = |line: &RecentLine| serde_json::from_str(&without_repeated_keys(&line.text)).ok();
    let lines = record.report.recent_lines.iter();
    lines.map(|line| event(line).filter(Value::is_object).unwrap_or_else(|| json!(line))).collect()
}

pub fn final_text(record: Option<&Record>) -> Option<&str> {
    Some(&record?.report.final_message.as_ref()?.text)
}

/// Truncates a text to `max_chars`, including the mark.
pub fn truncate_chars(text: &str, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let head: String = text.chars().take(max_chars.saturating_sub(MARK.len())).collect();
    format!("{head}{MARK}")
}

impl TestResults {
    /// `tests: 47 passed, 1 failed, 2 skipped`, and the names of the failed tests.
    pub fn facts(&self) -> Vec<(String, String)> {
        let TestResults { passed, failed, skipped, .. } = self;
        let mut counts = format!("{passed} passed, {failed} failed, {skipped} skipped");
        if self.is_incomplete {
            counts.push_str("; the count is incomplete");
        }
        if self.has_ended_badly {
            counts.push_str("; a test command failed although none of its tests did");
        }
        known_facts([("tests", Some(counts)), ("failed tests", files::joined(&self.failed_tests))])
    }

    /// `None` if no test was counted: uncounted tests are not zero tests.
    pub fn of(tests: &TestReport) -> Option<TestResults> {
        ((tests.passed, tests.failed, tests.skipped) != (0, 0, 0)).then(|| TestResults {
            passed: tests.passed,
            failed: tests.failed,
            skipped: tests.skipped,
            failed_tests: tests.failed_tests.clone(),
            failed_tests_not_listed_count: Some(tests.failed_tests_not_listed).filter(|count| *count > 0),
            is_incomplete: tests.incomplete,
            has_ended_badly: tests.ended_badly,
        })
    }
}

/// A task that has not ended when the wait is over.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnfinishedTask {
    pub task_id: String,
    #[schemars(extend("enum" = state_names(|_| true)))]
    pub state: &'static str,
    #[schemars(extend("x-optional" = true))]
    #[serialize_always]
    pub progress: Option<Progress>,
    /// Since the start of the task.
    pub elapsed_seconds: Option<u64>,
    #[schemars(extend("x-optional" = true))]
    pub working_dir: String,
    /// What enforces the mode of the task: the agent's own sandbox, our enclosure, or nothing. Absent if it runs elsewhere.
    #[schemars(extend("enum" = SandboxKind::NAMES))]
    pub sandbox: Option<&'static str>,
    pub thread_id: Option<String>,
    /// Absent while the task is queued.
    pub started_ts: Option<UtcTime>,
    /// Set for a task that a provider runs.
    pub remote: Option<RemoteData>,
    #[serde(flatten)]
    pub conversation: Conversation,
    /// Set if it is one of several attempts.
    #[serde(flatten)]
    #[serialize_always]
    pub group: Option<MemberData>,
}

/// An ended task in a list: its result, with the facts that the response to a call for one task has in `meta`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EndedItem {
    #[serde(flatten)]
    pub result: TaskResult,
    #[serde(flatten)]
    pub times: WaitFacts,
    /// Null if the agent was not started.
    pub agent_exit_code: Option<i32>,
}

impl EndedItem {
    pub fn of(task: &Task, result: TaskResult) -> EndedItem {
        EndedItem { result, times: RunTimes::of(task).into(), agent_exit_code: exit_code(task) }
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WaitedTask {
    Ended(Box<EndedItem>),
    Unfinished(Box<UnfinishedTask>),
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WaitedTasks {
    pub tasks: Vec<WaitedTask>,
}

/// The task or tasks that were waited for, and the items of the call if some of them failed.
#[derive(Debug, Clone, Serialize)]
pub struct WaitBatch {
    #[serde(flatten)]
    pub data: WaitedTasks,
    #[serde(flatten)]
    pub batch: Option<BatchResult>,
}

/// The data of `wait`: an ended task, one that has not ended, or several of both.
#[derive(Debug, JsonSchema)]
pub struct WaitData {
    #[serde(flatten)]
    pub ended: Option<TaskResult>,
    #[serde(flatten)]
    pub unfinished: Option<UnfinishedTask>,
    #[serde(flatten)]
    pub several: Option<WaitedTasks>,
    #[serde(flatten)]
    pub batch: Option<BatchResult>,
}

/// The times of an ended task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WaitFacts {
    pub started_ts: UtcTime,
    pub completed_ts: UtcTime,
    pub duration_ms: u64,
}

impl From<RunTimes> for WaitFacts {
    fn from(times: RunTimes) -> WaitFacts {
        WaitFacts {
            started_ts: UtcTime::from_ms(times.started_ms),
            completed_ts: UtcTime::from_ms(times.ended_ms),
            duration_ms: times.duration_ms(),
        }
    }
}

/// How long a task has been running; `None` before its start.
pub fn elapsed_seconds(task: &Task, now_ms: i64) -> Option<u64> {
    task.started_at_ms.map(|started_ms| seconds_since(started_ms, now_ms))
}

/// 0 if the clock was set back.
pub fn seconds_since(started_ms: i64, now_ms: i64) -> u64 {
    (now_ms - started_ms).max(0).unsigned_abs() / 1000
}

impl UnfinishedTask {
    pub fn of(task: &Task, files: &TaskFiles, now_ms: i64) -> UnfinishedTask {
        UnfinishedTask {
            task_id: task.id.to_string(),
            state: task.state.public_name(),
            progress: files.snapshot.as_ref().and_then(Progress::of_snapshot),
            elapsed_seconds: elapsed_seconds(task, now_ms),
            working_dir: task.working_dir.clone(),
            sandbox: task.sandbox.map(SandboxKind::name),
            thread_id: thread(task)
                .or_else(|| files.snapshot.as_ref()?.thread_id.as_deref())
                .map(str::to_owned),
            started_ts: task.started_at_ms.map(UtcTime::from_ms),
            remote: RemoteData::of(task, None),
            conversation: Conversation::of(&files.open_questions, &files.messages),
            group: task.group.as_ref().map(Into::into),
        }
    }
}

/// The thread of a task. A resuming task has it before its agent reports it.
pub fn thread(task: &Task) -> Option<&str> {
    task.thread_id.as_deref().or(task.resumed_thread.as_deref())
}

/// Failed and timed-out tasks always include the output, because it contains the reason.
pub fn includes_output(state: State, is_requested: bool) -> bool {
    is_requested || matches!(state, State::Failed | State::Timeout)
}
