//! The data of `status`: running, queued and recently ended tasks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use delegator_domain::attention::Section;
use delegator_domain::task::{SandboxKind, Verification};
use delegator_engine::{CloudCounts, ended_facts};
use delegator_registry::{BlockedBy, TaskSummary, UnreadResults};

use crate::output::data::agent_pauses::PauseData;
use crate::output::data::chain::FollowsData;
use crate::output::data::conversation::{Conversation, MessagesData};
use crate::output::data::group::{GroupData, MemberData};
use crate::output::data::notification::NotificationData;
use crate::output::data::progress::Progress;
use crate::output::data::stored_task::{RunTimes, end_name, seconds_since, state_names};
use crate::output::data::task_line::TaskSections;
use crate::output::data::usage::Usage;
use crate::output::outcome::ListCursors;
use crate::output::prelude::*;
use crate::output::values::truncate_chars;

/// Characters of a label value in lists of tasks.
const LABEL_CHARS: usize = 200;

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct StatusSnapshot {
    pub summary: StatusCounts,
    pub tasks: Vec<RunningTask>,
    pub queue: Vec<QueuedTask>,
    pub recently_completed: Vec<EndedTask>,
    /// The groups of the listed tasks, each with all of its attempts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub groups: Vec<GroupData>,
    /// The directory in which the task works, in the status of one isolated task.
    pub worktree: Option<String>,
    /// The notifications about the task, in the status of one task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<NotificationData>,
    /// The tasks of the three lists, in this order and in one shape. Only on the command line.
    pub all_tasks: Option<Vec<ListedTask>>,
    /// Set by [`StatusSnapshot::follow_lists`].
    pub not_listed: Option<NotListed>,
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_queue_paused: bool,
    /// Agents of which no queued task starts for now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent_pauses: Vec<PauseData>,
    pub unread: Option<Unread>,
    /// Cloud tasks, which only `cloud status` lists; in the status of this machine, if there are any.
    pub cloud: Option<CloudTasks>,
    /// The status of cloud tasks, not of this machine.
    #[serde(skip)]
    pub is_cloud: bool,
    /// What a person reads instead of the lists.
    #[serde(skip)]
    pub sections: Option<TaskSections>,
    #[serde(skip)]
    pub cursors: Option<ListCursors>,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct StatusCounts {
    pub running: u64,
    pub queued: u64,
    pub recently_completed: u64,
}

/// Tasks beyond the end of the lists; the cursor leads to them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NotListed {
    pub running_count: u64,
    pub queued_count: u64,
}

impl StatusSnapshot {
    pub fn list_lengths(&self) -> [usize; 3] {
        [self.tasks.len(), self.queue.len(), self.recently_completed.len()]
    }

    /// Updates `all_tasks` and `not_listed` after the lists were built or truncated. `before` are their
    /// former lengths.
    pub fn follow_lists(&mut self, before: [usize; 3]) {
        let shown = self.list_lengths();
        if let Some(all) = &mut self.all_tasks {
            let is_shown = before
                .into_iter()
                .zip(shown)
                .flat_map(|(before, shown)| (0..before).map(move |position| position < shown));
            let is_shown: Vec<bool> = is_shown.collect();
            let mut is_shown = is_shown.into_iter();
            all.retain(|_| is_shown.next().unwrap_or(true));
        }
        let Some(ListCursors { lists: [running, queued, _], .. }) = &self.cursors else { return };
        let (running_count, queued_count) = (running.not_listed(shown[0]), queued.not_listed(shown[1]));
        if running_count + queued_count > 0 {
            self.not_listed = Some(NotListed { running_count, queued_count });
        }
    }
}

/// Ended tasks whose results were not read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Unread {
    #[schemars(range(min = 1))]
    pub count: u64,
    pub task_ids: Vec<String>,
}

impl Unread {
    /// `None` if there are none.
    pub fn of(unread: &UnreadResults) -> Option<Unread> {
        let task_ids = unread.ids.iter().map(ToString::to_string).collect();
        (unread.count > 0).then_some(Unread { count: unread.count, task_ids })
    }
}

/// How many cloud tasks are not listed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CloudTasks {
    /// Running and queued, as last reported.
    pub unfinished_count: u64,
    /// Ended, and their results were not read.
    pub unread_count: u64,
}

