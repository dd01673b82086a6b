//! Tasks that follow each other: what can be claimed when, and what the end of a task does to its followers.

use delegator_domain::task::{
    ChainOutcome, FailureKind, Follows, LimitKind, Obstacle, State, TaskEnd, TaskId, Verification,
};
use delegator_registry::{
    Attempt, BlockedBy, Cas, Claim, Finish, GiveBackOutcome, NewTask, Registry, RegistryError, TaskFile,
};

use crate::support::{World, begin, finish, fresh_id, new_task, slots, submit};

fn following(predecessor: &TaskId, on: ChainOutcome) -> NewTask {
    NewTask { follows: Some(Follows { task: predecessor.clone(), on }), ..new_task() }
}

fn submit_chain(registry: &mut Registry, tasks: &[NewTask]) -> Vec<TaskId> {
    let chain: Vec<_> = tasks.iter().map(|task| (task.clone(), b"launch".to_vec())).collect();
    registry.submit_chain(&chain, 1_000).unwrap();
    tasks.iter().map(|task| task.id.clone()).collect()
}

/// A task with a follower for each outcome; that of its success has a follower, too.
fn submit_tree(registry: &mut Registry) -> Vec<TaskId> {
    let first = new_task();
    let success = following(&first.id, ChainOutcome::Success);
    let failure = following(&first.id, ChainOutcome::Failure);
    let last = following(&success.id, ChainOutcome::Success);
    submit_chain(registry, &[first, success, failure, last])
}

fn claim(registry: &mut Registry) -> Option<Claim> {
    registry.claim_next(&slots(9), 1_001).unwrap()
}

fn state(registry: &Registry, id: &TaskId) -> State {
    registry.get(id).unwrap().unwrap().state
}

fn states(registry: &Registry, ids: &[TaskId]) -> Vec<State> {
    ids.iter().map(|id| state(registry, id)).collect()
}

fn reason(registry: &Registry, id: &TaskId) -> String {
    match registry.get(id).unwrap().unwrap().ended.unwrap().end {
        TaskEnd::Cancelled { reason: Some(reason) } => reason,
        other => panic!("{other:?}"),
    }
}

fn has_launch(registry: &Registry, id: &TaskId) -> bool {
    registry.dir().task(id).file(TaskFile::Launch).exists()
}

fn failed() -> TaskEnd {
    TaskEnd::Failed { kind: FailureKind::AgentExit, message: "it broke".into(), retry_at_ms: None }
}

#[test]
fn a_follower_cannot_be_claimed_before_its_predecessor_ends_and_blocks_no_other_task() {
    let world = World::new();
    let mut registry = world.registry();
    let ids = submit_tree(&mut registry);
    let other = submit(&mut registry).id;
    let first = claim(&mut registry).unwrap();
    assert_eq!(first.task.id, ids[0]);
    let blocked = registry.queue_with_blockers(1_001).unwrap();
    let by = |task: &TaskId| Some(BlockedBy { task: task.clone(), obstacle: Obstacle::Predecessor });
    let expected = [(&ids[1], by(&ids[0])), (&ids[2], by(&ids[0])), (&ids[3], by(&ids[1])), (&other, None)];
    let found: Vec<_> = blocked.iter().map(|entry| (&entry.id, entry.blocked_by.clone())).collect();
    assert_eq!(found, expected);
    assert_eq!(registry.queue_position(&other).unwrap(), Some(0), "followers are not ahead of it");
    assert_eq!(claim(&mut registry).unwrap().task.id, other);
    assert_eq!(claim(&mut registry), None);
    assert!(!registry.can_claim(&slots(9), 1_001).unwrap());
    begin(&mut registry, &first);
    let attempt = Attempt::working(first.nonce.clone());
    let done =
        registry.finish(&ids[0], &attempt, &Finish::bare(TaskEnd::Completed), &slots(9), 2_000).unwrap();
    let Cas::Applied(claims) = done else { panic!("{done:?}") };
    let claimed: Vec<_> = claims.iter().map(|claim| claim.task.id.clone()).collect();
    assert_eq!(claimed, [ids[1].clone()], "the follower is claimed in the transaction of the end");
}

