//! The message queue of a task: stored, delivered once, settled.

use std::collections::BTreeSet;

use delegator_domain::message::{Delivery, MessageNumber, MessageState};
use delegator_domain::task::{State, TaskEnd, TaskId};
use delegator_registry::{Cas, Claim, EnqueueOutcome, MAX_QUEUED_MESSAGES, Message, Registry};

use crate::support::{World, ended, finish, fresh_id, fresh_nonce, modes_below, submit, working};

fn send(registry: &mut Registry, id: &TaskId, text: &str, delivery: Delivery) -> EnqueueOutcome {
    registry.enqueue(id, text, delivery, &fresh_nonce(), 5).unwrap()
}

fn queued(outcome: EnqueueOutcome) -> Message {
    match outcome {
        EnqueueOutcome::Queued(message) => message,
        other => panic!("{other:?}"),
    }
}

fn take(registry: &mut Registry, claim: &Claim, only_now: bool) -> Option<(u32, String)> {
    let taken = registry.take_next_message(&claim.task.id, &claim.nonce, only_now, 6).unwrap();
    taken.map(|message| (message.number.0, message.text))
}

fn states(registry: &Registry, id: &TaskId) -> Vec<MessageState> {
    registry.last_messages(id, 100).unwrap().into_iter().map(|message| message.state).collect()
}

/// The number of files with texts of messages.
fn text_files(registry: &Registry, id: &TaskId) -> usize {
    let folder = registry.dir().task(id).path().join("messages");
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn messages_are_delivered_in_order_and_now_overtakes_next() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    for (text, delivery) in [
        ("one", Delivery::Next),
        ("two\nlines", Delivery::Next),
        ("urgent", Delivery::Now),
        ("more urgent", Delivery::Now),
    ] {
        queued(send(&mut registry, id, text, delivery));
    }
    assert_eq!(take(&mut registry, &claim, true), Some((3, "urgent".into())));
    assert_eq!(take(&mut registry, &claim, false), Some((4, "more urgent".into())));
    assert_eq!(take(&mut registry, &claim, true), None);
    assert_eq!(take(&mut registry, &claim, false), Some((1, "one".into())));
    assert_eq!(take(&mut registry, &claim, false), Some((2, "two\nlines".into())));
    assert_eq!(take(&mut registry, &claim, false), None);
    assert_eq!(states(&registry, id), [MessageState::Delivered; 4]);
}

#[test]
fn a_message_is_stored_privately_and_its_text_is_removed_when_it_is_settled() {
    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    let text = format!("the token is {SECRET}");
    let message = queued(send(&mut registry, id, &text, Delivery::Next));
    assert_eq!(
        (message.number, message.state, message.sent_at_ms),
        (MessageNumber(1), MessageState::Queued, 5)
    );
    assert_eq!(message.bytes, text.len() as u64);
    assert!(!message.excerpt.contains(SECRET) && message.excerpt.starts_with("the token is "), "{message:?}");
    for (path, mode) in modes_below(registry.dir().task(id).path()) {
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    assert_eq!(text_files(&registry, id), 1);
    assert_eq!(take(&mut registry, &claim, false), Some((1, text)));
    let settle = |registry: &mut Registry, refusal| {
        registry.settle_message(id, &claim.nonce, MessageNumber(1), refusal, 7).unwrap()
    };
    assert_eq!(settle(&mut registry, None), Cas::Applied(()));
    assert_eq!(text_files(&registry, id), 0);
    let lost = settle(&mut registry, Some("late"));
    assert!(matches!(lost, Cas::Lost(_)), "a settled message does not change");
    let stored = &registry.last_messages(id, 9).unwrap()[0];
    assert_eq!((stored.state, stored.reason.clone()), (MessageState::Accepted, None));
    assert_eq!((stored.delivered_at_ms, stored.settled_at_ms), (Some(6), Some(7)));
    for file in ["registry.db", "registry.db-wal"] {
        let bytes = std::fs::read(registry.dir().path().join(file)).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()), "{file}");
    }
}

#[test]
fn the_end_of_a_task_settles_every_message() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    for text in ["accepted", "refused", "unconfirmed", "waiting"] {
        queued(send(&mut registry, id, text, Delivery::Next));
    }
    for _ in 0..3 {
        take(&mut registry, &claim, false).unwrap();
    }
    for (number, refusal) in [(1, None), (2, Some("no"))] {
        registry.settle_message(id, &claim.nonce, MessageNumber(number), refusal, 7).unwrap();
    }
    finish(&mut registry, &claim, TaskEnd::Completed, 8);
    let messages = registry.last_messages(id, 9).unwrap();
    let settled: Vec<_> = messages.iter().map(|message| (message.state, message.reason.as_deref())).collect();
    assert_eq!(
        settled,
        [
            (MessageState::Accepted, None),
            (MessageState::Failed, Some("no")),
            (MessageState::Unknown, Some("the task ended before the agent confirmed it")),
            (MessageState::Failed, Some("the task ended before it was delivered")),
        ]
    );
    let counts = registry.message_counts(id).unwrap();
    assert_eq!((counts.accepted, counts.failed, counts.unknown, counts.total()), (1, 2, 1, 4));
    assert_eq!(text_files(&registry, id), 0);
    assert_eq!(take(&mut registry, &claim, false), None);
}

