//! Old tasks are deleted by age and by size, unfinished ones never.

use std::time::Duration;

use delegator_domain::task::TaskEnd;
use delegator_fleet::{Pruned, Retention};
use delegator_testkit::fleet_history::Unfinished;

use crate::actors::Worker;
use crate::fleet::{Fleet, LONG};

const NONE: Retention = Retention { max_age: None, max_bytes: None, interval: Duration::ZERO };

/// Runs a task with so many bytes of events to its end, so many days ago.
fn ended_task(fleet: &Fleet, worker: &Worker, bytes: usize, days_ago: u32) -> String {
    let id = fleet.submit();
    let claim = worker.run_one();
    worker.append(&claim, 0, &vec![b'x'; bytes]).unwrap();
    worker.finish(&claim, TaskEnd::Completed).unwrap();
    fleet.server.execute(&format!(
        "begin;
         alter table delegator.tasks disable trigger all;
         update delegator.tasks set ended_at = ended_at - interval '{days_ago} days' where id = '{id}';
         alter table delegator.tasks enable trigger all;
         commit;"
    ));
    id
}

fn remaining(fleet: &Fleet) -> Vec<String> {
    fleet.server.query("select id from delegator.tasks order by seq").into_iter().flatten().collect()
}

#[test]
fn ended_tasks_are_deleted_by_age() {
    let fleet = Fleet::new();
    let worker = fleet.worker("worker", LONG);
    let _old = ended_task(&fleet, &worker, 10, 8);
    let young = ended_task(&fleet, &worker, 10, 6);
    let (running, queued) = (fleet.submit(), fleet.submit());
    worker.run_one();
    let week = Retention { max_age: Some(Duration::from_secs(7 * 86_400)), ..NONE };
    let hourly = Retention { interval: Duration::from_secs(3600), ..week };
    assert_eq!(worker.database().prune(&NONE).unwrap(), Pruned { tasks: 0, is_partial: false });
    // Another worker has just done it.
    assert_eq!(worker.database().prune(&hourly).unwrap().tasks, 0);
    assert_eq!(worker.database().prune(&week).unwrap(), Pruned { tasks: 1, is_partial: false });
    assert_eq!(remaining(&fleet), [young, running.clone(), queued.clone()]);
    let all = Retention { max_age: Some(Duration::ZERO), max_bytes: Some(0), ..NONE };
    worker.database().prune(&all).unwrap();
    assert_eq!(remaining(&fleet), [running, queued]);
    assert_eq!(fleet.server.value("select count(*) from delegator.event_chunks"), "0");
    fleet.check(Unfinished::Allowed);
}

#[test]
fn the_oldest_tasks_are_deleted_if_all_are_too_large() {
    let fleet = Fleet::new();
    let worker = fleet.worker("worker", LONG);
    // The ages differ from the order of submission.
    let newest = ended_task(&fleet, &worker, 1000, 1);
    let _oldest = ended_task(&fleet, &worker, 1000, 3);
    let middle = ended_task(&fleet, &worker, 1000, 2);
    let stored = worker.database().status().unwrap().stored_bytes;
    assert!((3000..3300).contains(&stored), "{stored}");
    let fits = Retention { max_bytes: Some(stored), ..NONE };
    assert_eq!(worker.database().prune(&fits).unwrap().tasks, 0);
    let too_large = Retention { max_bytes: Some(stored - 1), ..NONE };
    assert_eq!(worker.database().prune(&too_large).unwrap().tasks, 1);
    assert_eq!(remaining(&fleet), [newest, middle]);
}
