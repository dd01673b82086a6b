//! A task in the JSON of the tool envelope, for wait, results and status.

use std::collections::BTreeMap;

use delegator_domain::task::{Mode, SandboxKind};
use delegator_engine::TaskFiles;
use delegator_transcript::Usage;

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
use crate::output::data::stored_task::{RunTimes, elapsed_seconds, exit_code, state_names, summary, thread};
use crate::output::data::structured_output::{MAX_VIOLATIONS, StructuredOutput, Violation};
use crate::output::data::usage::dollars;
use crate::output::data::verification::{TestResults, VerificationData};
use crate::output::data::work_trees::{TaskRestorePoints, WorktreeData};
use crate::output::data::{
    denied_write, error_context, files, final_message, output, structured_output, verification, work_trees,
};
use crate::output::prelude::*;

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
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
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
pub struct ResultMeta {
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
    pub thread_info: TaskThread,
    #[schemars(extend("x-optional" = true))]
    #[serialize_always]
    pub error_context: Option<ErrorContext>,
    pub test_results: Option<TestResults>,
    pub containment: Option<String>,
    #[schemars(extend("enum" = state_names(State::is_terminal)))]
    pub task_status: Option<&'static str>,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct TaskThread {
    pub thread_id: Option<String>,
    #[schemars(range(min = 0, max = 1))]
    pub cache_hit_rate: Option<f64>,
    #[schemars(with = "Option<BTreeMap<String, i64>>")]
    pub token_usage: Option<Usage>,
    /// In US dollars, if the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
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
            diff_command: work_trees::diff_command(task, files.restore_point.as_ref()),
            restore_point: work_trees::of_task(task, files.restore_point.as_ref()),
            verification: verification::of_task(task, record, shown.map(|shown| shown.budget)),
            denied_write: denied_write::of_task(task, record, max_mode, syntax),
            messages: MessagesData::of(&files.messages),
        }
    }

    pub fn shrink(&mut self, plan: TruncationPlan) -> Sizes {
        let missing = &mut self.final_message_truncated;
        final_message::shrink(&mut self.final_message, missing, plan.priority_bytes);
        if let Some(verification) = &mut self.verification {
            verification.shrink(plan.output_bytes);
        }
        let context = self.metadata.error_context.as_mut();
        let partial = context.and_then(|context| context.partial_results.as_mut());
        partial.map(|partial| partial.shrink(plan)).unwrap_or_default()
    }
}

impl Metadata {
    fn of(task: &Task, record: Option<&Record>, syntax: CallSyntax<'_>, includes_output: bool) -> Metadata {
        let report = record.map(|record| &record.report);
        let usage = report.and_then(|report| report.usage.as_ref());
        Metadata {
            duration: RunTimes::of(task).duration_seconds(),
            file_operations: files::operations(task, record),
            thread_info: TaskThread {
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
    pub times: WaitMeta,
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

/// The task or tasks that were waited for, and the items of the call if some of them failed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WaitedTasks {
    pub tasks: Vec<WaitedTask>,
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
}

/// The times of an ended task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WaitMeta {
    pub started_ts: UtcTime,
    pub completed_ts: UtcTime,
    pub duration_ms: u64,
}

impl From<RunTimes> for WaitMeta {
    fn from(times: RunTimes) -> WaitMeta {
        WaitMeta {
            started_ts: UtcTime::from_ms(times.started_ms),
            completed_ts: UtcTime::from_ms(times.ended_ms),
            duration_ms: times.duration_ms(),
        }
    }
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
