//! The delivery of notifications: a process of its own sends what the outbox holds, and ends when nothing is
//! left.
//!
//! Every upkeep pass starts it if something is due and it does not run. It is this program with the argument
//! [`DELIVER`]: a receiver may not answer, and a command may hang. One such process works in a state
//! directory. It may be killed at any moment: an attempt is counted before it is made, so the next process
//! makes another one. A receiver can therefore get a notification twice, with the same id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Scope};
use std::time::Duration;

use delegator_domain::notification::{Channel, Subject};
use delegator_domain::task::{EndCounts, EndKind, Member, TaskEnd, TaskId, TaskLocation, combined_end};
use delegator_notify::{Failure, Notification, NotifiedTask, NotifiedWork, NotifySettings, SendError, send};
use delegator_registry::{DeliveryOutcome, Registry, StoredNotification, Task, TaskFile};

use super::background_process::BackgroundProcess;
use super::delivery_retry::RetryPolicy;
use crate::error::{EngineError, Result};
use crate::shared::notifications::{Notifications, stored_settings};
use crate::{Engine, Outbox};

pub const DELIVER: &str = "deliver-notifications";

const MAX_AT_ONCE: usize = 8;
/// Notifications of each state that one call retries.
const MAX_RETRIED: u32 = 10_000;
/// How soon a notification that another process enqueued is noticed while this one waits.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

static DELIVERY_PROCESS: BackgroundProcess = BackgroundProcess::new("start the delivery of notifications");

/// What was not delivered: to be sent, and given up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndeliveredNotifications {
    pub pending: Vec<StoredNotification>,
    pub failed: Vec<StoredNotification>,
}

impl Outbox<'_> {
    /// Up to `limit` notifications of each kind that were not delivered.
    pub fn undelivered(&self, limit: u32) -> Result<UndeliveredNotifications> {
        let (pending, failed) = self.engine.query(|registry| registry.undelivered_notifications(limit))?;
        Ok(UndeliveredNotifications { pending, failed })
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

/// I/O errors are left to the next pass: they must not fail the call that triggered this one.
pub(crate) fn start_delivery_if_due(engine: &Engine, registry: &Registry) -> Result<()> {
    DELIVERY_PROCESS.reap();
    if !is_delivery_due(engine, registry)? {
        return Ok(());
    }
    match engine.system.start_delivery(engine) {
        Err(EngineError::Io { .. }) => Ok(()),
        other => other,
    }
}

pub(crate) fn is_delivery_due(engine: &Engine, registry: &Registry) -> Result<bool> {
    // Most registries never have one, and this query is much cheaper.
    let has_pending = registry.next_notification_at()?.is_some();
    let has_due = has_pending && !due(engine, registry, 1)?.is_empty();
    Ok(has_due && registry.dir().try_lock_delivery()?.is_some())
}

pub(crate) fn spawn_delivery_process(engine: &Engine) -> Result<()> {
    DELIVERY_PROCESS.spawn(engine, &[DELIVER])
}

pub fn deliver(engine: &Engine, policy: &RetryPolicy) -> Result<()> {
    let Some(mut registry) = engine.find_registry()? else { return Ok(()) };
    // A process that enqueues a notification while the lock is held starts no other: so look again after the
    // release.
    while registry.next_notification_at()?.is_some() {
        let Some(lock) = registry.dir().try_lock_delivery()? else { return Ok(()) };
        let delivered = deliver_all(engine, &mut registry, policy);
        // A child that is just being started has a copy of the descriptor, so closing it would not be enough.
        let _ = lock.unlock();
        delivered?;
    }
    Ok(())
}

struct Delivery {
    notification: StoredNotification,
    number: u32,
    next_delay_ms: i64,
}

type EndedDelivery = (Delivery, Result<(), SendError>);

fn deliver_all(engine: &Engine, registry: &mut Registry, policy: &RetryPolicy) -> Result<()> {
    thread::scope(|scope| {
        let (sender, ended) = channel();
        let mut in_flight = BTreeSet::new();
        loop {
            for notification in due(engine, registry, MAX_AT_ONCE + in_flight.len())? {
                let key = key(&notification);
                if in_flight.len() < MAX_AT_ONCE
                    && !in_flight.contains(&key)
                    && begin(engine, registry, policy, notification, scope, &sender)?
                {
                    in_flight.insert(key);
                }
            }
            let wait = match registry.next_notification_at()? {
                None if in_flight.is_empty() => return Ok(()),
                Some(at_ms) if in_flight.is_empty() => time_until(at_ms, engine.now_ms()),
                _ => POLL_INTERVAL,
            };
            if let Ok((delivery, result)) = ended.recv_timeout(wait) {
                in_flight.remove(&key(&delivery.notification));
                end(engine, registry, policy, delivery, result)?;
            }
        }
    })
}

/// The time until the next attempt, or until it is time to look for new notifications.
fn time_until(at_ms: i64, now_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0)).min(POLL_INTERVAL)
}

