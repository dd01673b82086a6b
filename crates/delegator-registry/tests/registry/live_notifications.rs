//! Notifications about running tasks: enqueued with what they are about, and kept apart from those that older programs read.

use delegator_domain::notification::{Channel, DeliveryState, NotifyEvent, NotifyPlan, Subject, Topic};
use delegator_domain::question::{Question, QuestionKind, QuestionNumber};
use delegator_domain::task::{EndKind, FailureKind, TaskEnd};
use delegator_registry::{
    Cas, Claim, DeliveryOutcome, NewTask, Registry, StoredNotification, TaskFile, TaskNotify,
};

use crate::support::{World, begin, finish, fresh_nonce, new_task, slots};

const EVENTS: [NotifyEvent; 3] = [NotifyEvent::Question, NotifyEvent::Budget, NotifyEvent::Stuck];

/// A working task that notifies of these events.
fn notifying(registry: &mut Registry, on: &[NotifyEvent], channels: &[Channel]) -> Claim {
    let plan = NotifyPlan { on: on.to_vec(), channels: channels.to_vec(), each_task: false };
    let notify = Some(TaskNotify { plan, settings: b"{}".to_vec() });
    registry.submit(&NewTask { notify, ..new_task() }, b"launch", 1_000).unwrap();
    let claim = registry.claim_next(&slots(usize::MAX), 1_001).unwrap().unwrap();
    begin(registry, &claim);
    claim
}

fn ask(registry: &mut Registry, claim: &Claim, number: u32) -> Cas<()> {
    let question = Question {
        number: QuestionNumber(number),
        kind: QuestionKind::Question,
        title: "Which?".to_owned(),
        detail: None,
        options: Vec::new(),
        free_text: true,
    };
    registry.ask(&claim.task.id, &claim.nonce, &question, 9_000, 2_000).unwrap()
}

fn due(registry: &Registry) -> Vec<StoredNotification> {
    registry.due_notifications(90_000, 1_000_000, 10).unwrap()
}

fn topics(registry: &Registry) -> Vec<Topic> {
    due(registry).iter().map(|found| found.topic).collect()
}

#[test]
fn each_question_is_enqueued_with_it_and_the_others_once() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = notifying(&mut registry, &EVENTS, &[Channel::Webhook]);
    let id = &claim.task.id;
    for number in [1, 2] {
        assert_eq!(ask(&mut registry, &claim, number), Cas::Applied(()));
    }
    for (topic, detail) in [(Topic::Budget, "80 of 100"), (Topic::Stuck, "quiet"), (Topic::Stuck, "again")] {
        registry.notify(id, &claim.nonce, topic, detail, 2_000).unwrap();
    }
    let late = registry.notify(id, &fresh_nonce(), Topic::Budget, "late", 2_000).unwrap();
    assert!(matches!(late, Cas::Lost(_)), "another attempt runs");
    let found = due(&registry);
    let questions = [1, 2].map(|number| Topic::Question(QuestionNumber(number)));
    let mut topics: Vec<Topic> = found.iter().map(|found| found.topic).collect();
    topics.sort();
    assert_eq!(topics, [questions[0], questions[1], Topic::Budget, Topic::Stuck]);
    assert!(found.iter().all(|found| found.subject == Subject::Task(id.clone()) && found.task == *id));
    let stuck = found.iter().find(|found| found.topic == Topic::Stuck).unwrap();
    assert_eq!(stuck.detail.as_deref(), Some("quiet"));
}

#[test]
fn a_plan_without_the_event_enqueues_nothing() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = notifying(&mut registry, &[NotifyEvent::Failed], &[Channel::Webhook]);
    assert_eq!(ask(&mut registry, &claim, 1), Cas::Applied(()));
    registry.notify(&claim.task.id, &claim.nonce, Topic::Stuck, "quiet", 2_000).unwrap();
    assert_eq!(topics(&registry), []);
}