#[test]
fn only_a_task_that_has_not_ended_takes_messages() {
    let world = World::new();
    let mut registry = world.registry();
    let waiting = submit(&mut registry).id;
    queued(send(&mut registry, &waiting, "for later", Delivery::Next));
    registry.request_cancel(&waiting, None, 2).unwrap();
    assert_eq!(states(&registry, &waiting), [MessageState::Failed]);
    let done = ended(&mut registry, TaskEnd::Completed, 2);
    let outcome = send(&mut registry, &done, "too late", Delivery::Next);
    assert_eq!(outcome, EnqueueOutcome::Ended { state: State::Completed });
    assert_eq!(text_files(&registry, &done), 0);
    assert_eq!(send(&mut registry, &fresh_id(), "to whom", Delivery::Next), EnqueueOutcome::Unknown);
}

#[test]
fn only_the_current_attempt_takes_and_settles_messages() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    queued(send(&mut registry, id, "one", Delivery::Next));
    let other = fresh_nonce();
    assert_eq!(registry.take_next_message(id, &other, false, 6).unwrap(), None);
    assert_eq!(states(&registry, id), [MessageState::Queued]);
    take(&mut registry, &claim, false).unwrap();
    let settled = registry.settle_message(id, &other, MessageNumber(1), None, 7).unwrap();
    assert!(matches!(settled, Cas::Lost(_)));
}

#[test]
fn a_message_whose_text_is_lost_fails_and_the_next_is_delivered() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    queued(send(&mut registry, id, "lost", Delivery::Next));
    let folder = registry.dir().task(id).path().join("messages");
    for entry in std::fs::read_dir(&folder).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    queued(send(&mut registry, id, "kept", Delivery::Next));
    assert_eq!(take(&mut registry, &claim, false), Some((2, "kept".into())));
    assert_eq!(states(&registry, id), [MessageState::Failed, MessageState::Delivered]);
}

#[test]
fn the_number_of_waiting_messages_is_limited() {
    let world = World::in_memory();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    for _ in 0..MAX_QUEUED_MESSAGES {
        queued(send(&mut registry, id, "x", Delivery::Next));
    }
    assert_eq!(send(&mut registry, id, "one too many", Delivery::Now), EnqueueOutcome::Full);
    assert_eq!(text_files(&registry, id), MAX_QUEUED_MESSAGES as usize);
    take(&mut registry, &claim, false).unwrap();
    queued(send(&mut registry, id, "fits again", Delivery::Next));
}

#[test]
fn concurrent_senders_get_different_numbers_and_nothing_is_lost() {
    const SENDERS: usize = 4;
    const EACH: usize = 25;
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    let mut registries: Vec<Registry> = (0..SENDERS).map(|_| world.registry()).collect();
    std::thread::scope(|scope| {
        for (sender, registry) in registries.iter_mut().enumerate() {
            scope.spawn(move || {
                for index in 0..EACH {
                    queued(send(registry, id, &format!("{sender} {index}"), Delivery::Next));
                }
            });
        }
    });
    let (mut numbers, mut last) = (BTreeSet::new(), [None; SENDERS]);
    while let Some((number, text)) = take(&mut registry, &claim, false) {
        numbers.insert(number);
        let (sender, index) = text.split_once(' ').unwrap();
        let last: &mut Option<usize> = &mut last[sender.parse::<usize>().unwrap()];
        let index: usize = index.parse().unwrap();
        assert_eq!(index, last.map_or(0, |last| last + 1), "the messages of a sender keep their order");
        *last = Some(index);
    }
    assert_eq!(numbers.len(), SENDERS * EACH);
}

#[test]
fn pruning_a_task_removes_its_messages_and_an_orphaned_text_is_a_leftover() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    queued(send(&mut registry, id, "x", Delivery::Next));
    finish(&mut registry, &claim, TaskEnd::Completed, 8);
    // As a sender leaves it that was killed after the end of the task.
    let folder = registry.dir().task(id).path().join("messages");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("x"), "x").unwrap();
    let found = registry.orphaned_launches(0).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    registry.remove_orphans(&found).unwrap();
    assert!(!folder.exists());
    registry.prune(std::slice::from_ref(id)).unwrap();
    assert_eq!(registry.last_messages(id, 9).unwrap(), []);
    registry.check().unwrap();
}
