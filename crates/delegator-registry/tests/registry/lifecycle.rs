//! One task through its lifecycle: every operation, applied and lost.

use crate::support::{
    World, begin, ended, finish, fresh_id, fresh_nonce, identity, slots, submit, submit_and_claim, working,
};
use delegator_domain::task::{ExitStatus, FailureKind, LimitKind, State, TaskEnd, Verification};
use delegator_registry::{
    Attempt, BeginOutcome, CancelOutcome, Cas, ChangedLines, Filter, Finish, GiveBackOutcome, Lost, Registry,
    RegistryError,
};

#[test]
fn every_state_change_is_recorded() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = claim.task.id.clone();
    assert_eq!((claim.task.state, claim.task.starts), (State::Starting, 1));
    let at_work = registry.get(&id).unwrap().unwrap();
    assert_eq!(at_work.supervisor, Some(identity(7)));
    assert_eq!(at_work.containment.as_deref(), Some("subreaper"));
    assert_eq!(at_work.ended, None);
    assert_eq!(registry.set_thread(&id, &claim.nonce, "thread-1", 1_003).unwrap(), Cas::Applied(()));
    let end = TaskEnd::Failed {
        kind: FailureKind::UsageLimit,
        message: "come back".into(),
        retry_at_ms: Some(1_795_189_320_000),
    };
    let report = Finish {
        end: end.clone(),
        exit: Some(ExitStatus::Signal(9)),
        ran_ms: Some(77),
        summary: Some("did nothing".into()),
        survivors: vec![4711],
        verification: Some(Verification::Refuted),
        lines: Some(ChangedLines { added: 7, deleted: 0 }),
        turns: Some(1),
        cost_microdollars: Some(5),
        tokens: None,
    };
    let attempt = Attempt::working(claim.nonce.clone());
    assert_eq!(registry.finish(&id, &attempt, &report, &slots(9), 2_000).unwrap(), Cas::Applied(vec![]));
    let task = world.registry().get(&id).unwrap().unwrap();
    let recorded = task.ended.clone().unwrap();
    assert_eq!((task.state, task.thread_id.as_deref()), (State::Failed, Some("thread-1")));
    assert_eq!((recorded.end, recorded.exit, recorded.ran_ms), (end, report.exit, report.ran_ms));
    assert_eq!(
        (recorded.verification, recorded.lines, recorded.cost_microdollars),
        (report.verification, report.lines, report.cost_microdollars)
    );
    assert_eq!(
        (recorded.summary, recorded.survivors, recorded.at_ms),
        (report.summary, report.survivors, 2_000)
    );
    let history: Vec<_> =
        registry.history_of(&id).unwrap().into_iter().map(|step| (step.to, step.at_ms, step.cause)).collect();
    assert_eq!(
        history,
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
    let failed = |kind| TaskEnd::Failed { kind, message: "m".to_owned(), retry_at_ms: None };
    let ends = FailureKind::ALL.into_iter().map(failed).chain([
        TaskEnd::Completed,
        TaskEnd::Cancelled { reason: Some("enough".to_owned()) },
        TaskEnd::Timeout(LimitKind::Idle),
        TaskEnd::Timeout(LimitKind::Hard),
    ]);
    for end in ends {
        let id = ended(&mut registry, end.clone(), 2_000);
        let task = registry.get(&id).unwrap().unwrap();
        assert_eq!((task.state, task.ended.map(|record| record.end)), (end.state(), Some(end)));
        // A usage limit pauses the agent.
        registry.resume_agent(&task.agent, 2_000).unwrap();
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
    let done = registry.finish(&ids[0], &attempt, &Finish::bare(TaskEnd::Completed), &slots(3), 5).unwrap();
    let Cas::Applied(successors) = done else { panic!("{done:?}") };
    assert_eq!(successors.iter().map(|claim| &claim.task.id).collect::<Vec<_>>(), [&ids[2], &ids[3]]);
    assert_ne!(successors[0].nonce, successors[1].nonce);
    assert_eq!(registry.claim_all(&slots(9), 6).unwrap(), []);
}

#[test]
fn a_paused_queue_starts_nothing() {
    let world = World::new();
    let mut registry = world.registry();
    let running = working(&mut registry);
    submit(&mut registry);
    registry.set_queue_paused(true).unwrap();
    assert!(world.registry().queue_paused().unwrap());
    assert_eq!(registry.claim_next(&slots(9), 1).unwrap(), None);
    finish(&mut registry, &running, TaskEnd::Completed, 2);
    registry.set_queue_paused(false).unwrap();
    assert!(registry.claim_next(&slots(9), 1).unwrap().is_some());
}

#[test]
fn begin_work_requires_the_nonce_of_the_current_attempt() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = submit_and_claim(&mut registry);
    let id = &claim.task.id;
    let lost = |actual| BeginOutcome::Lost(Lost { actual });
    let other = registry.begin_work(id, &fresh_nonce(), &identity(1), None, 2).unwrap();
    assert_eq!(other, lost(Some(State::Starting)));
    assert_eq!(registry.give_back(id, &claim.nonce, 3).unwrap(), GiveBackOutcome::Queued { starts: 1 });
    let late = registry.begin_work(id, &claim.nonce, &identity(1), None, 4).unwrap();
    assert_eq!(late, lost(Some(State::Queued)));
    let again = registry.claim_next(&slots(1), 5).unwrap().unwrap();
    assert_eq!(
        registry.begin_work(id, &claim.nonce, &identity(1), None, 6).unwrap(),
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
        GiveBackOutcome::Lost(Lost { actual: Some(State::Working) })
    );
}