/// It selects rows by the states pending and failed.
#[test]
fn an_older_program_reads_neither_the_rows_nor_the_plan() {
    let world = World::new();
    let mut registry = world.registry();
    let claim =
        notifying(&mut registry, &[NotifyEvent::Completed, NotifyEvent::Question], &[Channel::Webhook]);
    ask(&mut registry, &claim, 1);
    let row = due(&registry).remove(0);
    registry.begin_delivery(&row, 3_000).unwrap();
    registry.end_delivery(&row, 1, &DeliveryOutcome::Failed { error: "x".to_owned() }, 3_000).unwrap();
    ask(&mut registry, &claim, 2);
    let db = rusqlite::Connection::open(world.path().join("registry.db")).unwrap();
    let count = |state| {
        let sql = "SELECT count(*) FROM notifications WHERE state = ?1";
        db.query_row(sql, [state], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(
        (count("pending"), count("failed"), count("live_pending"), count("live_failed")),
        (0, 0, 1, 1)
    );
    let plan: String = db.query_row("SELECT notify FROM tasks", (), |row| row.get(0)).unwrap();
    assert_eq!(plan, "completed/webhook");
}

#[test]
fn settled_ones_are_listed_and_the_settings_stay_until_the_end() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = notifying(&mut registry, &EVENTS, &[Channel::Webhook, Channel::Desktop]);
    let id = &claim.task.id;
    ask(&mut registry, &claim, 1);
    let found = due(&registry);
    let delivered = DeliveryOutcome::Delivered;
    for (row, outcome) in found.iter().zip([delivered, DeliveryOutcome::Dropped { reason: "answered" }]) {
        let number = registry.begin_delivery(row, 3_000).unwrap().unwrap();
        registry.end_delivery(row, number, &outcome, 4_000).unwrap();
    }
    let states: Vec<_> = registry
        .recent_notifications(9)
        .unwrap()
        .into_iter()
        .map(|found| (found.channel, found.state, found.last_error))
        .collect();
    let dropped = (Channel::Webhook, DeliveryState::Dropped, Some("answered".to_owned()));
    assert!(states.contains(&(Channel::Desktop, DeliveryState::Delivered, None)), "{states:?}");
    assert!(states.contains(&dropped), "{states:?}");
    assert_eq!(registry.notifications_of(id).unwrap().len(), 2);
    let last =
        |channel, with_ends, since_ms| registry.last_delivery(channel, with_ends, since_ms, 5_000).unwrap();
    assert_eq!(last(Channel::Desktop, false, 3_000), Some(4_000));
    assert_eq!((last(Channel::Webhook, true, 0), last(Channel::Desktop, true, 4_001)), (None, None));
    let settings = registry.dir().task(id).file(TaskFile::Notify);
    assert!(settings.exists(), "the running task may need them");
    finish(&mut registry, &claim, TaskEnd::Completed, 5_000);
    assert!(!settings.exists());
}

#[test]
fn the_end_of_a_task_on_a_screen_is_not_sent() {
    for is_open in [true, false] {
        let world = World::new();
        let mut registry = world.registry();
        let claim = notifying(&mut registry, &[NotifyEvent::Completed], &[Channel::Desktop]);
        let dir = registry.dir().task(&claim.task.id);
        let screens = [dir.mark_screen().unwrap(), dir.mark_screen().unwrap()];
        assert!(dir.is_on_screen());
        let screens = is_open.then_some(screens);
        finish(&mut registry, &claim, TaskEnd::Completed, 5_000);
        assert_eq!(topics(&registry), if is_open { vec![] } else { vec![Topic::End] });
        let recent = registry.recent_notifications(9).unwrap();
        let reasons: Vec<_> = recent.iter().map(|found| found.last_error.as_deref()).collect();
        assert_eq!(reasons, if is_open { vec![Some("it was on a screen")] } else { vec![] });
        drop(screens);
        assert!(!dir.is_on_screen());
    }
}

#[test]
fn usage_limit_alone_means_only_these_failures() {
    for (kind, count) in [(FailureKind::UsageLimit, 1), (FailureKind::AgentExit, 0)] {
        let world = World::new();
        let mut registry = world.registry();
        let claim = notifying(&mut registry, &[NotifyEvent::UsageLimit], &[Channel::Desktop]);
        finish(&mut registry, &claim, TaskEnd::failed(kind, "x"), 5_000);
        assert_eq!(due(&registry).len(), count);
        assert_eq!(TaskEnd::failed(kind, "x").kind(None), EndKind::Failed);
    }
}
