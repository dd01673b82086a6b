//! One task through its life: every operation, applied and lost.

use crate::support::{
    World, begin, ended, finish, fresh_id, fresh_nonce, identity, slots, submit, submit_and_claim, working,
};
use delegator_domain::task::{End, ExitStatus, FailureKind, LimitKind, State};
use delegator_registry::{Attempt, Began, CancelOutcome, Cas, Finish, GivenBack, Lost, RegistryError};

#[test]
fn the_whole_way_is_remembered() {
    let world = World::new();
    let mut registry = world.registry();
    let claimed = working(&mut registry);
    let id = claimed.task.id.clone();
    assert_eq!((claimed.task.state, claimed.task.starts), (State::Starting, 1));
    let at_work = registry.get(&id).unwrap().unwrap();
    assert_eq!(at_work.supervisor, Some(identity(7)));
    assert_eq!(at_work.containment.as_deref(), Some("subreaper"));
    assert_eq!(at_work.ended, None);
    assert_eq!(registry.set_thread(&id, &claimed.nonce, "thread-1", 1_003).unwrap(), Cas::Applied(()));
    let end = End::Failed {
        kind: FailureKind::UsageLimit,
        message: "come back".into(),
        retry_at: Some("3 pm".into()),
    };
    let facts = Finish {
        end: end.clone(),
        exit: Some(ExitStatus::Signal(9)),
        ran_ms: Some(77),
        summary: Some("did nothing".into()),
        kill_incomplete: Some(serde_json::json!([4711])),
        tokens: None,
    };
    let attempt = Attempt::working(claimed.nonce.clone());
    assert_eq!(registry.finish(&id, &attempt, &facts, &slots(9), 2_000).unwrap(), Cas::Applied(vec![]));
    let task = world.registry().get(&id).unwrap().unwrap();
    let told = task.ended.clone().unwrap();
    assert_eq!((task.state, task.thread_id.as_deref()), (State::Failed, Some("thread-1")));
    assert_eq!((told.end, told.exit, told.ran_ms), (end, facts.exit, facts.ran_ms));
    assert_eq!(
        (told.summary, told.kill_incomplete, told.at_ms),
        (facts.summary, facts.kill_incomplete, 2_000)
    );
    let way: Vec<_> =
        registry.history_of(&id).unwrap().into_iter().map(|step| (step.to, step.at_ms, step.cause)).collect();
    assert_eq!(
        way,
        [
            (State::Queued, 1_000, "submitted".to_owned()),
            (State::Starting, 1_001, "claimed".to_owned()),
            (State::Working, 1_002, "supervisor began".to_owned()),
            (State::Failed, 2_000, "usage_limit".to_owned()),
        ]
    );
    assert!(!registry.dir().task(&id).path().join("launch").exists(), "launch outlived its task");
}

#[test]
fn every_end_reads_back() {
    let world = World::new();
    let mut registry = world.registry();
    let failed = |kind| End::Failed { kind, message: "m".to_owned(), retry_at: None };
    let ends = FailureKind::ALL.into_iter().map(failed).chain([
        End::Completed,
        End::Cancelled { reason: Some("enough".to_owned()) },
        End::Timeout(LimitKind::Idle),
        End::Timeout(LimitKind::Hard),
    ]);
    for end in ends {
        let id = ended(&mut registry, end.clone(), 2_000);
        let task = registry.get(&id).unwrap().unwrap();
        assert_eq!((task.state, task.ended.map(|told| told.end)), (end.state(), Some(end)));
    }
}

#[test]
fn the_oldest_is_claimed_while_a_slot_is_free() {
    let world = World::new();
    let mut registry = world.registry();
    let ids: Vec<_> = (0..4).map(|_| submit(&mut registry).id).collect();
    let first = registry.claim_next(&slots(2), 1).unwrap().unwrap();
    let second = registry.claim_next(&slots(2), 1).unwrap().unwrap();
    assert_eq!((&first.task.id, &second.task.id), (&ids[0], &ids[1]));
    assert_eq!(registry.claim_next(&slots(2), 1).unwrap(), None, "the slots are taken");
    begin(&mut registry, &first);
    assert_eq!(registry.claim_next(&slots(2), 1).unwrap(), None, "working takes a slot like starting");
    assert_eq!(registry.queue_position(&ids[3]).unwrap(), Some(1));
    let attempt = Attempt::working(first.nonce.clone());
    let done = registry.finish(&ids[0], &attempt, &Finish::bare(End::Completed), &slots(3), 5).unwrap();
    let Cas::Applied(successors) = done else { panic!("{done:?}") };
    assert_eq!(successors.iter().map(|claimed| &claimed.task.id).collect::<Vec<_>>(), [&ids[2], &ids[3]]);
    assert_ne!(successors[0].nonce, successors[1].nonce);
    assert_eq!(registry.claim_all(&slots(9), 6).unwrap(), []);
}

