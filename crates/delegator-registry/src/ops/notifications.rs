//! The outbox of notifications: one row per channel for each ended task, group and chain, written in the
//! transaction that ends its last task, and for each question, nearly used budget and silence of a running
//! task, written in the transaction that stores it.
//!
//! A task of a group or a chain sends one of its end only if its plan says so. The group or chain has ended
//! when none of the tasks that were submitted with it is queued or active. Its row belongs to the task that
//! ended last, whose directory has the settings.
//!
//! A delivery has two steps, so that a process that is killed between them leaves a row that is delivered
//! again: [`Registry::begin_delivery`] counts the attempt and sets the time of the next one,
//! [`Registry::end_delivery`] records its outcome. Both change the row only if it is as the caller has read
//! it. Rows are deleted with their task.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::notification::{Channel, DeliveryState, NotifyPlan, Subject, SubjectKind, Topic};
use delegator_domain::task::{FailureKind, Member, TaskEnd, TaskId, combined_end};
use rusqlite::{Connection, Row};

use crate::columns::{Column, record, unreadable};
use crate::compare_and_set::{Cas, Nonce};
use crate::error::Result;
use crate::files::task_dir::TaskFile;
use crate::registry::{Registry, query_all};
use crate::row::StoredState;
use crate::state_dir::StateDir;
use crate::task::{Finish, Task, id_from};

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredNotification {
        pub subject: Subject = subject_from,
        pub topic: Topic = topic_from,
        /// The task that this is about; of a group or a chain, the one that ended last.
        pub task: TaskId = id_from,
        pub channel: Channel,
        pub state: DeliveryState = state_from,
        /// Attempts that were begun.
        pub attempts: u32,
        pub created_at_ms: i64,
        pub due_at_ms: i64,
        /// Why the last attempt failed, or why there was none.
        pub last_error: Option<String>,
        pub settled_at_ms: Option<i64>,
        /// What is known about the topic besides the task.
        pub detail: Option<String>,
    }
}

/// The subject of the rows about running tasks; their subject_id is the task and the topic.
const LIVE: &str = "live";
const LIVE_STATE: &str = "live_";

impl StoredNotification {
    fn key(&self) -> (&'static str, String, &'static str) {
        let (subject, id) = match self.topic {
            Topic::End => (self.subject.kind().name(), self.subject.id().to_owned()),
            topic => (LIVE, live_id(&self.task, topic)),
        };
        (subject, id, self.channel.name())
    }

    fn stored_state(&self, state: DeliveryState) -> String {
        let is_live =
            self.topic != Topic::End && matches!(state, DeliveryState::Pending | DeliveryState::Failed);
        if is_live { format!("{LIVE_STATE}{}", state.name()) } else { state.name().to_owned() }
    }
}

fn live_id(task: &TaskId, topic: Topic) -> String {
    format!("{task}.{}", topic.suffix())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// No attempt was made.
    Postponed {
        until_ms: i64,
    },
    Retry {
        at_ms: i64,
        error: String,
    },
    Failed {
        error: String,
    },
    /// It is not sent.
    Dropped {
        reason: &'static str,
    },
}

/// A time too far in the future was computed before the clock was set back.
pub(crate) const DUE: &str = "SELECT notifications.*, tasks.id FROM notifications INDEXED BY notifications_due JOIN tasks ON tasks.seq = notifications.task \
     WHERE notifications.state IN ('pending', 'live_pending') AND due_at_ms NOT BETWEEN ?1 + 1 AND ?2 ORDER BY due_at_ms LIMIT ?3";
pub(crate) const NEXT: &str = "SELECT MIN(due_at_ms) FROM notifications INDEXED BY notifications_due WHERE state IN ('pending', 'live_pending')";
pub(crate) const PENDING: &str = "SELECT notifications.*, tasks.id FROM notifications INDEXED BY notifications_due JOIN tasks ON tasks.seq = notifications.task \
     WHERE notifications.state IN ('pending', 'live_pending') ORDER BY due_at_ms LIMIT ?1";
pub(crate) const FAILED: &str = "SELECT notifications.*, tasks.id FROM notifications INDEXED BY notifications_given_up JOIN tasks ON tasks.seq = notifications.task \
     WHERE notifications.state IN ('failed', 'live_failed') ORDER BY settled_at_ms DESC LIMIT ?1";
