//! Notifications in our JSON, and as a table.

use delegator_domain::notification::DeliveryState;
use delegator_registry::StoredNotification;

use crate::output::prelude::*;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NotificationData {
    /// What it is about: `task`, `group` or `chain`
    pub subject: &'static str,
    /// The id of the task or the group; of a chain, that of its first task.
    pub subject_id: String,
    /// `ended`, or why a running task needs you: `question`, `budget` or `stuck`
    pub event: &'static str,
    /// `command`, `webhook` or `desktop`
    pub channel: &'static str,
    #[schemars(extend("enum" = DeliveryState::NAMES))]
    pub state: &'static str,
    pub attempt_count: u32,
    /// When it happened.
    pub created_at: UtcTime,
    /// When the next attempt may begin; only of pending ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<UtcTime>,
    /// When it was delivered, dropped or given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<UtcTime>,
    /// Why the last attempt failed, or why the notification was dropped.
    pub last_error: Option<String>,
}

impl From<&StoredNotification> for NotificationData {
    fn from(found: &StoredNotification) -> NotificationData {
        let is_pending = found.state == DeliveryState::Pending;
        NotificationData {
            subject: found.subject.kind().name(),
            subject_id: found.subject.id().to_owned(),
            event: found.topic.event(),
            channel: found.channel.name(),
            state: found.state.name(),
            attempt_count: found.attempts,
            created_at: UtcTime::from_ms(found.created_at_ms),
            next_attempt_at: is_pending.then(|| UtcTime::from_ms(found.due_at_ms)),
            settled_at: found.settled_at_ms.map(UtcTime::from_ms),
            last_error: found.last_error.clone(),
        }
    }
}

/// Adds the notifications, if there are any.
pub fn append_notifications(document: Document, title: &str, found: &[NotificationData]) -> Document {
    if found.is_empty() {
        return document;
    }
    let row = |found: &NotificationData| {
        let time = found.settled_at.as_ref().unwrap_or(&found.created_at);
        vec![
            found.event.to_owned(),
            found.subject_id.clone(),
            found.channel.to_owned(),
            found.state.to_owned(),
            time.0.clone(),
            found.attempt_count.to_string(),
            cell(found.last_error.as_ref()),
        ]
    };
    let columns = &["event", "id", "channel", "state", "time", "attempts", "error or reason"];
    document.text(title).table(columns, found.iter().map(row).collect())
}
