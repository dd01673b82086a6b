//! The delivery of notifications: a process of its own sends what the outbox holds, and ends when nothing is
//! left.
//!
//! Every upkeep pass starts it if something is due and it does not run. It is this program with the argument
//! [`DELIVER`]: a receiver may not answer, and a command may hang. One such process works in a state
//! directory. It may be killed at any moment: an attempt is counted before it is made, so the next process
//! makes another one. A receiver can therefore get a notification twice, with the same id.
//!
//! Notifications through one channel that come within a few seconds are sent as one; programs get the end of
//! each task alone. Each is counted and settled by itself.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::Duration;

use delegator_domain::notification::{Channel, Subject, Topic};
use delegator_notify::{MAX_MERGED, Notification, NotifySettings, SendError, send};
use delegator_registry::{DeliveryOutcome, Registry, StoredNotification};

use super::background_process::BackgroundProcess;
use super::delivery_content::{DeliveryContent, Relevance, load, relevance};
use super::delivery_policy::DeliveryPolicy;
use crate::Engine;
use crate::error::{EngineError, Result};
use crate::shared::dashboard_address::DashboardAddress;
use crate::shared::task_of_process::{DELIVER, record_delivery_process};

const MAX_AT_ONCE: usize = 8;
/// Notifications that are examined in one round.
const MAX_EXAMINED: usize = 64;
/// How soon a notification that another process enqueued is noticed while this one waits, and one that a
/// person has on a screen is examined again.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

static DELIVERY_PROCESS: BackgroundProcess = BackgroundProcess::new("start the delivery of notifications");

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

pub fn deliver(engine: &Engine, policy: &DeliveryPolicy) -> Result<()> {
    let Some(mut registry) = engine.find_registry()? else { return Ok(()) };
    // A process that enqueues a notification while the lock is held starts no other: so look again after the
    // release.
    while registry.next_notification_at()?.is_some() {
        let Some(lock) = registry.dir().try_lock_delivery()? else { return Ok(()) };
        // Without the record, a task may end the process, and the next one continues.
        let _ = record_delivery_process(&lock);
        let delivered = deliver_all(engine, &mut registry, policy);
        // A child that is just being started has a copy of the descriptor, so closing it would not be enough.
        let _ = lock.unlock();
        delivered?;
    }
    Ok(())
}

/// Notifications that are sent through one channel as one.
struct DeliveryBatch {
    channel: Channel,
    settings: NotifySettings,
    /// Whether others may be added.
    is_merged: bool,
    items: Vec<(StoredNotification, DeliveryContent)>,
}

/// An attempt that has begun, with the number that it has for each notification.
struct Delivery {
    channel: Channel,
    is_merged: bool,
    answer_timeout_sec: Option<u64>,
    next_delay_ms: i64,
    notifications: Vec<(StoredNotification, u32)>,
}

type EndedDelivery = (usize, Result<(), SendError>);

