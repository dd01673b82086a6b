//! Tasks that a provider runs elsewhere.

use delegator_domain::task::{FailureKind, Provider, State, TaskEnd, TaskId, TaskLocation};
use delegator_registry::{
    CancelOutcome, Cas, Filter, Finish, Lost, NewTask, Registry, RemoteEnvironment, RemoteRef, RemoteReport,
};

use crate::support::{World, fresh_id, new_task, slots, submit};

fn remote_task() -> NewTask {
    let id = fresh_id().as_str().replace("local", "cloud").parse().unwrap();
    let environment = RemoteEnvironment { provider: Provider::CodexCloud, id: "env_x".to_owned() };
    NewTask { id, environment: Some(environment), ..new_task() }
}

fn submit_remote(registry: &mut Registry) -> TaskId {
    registry.submit(&remote_task(), b"", 1_000).unwrap().task.id
}

fn accepted() -> RemoteRef {
    RemoteRef { id: "task_e_1".to_owned(), url: Some("https://example.invalid/task_e_1".to_owned()) }
}

fn completed() -> RemoteReport {
    RemoteReport::Ended { finish: Finish::bare(TaskEnd::Completed), started_at_ms: None, at_ms: None }
}

#[test]
fn remote_tasks_take_no_slot_and_are_never_claimed_or_rescued() {
    let world = World::new();
    let mut registry = world.registry();
    let id = submit_remote(&mut registry);
    assert_eq!(registry.claim_next(&slots(9), 1_001).unwrap(), None);
    assert_eq!(registry.queue(9).unwrap(), []);
    assert_eq!(registry.queue_position(&id).unwrap(), None);
    registry.record_remote(&id, &RemoteReport::Working { started_at_ms: None }, 1_002).unwrap();
    assert_eq!(registry.active().unwrap(), []);
    let local = submit(&mut registry).id;
    let claim = registry.claim_next(&slots(1), 1_003).unwrap().unwrap();
    assert_eq!(claim.task.id, local);
}

#[test]
fn what_the_provider_reports_is_recorded_once() {
    let world = World::new();
    let mut registry = world.registry();
    let id = submit_remote(&mut registry);
    assert_eq!(registry.accept_remote(&id, &accepted(), 1_001).unwrap(), Cas::Applied(()));
    for report in [
        RemoteReport::Queued,
        RemoteReport::Working { started_at_ms: None },
        RemoteReport::Working { started_at_ms: None },
        completed(),
    ] {
        assert_eq!(registry.record_remote(&id, &report, 1_010).unwrap(), Cas::Applied(()));
    }
    let failed =
        TaskEnd::Failed { kind: FailureKind::RemoteFailed, message: String::new(), retry_at_ms: None };
    let late = registry
        .record_remote(
            &id,
            &RemoteReport::Ended { finish: Finish::bare(failed), started_at_ms: None, at_ms: None },
            1_020,
        )
        .unwrap();
    assert_eq!(late, Cas::Lost(Lost { actual: Some(State::Completed) }));
    let task = registry.get(&id).unwrap().unwrap();
    let remote = task.remote.unwrap();
    assert_eq!((task.state, remote.accepted, remote.checks), (State::Completed, Some(accepted()), 4));
    assert_eq!((remote.environment.id.as_str(), remote.checked_at_ms), ("env_x", Some(1_010)));
    assert_eq!(registry.unfinished_remote().unwrap(), []);
    let states: Vec<State> = registry.history_of(&id).unwrap().into_iter().map(|entry| entry.to).collect();
    assert_eq!(states, [State::Queued, State::Starting, State::Working, State::Completed]);
}

#[test]
fn an_end_needs_no_earlier_report() {
    let world = World::new();
    let mut registry = world.registry();
    let (completing, cancelled) = (submit_remote(&mut registry), submit_remote(&mut registry));
    registry.record_remote(&completing, &completed(), 1_002).unwrap();
    let finish = Finish::bare(TaskEnd::Cancelled { reason: None });
    registry
        .record_remote(&cancelled, &RemoteReport::Ended { finish, started_at_ms: None, at_ms: None }, 1_003)
        .unwrap();
    let state = |id| registry.get(id).unwrap().unwrap().state;
    assert_eq!((state(&completing), state(&cancelled)), (State::Completed, State::Cancelled));
}

