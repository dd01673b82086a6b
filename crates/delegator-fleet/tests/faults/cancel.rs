//! Cancels that race with claim, start and end.

use std::sync::atomic::{AtomicBool, Ordering};

use delegator_domain::task::TaskEnd;
use delegator_fleet::{FleetCancelRequest, FleetError, FleetState};
use delegator_testkit::fleet_history::Unfinished;

use crate::actors::end_of;
use crate::fleet::{Fleet, LONG, new_task};

#[test]
fn a_cancel_has_one_outcome_whichever_step_it_races_with() {
    let fleet = Fleet::new();
    let submitter = fleet.client();
    let tasks: Vec<String> = (0..200).map(|_| submitter.submit(&new_task()).unwrap().id).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let worker = fleet.worker(&format!("worker-{number}"), LONG);
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) || worker.work(3).unwrap() > 0 {
                    worker.work(3).unwrap();
                }
            });
        }
        let cancellers: Vec<_> = (0..2)
            .map(|number| {
                let (client, tasks) = (fleet.client(), &tasks);
                // One follows the workers, one comes from the end of the queue.
                let order: Vec<usize> =
                    if number == 0 { (0..200).collect() } else { (0..200).rev().collect() };
                scope.spawn(move || {
                    for index in order {
                        client.database.cancel(&tasks[index], Some("changed my mind")).unwrap();
                    }
                })
            })
            .collect();
        for canceller in cancellers {
            canceller.join().unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    fleet.check(Unfinished::Forbidden);
    let ends: Vec<TaskEnd> = tasks.iter().map(|id| end_of(submitter.task(id))).collect();
    assert!(ends.iter().all(|end| matches!(end, TaskEnd::Completed | TaskEnd::Cancelled { .. })), "{ends:?}");
    assert!(ends.iter().any(|end| matches!(end, TaskEnd::Cancelled { .. })));
}

#[test]
fn a_queued_or_claimed_task_is_cancelled_at_once() {
    let fleet = Fleet::new();
    let (queued, claimed) = (fleet.submit(), fleet.submit());
    let worker = fleet.worker("worker", LONG);
    // The oldest task is claimed first.
    let client = fleet.client();
    client.database.cancel(&queued, Some("not needed")).unwrap();
    let claim = worker.claim_one();
    assert_eq!(claim.task, claimed);
    client.database.cancel(&claimed, None).unwrap();
    assert!(matches!(worker.start(&claim), Err(FleetError::Fenced { .. })));
    assert_eq!(end_of(fleet.task(&queued)), TaskEnd::Cancelled { reason: Some("not needed".to_owned()) });
    assert_eq!(end_of(fleet.task(&claimed)), TaskEnd::Cancelled { reason: None });
    assert_eq!(worker.database().heartbeat(&worker.session).unwrap().tasks, []);
    // A repetition changes nothing.
    client.database.cancel(&queued, Some("again")).unwrap();
    assert!(matches!(client.database.cancel("unknown", None), Err(FleetError::UnknownTask { .. })));
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_running_task_is_cancelled_by_its_worker() {
    let fleet = Fleet::new();
    let id = fleet.submit();
    let worker = fleet.worker("worker", LONG);
    let claim = worker.run_one();
    let client = fleet.client();
    client.database.cancel(&id, Some("too slow")).unwrap();
    client.database.cancel(&id, Some("second reason")).unwrap();
    assert_eq!(fleet.task(&id).state, FleetState::Running);
    let owned = worker.database().heartbeat(&worker.session).unwrap().tasks;
    assert_eq!(owned[0].cancel, Some(FleetCancelRequest { reason: Some("too slow".to_owned()) }));
    worker.finish(&claim, TaskEnd::Cancelled { reason: Some("too slow".to_owned()) }).unwrap();
    assert_eq!(end_of(fleet.task(&id)), TaskEnd::Cancelled { reason: Some("too slow".to_owned()) });
    fleet.check(Unfinished::Forbidden);
}
