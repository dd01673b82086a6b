//! The records of a task.
//!
//! Facts about the end of a task are in [`EndRecord`], which exists only once it has ended. Times are
//! milliseconds since 1970 by the wall clock of the writer and only for display; order comes from `seq`.

use std::collections::BTreeMap;

use delegator_domain::agents::DEFAULT_AGENT;
use delegator_domain::notification::{NotifyPlan, Subject};
use delegator_domain::task::{
    ExitStatus, FailureKind, Follows, GroupMember, Member, Mode, Provider, SandboxKind, State, TaskEnd,
    TaskId, Verification, WorkTree,
};
use rusqlite::Row;
use serde_json::Value;

use crate::columns::{Column, record, unreadable};
use crate::compare_and_set::Nonce;

/// A task to submit. The prompt for the agent is not here but in `launch`, until the agent has read it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    pub id: TaskId,
    pub working_dir: String,
    /// The work trees it may write in; two writing tasks must not share one. The tree of the working
    /// directory is first.
    pub work_trees: Vec<WorkTree>,
    pub allow_parallel_writes: bool,
    pub mode: Mode,
    /// What enforces the mode; `None` if the task runs elsewhere.
    pub sandbox: Option<SandboxKind>,
    pub agent: String,
    /// How many other agents may run it if that one cannot.
    pub fallbacks: usize,
    pub model: Option<String>,
    /// The first line of the task's text, redacted.
    pub title: String,
    /// The task's text, redacted: to display it and to start it again.
    pub text: String,
    pub labels: BTreeMap<String, String>,
    /// The validated input without the task's text.
    pub input: Value,
    pub resumed_thread: Option<String>,
    pub idempotency: Option<Idempotency>,
    /// Where it runs, if not on this machine.
    pub environment: Option<RemoteEnvironment>,
    /// `None`: it works in the directory of the user.
    pub worktree: Option<WorktreeUse>,
    /// The task of the same submission that it follows.
    pub follows: Option<Follows>,
    /// Set if it is one of several attempts.
    pub group: Option<GroupMember>,
    pub notify: Option<TaskNotify>,
}

