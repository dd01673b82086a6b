//! What a notification is about, read again before each attempt: whether it still applies, and what it says.

use delegator_domain::notification::{Subject, Topic};
use delegator_domain::question::QuestionState;
use delegator_domain::task::{EndCounts, Member, TaskEnd, combined_end};
use delegator_notify::{
    Failure, LiveNeed, NeedyTask, Notification, NotifiedTask, NotifiedWork, NotifySettings,
};
use delegator_registry::{Registry, StoredNotification, StoredQuestion, Task, TaskFile};

use crate::error::{EngineError, Result};
use crate::shared::snapshot_file::{quiet_ms, read_snapshot};

const ENDED: &str = "the task has ended";

/// Whether a notification is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relevance {
    Applies,
    /// Not as long as a person has the task on a screen.
    OnScreen,
    Gone(&'static str),
}

pub(super) enum DeliveryContent {
    End(NotifiedWork),
    Need(NeedyTask),
}

impl DeliveryContent {
    pub(super) fn notification(&self, attempt: u32, settings: &NotifySettings, now_ms: i64) -> Notification {
        match self {
            DeliveryContent::End(work) => Notification::new(work, attempt, settings),
            DeliveryContent::Need(task) => Notification::of_need(task, attempt, settings, now_ms),
        }
    }
}

/// The end of a task stays true. It was decided when the task ended whether a person saw it.
pub(super) fn relevance(
    registry: &Registry,
    notification: &StoredNotification,
    now_ms: i64,
) -> Result<Relevance> {
    let gone = match notification.topic {
        Topic::End => return Ok(Relevance::Applies),
        Topic::Question(number) => match registry.question(&notification.task, number)? {
            Some(StoredQuestion { state: QuestionState::Open, .. }) => None,
            Some(StoredQuestion { state: QuestionState::Answered, .. }) => Some("answered"),
            Some(StoredQuestion { state: QuestionState::Expired, .. }) => {
                Some("the time for an answer is over")
            }
            _ => Some("withdrawn"),
        },
        Topic::Budget => None,
        Topic::Stuck if is_active(registry, notification, now_ms)? => Some("active again"),
        Topic::Stuck => None,
    };
    let has_ended = registry.get(&notification.task)?.is_none_or(|task| task.state.is_terminal());
    Ok(match gone {
        // The end of a task withdraws its questions.
        None | Some("withdrawn") if has_ended => Relevance::Gone(ENDED),
        Some(reason) => Relevance::Gone(reason),
        None if registry.dir().task(&notification.task).is_on_screen() => Relevance::OnScreen,
        None => Relevance::Applies,
    })
}

fn is_active(registry: &Registry, notification: &StoredNotification, now_ms: i64) -> Result<bool> {
    let started_ms = registry.get(&notification.task)?.and_then(|task| task.started_at_ms);
    let snapshot = read_snapshot(&registry.dir().task(&notification.task))?;
    let Some((snapshot, started_ms)) = snapshot.zip(started_ms) else { return Ok(false) };
    let limit_sec = snapshot.idle_limit_sec.unwrap_or_default();
    Ok(quiet_ms(&snapshot, started_ms, now_ms) < limit_sec * 500)
}

pub(super) fn load(
    registry: &Registry,
    notification: &StoredNotification,
    now_ms: i64,
) -> Result<(NotifySettings, DeliveryContent)> {
    let unreadable =
        |source: std::io::Error| EngineError::Io { doing: "read the notification settings", source };
    let bytes = registry.dir().task(&notification.task).read(TaskFile::Notify)?;
    let bytes = bytes.ok_or_else(|| unreadable(std::io::ErrorKind::NotFound.into()))?;
    let settings: NotifySettings =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.into()))?;
    let content = match (notification.topic, &notification.subject) {
        (Topic::End, Subject::Task(id)) => {
            registry.get(id)?.and_then(task_facts).map(NotifiedWork::of_task).map(DeliveryContent::End)
        }
        (Topic::End, several) => {
            several_facts(several, registry.submitted_together(several)?).map(DeliveryContent::End)
        }
        _ => {
            // A question is open for longer once it is delivered.
            let seconds = settings.answer_timeout_sec.unwrap_or(0);
            let open_until_ms = now_ms.saturating_add_unsigned(seconds.saturating_mul(1000));
            needy_task(registry, notification, open_until_ms)?.map(DeliveryContent::Need)
        }
    };
    content.map(|content| (settings, content)).ok_or_else(|| EngineError::unknown(&notification.task))
}

fn needy_task(
    registry: &Registry,
    notification: &StoredNotification,
    open_until_ms: i64,
) -> Result<Option<NeedyTask>> {
    let Some(task) = registry.get(&notification.task)? else { return Ok(None) };
    let need = match notification.topic {
        Topic::Question(number) => {
            let Some(stored) = registry.question(&task.id, number)? else { return Ok(None) };
            let deadline_at_ms = stored.expires_at_ms.max(open_until_ms);
            LiveNeed::Answer { question: stored.question, deadline_at_ms }
        }
        topic => LiveNeed::Attention { topic, detail: notification.detail.clone().unwrap_or_default() },
    };
    // The tree of an isolated task has a name of ours.
    let tree = task.work_trees.first().filter(|_| task.worktree.is_none());
    Ok(Some(NeedyTask {
        repository: tree.map_or_else(|| task.working_dir.clone(), |tree| tree.root().display().to_string()),
        id: task.id,
        attempt: task.group.map(|member| member.attempt),
        title: task.title,
        working_dir: task.working_dir,
        agent: task.agent,
        labels: task.labels,
        need,
    }))
}

/// What is known about an ended group or chain; `None` if no task of it is left.
fn several_facts(subject: &Subject, tasks: Vec<Task>) -> Option<NotifiedWork> {
    let members: Vec<Member> = tasks.iter().map(Member::from).collect();
    let started_at_ms = tasks.iter().filter_map(|task| task.started_at_ms).min();
    let ended_at_ms = tasks.iter().filter_map(|task| Some(task.ended.as_ref()?.at_ms)).max();
    let duration_ms = started_at_ms.zip(ended_at_ms).and_then(|(start, end)| u64::try_from(end - start).ok());
    let tasks: Vec<NotifiedTask> =
        tasks.into_iter().filter(|task| !task.is_skipped()).filter_map(task_facts).collect();
    (!tasks.is_empty()).then(|| NotifiedWork {
        subject: subject.clone(),
        end: combined_end(&members),
        counts: EndCounts::of(&members),
        duration_ms,
        tasks,
    })
}

fn task_facts(task: Task) -> Option<NotifiedTask> {
    let ended = task.ended?;
    let end = ended.end.kind(ended.verification);
    let failure = match ended.end {
        TaskEnd::Failed { kind, message, .. } => Some(Failure { kind: kind.name().to_owned(), message }),
        TaskEnd::Completed | TaskEnd::Cancelled { .. } | TaskEnd::Timeout(_) => None,
    };
    let since_start = |started_at_ms: i64| u64::try_from(ended.at_ms - started_at_ms).ok();
    Some(NotifiedTask {
        id: task.id,
        attempt: task.group.map(|member| member.attempt),
        end,
        title: task.title,
        summary: ended.summary,
        failure,
        working_dir: task.working_dir,
        agent: task.agent,
        labels: task.labels,
        ended_at_ms: ended.at_ms,
        duration_ms: ended.ran_ms.or_else(|| task.started_at_ms.and_then(since_start)),
    })
}