#[test]
fn a_returned_task_keeps_its_queue_position_and_fails_after_three_starts() {
    let world = World::new();
    let mut registry = world.registry();
    let first = submit(&mut registry).id;
    submit(&mut registry);
    for starts in 1..=3 {
        let claim = registry.claim_next(&slots(1), 1).unwrap().unwrap();
        assert_eq!((&claim.task.id, claim.task.starts), (&first, starts));
        let outcome = registry.give_back(&first, &claim.nonce, 2).unwrap();
        let expected =
            if starts < 3 { GiveBackOutcome::Queued { starts } } else { GiveBackOutcome::Failed { starts } };
        assert_eq!(outcome, expected);
    }
    let task = registry.get(&first).unwrap().unwrap();
    assert!(
        matches!(task.ended.unwrap().end, TaskEnd::Failed { kind: FailureKind::SupervisorStartFailed, .. }),
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
    assert_eq!(task.ended.unwrap().end, TaskEnd::Cancelled { reason: Some("no".to_owned()) });
    assert!(!registry.dir().task(&id).path().join("launch").exists());
    assert_eq!(registry.request_cancel(&fresh_id(), None, 8).unwrap(), CancelOutcome::Unknown);
}

#[test]
fn a_cancel_during_start_prevents_the_agent_from_starting() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = submit_and_claim(&mut registry);
    let id = &claim.task.id;
    let outcome = world.registry().request_cancel(id, Some("stop"), 5).unwrap();
    assert!(
        matches!(outcome, CancelOutcome::Requested { state: State::Starting, first: true, .. }),
        "{outcome:?}"
    );
    let began = registry.begin_work(id, &claim.nonce, &identity(7), None, 6).unwrap();
    assert!(matches!(&began, BeginOutcome::CancelRequested(request) if request.at_ms == 5), "{began:?}");
    let attempt = Attempt::starting(claim.nonce.clone());
    let end = Finish::bare(TaskEnd::Cancelled { reason: Some("stop".to_owned()) });
    assert_eq!(registry.finish(id, &attempt, &end, &slots(1), 7).unwrap(), Cas::Applied(vec![]));
}

#[test]
fn a_cancelled_task_ends_when_its_attempt_is_returned() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = submit_and_claim(&mut registry);
    registry.request_cancel(&claim.task.id, None, 5).unwrap();
    assert_eq!(registry.give_back(&claim.task.id, &claim.nonce, 6).unwrap(), GiveBackOutcome::Cancelled);
}