#[test]
fn a_paused_queue_stands_still() {
    let world = World::new();
    let mut registry = world.registry();
    let running = working(&mut registry);
    submit(&mut registry);
    registry.set_queue_paused(true).unwrap();
    assert!(world.registry().queue_paused().unwrap());
    assert_eq!(registry.claim_next(&slots(9), 1).unwrap(), None);
    finish(&mut registry, &running, End::Completed, 2);
    registry.set_queue_paused(false).unwrap();
    assert!(registry.claim_next(&slots(9), 1).unwrap().is_some());
}

#[test]
fn a_start_is_for_its_own_nonce_only() {
    let world = World::new();
    let mut registry = world.registry();
    let claimed = submit_and_claim(&mut registry);
    let id = &claimed.task.id;
    let lost = |actual| Began::Lost(Lost { actual });
    let other = registry.begin_work(id, &fresh_nonce(), &identity(1), None, 2).unwrap();
    assert_eq!(other, lost(Some(State::Starting)));
    assert_eq!(registry.give_back(id, &claimed.nonce, 3).unwrap(), GivenBack::Queued { starts: 1 });
    let late = registry.begin_work(id, &claimed.nonce, &identity(1), None, 4).unwrap();
    assert_eq!(late, lost(Some(State::Queued)));
    let again = registry.claim_next(&slots(1), 5).unwrap().unwrap();
    assert_eq!(
        registry.begin_work(id, &claimed.nonce, &identity(1), None, 6).unwrap(),
        lost(Some(State::Starting))
    );
    begin(&mut registry, &again);
    assert_eq!(
        registry.begin_work(id, &again.nonce, &identity(1), None, 7).unwrap(),
        lost(Some(State::Working))
    );
    assert_eq!(registry.begin_work(&fresh_id(), &again.nonce, &identity(1), None, 7).unwrap(), lost(None));
    assert_eq!(
        registry.give_back(id, &again.nonce, 8).unwrap(),
        GivenBack::Lost(Lost { actual: Some(State::Working) })
    );
}

#[test]
fn a_task_given_back_keeps_its_place_and_is_given_up_after_three_starts() {
    let world = World::new();
    let mut registry = world.registry();
    let first = submit(&mut registry).id;
    submit(&mut registry);
    for starts in 1..=3 {
        let claimed = registry.claim_next(&slots(1), 1).unwrap().unwrap();
        assert_eq!((&claimed.task.id, claimed.task.starts), (&first, starts));
        let given = registry.give_back(&first, &claimed.nonce, 2).unwrap();
        let expected = if starts < 3 { GivenBack::Queued { starts } } else { GivenBack::Failed { starts } };
        assert_eq!(given, expected);
    }
    let task = registry.get(&first).unwrap().unwrap();
    assert!(
        matches!(task.ended.unwrap().end, End::Failed { kind: FailureKind::SupervisorStartFailed, .. }),
        "{:?}",
        task.state
    );
    assert!(!registry.dir().task(&first).path().join("launch").exists());
}

#[test]
fn a_waiting_task_is_cancelled_at_once_and_never_starts() {
    let world = World::new();
    let mut registry = world.registry();
    let id = submit(&mut registry).id;
    assert_eq!(registry.request_cancel(&id, Some("no"), 5).unwrap(), CancelOutcome::Cancelled);
    assert_eq!(registry.claim_next(&slots(9), 6).unwrap(), None);
    let again = registry.request_cancel(&id, None, 7).unwrap();
    assert_eq!(again, CancelOutcome::AlreadyEnded { state: State::Cancelled });
    let task = registry.get(&id).unwrap().unwrap();
    assert_eq!(task.ended.unwrap().end, End::Cancelled { reason: Some("no".to_owned()) });
    assert!(!registry.dir().task(&id).path().join("launch").exists());
    assert_eq!(registry.request_cancel(&fresh_id(), None, 8).unwrap(), CancelOutcome::Unknown);
}

