//! The outbox as its user sees it: what it holds, sending it again, and tests of the channels.

use std::collections::BTreeMap;

use delegator_domain::notification::Channel;
use delegator_domain::task::{EndKind, TaskId, TaskLocation};
use delegator_notify::{Notification, NotifiedTask, NotifiedWork, NotifySettings, SendError, send};
use delegator_registry::StoredNotification;

use super::delivery::start_delivery_if_due;
use crate::Outbox;
use crate::error::Result;
use crate::shared::notifications::{Notifications, stored_settings};

/// Notifications of each state that one call retries.
const MAX_RETRIED: u32 = 10_000;

/// What is to be sent, what was given up, and what was delivered or dropped lately.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedNotifications {
    pub pending: Vec<StoredNotification>,
    pub failed: Vec<StoredNotification>,
    pub recent: Vec<StoredNotification>,
}

impl Outbox<'_> {
    /// Up to `limit` notifications of each kind.
    pub fn notifications(&self, limit: u32) -> Result<ListedNotifications> {
        self.engine.query(|registry| {
            let (pending, failed) = registry.undelivered_notifications(limit)?;
            Ok(ListedNotifications { pending, failed, recent: registry.recent_notifications(limit)? })
        })
    }

    pub fn notifications_of(&self, task: &TaskId) -> Result<Vec<StoredNotification>> {
        self.engine.query(|registry| registry.notifications_of(task))
    }

    /// Through the channels of these settings, now and with them. Returns how many.
    pub fn retry(&self, notifications: &Notifications) -> Result<usize> {
        let Some(mut registry) = self.engine.find_registry()? else { return Ok(0) };
        let (pending, failed) = registry.undelivered_notifications(MAX_RETRIED)?;
        let is_configured = |found: &StoredNotification| notifications.plan.channels.contains(&found.channel);
        let found: Vec<StoredNotification> =
            pending.into_iter().chain(failed).filter(is_configured).collect();
        let settings = stored_settings(&notifications.settings)?;
        let retried = registry.retry_notifications(&found, &settings, self.engine.now_ms())?;
        start_delivery_if_due(self.engine, &registry)?;
        Ok(retried)
    }

    /// Sends a notification about a task that does not exist through one channel, once.
    pub fn send_test(
        &self,
        channel: Channel,
        settings: &NotifySettings,
        working_dir: &str,
    ) -> Result<Result<(), SendError>> {
        let facts = NotifiedTask {
            id: TaskId::from_random(TaskLocation::Local, self.engine.system.random_bytes()?),
            attempt: None,
            end: EndKind::Completed,
            title: "Test of notifications".to_owned(),
            summary: Some("This is a test. No task has ended.".to_owned()),
            failure: None,
            working_dir: working_dir.to_owned(),
            agent: "none".to_owned(),
            labels: BTreeMap::new(),
            ended_at_ms: self.engine.now_ms(),
            duration_ms: Some(0),
        };
        let notification = Notification::new(&NotifiedWork::of_task(facts), 1, settings).into_test();
        Ok(send(channel, settings, &notification, self.engine.now_ms()))
    }
}
