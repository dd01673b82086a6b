//! The outbox of notifications: one row per channel for each ended task, group and chain, written in the
//! transaction that ends its last task.
//!
//! A task of a group or a chain sends one of its own only if its plan says so. The group or chain has ended
//! when none of the tasks that were submitted with it is queued or active. Its row belongs to the task that
//! ended last, whose directory has the settings.
//!
//! A delivery has two steps, so that a process that is killed between them leaves a row that is delivered
//! again: [`Registry::begin_delivery`] counts the attempt and sets the time of the next one,
//! [`Registry::end_delivery`] records its outcome. Both change the row only if it is as the caller has read
//! it. Rows are deleted with their task.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::notification::{Channel, DeliveryState, Subject, SubjectKind};
use delegator_domain::task::{EndKind, Member, TaskId, combined_end};
use rusqlite::{Connection, Row};

use crate::columns::{Column, record, unreadable};
use crate::error::Result;
use crate::files::task_dir::TaskFile;
use crate::registry::{Registry, query_all};
use crate::row::StoredState;
use crate::task::{Task, id_from};

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredNotification {
        pub subject: Subject = subject_from,
        /// The task whose end this is; of a group or a chain, the one that ended last.
        pub task: TaskId = id_from,
        pub channel: Channel,
        pub state: DeliveryState,
        /// Attempts that were begun.
        pub attempts: u32,
        pub created_at_ms: i64,
        pub due_at_ms: i64,
        /// Why the last attempt failed.
        pub last_error: Option<String>,
    }
}

impl StoredNotification {
    fn key(&self) -> (&str, &str, &str) {
        (self.subject.kind().name(), self.subject.id(), self.channel.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    Retry { at_ms: i64, error: String },
    Failed { error: String },
}

/// A time too far in the future was computed before the clock was set back.
pub(crate) const DUE: &str = "SELECT notifications.*, tasks.id FROM notifications INDEXED BY notifications_pending JOIN tasks ON tasks.seq = notifications.task \
     WHERE notifications.state = 'pending' AND due_at_ms NOT BETWEEN ?1 + 1 AND ?2 ORDER BY due_at_ms LIMIT ?3";
pub(crate) const NEXT: &str =
    "SELECT MIN(due_at_ms) FROM notifications INDEXED BY notifications_pending WHERE state = 'pending'";
pub(crate) const PENDING: &str = "SELECT notifications.*, tasks.id FROM notifications INDEXED BY notifications_pending JOIN tasks ON tasks.seq = notifications.task \
     WHERE notifications.state = 'pending' ORDER BY due_at_ms LIMIT ?1";
pub(crate) const FAILED: &str = "SELECT notifications.*, tasks.id FROM notifications INDEXED BY notifications_failed JOIN tasks ON tasks.seq = notifications.task \
     WHERE notifications.state = 'failed' ORDER BY settled_at_ms DESC LIMIT ?1";
pub(crate) const HAS_PENDING: &str = "SELECT EXISTS (SELECT 1 FROM notifications \
     WHERE task = (SELECT seq FROM tasks WHERE id = ?1) AND state = 'pending')";
pub(crate) const SUBMITTED_TOGETHER: &str = "SELECT * FROM tasks WHERE submission = ?1 ORDER BY seq";
pub(crate) const RETRY: &str = "UPDATE notifications SET state = 'pending', attempts = 0, due_at_ms = ?4, settled_at_ms = NULL \
     WHERE subject = ?1 AND subject_id = ?2 AND channel = ?3 AND state != 'delivered'";

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

    /// Counts an attempt before it is made; the next one may begin at `retry_at_ms`. Returns its number, or
    /// `None` if the notification has changed since it was read.
    pub fn begin_delivery(
        &mut self,
        notification: &StoredNotification,
        retry_at_ms: i64,
    ) -> Result<Option<u32>> {
        let sql = "UPDATE notifications SET attempts = attempts + 1, due_at_ms = ?5 \
                   WHERE subject = ?1 AND subject_id = ?2 AND channel = ?3 AND state = 'pending' AND attempts = ?4";
        let (subject, id, channel) = notification.key();
        let values = (subject, id, channel, notification.attempts, retry_at_ms);
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
            DeliveryOutcome::Retry { at_ms, error } => (DeliveryState::Pending, Some(*at_ms), Some(error)),
            DeliveryOutcome::Failed { error } => (DeliveryState::Failed, None, Some(error)),
        };
        let error = self.sink.optional(error.map(String::as_str));
        let settled_at_ms = (state != DeliveryState::Pending).then_some(now_ms);
        let sql = "UPDATE notifications SET state = ?5, due_at_ms = coalesce(?6, due_at_ms), \
                   last_error = coalesce(?7, last_error), settled_at_ms = ?8 \
                   WHERE subject = ?1 AND subject_id = ?2 AND channel = ?3 AND state = 'pending' AND attempts = ?4";
        let (subject, id, channel) = notification.key();
        let values = (subject, id, channel, attempt, state.name(), due_at_ms, error, settled_at_ms);
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
                changed += db.execute(RETRY, (subject, id, channel, now_ms))?;
            }
            Ok(changed)
        })
    }

    pub fn submitted_together(&self, subject: &Subject) -> Result<Vec<Task>> {
        self.read(|db| submitted_together(db, subject))
    }

    /// Removes the settings of the notifications of an ended task once none of them is pending.
    pub(crate) fn remove_notify_settings_best_effort(&self, id: &TaskId) {
        // Most tasks have none: a look at the directory is cheaper than a query.
        if !self.dir.task(id).file(TaskFile::Notify).exists() {
            return;
        }
        let pending = self.read(|db| db.query_row(HAS_PENDING, [id.as_str()], |row| row.get::<_, bool>(0)));
        if matches!(pending, Ok(false)) {
            let _ = self.dir.task(id).remove_file(TaskFile::Notify);
        }
    }
}

