//! Submissions that are repeated or refused, and queries about them.

use delegator_domain::task::{FailureKind, TaskEnd};
use delegator_fleet::{FleetError, FleetState, IdempotencyKey, NewFleetTask};
use delegator_testkit::fleet_history::Unfinished;

use crate::actors::end_of;
use crate::fleet::{Fleet, LONG, new_task};

fn task_with_key(key: &str, request_hash: &str) -> NewFleetTask {
    let idempotency = IdempotencyKey { key: key.to_owned(), request_hash: request_hash.to_owned() };
    NewFleetTask { idempotency: Some(idempotency), ..new_task() }
}

#[test]
fn one_key_is_one_task_however_many_machines_submit_it() {
    let fleet = Fleet::new();
    let clients: Vec<_> = (0..16).map(|_| fleet.client()).collect();
    let submitted: Vec<_> = std::thread::scope(|scope| {
        let submit =
            |client| scope.spawn(move || crate::actors::Client::submit(&client, &task_with_key("k", "h")));
        let threads: Vec<_> = clients.into_iter().map(submit).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    assert_eq!(submitted.iter().filter(|submitted| !submitted.replayed).count(), 1);
    assert!(submitted.iter().all(|other| other.id == submitted[0].id), "{submitted:?}");
    assert_eq!(fleet.client().submit(&task_with_key("k", "other")), Err(FleetError::KeyConflict));
    assert!(!fleet.client().submit(&task_with_key("other", "h")).unwrap().replayed);
    assert_eq!(fleet.check(Unfinished::Allowed).changes.len(), 2);
}

#[test]
fn one_id_is_one_task() {
    let fleet = Fleet::new();
    let task = new_task();
    assert!(!fleet.client().submit(&task).unwrap().replayed);
    let again = fleet.client().submit(&task).unwrap();
    assert_eq!((again.id, again.replayed), (task.id, true));
    assert_eq!(fleet.check(Unfinished::Allowed).changes.len(), 1);
}

#[test]
fn a_refused_submission_never_runs() {
    let fleet = Fleet::new();
    let (database, late) = (fleet.client().database, task_with_key("k", "h"));
    assert!(database.refuse(&late.id).unwrap());
    assert!(database.refuse(&late.id).unwrap());
    database.submit(&late).unwrap();
    assert_eq!(fleet.worker("worker", LONG).work(5).unwrap(), 0);
    let end = end_of(fleet.task(&late.id));
    assert!(matches!(end, TaskEnd::Failed { kind: FailureKind::NotAccepted, .. }), "{end:?}");
    let again = task_with_key("k", "h");
    assert_eq!(database.submit(&again).unwrap().id, again.id, "the key is free");
    assert!(!database.refuse(&again.id).unwrap(), "it was accepted");
    assert_eq!(fleet.task(&again.id).state, FleetState::Queued);
    fleet.check(Unfinished::Allowed);
}

#[test]
fn a_task_that_cannot_be_read_does_not_hide_the_others() {
    let fleet = Fleet::new();
    let (unreadable, readable) = (fleet.submit(), fleet.submit());
    fleet.server.execute(&format!(
        "update delegator.tasks set state = 'timeout', limit_kind = 'new', ended_at = now() where id = '{unreadable}'"
    ));
    let unknown = "unknown".to_owned();
    let tasks = fleet.client().database.tasks(&[unreadable, unknown.clone(), readable.clone()]).unwrap();
    assert!(matches!(tasks[0], Err(FleetError::Corrupt { .. })), "{tasks:?}");
    assert_eq!(tasks[1], Err(FleetError::UnknownTask { id: unknown }));
    assert_eq!(tasks[2].as_ref().unwrap().id, readable);
}