#[test]
fn the_end_of_a_task_starts_the_followers_of_its_outcome_and_ends_the_others() {
    let timeout = TaskEnd::Timeout(LimitKind::Hard);
    for (end, check, expected) in [
        (TaskEnd::Completed, None, [State::Queued, State::Cancelled, State::Queued]),
        (TaskEnd::Completed, Some(Verification::Verified), [State::Queued, State::Cancelled, State::Queued]),
        (
            TaskEnd::Completed,
            Some(Verification::Refuted),
            [State::Cancelled, State::Queued, State::Cancelled],
        ),
        (failed(), None, [State::Cancelled, State::Queued, State::Cancelled]),
        (timeout, None, [State::Cancelled, State::Queued, State::Cancelled]),
        (TaskEnd::Cancelled { reason: None }, None, [State::Cancelled, State::Cancelled, State::Cancelled]),
    ] {
        let world = World::new();
        let mut registry = world.registry();
        let ids = submit_tree(&mut registry);
        let first = claim(&mut registry).unwrap();
        begin(&mut registry, &first);
        let report = Finish { verification: check, ..Finish::bare(end.clone()) };
        let attempt = Attempt::working(first.nonce);
        registry.finish(&ids[0], &attempt, &report, &slots(0), 2_000).unwrap();
        assert_eq!(states(&registry, &ids[1..]), expected, "{end:?} {check:?}");
        for id in &ids[1..] {
            let is_queued = state(&registry, id) == State::Queued;
            assert_eq!(has_launch(&registry, id), is_queued, "the launch file contains secrets");
        }
        let next = claim(&mut registry).map(|claim| claim.task.id);
        let started = ids[1..3].iter().find(|id| expected[usize::from(**id == ids[2])] == State::Queued);
        assert_eq!(next.as_ref(), started, "{end:?} {check:?}");
        assert_eq!(claim(&mut registry), None, "one branch only");
    }
}

#[test]
fn a_follower_that_never_starts_has_a_reason() {
    let world = World::new();
    let mut registry = world.registry();
    let ids = submit_tree(&mut registry);
    let first = claim(&mut registry).unwrap();
    begin(&mut registry, &first);
    finish(&mut registry, &first, failed(), 2_000);
    assert_eq!(reason(&registry, &ids[1]), format!("{} failed, and this task follows its success", ids[0]));
    assert_eq!(reason(&registry, &ids[3]), format!("{} was cancelled", ids[1]));
    let predecessors = ids.iter().map(|id| registry.predecessor(id).unwrap());
    let [first, second, ..] = ids.as_slice() else { panic!("{ids:?}") };
    let expected = [None, Some(first.clone()), Some(first.clone()), Some(second.clone())];
    assert_eq!(predecessors.collect::<Vec<_>>(), expected);
}

#[test]
fn cancelling_a_task_ends_the_rest_of_its_chain_at_once() {
    let world = World::new();
    let mut registry = world.registry();
    for is_running in [false, true] {
        let ids = submit_tree(&mut registry);
        let claimed = is_running.then(|| claim(&mut registry).unwrap());
        claimed.iter().for_each(|claim| begin(&mut registry, claim));
        registry.request_cancel(&ids[0], Some("not wanted"), 1_500).unwrap();
        assert_eq!(states(&registry, &ids[1..]), [State::Cancelled; 3], "running: {is_running}");
        assert!(ids[1..].iter().all(|id| !has_launch(&registry, id)));
        if let Some(claim) = claimed {
            // The agent completes before its supervisor acts on the request.
            finish(&mut registry, &claim, TaskEnd::Completed, 2_000);
            assert_eq!(
                states(&registry, &ids),
                [State::Completed, State::Cancelled, State::Cancelled, State::Cancelled]
            );
        }
    }
    let ids = submit_tree(&mut registry);
    registry.request_cancel(&ids[1], None, 1_500).unwrap();
    let expected = [State::Queued, State::Cancelled, State::Queued, State::Cancelled];
    assert_eq!(states(&registry, &ids), expected, "a cancelled follower takes only its own followers along");
    let first = claim(&mut registry).unwrap();
    begin(&mut registry, &first);
    finish(&mut registry, &first, TaskEnd::Completed, 2_000);
    assert_eq!(state(&registry, &ids[1]), State::Cancelled, "it is not ended again");
}