fn submitted_together(db: &Connection, subject: &Subject) -> rusqlite::Result<Vec<Task>> {
    query_all(db, SUBMITTED_TOGETHER, [subject.id()], Task::from_row)
}

/// Puts the notifications about the end of a task into the outbox, and about the end of its group or chain if
/// no other task of it is left. The end is already written.
pub(crate) fn enqueue(
    db: &Connection,
    stored: &StoredState,
    end: EndKind,
    now_ms: i64,
) -> rusqlite::Result<()> {
    let Some(plan) = &stored.notify else { return Ok(()) };
    let mut ended = Vec::new();
    if stored.submission.is_none() || plan.each_task {
        ended.push((Subject::Task(stored.id.clone()), end));
    }
    if let Some(subject) = &stored.submission {
        let tasks = submitted_together(db, subject)?;
        if tasks.iter().all(|task| task.state.is_terminal()) {
            let members: Vec<Member> = tasks.iter().map(Member::from).collect();
            ended.push((subject.clone(), combined_end(&members)));
        }
    }
    // A second notification about the same subject must not prevent the end of the task.
    let sql = "INSERT OR IGNORE INTO notifications (subject, subject_id, channel, task, state, attempts, created_at_ms, due_at_ms) \
               VALUES (?1, ?2, ?3, ?4, 'pending', 0, ?5, ?5)";
    for (subject, _) in ended.iter().filter(|(_, end)| plan.includes(*end)) {
        for channel in &plan.channels {
            db.execute(sql, (subject.kind().name(), subject.id(), channel.name(), stored.seq, now_ms))?;
        }
    }
    Ok(())
}

fn subject_from(row: &Row<'_>) -> rusqlite::Result<Subject> {
    let (kind, id): (SubjectKind, String) = (Column::read(row, "subject")?, row.get("subject_id")?);
    Subject::from_parts(kind, &id).ok_or_else(|| unreadable("subject_id", id))
}