fn deliver_all(engine: &Engine, registry: &mut Registry, policy: &DeliveryPolicy) -> Result<()> {
    thread::scope(|scope| {
        let (sender, ended) = channel();
        let mut round = Round { engine, registry, policy, in_flight: Vec::new(), begun: 0 };
        loop {
            let held_until_ms = round.begin_all(scope, &sender)?;
            let next_at_ms = round.registry.next_notification_at()?;
            if next_at_ms.is_none() && round.in_flight.is_empty() {
                return Ok(());
            }
            let at_ms = held_until_ms.or(next_at_ms.filter(|_| round.in_flight.is_empty()));
            let wait = at_ms.map_or(POLL_INTERVAL, |at_ms| time_until(at_ms, engine.now_ms()));
            round.end_next(&ended, wait)?;
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
    Ok(registry.due_notifications(now_ms, now_ms + DeliveryPolicy::LONGEST_DELAY_MS, limit)?)
}

fn key(notification: &StoredNotification) -> (&Subject, Topic, Channel) {
    (&notification.subject, notification.topic, notification.channel)
}

struct Round<'a> {
    engine: &'a Engine,
    registry: &'a mut Registry,
    policy: &'a DeliveryPolicy,
    in_flight: Vec<(usize, Delivery)>,
    /// Numbers the attempts.
    begun: usize,
}

impl Round<'_> {
    /// Begins what is due. Returns when to look again at what is held back.
    fn begin_all<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        sender: &Sender<EndedDelivery>,
    ) -> Result<Option<i64>> {
        let mut held_until_ms = None;
        let mut hold = |at_ms: i64| held_until_ms = Some(held_until_ms.unwrap_or(i64::MAX).min(at_ms));
        let poll_at_ms = self.engine.now_ms() + i64::try_from(POLL_INTERVAL.as_millis()).unwrap_or(0);
        let mut batches: Vec<DeliveryBatch> = Vec::new();
        let examined = due(self.engine, self.registry, MAX_EXAMINED)?;
        // Otherwise those on a screen would keep others from being examined.
        let is_full = examined.len() == MAX_EXAMINED;
        for notification in examined {
            if self.is_in_flight(&notification) {
                continue;
            }
            match relevance(self.registry, &notification, self.engine.now_ms())? {
                Relevance::Applies => self.add(notification, &mut batches)?,
                Relevance::OnScreen if is_full => {
                    self.settle(&notification, DeliveryOutcome::Postponed { until_ms: poll_at_ms })?;
                }
                Relevance::OnScreen => hold(poll_at_ms),
                Relevance::Gone(reason) => self.settle(&notification, DeliveryOutcome::Dropped { reason })?,
            }
        }
        for batch in batches {
            let release_at_ms = self.release_at_ms(&batch)?;
            if self.in_flight.len() >= MAX_AT_ONCE || self.is_busy(&batch) {
                hold(poll_at_ms);
            } else if release_at_ms > self.engine.now_ms() {
                hold(release_at_ms);
            } else {
                self.begin(batch, scope, sender)?;
            }
        }
        Ok(held_until_ms)
    }

    fn is_in_flight(&self, notification: &StoredNotification) -> bool {
        let known = self.in_flight.iter().flat_map(|(_, delivery)| &delivery.notifications);
        known.into_iter().any(|(known, _)| key(known) == key(notification))
    }

    /// Those that are merged are sent one after the other.
    fn is_busy(&self, batch: &DeliveryBatch) -> bool {
        let same = |delivery: &Delivery| delivery.is_merged && delivery.channel == batch.channel;
        batch.is_merged && self.in_flight.iter().any(|(_, delivery)| same(delivery))
    }

    /// Adds a notification to those that are sent with it.
    fn add(&mut self, notification: StoredNotification, batches: &mut Vec<DeliveryBatch>) -> Result<()> {
        if notification.attempts >= self.policy.max_attempts {
            let error =
                notification.last_error.clone().unwrap_or_else(|| "the delivery was interrupted".to_owned());
            return self.settle(&notification, DeliveryOutcome::Failed { error });
        }
        let (settings, content) = match load(self.registry, &notification, self.engine.now_ms()) {
            Ok(loaded) => loaded,
            Err(error) => {
                return self.settle(&notification, DeliveryOutcome::Failed { error: error.to_string() });
            }
        };
        let channel = notification.channel;
        let is_merged = notification.topic != Topic::End || !settings.is_for_programs(channel);
        let same = |batch: &&mut DeliveryBatch| {
            is_merged
                && batch.is_merged
                && batch.items.len() < MAX_MERGED
                && (batch.channel, &batch.settings) == (channel, &settings)
        };
        match batches.iter_mut().find(same) {
            Some(batch) => batch.items.push((notification, content)),
            None => {
                batches.push(DeliveryBatch {
                    channel,
                    settings,
                    is_merged,
                    items: vec![(notification, content)],
                });
            }
        }
        Ok(())
    }

    /// Settles or postpones a notification without an attempt.
    fn settle(&mut self, notification: &StoredNotification, outcome: DeliveryOutcome) -> Result<()> {
        let now_ms = self.engine.now_ms();
        Ok(self.registry.end_delivery(notification, notification.attempts, &outcome, now_ms)?)
    }

    fn release_at_ms(&self, batch: &DeliveryBatch) -> Result<i64> {
        if !batch.is_merged {
            return Ok(i64::MIN);
        }
        let now_ms = self.engine.now_ms();
        let with_ends = !batch.settings.is_for_programs(batch.channel);
        let since_ms = now_ms - self.policy.merge_window_ms();
        let last_ms = self.registry.last_delivery(batch.channel, with_ends, since_ms, now_ms)?;
        let created_ms = batch.items.iter().map(|(notification, _)| notification.created_at_ms).min();
        Ok(self.policy.release_at_ms(created_ms.unwrap_or(now_ms).min(now_ms), last_ms))
    }

    /// Counts an attempt for each notification, and makes it in a thread of its own.
    fn begin<'scope>(
        &mut self,
        batch: DeliveryBatch,
        scope: &'scope Scope<'scope, '_>,
        sender: &Sender<EndedDelivery>,
    ) -> Result<()> {
        let DeliveryBatch { channel, settings, is_merged, items } = batch;
        let now_ms = self.engine.now_ms();
        let attempts = items.iter().map(|(notification, _)| notification.attempts).max().unwrap_or(0);
        let next_delay_ms = self.policy.delay_ms(attempts + 1, random(self.engine)?);
        let (mut notifications, mut contents) = (Vec::new(), Vec::new());
        for (notification, content) in items {
            let begun = self.registry.begin_delivery(&notification, now_ms + next_delay_ms)?;
            if let Some(number) = begun {
                notifications.push((notification, number));
                contents.push((content, number));
            }
        }
        if notifications.is_empty() {
            return Ok(());
        }
        let answer_timeout_sec = settings.answer_timeout_sec;
        let delivery = Delivery { channel, is_merged, answer_timeout_sec, next_delay_ms, notifications };
        self.begun += 1;
        let number = self.begun;
        self.in_flight.push((number, delivery));
        let dashboard = DashboardAddress::read(&self.engine.state_dir).ok().flatten();
        let sender = sender.clone();
        scope.spawn(move || {
            let with_link = |notification: Notification| match &dashboard {
                Some(address) => notification.with_link(address),
                None => notification,
            };
            let each = contents.iter();
            let each = each.map(|(content, number)| content.notification(*number, &settings, now_ms));
            let merged = with_link(Notification::merged(each.map(with_link).collect()));
            let result = send(channel, &settings, &merged, now_ms);
            // The receiver is gone only if the process ends with an error.
            let _ = sender.send((number, result));
        });
        Ok(())
    }

    /// Waits for the end of an attempt, at most this long, and records it.
    fn end_next(&mut self, ended: &Receiver<EndedDelivery>, wait: Duration) -> Result<()> {
        let Ok((number, result)) = ended.recv_timeout(wait) else { return Ok(()) };
        let Some(at) = self.in_flight.iter().position(|(begun, _)| *begun == number) else { return Ok(()) };
        let (_, delivery) = self.in_flight.swap_remove(at);
        let now_ms = self.engine.now_ms();
        for (notification, number) in &delivery.notifications {
            let outcome = match &result {
                Ok(()) => {
                    if let (Topic::Question(question), Some(seconds)) =
                        (notification.topic, delivery.answer_timeout_sec)
                    {
                        let until_ms = now_ms.saturating_add_unsigned(seconds.saturating_mul(1000));
                        self.registry.prolong_question(&notification.task, question, until_ms)?;
                    }
                    DeliveryOutcome::Delivered
                }
                Err(error) => self.policy.after_failure(
                    *number,
                    delivery.next_delay_ms,
                    notification.created_at_ms,
                    now_ms,
                    error.to_string(),
                ),
            };
            self.registry.end_delivery(notification, *number, &outcome, now_ms)?;
        }
        Ok(())
    }
}

fn random(engine: &Engine) -> Result<u32> {
    let [first, second, third, fourth, ..] = engine.system.random_bytes()?;
    Ok(u32::from_be_bytes([first, second, third, fourth]))
}