#[test]
fn the_time_of_the_end_is_the_providers_within_what_is_possible() {
    let world = World::new();
    let mut registry = world.registry();
    for (reported, recorded) in [
        ((Some(1_200), Some(1_500)), (1_200, 1_500)),
        ((Some(800), Some(900)), (1_000, 1_000)),
        ((Some(8_000), Some(9_000)), (2_000, 2_000)),
        ((None, None), (1_000, 2_000)),
    ] {
        let id = submit_remote(&mut registry);
        let finish = Finish::bare(TaskEnd::Completed);
        let (started_at_ms, at_ms) = reported;
        registry.record_remote(&id, &RemoteReport::Ended { finish, started_at_ms, at_ms }, 2_000).unwrap();
        let task = registry.get(&id).unwrap().unwrap();
        let times = (task.started_at_ms.unwrap(), task.ended.unwrap().at_ms);
        assert_eq!(times, recorded, "{reported:?}");
    }
}

#[test]
fn a_cancel_request_is_stored_for_the_provider() {
    let world = World::new();
    let mut registry = world.registry();
    let id = submit_remote(&mut registry);
    let outcome = registry.request_cancel(&id, Some("enough"), 1_001).unwrap();
    assert!(
        matches!(outcome, CancelOutcome::Requested { state: State::Queued, first: true, .. }),
        "{outcome:?}"
    );
    assert_eq!(registry.get(&id).unwrap().unwrap().state, State::Queued);
}

#[test]
fn a_refused_task_leaves_nothing_and_an_accepted_one_stays() {
    let world = World::new();
    let mut registry = world.registry();
    let (refused, accepted_id) = (submit_remote(&mut registry), submit_remote(&mut registry));
    registry.accept_remote(&accepted_id, &accepted(), 1_001).unwrap();
    let with_id = submit_remote(&mut registry);
    registry.accept_remote(&with_id, &accepted(), 1_001).unwrap();
    for (id, remote_id) in [(&refused, None), (&accepted_id, None), (&with_id, Some("task_e_1"))] {
        registry.withdraw_remote(id, remote_id).unwrap();
    }
    assert_eq!((registry.get(&refused).unwrap(), registry.get(&with_id).unwrap()), (None, None));
    assert!(!world.dir().task(&refused).path().exists());
    assert!(registry.get(&accepted_id).unwrap().is_some() && world.dir().task(&accepted_id).path().exists());
    let local = submit(&mut registry).id;
    registry.withdraw_remote(&local, None).unwrap();
    assert!(registry.get(&local).unwrap().is_some(), "a local task is not the provider's");
    let reported = registry.record_remote(&local, &completed(), 1_002).unwrap();
    assert_eq!(reported, Cas::Lost(Lost { actual: Some(State::Queued) }));
}

#[test]
fn lists_can_be_limited_to_a_location_and_an_environment() {
    let world = World::new();
    let mut registry = world.registry();
    let (local, remote) = (submit(&mut registry).id, submit_remote(&mut registry));
    let listed = |location, environment: Option<&str>| -> Vec<TaskId> {
        let filter = Filter { location, environment: environment.map(str::to_owned), ..Filter::default() };
        registry.list(&filter, 10, None).unwrap().tasks.into_iter().map(|task| task.id).collect()
    };
    assert_eq!(listed(None, None), [remote.clone(), local.clone()]);
    assert_eq!(listed(Some(TaskLocation::Local), None), [local]);
    assert_eq!(listed(Some(TaskLocation::Cloud), None), std::slice::from_ref(&remote));
    assert_eq!(listed(None, Some("env_x")), [remote]);
    assert_eq!(listed(None, Some("env_y")), []);
}