fn due(engine: &Engine, registry: &Registry, limit: usize) -> Result<Vec<StoredNotification>> {
    let now_ms = engine.now_ms();
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    Ok(registry.due_notifications(now_ms, now_ms + RetryPolicy::LONGEST_DELAY_MS, limit)?)
}

fn key(notification: &StoredNotification) -> (Subject, Channel) {
    (notification.subject.clone(), notification.channel)
}

/// Counts a delivery and makes it in a thread of its own; false if none is made.
fn begin<'scope>(
    engine: &Engine,
    registry: &mut Registry,
    policy: &RetryPolicy,
    notification: StoredNotification,
    scope: &'scope Scope<'scope, '_>,
    sender: &Sender<EndedDelivery>,
) -> Result<bool> {
    let channel = notification.channel;
    let now_ms = engine.now_ms();
    if notification.attempts >= policy.max_attempts {
        let error =
            notification.last_error.clone().unwrap_or_else(|| "the delivery was interrupted".to_owned());
        let failed = DeliveryOutcome::Failed { error };
        registry.end_delivery(&notification, notification.attempts, &failed, now_ms)?;
        return Ok(false);
    }
    let next_delay_ms = policy.delay_ms(notification.attempts + 1, random(engine)?);
    let Some(number) = registry.begin_delivery(&notification, now_ms + next_delay_ms)? else {
        return Ok(false);
    };
    let (settings, facts) = match load(registry, &notification) {
        Ok(loaded) => loaded,
        Err(error) => {
            let failed = DeliveryOutcome::Failed { error: error.to_string() };
            registry.end_delivery(&notification, number, &failed, now_ms)?;
            return Ok(false);
        }
    };
    let (delivery, sender) = (Delivery { notification, number, next_delay_ms }, sender.clone());
    scope.spawn(move || {
        let notification = Notification::new(&facts, number, &settings);
        let result = send(channel, &settings, &notification, now_ms);
        // The receiver is gone only if the process ends with an error.
        let _ = sender.send((delivery, result));
    });
    Ok(true)
}

fn end(
    engine: &Engine,
    registry: &mut Registry,
    policy: &RetryPolicy,
    delivery: Delivery,
    result: Result<(), SendError>,
) -> Result<()> {
    let Delivery { notification, number, next_delay_ms } = delivery;
    let now_ms = engine.now_ms();
    let outcome = match result {
        Ok(()) => DeliveryOutcome::Delivered,
        Err(error) => {
            policy.after_failure(number, next_delay_ms, notification.created_at_ms, now_ms, error.to_string())
        }
    };
    Ok(registry.end_delivery(&notification, number, &outcome, now_ms)?)
}

fn random(engine: &Engine) -> Result<u32> {
    let [first, second, third, fourth, ..] = engine.system.random_bytes()?;
    Ok(u32::from_be_bytes([first, second, third, fourth]))
}

fn load(registry: &Registry, notification: &StoredNotification) -> Result<(NotifySettings, NotifiedWork)> {
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