#[test]
fn a_task_that_never_started_settles_its_followers_too() {
    let world = World::new();
    let mut registry = world.registry();
    let ids = submit_tree(&mut registry);
    let outcome = loop {
        let claim = claim(&mut registry).unwrap();
        match registry.give_back(&ids[0], &claim.nonce, 1_500).unwrap() {
            GiveBackOutcome::Queued { .. } => assert_eq!(state(&registry, &ids[2]), State::Queued),
            other => break other,
        }
    };
    assert!(matches!(outcome, GiveBackOutcome::Failed { .. }), "{outcome:?}");
    assert_eq!(states(&registry, &ids[1..]), [State::Cancelled, State::Queued, State::Cancelled]);
    assert!(!has_launch(&registry, &ids[1]));
    assert_eq!(claim(&mut registry).unwrap().task.id, ids[2]);
}

#[test]
fn a_chain_is_stored_completely_or_not_at_all() {
    let world = World::new();
    let mut registry = world.registry();
    let used = submit(&mut registry).id;
    let first = new_task();
    let taken = NewTask { id: used, ..following(&first.id, ChainOutcome::Success) };
    let missing = following(&fresh_id(), ChainOutcome::Success);
    for (second, expected) in [(taken, "in use"), (missing, "not a task of the same submission")] {
        let chain = [(first.clone(), b"launch".to_vec()), (second, b"launch".to_vec())];
        let error = registry.submit_chain(&chain, 1_000).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(registry.get(&first.id).unwrap(), None);
        assert!(!registry.dir().task(&first.id).path().exists());
    }
    let cycle =
        NewTask { follows: Some(Follows { task: first.id.clone(), on: ChainOutcome::Success }), ..first };
    let error = registry.submit_chain(&[(cycle, Vec::new())], 1_000).unwrap_err();
    assert!(matches!(error, RegistryError::ChainCycle { .. }), "{error:?}");
}

#[test]
fn a_report_that_a_follower_needs_is_not_pruned() {
    let world = World::new();
    let mut registry = world.registry();
    let ids = submit_tree(&mut registry);
    let first = claim(&mut registry).unwrap();
    begin(&mut registry, &first);
    finish(&mut registry, &first, TaskEnd::Completed, 2_000);
    assert_eq!(registry.prune(&ids[..1]).unwrap().alive, ids[..1]);
    let second = claim(&mut registry).unwrap();
    assert_eq!(registry.prune(&ids[..1]).unwrap().alive, ids[..1], "its supervisor is starting");
    begin(&mut registry, &second);
    assert_eq!(registry.prune(&ids[..1]).unwrap().pruned, ids[..1]);
    let follower = registry.get(&ids[1]).unwrap().unwrap();
    assert_eq!(follower.follows.unwrap().task, ids[0], "the id of the predecessor stays");
    assert!(!follower.awaits_predecessor);
}

#[test]
fn the_rest_of_a_chain_is_listed_in_order() {
    let world = World::new();
    let mut registry = world.registry();
    let ids = submit_tree(&mut registry);
    let listed =
        |tasks: Vec<delegator_registry::Task>| tasks.into_iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(listed(registry.followers(&ids[0]).unwrap()), ids[1..3]);
    assert_eq!(listed(registry.rest_of_chain(&ids[0]).unwrap()), ids[1..]);
    assert_eq!(listed(registry.rest_of_chain(&ids[2]).unwrap()), []);
}
