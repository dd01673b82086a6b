//! The outbox of notifications: written with the end of a task, attempts counted before they are made, each settled once.

use delegator_domain::notification::{Channel, DeliveryState, NotifyPlan};
use delegator_domain::task::{EndKind, TaskEnd, TaskId};
use delegator_registry::{
    CancelOutcome, DeliveryOutcome, NewTask, Registry, StoredNotification, TaskFile, TaskNotify,
};

use crate::support::{World, begin, finish, new_task, slots, submit, working};

const LATEST: i64 = 1_000_000;

fn notifying(on: &[EndKind], channels: &[Channel]) -> NewTask {
    let plan = NotifyPlan {
        on: on.iter().map(|end| (*end).into()).collect(),
        channels: channels.to_vec(),
        each_task: false,
    };
    NewTask { notify: Some(TaskNotify { plan, settings: b"{}".to_vec() }), ..new_task() }
}

/// Runs a task with this plan to its completion.
fn complete(registry: &mut Registry, on: &[EndKind], channels: &[Channel]) -> TaskId {
    registry.submit(&notifying(on, channels), b"launch", 1_000).unwrap();
    let claim = registry.claim_next(&slots(usize::MAX), 1_001).unwrap().unwrap();
    begin(registry, &claim);
    finish(registry, &claim, TaskEnd::Completed, 2_000);
    claim.task.id
}

fn due(registry: &Registry, now_ms: i64) -> Vec<StoredNotification> {
    registry.due_notifications(now_ms, LATEST, 10).unwrap()
}

fn has_settings(registry: &Registry, id: &TaskId) -> bool {
    registry.dir().task(id).file(TaskFile::Notify).exists()
}

#[test]
fn the_end_of_a_task_enqueues_one_notification_per_channel() {
    let world = World::new();
    let mut registry = world.registry();
    let id = complete(&mut registry, &[EndKind::Completed], &[Channel::Command, Channel::Webhook]);
    let found: Vec<_> =
        due(&registry, 2_000).into_iter().map(|found| (found.task, found.channel, found.attempts)).collect();
    assert_eq!(found, [(id.clone(), Channel::Command, 0), (id.clone(), Channel::Webhook, 0)]);
    assert_eq!(registry.next_notification_at().unwrap(), Some(2_000));
    assert!(has_settings(&registry, &id));
}

#[test]
fn other_ends_and_tasks_without_a_plan_enqueue_nothing() {
    let world = World::new();
    let mut registry = world.registry();
    let id = complete(&mut registry, &[EndKind::Failed], &[Channel::Command]);
    let plain = working(&mut registry);
    finish(&mut registry, &plain, TaskEnd::Completed, 2_000);
    assert_eq!((due(&registry, 9_000), registry.next_notification_at().unwrap()), (Vec::new(), None));
    assert!(!has_settings(&registry, &id), "settings that nothing needs are removed at the end");
}

#[test]
fn the_cancel_of_a_queued_task_enqueues_its_notification() {
    let world = World::new();
    let mut registry = world.registry();
    let id =
        registry.submit(&notifying(&[EndKind::Cancelled], &[Channel::Desktop]), b"", 1_000).unwrap().task.id;
    assert_eq!(registry.request_cancel(&id, None, 1_500).unwrap(), CancelOutcome::Cancelled);
    assert_eq!(due(&registry, 1_500).len(), 1);
    assert!(has_settings(&registry, &id));
}

#[test]
fn an_attempt_is_counted_before_it_is_made_and_settled_once() {
    let world = World::new();
    let mut registry = world.registry();
    let id = complete(&mut registry, &[EndKind::Completed], &[Channel::Webhook]);
    let first = due(&registry, 2_000).remove(0);
    assert_eq!(registry.begin_delivery(&first, 7_000).unwrap(), Some(1));
    assert_eq!(registry.begin_delivery(&first, 7_000).unwrap(), None, "another process was first");
    // The process was killed here: the attempt counts, and the next one is due later.
    assert_eq!(due(&registry, 6_999), []);
    let second = due(&registry, 7_000).remove(0);
    assert_eq!(registry.begin_delivery(&second, 12_000).unwrap(), Some(2));
    let retry = DeliveryOutcome::Retry {
        at_ms: 17_000,
        error: "refused with sk-proj-A1b2C3d4A1b2C3d4A1b2C3d4A1b2C3d4".to_owned(),
    };
    registry.end_delivery(&first, 1, &DeliveryOutcome::Delivered, 7_001).unwrap();
    assert_eq!(due(&registry, 12_000).len(), 1, "an older attempt settles nothing");
    registry.end_delivery(&first, 2, &retry, 7_001).unwrap();
    assert_eq!(due(&registry, 16_999), []);
    let third = due(&registry, 17_000).remove(0);
    let error = third.last_error.clone().unwrap();
    assert!(error.starts_with("refused with") && !error.contains("A1b2"), "{error}");
    assert_eq!(registry.begin_delivery(&third, 30_000).unwrap(), Some(3));
    registry.end_delivery(&first, 3, &DeliveryOutcome::Delivered, 17_001).unwrap();
    assert_eq!((due(&registry, 90_000), registry.next_notification_at().unwrap()), (Vec::new(), None));
    assert!(!has_settings(&registry, &id));
}