impl CloudTasks {
    /// `None` if there are none.
    pub fn of(counts: CloudCounts) -> Option<CloudTasks> {
        let CloudCounts { unfinished, unread } = counts;
        (unfinished + unread > 0).then_some(CloudTasks { unfinished_count: unfinished, unread_count: unread })
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StatusMeta {
    pub snapshot_ts: UtcTime,
    /// Running and queued tasks.
    pub total: u64,
}

/// A task in any state. Fields that its state does not have are null.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ListedTask {
    pub task_id: String,
    #[schemars(extend("enum" = state_names(|_| true)))]
    pub state: &'static str,
    /// Where a person looks for it.
    #[schemars(extend("enum" = Section::NAMES))]
    pub section: &'static str,
    pub title: String,
    pub working_dir: String,
    pub labels: BTreeMap<String, String>,
    /// Environment id; null for a task of this machine.
    pub environment: Option<String>,
    /// What enforces the mode of the task; null if it runs elsewhere.
    #[schemars(extend("enum" = sandbox_names_or_null()))]
    pub sandbox: Option<&'static str>,
    pub created_ts: UtcTime,
    pub started_ts: Option<UtcTime>,
    pub completed_ts: Option<UtcTime>,
    /// How long it has run; null before it starts.
    pub duration_seconds: Option<u64>,
    /// 0: the task is next.
    pub queue_position: Option<usize>,
    pub progress: Option<Progress>,
    /// Set if it is one of several attempts.
    #[serde(flatten)]
    pub group: Option<MemberData>,
}

/// A running task in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunningTask {
    pub task_id: String,
    #[schemars(extend("enum" = [State::Working.public_name()]))]
    pub state: &'static str,
    /// Where a person looks for it.
    #[schemars(extend("enum" = Section::NAMES, "x-optional" = true))]
    pub section: &'static str,
    pub started_ts: UtcTime,
    pub elapsed_seconds: u64,
    /// Null if nothing is known.
    pub progress: Option<Progress>,
    #[schemars(extend("x-optional" = true))]
    pub containment: Option<String>,
    #[serde(flatten)]
    pub description: TaskDescription,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 5))]
    pub last_lines: Option<Vec<String>>,
    #[serde(flatten)]
    pub conversation: Conversation,
}

/// A task in the queue.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QueuedTask {
    pub task_id: String,
    #[schemars(extend("enum" = [State::Queued.public_name()], "x-optional" = true))]
    pub state: &'static str,
    /// Where a person looks for it.
    #[schemars(extend("enum" = Section::NAMES, "x-optional" = true))]
    pub section: &'static str,
    /// 0: the task is next.
    pub position: usize,
    #[serde(flatten)]
    pub description: TaskDescription,
    pub estimated_start_ms: Option<u64>,
    pub waiting_for: Option<WaitingFor>,
    /// Set while its agent is paused.
    pub agent_pause: Option<PauseData>,
    /// Only in the status of a single task.
    pub messages: Option<MessagesData>,
}

/// The task that a queued task waits for, besides a free slot.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WaitingFor {
    pub task_id: String,
    pub reason: Cow<'static, str>,
}

/// An ended task in a list.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EndedTask {
    pub task_id: String,
    #[schemars(extend("enum" = state_names(State::is_terminal)))]
    pub state: &'static str,
    /// Where a person looks for it.
    #[schemars(extend("enum" = Section::NAMES, "x-optional" = true))]
    pub section: &'static str,
    /// The result of its verify command, if it has one.
    #[schemars(extend("enum" = ["verified", "verify_failed", "not_run"]))]
    pub verification: Option<&'static str>,
    pub duration_seconds: u64,
    pub completed_ts: UtcTime,
    #[serde(skip)]
    pub end: &'static str,
    /// Only in the status of a single task.
    pub messages: Option<MessagesData>,
    #[serde(flatten)]
    pub description: TaskDescription,
}

/// What a status says about a task in each of these states.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskDescription {
    #[schemars(extend("x-optional" = true))]
    pub title: String,
    #[schemars(extend("x-optional" = true))]
    pub working_dir: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Environment id, if a provider runs it.
    pub environment: Option<String>,
    /// What enforces the mode of the task. Absent if it runs elsewhere.
    #[schemars(extend("enum" = SandboxKind::NAMES))]
    pub sandbox: Option<&'static str>,
    /// The task that it follows in a chain.
    pub follows: Option<FollowsData>,
    /// Set if it is one of several attempts.
    #[serde(flatten)]
    #[serialize_always]
    pub group: Option<MemberData>,
}

impl From<TaskSummary> for TaskDescription {
    fn from(task: TaskSummary) -> TaskDescription {
        TaskDescription {
            title: task.title,
            working_dir: task.working_dir,
            labels: short_labels(task.labels),
            environment: task.environment,
            sandbox: task.sandbox.map(SandboxKind::name),
            follows: task.follows.as_ref().map(FollowsData::from),
            group: task.group.as_ref().map(Into::into),
        }
    }
}

