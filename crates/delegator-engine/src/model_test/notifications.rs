//! Notifications in the model: every end of a task, a group or a chain enqueues one; no actor delivers them.

use std::collections::{BTreeMap, BTreeSet};

use delegator_domain::notification::{Channel, NotifyPlan, Subject};
use delegator_domain::task::{EndKind, State, TaskId};
use delegator_registry::{StoredNotification, Task};

use super::invariants::{CheckResult, KnownTask, ensure};
use crate::{Notifications, NotifySettings};

/// The ends of which the tasks of the model notify.
const NOTIFIED_ENDS: [EndKind; 3] = [EndKind::Completed, EndKind::Failed, EndKind::Cancelled];

pub(super) fn notifications() -> Notifications {
    Notifications {
        plan: NotifyPlan {
            on: NOTIFIED_ENDS.map(Into::into).to_vec(),
            channels: vec![Channel::Desktop],
            each_task: true,
        },
        settings: NotifySettings::new(None, None, None, &BTreeMap::new()),
    }
}

/// Exactly the ended subjects have a notification. That of a group or a chain is deleted with the task that
/// ended last, so one may be missing if a task was deleted.
pub(super) fn check_notifications(
    tasks: &BTreeMap<TaskId, KnownTask>,
    pending: &[StoredNotification],
    are_all_left: bool,
) -> CheckResult {
    let notified: BTreeSet<&Subject> = pending.iter().map(|found| &found.subject).collect();
    ensure(notified.len() == pending.len(), || "a notification was enqueued twice".to_owned())?;
    let mut submissions: BTreeMap<Subject, Vec<&Task>> = BTreeMap::new();
    for known in tasks.values() {
        let task = &known.task;
        let is_skipped = task.state == State::Cancelled && task.cancel.is_none();
        let is_expected = sends_one(task) && !is_skipped;
        let subject = Subject::Task(task.id.clone());
        ensure(notified.contains(&subject) == is_expected, || wrong(&subject, task.state.name()))?;
        submissions.entry(submission(tasks, task)).or_default().push(task);
    }
    for (subject, tasks) in submissions {
        let is_notified = notified.contains(&subject);
        if matches!(subject, Subject::Chain(_)) && tasks.len() == 1 {
            // A task by itself, or the only one that is left.
            continue;
        }
        let has_ended = tasks.iter().all(|task| task.state.is_terminal());
        ensure(has_ended || !is_notified, || wrong(&subject, "unfinished"))?;
        // After the timeout of one of them, the end of all may be one that does not notify.
        let is_expected = has_ended && tasks.iter().all(|task| sends_one(task));
        ensure(is_notified || !is_expected || !are_all_left, || wrong(&subject, "ended"))?;
    }
    Ok(())
}

fn sends_one(task: &Task) -> bool {
    task.ended.as_ref().is_some_and(|ended| NOTIFIED_ENDS.contains(&ended.end.kind(ended.verification)))
}

/// The group or chain of a task, as far as it is left.
fn submission(tasks: &BTreeMap<TaskId, KnownTask>, task: &Task) -> Subject {
    let mut first = task;
    while let Some(before) = first.follows.as_ref().and_then(|follows| tasks.get(&follows.task)) {
        first = &before.task;
    }
    match &first.group {
        Some(member) => Subject::Group(member.group.clone()),
        None => Subject::Chain(first.id.clone()),
    }
}

fn wrong(subject: &Subject, state: &str) -> String {
    format!("{subject:?} is {state} and its notification is wrong")
}