#[test]
fn a_failed_notification_is_listed_and_not_tried_again() {
    let world = World::new();
    let mut registry = world.registry();
    let id = complete(&mut registry, &[EndKind::Completed], &[Channel::Command, Channel::Webhook]);
    let webhook = due(&registry, 2_000).remove(1);
    registry.begin_delivery(&webhook, 3_000).unwrap();
    let failed = DeliveryOutcome::Failed { error: "status 500".to_owned() };
    registry.end_delivery(&webhook, 1, &failed, 2_001).unwrap();
    let (pending, failed) = registry.undelivered_notifications(10).unwrap();
    assert_eq!(pending.iter().map(|found| found.channel).collect::<Vec<_>>(), [Channel::Command]);
    let failed: Vec<_> = failed.iter().map(|found| (found.state, found.last_error.as_deref())).collect();
    assert_eq!(failed, [(DeliveryState::Failed, Some("status 500"))]);
    assert!(has_settings(&registry, &id), "the command still needs the settings");
}

#[test]
fn notifications_that_were_not_delivered_can_be_retried_with_other_settings() {
    let world = World::new();
    let mut registry = world.registry();
    let all = [Channel::Command, Channel::Desktop, Channel::Webhook];
    let id = complete(&mut registry, &[EndKind::Completed], &all);
    let outcomes = [
        DeliveryOutcome::Failed { error: "wrong URL".to_owned() },
        DeliveryOutcome::Retry { at_ms: 9_000, error: "wrong URL".to_owned() },
        DeliveryOutcome::Delivered,
    ];
    let found = due(&registry, 2_000);
    for (found, outcome) in found.iter().zip(outcomes) {
        registry.begin_delivery(found, 8_000).unwrap();
        registry.end_delivery(found, 1, &outcome, 2_001).unwrap();
    }
    assert_eq!(registry.retry_notifications(&found, b"corrected", 3_000).unwrap(), 2);
    let retried: Vec<_> = due(&registry, 3_000).iter().map(|found| (found.channel, found.attempts)).collect();
    assert_eq!(retried, [(found[0].channel, 0), (found[1].channel, 0)]);
    let settings = registry.dir().task(&id).read(TaskFile::Notify).unwrap();
    assert_eq!(settings.as_deref(), Some(&b"corrected"[..]));
    assert_eq!(registry.undelivered_notifications(10).unwrap().1, []);
}

#[test]
fn a_time_from_before_the_clock_was_set_back_is_due() {
    let world = World::new();
    let mut registry = world.registry();
    complete(&mut registry, &[EndKind::Completed], &[Channel::Command]);
    let found = due(&registry, 2_000).remove(0);
    registry.begin_delivery(&found, LATEST + 1).unwrap();
    assert_eq!(due(&registry, 2_000).len(), 1);
}

#[test]
fn pruning_a_task_removes_its_notifications() {
    let world = World::new();
    let mut registry = world.registry();
    let id = complete(&mut registry, &[EndKind::Completed], &[Channel::Command]);
    submit(&mut registry);
    registry.prune(&[id]).unwrap();
    assert_eq!(registry.undelivered_notifications(10).unwrap(), (Vec::new(), Vec::new()));
}

#[test]
fn one_process_holds_the_lock_of_the_delivery() {
    let world = World::new();
    let held = world.dir().try_lock_delivery().unwrap();
    assert!(held.is_some() && world.dir().try_lock_delivery().unwrap().is_none());
    assert!(world.dir().try_lock_pruning().unwrap().is_some(), "pruning has a lock of its own");
    drop(held);
    assert!(world.dir().try_lock_delivery().unwrap().is_some());
}