pub(crate) const RECENT: &str = "SELECT notifications.*, tasks.id FROM notifications INDEXED BY notifications_recent JOIN tasks ON tasks.seq = notifications.task \
     WHERE notifications.state IN ('delivered', 'dropped') ORDER BY settled_at_ms DESC LIMIT ?1";
/// The settled ones are read up to the oldest that counts.
pub(crate) const LAST_DELIVERY: &str = "SELECT MAX(settled_at_ms) FROM notifications INDEXED BY notifications_recent \
     WHERE state IN ('delivered', 'dropped') AND settled_at_ms BETWEEN ?1 AND ?2 AND state = 'delivered' AND channel = ?3 AND (subject = 'live' OR ?4)";
pub(crate) const OF_TASK: &str = "SELECT notifications.*, tasks.id FROM tasks JOIN notifications INDEXED BY notifications_task ON notifications.task = tasks.seq \
     WHERE tasks.id = ?1 ORDER BY created_at_ms, channel";
pub(crate) const IS_NEEDED: &str = "SELECT ended_order IS NULL OR EXISTS (SELECT 1 FROM notifications \
     WHERE task = tasks.seq AND state = 'pending') FROM tasks WHERE id = ?1";
pub(crate) const SUBMITTED_TOGETHER: &str = "SELECT * FROM tasks WHERE submission = ?1 ORDER BY seq";
pub(crate) const RETRY: &str = "UPDATE notifications SET state = ?5, attempts = 0, due_at_ms = ?4, settled_at_ms = NULL \
     WHERE subject = ?1 AND subject_id = ?2 AND channel = ?3 AND state NOT IN ('delivered', 'dropped')";
const ON_SCREEN: &str = "it was on a screen";

impl Registry {
    /// Up to `limit` notifications of which an attempt is due. A time after `latest_ms` counts as due, too.
    pub fn due_notifications(
        &self,
        now_ms: i64,
        latest_ms: i64,
        limit: u32,
    ) -> Result<Vec<StoredNotification>> {
        self.read(|db| query_all(db, DUE, (now_ms, latest_ms, limit), StoredNotification::from_row))
    }

    pub fn next_notification_at(&self) -> Result<Option<i64>> {
        self.read(|db| db.query_row(NEXT, (), |row| row.get(0)))
    }

    /// Notifications to be sent, the next one first, and those that failed, the newest first: `limit` each.
    pub fn undelivered_notifications(
        &self,
        limit: u32,
    ) -> Result<(Vec<StoredNotification>, Vec<StoredNotification>)> {
        self.read(|db| {
            Ok((
                query_all(db, PENDING, [limit], StoredNotification::from_row)?,
                query_all(db, FAILED, [limit], StoredNotification::from_row)?,
            ))
        })
    }

    /// Notifications that were delivered or dropped, the newest first.
    pub fn recent_notifications(&self, limit: u32) -> Result<Vec<StoredNotification>> {
        self.read(|db| query_all(db, RECENT, [limit], StoredNotification::from_row))
    }

    /// All notifications that belong to a task, the oldest first.
    pub fn notifications_of(&self, id: &TaskId) -> Result<Vec<StoredNotification>> {
        self.read(|db| query_all(db, OF_TASK, [id.as_str()], StoredNotification::from_row))
    }

    /// When a notification was last delivered through a channel since a time; `with_ends` counts those about
    /// ends, too.
    pub fn last_delivery(
        &self,
        channel: Channel,
        with_ends: bool,
        since_ms: i64,
        now_ms: i64,
    ) -> Result<Option<i64>> {
        let values = (since_ms, now_ms, channel.name(), with_ends);
        self.read(|db| db.query_row(LAST_DELIVERY, values, |row| row.get(0)))
    }

    /// Puts a notification about a running task into the outbox, if its plan has this topic.
    pub fn notify(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        topic: Topic,
        detail: &str,
        now_ms: i64,
    ) -> Result<Cas<()>> {
        let detail = self.sink.text(detail);
        self.write_working(id, nonce, |db, stored| {
            enqueue_live(db, stored, topic, Some(&detail), now_ms).map(Cas::Applied)
        })
    }

