//! Reads what a notification needs: how to send it, and the facts about the task, group or chain that has
//! ended.

use delegator_domain::notification::Subject;
use delegator_domain::task::{EndCounts, EndedMember, TaskEnd, combined_end};
use delegator_notify::{Failure, NotifiedTask, NotifiedWork, NotifySettings};
use delegator_registry::{Registry, StoredNotification, Task, TaskFile};

use crate::error::{EngineError, Result};

pub(super) fn load(
    registry: &Registry,
    notification: &StoredNotification,
) -> Result<(NotifySettings, NotifiedWork)> {
    let unreadable =
        |source: std::io::Error| EngineError::Io { doing: "read the notification settings", source };
    let bytes = registry.dir().task(&notification.task).read(TaskFile::Notify)?;
    let bytes = bytes.ok_or_else(|| unreadable(std::io::ErrorKind::NotFound.into()))?;
    let settings = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.into()))?;
    let facts = match &notification.subject {
        Subject::Task(id) => registry.get(id)?.and_then(task_facts).map(NotifiedWork::of_task),
        several => several_facts(several, registry.submitted_together(several)?),
    };
    facts.map(|facts| (settings, facts)).ok_or_else(|| EngineError::unknown(&notification.task))
}

/// What is known about an ended group or chain; `None` if no task of it is left.
fn several_facts(subject: &Subject, tasks: Vec<Task>) -> Option<NotifiedWork> {
    let members: Vec<EndedMember> = tasks.iter().map(EndedMember::from).collect();
    let started_at_ms = tasks.iter().filter_map(|task| task.started_at_ms).min();
    let ended_at_ms = tasks.iter().filter_map(|task| Some(task.ended.as_ref()?.at_ms)).max();
    let duration_ms = started_at_ms.zip(ended_at_ms).and_then(|(start, end)| u64::try_from(end - start).ok());
    let tasks: Vec<NotifiedTask> =
        tasks.into_iter().filter(|task| !task.is_skipped()).filter_map(task_facts).collect();
    (!tasks.is_empty()).then(|| NotifiedWork {
        subject: subject.clone(),
        state: combined_end(&members),
        counts: EndCounts::of(&members),
        duration_ms,
        tasks,
    })
}

fn task_facts(task: Task) -> Option<NotifiedTask> {
    let ended = task.ended?;
    let failure = match ended.end {
        TaskEnd::Failed { kind, message, .. } => Some(Failure { kind: kind.name().to_owned(), message }),
        TaskEnd::Completed | TaskEnd::Cancelled { .. } | TaskEnd::Timeout(_) => None,
    };
    let since_start = |started_at_ms: i64| u64::try_from(ended.at_ms - started_at_ms).ok();
    Some(NotifiedTask {
        id: task.id,
        attempt: task.group.map(|member| member.attempt),
        state: task.state,
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