#[test]
fn a_cancel_during_the_start_keeps_the_agent_from_starting() {
    let world = World::new();
    let mut registry = world.registry();
    let claimed = submit_and_claim(&mut registry);
    let id = &claimed.task.id;
    let asked = world.registry().request_cancel(id, Some("stop"), 5).unwrap();
    assert!(
        matches!(asked, CancelOutcome::Requested { state: State::Starting, first: true, .. }),
        "{asked:?}"
    );
    let began = registry.begin_work(id, &claimed.nonce, &identity(7), None, 6).unwrap();
    assert!(matches!(&began, Began::CancelRequested(request) if request.at_ms == 5), "{began:?}");
    let attempt = Attempt::starting(claimed.nonce.clone());
    let end = Finish::bare(End::Cancelled { reason: Some("stop".to_owned()) });
    assert_eq!(registry.finish(id, &attempt, &end, &slots(1), 7).unwrap(), Cas::Applied(vec![]));
}

#[test]
fn a_cancelled_start_that_is_given_back_ends_there() {
    let world = World::new();
    let mut registry = world.registry();
    let claimed = submit_and_claim(&mut registry);
    registry.request_cancel(&claimed.task.id, None, 5).unwrap();
    assert_eq!(registry.give_back(&claimed.task.id, &claimed.nonce, 6).unwrap(), GivenBack::Cancelled);
}

#[test]
fn the_first_wish_is_kept() {
    let world = World::new();
    let mut registry = world.registry();
    let claimed = working(&mut registry);
    registry.request_cancel(&claimed.task.id, Some("first"), 5).unwrap();
    let asked = registry.request_cancel(&claimed.task.id, Some("second"), 6).unwrap();
    let CancelOutcome::Requested { request, first, .. } = asked else { panic!("{asked:?}") };
    assert_eq!((request.at_ms, request.reason.as_deref(), first), (5, Some("first"), false));
    assert_eq!(registry.active().unwrap()[0].cancel, Some(request));
}

#[test]
fn nothing_overwrites_an_end() {
    let world = World::new();
    let mut registry = world.registry();
    let claimed = working(&mut registry);
    let id = &claimed.task.id;
    finish(&mut registry, &claimed, End::Completed, 2_000);
    let before = registry.get(id).unwrap();
    let attempt = Attempt::working(claimed.nonce.clone());
    for end in [End::Completed, End::Cancelled { reason: None }, End::Timeout(LimitKind::Hard)] {
        let late = registry.finish(id, &attempt, &Finish::bare(end), &slots(9), 3_000).unwrap();
        assert_eq!(late, Cas::Lost(Lost { actual: Some(State::Completed) }));
    }
    let thread = registry.set_thread(id, &claimed.nonce, "late", 3_000).unwrap();
    assert_eq!(thread, Cas::Lost(Lost { actual: Some(State::Completed) }));
    registry.request_cancel(id, None, 3_000).unwrap();
    assert_eq!(registry.get(id).unwrap(), before);
}

#[test]
fn an_unlawful_end_is_an_error_of_the_caller() {
    let world = World::new();
    let mut registry = world.registry();
    let claimed = submit_and_claim(&mut registry);
    let attempt = Attempt::starting(claimed.nonce.clone());
    let done = registry.finish(&claimed.task.id, &attempt, &Finish::bare(End::Completed), &slots(1), 9);
    assert!(matches!(done, Err(RegistryError::Illegal(_))), "{done:?}");
}

#[test]
fn a_result_is_unread_until_somebody_looks() {
    let world = World::new();
    let mut registry = world.registry();
    let id = ended(&mut registry, End::Completed, 2_000);
    let unread = registry.unread("/home/me", 5).unwrap();
    assert_eq!((unread.count, unread.ids), (1, vec![id.clone()]));
    assert_eq!(registry.unread("/home/m", 5).unwrap().count, 0);
    assert!(registry.mark_read(&id, 3_000).unwrap());
    assert!(!registry.mark_read(&id, 4_000).unwrap());
    assert_eq!(registry.unread("/", 5).unwrap().count, 0);
    assert_eq!(registry.get(&id).unwrap().unwrap().ended.unwrap().read_at_ms, Some(3_000));
}

#[test]
fn a_change_is_noticed_whoever_made_it() {
    let world = World::new();
    let mut here = world.registry();
    let mut there = world.registry();
    let mut last = here.change_mark().unwrap();
    assert_eq!(here.change_mark().unwrap(), last);
    for by_us in [true, false, true, false] {
        submit(if by_us { &mut here } else { &mut there });
        let mark = here.change_mark().unwrap();
        assert_ne!(mark, last, "by us: {by_us}");
        last = mark;
    }
    here.counts().unwrap();
    assert_eq!(here.change_mark().unwrap(), last, "a question is no change");
}