impl RunningTask {
    pub fn of(
        running: delegator_engine::RunningTask,
        conversation: Conversation,
        now_ms: i64,
    ) -> RunningTask {
        let section = running_section(&running, !conversation.waiting_for_answer.is_empty(), now_ms);
        let (task, snapshot) = (running.task, running.snapshot.as_ref());
        let started_ms = task.started_at_ms.unwrap_or(task.created_at_ms);
        RunningTask {
            task_id: task.id.to_string(),
            state: task.state.public_name(),
            section,
            started_ts: UtcTime::from_ms(started_ms),
            elapsed_seconds: seconds_since(started_ms, now_ms),
            progress: snapshot.and_then(Progress::of_snapshot),
            containment: task.containment.clone(),
            description: task.into(),
            last_lines: None,
            conversation,
        }
    }
}

fn running_section(running: &delegator_engine::RunningTask, has_question: bool, now_ms: i64) -> &'static str {
    running.facts(has_question, now_ms).section().name()
}

impl ListedTask {
    fn of(task: &TaskSummary) -> ListedTask {
        ListedTask {
            task_id: task.id.to_string(),
            state: task.state.public_name(),
            title: task.title.clone(),
            working_dir: task.working_dir.clone(),
            labels: short_labels(task.labels.clone()),
            environment: task.environment.clone(),
            sandbox: task.sandbox.map(SandboxKind::name),
            created_ts: UtcTime::from_ms(task.created_at_ms),
            started_ts: task.started_at_ms.map(UtcTime::from_ms),
            group: task.group.as_ref().map(Into::into),
            ..ListedTask::default()
        }
    }

    pub fn running(running: &delegator_engine::RunningTask, has_question: bool, now_ms: i64) -> ListedTask {
        let (task, snapshot) = (&running.task, running.snapshot.as_ref());
        ListedTask {
            section: running_section(running, has_question, now_ms),
            duration_seconds: task.started_at_ms.map(|started_ms| seconds_since(started_ms, now_ms)),
            progress: snapshot.and_then(Progress::of_snapshot),
            ..ListedTask::of(task)
        }
    }

    pub fn queued(queued: &delegator_engine::QueuedTask) -> ListedTask {
        let section = Section::Waiting.name();
        ListedTask { queue_position: Some(queued.position), section, ..ListedTask::of(&queued.task) }
    }

    /// A task of which only the row is known; one that has not ended has no end.
    pub fn stored(task: &Task) -> ListedTask {
        match &task.ended {
            Some(_) => ListedTask::ended(task),
            None => ListedTask::of(&task.into()),
        }
    }

    pub fn ended(task: &Task) -> ListedTask {
        let times = RunTimes::of(task);
        ListedTask {
            section: ended_facts(task).section().name(),
            started_ts: task.started_at_ms.map(|_| UtcTime::from_ms(times.started_ms)),
            completed_ts: Some(UtcTime::from_ms(times.ended_ms)),
            duration_seconds: task.started_at_ms.map(|_| times.duration_seconds()),
            ..ListedTask::of(&task.into())
        }
    }
}

fn sandbox_names_or_null() -> Vec<Option<&'static str>> {
    SandboxKind::NAMES.map(Some).into_iter().chain([None]).collect()
}

fn short_labels(mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.values_mut().for_each(|value| *value = truncate_chars(value, LABEL_CHARS));
    labels
}

impl From<delegator_engine::QueuedTask> for QueuedTask {
    fn from(queued: delegator_engine::QueuedTask) -> QueuedTask {
        QueuedTask {
            task_id: queued.task.id.to_string(),
            state: queued.task.state.public_name(),
            section: Section::Waiting.name(),
            position: queued.position,
            description: queued.task.into(),
            estimated_start_ms: queued.estimated_start_ms,
            waiting_for: queued.waiting_for.as_ref().map(WaitingFor::from),
            agent_pause: queued.agent_pause.as_ref().map(PauseData::from),
            messages: None,
        }
    }
}

impl From<&BlockedBy> for WaitingFor {
    fn from(blocked: &BlockedBy) -> WaitingFor {
        WaitingFor { task_id: blocked.task.to_string(), reason: blocked.obstacle.name().into() }
    }
}

impl From<&Task> for EndedTask {
    fn from(task: &Task) -> EndedTask {
        let times = RunTimes::of(task);
        EndedTask {
            task_id: task.id.to_string(),
            state: task.state.public_name(),
            section: ended_facts(task).section().name(),
            verification: task.ended.as_ref().and_then(|ended| ended.verification).map(Verification::status),
            end: end_name(task),
            duration_seconds: times.duration_seconds(),
            completed_ts: UtcTime::from_ms(times.ended_ms),
            messages: None,
            description: TaskSummary::from(task).into(),
        }
    }
}