impl NewTask {
    /// A read-only Codex task with default settings.
    pub fn reading(id: TaskId, working_dir: impl Into<String>, text: &str) -> NewTask {
        NewTask {
            id,
            working_dir: working_dir.into(),
            work_trees: Vec::new(),
            allow_parallel_writes: false,
            mode: Mode::ReadOnly,
            sandbox: Some(SandboxKind::Agent),
            agent: DEFAULT_AGENT.to_owned(),
            fallbacks: 0,
            model: None,
            title: text.to_owned(),
            text: text.to_owned(),
            labels: BTreeMap::new(),
            input: serde_json::json!({"mode": "read-only"}),
            resumed_thread: None,
            idempotency: None,
            environment: None,
            worktree: None,
            follows: None,
            group: None,
            notify: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorktree {
    pub path: String,
    pub facts: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeUse {
    New(NewWorktree),
    /// In that of another task.
    Of(TaskId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskNotify {
    pub plan: NotifyPlan,
    /// How they are sent: the content of `notify.json`, which this crate does not read.
    pub settings: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteEnvironment {
    pub provider: Provider,
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTask {
    pub environment: RemoteEnvironment,
    /// `None` until the provider has accepted the task; of a provider that does not choose the ids, from
    /// before the submission on.
    pub accepted: Option<RemoteRef>,
    /// When the provider was last queried about the task.
    pub checked_at_ms: Option<i64>,
    /// How often the provider has reported about the task.
    pub checks: u32,
}

/// How a provider names a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRef {
    pub id: String,
    pub url: Option<String>,
}

/// The same key with the same input is the same task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    pub key: String,
    pub request_hash: String,
}

impl Idempotency {
    pub fn new(key: impl Into<String>, request_hash: impl Into<String>) -> Self {
        Idempotency { key: key.into(), request_hash: request_hash.into() }
    }
}

pub(crate) const SUMMARY_COLUMNS: &str = "seq, id, state, created_at_ms, started_at_ms, working_dir, containment, agent, title, labels, environment, sandbox, follows, follows_on, \
     group_id, attempt, submission";

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TaskSummary {
        /// The order of submission.
        pub seq: i64,
        pub id: TaskId,
        pub state: State,
        pub created_at_ms: i64,
        pub started_at_ms: Option<i64>,
        pub working_dir: String,
        pub containment: Option<String>,
        pub agent: String,
        pub title: String,
        pub labels: BTreeMap<String, String>,
        /// The id of its environment, if a provider runs it.
        pub environment: Option<String>,
        /// What enforces the mode; `None` if the task runs elsewhere.
        pub sandbox: Option<SandboxKind>,
        /// Set if it is one of several attempts.
        pub group: Option<GroupMember> = group_from,
        /// The task that it follows in a chain.
        pub follows: Option<Follows> = follows_from,
        /// The group or chain with which it was submitted.
        pub submission: Option<Subject> = submission_from,
    }
}

impl From<&Task> for TaskSummary {
    fn from(task: &Task) -> TaskSummary {
        TaskSummary {
            seq: task.seq,
            id: task.id.clone(),
            state: task.state,
            created_at_ms: task.created_at_ms,
            started_at_ms: task.started_at_ms,
            working_dir: task.working_dir.clone(),
            containment: task.containment.clone(),
            agent: task.agent.clone(),
            title: task.title.clone(),
            labels: task.labels.clone(),
            environment: task.remote.as_ref().map(|remote| remote.environment.id.clone()),
            sandbox: task.sandbox,
            group: task.group.clone(),
            follows: task.follows.clone(),
            submission: task.submission.clone(),
        }
    }
}

impl From<&Task> for Member {
    fn from(task: &Task) -> Member {
        Member {
            id: task.id.clone(),
            follows: task.follows.as_ref().map(|follows| follows.task.clone()),
            end: task.ended.as_ref().map(|ended| ended.end.kind(ended.verification)),
            is_skipped: task.is_skipped(),
        }
    }
}

record! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct Task {
        /// The order of submission.
        pub seq: i64,
        pub id: TaskId,
        pub state: State,
        pub created_at_ms: i64,
        pub claimed_at_ms: Option<i64>,
        pub started_at_ms: Option<i64>,
        pub updated_at_ms: i64,
        pub working_dir: String,
        pub work_trees: Vec<WorkTree> = work_trees_from,
        pub allow_parallel_writes: bool,
        pub mode: Mode,
        /// What enforces the mode; `None` if the task ran elsewhere.
        pub sandbox: Option<SandboxKind>,
        pub agent: String,
        pub model: Option<String>,
        pub title: String,
        pub labels: BTreeMap<String, String>,
        pub input: Value,
        pub resumed_thread: Option<String>,
        /// The thread that the agent announced.
        pub thread_id: Option<String>,
        pub idempotency: Option<Idempotency> = idempotency_from,
        /// Number of attempts to start a supervisor.
        pub starts: u32,
        /// The current attempt, or the last one.
        pub nonce: Option<Nonce>,
        pub supervisor: Option<Identity> = identity_from,
        pub containment: Option<String>,
        pub cancel: Option<CancelRequest> = cancel_from,
        pub ended: Option<EndRecord> = ended_from,
        /// When the session was imported; `None` for a task that ran here.
        pub imported_at_ms: Option<i64>,
        /// `None` for a task that runs on this machine.
        pub remote: Option<RemoteTask> = remote_from,
        /// The task for which its worktree was created; `None` if it works in the directory of the user.
        pub worktree: Option<TaskId>,
        /// The task that it follows in a chain. That task may have been pruned.
        pub follows: Option<Follows> = follows_from,
        /// Whether the task that it follows has not ended yet.
        pub awaits_predecessor: bool = awaits_from,
        /// Set if it is one of several attempts.
        pub group: Option<GroupMember> = group_from,
        /// The group or chain with which it was submitted.
        pub submission: Option<Subject> = submission_from,
    }
}

impl Task {
    /// See [`Mode::may_write`].
    pub fn may_write(&self) -> bool {
        self.mode.may_write(is_enforced(self.sandbox))
    }

    /// Whether it never started because its predecessor ended differently.
    pub fn is_skipped(&self) -> bool {
        self.state == State::Cancelled && self.cancel.is_none() && self.follows.is_some()
    }

    /// The time from which retention counts, once the task has ended.
    pub fn retained_since_ms(&self) -> Option<i64> {
        self.ended.as_ref().map(|ended| self.imported_at_ms.unwrap_or(ended.at_ms))
    }
}

/// Whether something enforces the mode. A provider does so for the tasks it runs.
pub(crate) fn is_enforced(sandbox: Option<SandboxKind>) -> bool {
    sandbox.is_none_or(SandboxKind::enforces_mode)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelRequest {
    pub at_ms: i64,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EndRecord {
    pub at_ms: i64,
    /// Increases with every end, regardless of the clock.
    pub order: i64,
    pub end: TaskEnd,
    pub exit: Option<ExitStatus>,
    /// How long the agent ran, by a monotonic clock.
    pub ran_ms: Option<u64>,
    pub summary: Option<String>,
    /// Processes that could not be killed.
    pub survivors: Vec<i32>,
    /// When the result was first read.
    pub read_at_ms: Option<i64>,
    /// `None` if the task has no verify command.
    pub verification: Option<Verification>,
    pub lines: Option<ChangedLines>,
    /// Millionths of a US dollar, if the agent reported it.
    pub cost_microdollars: Option<u64>,
    /// The last attempt to apply its changes failed, because the work tree has others in the same places.
    pub has_apply_conflict: bool,
}

/// How many lines changed during a task, as far as they were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedLines {
    pub added: u64,
    pub deleted: u64,
}

record! {
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Tokens {
        pub input: i64,
        /// Included in `input`.
        pub cached_input: i64,
        pub output: i64,
        /// Included in `output`.
        pub reasoning_output: i64,
    }
}

/// What a supervisor, or a rescuer in its place, reports at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    pub end: TaskEnd,
    pub exit: Option<ExitStatus>,
    pub ran_ms: Option<u64>,
    pub summary: Option<String>,
    pub survivors: Vec<i32>,
    pub verification: Option<Verification>,
    pub lines: Option<ChangedLines>,
    pub tokens: Option<Tokens>,
    pub turns: Option<u64>,
    /// Millionths of a US dollar, if the agent reported it.
    pub cost_microdollars: Option<u64>,
}

impl Finish {
    pub fn bare(end: TaskEnd) -> Finish {
        Finish {
            end,
            exit: None,
            ran_ms: None,
            summary: None,
            survivors: Vec::new(),
            verification: None,
            lines: None,
            tokens: None,
            turns: None,
            cost_microdollars: None,
        }
    }
}

/// Identifies a supervisor process. A pid alone is not enough: it is reused, and it means another process in
/// another namespace and after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    pub boot_id: String,
    pub pid: u32,
    /// Clock ticks since boot, from `/proc/<pid>/stat`.
    pub start_time: u64,
    /// The inode of the pid namespace.
    pub pid_ns: u64,
}

pub(crate) fn id_from(row: &Row<'_>) -> rusqlite::Result<TaskId> {
    Column::read(row, "id")
}

pub(crate) fn identity_from(row: &Row<'_>) -> rusqlite::Result<Option<Identity>> {
    let Some(boot_id) = row.get("boot_id")? else { return Ok(None) };
    let (pid, start_time, pid_ns) = (row.get("pid")?, row.get("start_time")?, row.get("pid_ns")?);
    Ok(Some(Identity { boot_id, pid, start_time, pid_ns }))
}

pub(crate) fn cancel_from(row: &Row<'_>) -> rusqlite::Result<Option<CancelRequest>> {
    let at_ms: Option<i64> = row.get("cancel_requested_at_ms")?;
    let reason = row.get("cancel_reason")?;
    Ok(at_ms.map(|at_ms| CancelRequest { at_ms, reason }))
}

pub(crate) fn idempotency_from(row: &Row<'_>) -> rusqlite::Result<Option<Idempotency>> {
    let key: Option<String> = row.get("idempotency_key")?;
    let request_hash: Option<String> = row.get("request_hash")?;
    Ok(key.zip(request_hash).map(|(key, hash)| Idempotency::new(key, hash)))
}

pub(crate) fn awaits_from(row: &Row<'_>) -> rusqlite::Result<bool> {
    Ok(row.get::<_, Option<i64>>("awaits")?.is_some())
}

pub(crate) fn follows_from(row: &Row<'_>) -> rusqlite::Result<Option<Follows>> {
    let Some(task) = Column::read(row, "follows")? else { return Ok(None) };
    Ok(Some(Follows { task, on: Column::read(row, "follows_on")? }))
}

pub(crate) fn group_from(row: &Row<'_>) -> rusqlite::Result<Option<GroupMember>> {
    let Some(group) = Column::read(row, "group_id")? else { return Ok(None) };
    Ok(Some(GroupMember { group, attempt: row.get("attempt")? }))
}

/// The id of a group is none of a task, so the kind is not stored.
pub(crate) fn submission_from(row: &Row<'_>) -> rusqlite::Result<Option<Subject>> {
    let Some(id) = row.get::<_, Option<String>>("submission")? else { return Ok(None) };
    let subject = id.parse().map(Subject::Group).or_else(|_| id.parse().map(Subject::Chain));
    subject.map(Some).map_err(|_| unreadable("submission", id))
}

pub(crate) fn remote_from(row: &Row<'_>) -> rusqlite::Result<Option<RemoteTask>> {
    let Some(provider) = Column::read(row, "provider")? else { return Ok(None) };
    let url = row.get("remote_url")?;
    let accepted = row.get::<_, Option<String>>("remote_id")?.map(|id| RemoteRef { id, url });
    Ok(Some(RemoteTask {
        environment: RemoteEnvironment { provider, id: row.get("environment")? },
        accepted,
        checked_at_ms: row.get("checked_at_ms")?,
        checks: row.get("checks")?,
    }))
}

pub(crate) fn work_trees_from(row: &Row<'_>) -> rusqlite::Result<Vec<WorkTree>> {
    let first: Option<String> = row.get("work_tree")?;
    let more: Vec<String> = Option::read(row, "more_work_trees")?.unwrap_or_default();
    Ok(first.iter().chain(&more).map(|text| WorkTree::from_text(text)).collect())
}

pub(crate) fn ended_from(row: &Row<'_>) -> rusqlite::Result<Option<EndRecord>> {
    let state = State::read(row, "state")?;
    if !state.is_terminal() {
        return Ok(None);
    }
    let code: Option<i32> = row.get("exit_code")?;
    let signal: Option<i32> = row.get("exit_signal")?;
    let lines = row.get::<_, Option<u64>>("lines_added")?.zip(row.get("lines_deleted")?);
    Ok(Some(EndRecord {
        at_ms: row.get("ended_at_ms")?,
        order: row.get("ended_order")?,
        end: end_from(row, state)?,
        exit: code.map(ExitStatus::Code).or(signal.map(ExitStatus::Signal)),
        ran_ms: row.get("ran_ms")?,
        summary: row.get("summary")?,
        survivors: Option::read(row, "kill_incomplete")?.unwrap_or_default(),
        read_at_ms: row.get("read_at_ms")?,
        verification: Column::read(row, "verification")?,
        lines: lines.map(|(added, deleted)| ChangedLines { added, deleted }),
        cost_microdollars: row.get("cost_microdollars")?,
        has_apply_conflict: row.get("has_apply_conflict")?,
    }))
}

fn end_from(row: &Row<'_>, state: State) -> rusqlite::Result<TaskEnd> {
    Ok(match state {
        State::Failed => TaskEnd::Failed {
            // A kind that only a newer program knows is still a failure with its message.
            kind: FailureKind::from_name(&row.get::<_, String>("failure_kind")?)
                .unwrap_or(FailureKind::Internal),
            message: row.get("failure_message")?,
            // The column has the type TEXT. Older programs stored the agent's words in it.
            retry_at_ms: row.get::<_, Option<String>>("retry_at")?.and_then(|text| text.parse().ok()),
        },
        State::Cancelled => TaskEnd::Cancelled { reason: row.get("end_reason")? },
        State::Timeout => TaskEnd::Timeout(Column::read(row, "limit_kind")?),
        _ => TaskEnd::Completed,
    })
}