#[test]
fn the_first_cancel_request_is_retained() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    registry.request_cancel(&claim.task.id, Some("first"), 5).unwrap();
    let outcome = registry.request_cancel(&claim.task.id, Some("second"), 6).unwrap();
    let CancelOutcome::Requested { request, first, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((request.at_ms, request.reason.as_deref(), first), (5, Some("first"), false));
    assert_eq!(registry.active().unwrap()[0].cancel.as_ref(), Some(&request));
    assert_eq!(registry.cancel_request(&claim.task.id).unwrap(), Some(request));
    let other = submit(&mut registry);
    assert_eq!(registry.cancel_request(&other.id).unwrap(), None);
    assert_eq!(registry.cancel_request(&fresh_id()).unwrap(), None);
}

#[test]
fn nothing_overwrites_an_end() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    finish(&mut registry, &claim, TaskEnd::Completed, 2_000);
    let before = registry.get(id).unwrap();
    let attempt = Attempt::working(claim.nonce.clone());
    for end in [TaskEnd::Completed, TaskEnd::Cancelled { reason: None }, TaskEnd::Timeout(LimitKind::Hard)] {
        let late = registry.finish(id, &attempt, &Finish::bare(end), &slots(9), 3_000).unwrap();
        assert_eq!(late, Cas::Lost(Lost { actual: Some(State::Completed) }));
    }
    let thread = registry.set_thread(id, &claim.nonce, "late", 3_000).unwrap();
    assert_eq!(thread, Cas::Lost(Lost { actual: Some(State::Completed) }));
    registry.request_cancel(id, None, 3_000).unwrap();
    assert_eq!(registry.get(id).unwrap(), before);
}

#[test]
fn an_illegal_transition_is_an_error() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = submit_and_claim(&mut registry);
    let attempt = Attempt::starting(claim.nonce.clone());
    let done = registry.finish(&claim.task.id, &attempt, &Finish::bare(TaskEnd::Completed), &slots(1), 9);
    assert!(matches!(done, Err(RegistryError::IllegalTransition(_))), "{done:?}");
}

#[test]
fn a_result_is_unread_until_marked_read() {
    let world = World::new();
    let mut registry = world.registry();
    let id = ended(&mut registry, TaskEnd::Completed, 2_000);
    let unread = registry.unread("/home/me", None, 5).unwrap();
    assert_eq!((unread.count, unread.ids), (1, vec![id.clone()]));
    assert_eq!(registry.unread("/home/m", None, 5).unwrap().count, 0);
    assert!(registry.mark_read(&id, 3_000).unwrap());
    assert!(!registry.mark_read(&id, 4_000).unwrap());
    assert_eq!(registry.unread("/", None, 5).unwrap().count, 0);
    assert_eq!(registry.get(&id).unwrap().unwrap().ended.unwrap().read_at_ms, Some(3_000));
}

#[test]
fn all_unread_results_are_listed_and_marked() {
    let world = World::new();
    let mut registry = world.registry();
    let ids: Vec<_> = (0..3).map(|_| ended(&mut registry, TaskEnd::Completed, 2_000)).collect();
    registry.mark_read(&ids[1], 3_000).unwrap();
    let unread = Filter { is_unread: true, ..Filter::default() };
    let listed = |registry: &Registry| {
        let page = registry.list_ended(&unread, 0, 1, None).unwrap();
        (page.tasks.into_iter().map(|task| task.id).collect::<Vec<_>>(), page.total)
    };
    assert_eq!(listed(&registry), (vec![ids[2].clone()], 2));
    assert_eq!(registry.mark_all_read(4_000).unwrap(), 2);
    assert_eq!((listed(&registry), registry.mark_all_read(5_000).unwrap()), ((Vec::new(), 0), 0));
    let read_at = |id| registry.get(id).unwrap().unwrap().ended.unwrap().read_at_ms;
    assert_eq!((read_at(&ids[0]), read_at(&ids[1])), (Some(4_000), Some(3_000)));
}

#[test]
fn changes_by_this_and_other_connections_are_detected() {
    let world = World::new();
    let mut first = world.registry();
    let mut second = world.registry();
    let mut last = first.change_mark().unwrap();
    assert_eq!(first.change_mark().unwrap(), last);
    for by_us in [true, false, true, false] {
        submit(if by_us { &mut first } else { &mut second });
        let mark = first.change_mark().unwrap();
        assert_ne!(mark, last, "by us: {by_us}");
        last = mark;
    }
    first.counts().unwrap();
    assert_eq!(first.change_mark().unwrap(), last, "a query is not a change");
}
