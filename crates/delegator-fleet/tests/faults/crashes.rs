//! The database is killed and started again.

use std::sync::atomic::{AtomicBool, Ordering};

use delegator_domain::task::TaskEnd;
use delegator_testkit::fleet_history::{Ack, Unfinished};
use delegator_testkit::stage::wait_until;

use crate::actors::{end_of, until_answered};
use crate::fleet::{Fleet, LONG, new_task};

#[test]
fn nothing_acknowledged_is_lost_when_the_database_is_killed_under_load() {
    let fleet = Fleet::new();
    let is_over = AtomicBool::new(false);
    let ended = || {
        let count = "select count(*) from delegator.tasks where ended_at is not null";
        fleet.server.value(count).parse::<usize>().unwrap()
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (client, is_over) = (fleet.client(), &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let task = new_task();
                    until_answered(|| client.submit(&task)).unwrap();
                }
            });
        }
        for number in 0..4 {
            let worker = fleet.worker(&format!("worker-{number}"), LONG);
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) || until_answered(|| worker.work(2)).unwrap() > 0 {
                    until_answered(|| worker.work(2)).unwrap();
                }
            });
        }
        for _ in 0..4 {
            let before = ended();
            wait_until("tasks end", || ended() > before + 10);
            fleet.server.kill_now();
            fleet.server.restart();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let history = fleet.check(Unfinished::Forbidden);
    let finished = history.acks.iter().filter(|ack| matches!(ack, Ack::Finished { .. })).count();
    assert!(finished > 40, "{finished}");
}

#[test]
fn a_running_task_survives_the_crash_of_the_database() {
    let fleet = Fleet::new();
    let id = fleet.submit();
    let worker = fleet.worker("worker", LONG);
    let claim = worker.run_one();
    worker.append(&claim, 0, b"before\n").unwrap();
    fleet.server.kill_now();
    let error = worker.append(&claim, 7, b"after\n").unwrap_err();
    assert!(error.is_transient(), "{error}");
    fleet.server.restart();
    assert_eq!(worker.append(&claim, 7, b"after\n").unwrap(), 13);
    worker.finish(&claim, TaskEnd::Completed).unwrap();
    assert_eq!(end_of(fleet.task(&id)), TaskEnd::Completed);
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_database_that_hangs_fails_the_call_and_loses_nothing() {
    let fleet = Fleet::new();
    let (client, task) = (fleet.client(), new_task());
    client.database.status().unwrap();
    fleet.server.suspend();
    let error = client.submit(&task).unwrap_err();
    assert!(error.is_transient(), "{error}");
    fleet.server.resume();
    until_answered(|| client.submit(&task)).unwrap();
    assert_eq!(fleet.check(Unfinished::Allowed).changes.len(), 1);
}