    /// Counts an attempt before it is made; the next one may begin at `retry_at_ms`. Returns its number, or
    /// `None` if the notification has changed since it was read.
    pub fn begin_delivery(
        &mut self,
        notification: &StoredNotification,
        retry_at_ms: i64,
    ) -> Result<Option<u32>> {
        let sql = "UPDATE notifications SET attempts = attempts + 1, due_at_ms = ?5 \
                   WHERE subject = ?1 AND subject_id = ?2 AND channel = ?3 AND state = ?6 AND attempts = ?4";
        let (subject, id, channel) = notification.key();
        let pending = notification.stored_state(DeliveryState::Pending);
        let values = (subject, id, channel, notification.attempts, retry_at_ms, pending);
        let changed = self.write(|db| db.execute(sql, values))?;
        crash_point(CrashPoint::NotificationBegun);
        Ok((changed == 1).then_some(notification.attempts + 1))
    }

    /// Records the outcome of an attempt. Without effect if another attempt was begun meanwhile.
    pub fn end_delivery(
        &mut self,
        notification: &StoredNotification,
        attempt: u32,
        outcome: &DeliveryOutcome,
        now_ms: i64,
    ) -> Result<()> {
        let (state, due_at_ms, error) = match outcome {
            DeliveryOutcome::Delivered => (DeliveryState::Delivered, None, None),
            DeliveryOutcome::Postponed { until_ms } => (DeliveryState::Pending, Some(*until_ms), None),
            DeliveryOutcome::Retry { at_ms, error } => {
                (DeliveryState::Pending, Some(*at_ms), Some(error.as_str()))
            }
            DeliveryOutcome::Failed { error } => (DeliveryState::Failed, None, Some(error.as_str())),
            DeliveryOutcome::Dropped { reason } => (DeliveryState::Dropped, None, Some(*reason)),
        };
        let error = self.sink.optional(error);
        let settled_at_ms = (state != DeliveryState::Pending).then_some(now_ms);
        let sql = "UPDATE notifications SET state = ?5, due_at_ms = coalesce(?6, due_at_ms), \
                   last_error = coalesce(?7, last_error), settled_at_ms = ?8 \
                   WHERE subject = ?1 AND subject_id = ?2 AND channel = ?3 AND state = ?9 AND attempts = ?4";
        let (subject, id, channel) = notification.key();
        let [pending, state] = [DeliveryState::Pending, state].map(|state| notification.stored_state(state));
        let values = (subject, id, channel, attempt, state, due_at_ms, error, settled_at_ms, pending);
        self.write(|db| db.execute(sql, values))?;
        crash_point(CrashPoint::NotificationSettled);
        self.remove_notify_settings_best_effort(&notification.task);
        Ok(())
    }

    /// Makes these notifications due again, with all attempts before them and with other settings. Returns
    /// how many were not delivered meanwhile.
    pub fn retry_notifications(
        &mut self,
        notifications: &[StoredNotification],
        settings: &[u8],
        now_ms: i64,
    ) -> Result<usize> {
        // First the settings: a delivery process may take a notification as soon as it is due.
        for notification in notifications {
            self.dir.task(&notification.task).write_durably(TaskFile::Notify, settings)?;
        }
        self.write(|db| {
            let mut changed = 0;
            for notification in notifications {
                let (subject, id, channel) = notification.key();
                let pending = notification.stored_state(DeliveryState::Pending);
                changed += db.execute(RETRY, (subject, id, channel, now_ms, pending))?;
            }
            Ok(changed)
        })
    }

    pub fn submitted_together(&self, subject: &Subject) -> Result<Vec<Task>> {
        self.read(|db| submitted_together(db, subject))
    }

    /// Removes the settings of the notifications of a task once it has ended and none of them is pending.
    pub(crate) fn remove_notify_settings_best_effort(&self, id: &TaskId) {
        // Most tasks have none: a look at the directory is cheaper than a query.
        if !self.dir.task(id).file(TaskFile::Notify).exists() {
            return;
        }
        let needed = self.read(|db| db.query_row(IS_NEEDED, [id.as_str()], |row| row.get::<_, bool>(0)));
        if matches!(needed, Ok(false)) {
            let _ = self.dir.task(id).remove_file(TaskFile::Notify);
        }
    }
}

fn submitted_together(db: &Connection, subject: &Subject) -> rusqlite::Result<Vec<Task>> {
    query_all(db, SUBMITTED_TOGETHER, [subject.id()], Task::from_row)
}

/// Puts the notifications about the end of a task into the outbox, and about the end of its group or chain if
/// no other task of it is left. The end is already written. One that a person has on a screen is not to be
/// sent.
pub(crate) fn enqueue_end(
    db: &Connection,
    dir: &StateDir,
    stored: &StoredState,
    finish: &Finish,
    now_ms: i64,
) -> rusqlite::Result<()> {
    let Some(plan) = &stored.notify else { return Ok(()) };
    let mut ended = Vec::new();
    // Also for the end of a group or chain: who has only an earlier task of it on a screen does not see this end.
    let is_on_screen = dir.task(&stored.id).is_on_screen();
    if stored.submission.is_none() || plan.each_task {
        let end = finish.end.kind(finish.verification);
        ended.push((Subject::Task(stored.id.clone()), end, is_usage_limit(&finish.end)));
    }
    if let Some(subject) = &stored.submission {
        let tasks = submitted_together(db, subject)?;
        if tasks.iter().all(|task| task.state.is_terminal()) {
            let members: Vec<Member> = tasks.iter().map(Member::from).collect();
            let is_limited =
                |task: &Task| task.ended.as_ref().is_some_and(|ended| is_usage_limit(&ended.end));
            ended.push((subject.clone(), combined_end(&members), tasks.iter().any(is_limited)));
        }
    }
    for (subject, ..) in ended.iter().filter(|(_, end, limit)| plan.includes_end(*end, *limit)) {
        let state = if is_on_screen { DeliveryState::Dropped } else { DeliveryState::Pending };
        let (key, reason) = ((subject.kind().name(), subject.id()), is_on_screen.then_some(ON_SCREEN));
        insert(db, stored, plan, key, (state.name(), reason, None), now_ms)?;
    }
    Ok(())
}

fn is_usage_limit(end: &TaskEnd) -> bool {
    matches!(end, TaskEnd::Failed { kind: FailureKind::UsageLimit, .. })
}

/// Puts the notification about a running task into the outbox, if its plan has this topic.
pub(crate) fn enqueue_live(
    db: &Connection,
    stored: &StoredState,
    topic: Topic,
    detail: Option<&str>,
    now_ms: i64,
) -> rusqlite::Result<()> {
    let Some(plan) = stored.notify.as_ref().filter(|plan| plan.includes(topic)) else { return Ok(()) };
    let (id, state) = (live_id(&stored.id, topic), format!("{LIVE_STATE}{}", DeliveryState::Pending.name()));
    insert(db, stored, plan, (LIVE, &id), (&state, None, detail), now_ms)
}

/// Inserts a row per channel; one with a reason is settled. A second notification about the same thing must not
/// prevent what it is about.
fn insert(
    db: &Connection,
    stored: &StoredState,
    plan: &NotifyPlan,
    (subject, id): (&str, &str),
    (state, reason, detail): (&str, Option<&str>, Option<&str>),
    now_ms: i64,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO notifications (subject, subject_id, channel, task, state, attempts, created_at_ms, due_at_ms, \
               last_error, settled_at_ms, detail) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7, ?8, ?9)";
    let settled_at_ms = reason.map(|_| now_ms);
    for channel in &plan.channels {
        let values = (subject, id, channel.name(), stored.seq, state, now_ms, reason, settled_at_ms, detail);
        db.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

fn subject_from(row: &Row<'_>) -> rusqlite::Result<Subject> {
    if row.get_ref("subject")?.as_str()? == LIVE {
        return id_from(row).map(Subject::Task);
    }
    let (kind, id): (SubjectKind, String) = (Column::read(row, "subject")?, row.get("subject_id")?);
    Subject::from_parts(kind, &id).ok_or_else(|| unreadable("subject_id", id))
}

fn topic_from(row: &Row<'_>) -> rusqlite::Result<Topic> {
    if row.get_ref("subject")?.as_str()? != LIVE {
        return Ok(Topic::End);
    }
    let id: String = row.get("subject_id")?;
    let topic = id.split_once('.').and_then(|(_, suffix)| Topic::from_suffix(suffix));
    topic.ok_or_else(|| unreadable("subject_id", id))
}

fn state_from(row: &Row<'_>) -> rusqlite::Result<DeliveryState> {
    let state: String = row.get("state")?;
    let name = state.strip_prefix(LIVE_STATE).unwrap_or(&state);
    DeliveryState::from_name(name).ok_or_else(|| unreadable("state", state))
}
