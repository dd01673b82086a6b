//! The disk of the database is full.

use delegator_domain::task::TaskEnd;
use delegator_testkit::fleet_history::Unfinished;
use delegator_testkit::postgres::PostgresServer;

use crate::actors::{end_of, until_answered};
use crate::fleet::{Fleet, LONG, new_task};

#[test]
fn a_full_disk_refuses_work_and_loses_nothing_acknowledged() {
    let fleet = Fleet::on(PostgresServer::options().fast().disk(120 << 20).start());
    let id = fleet.submit();
    let worker = fleet.worker("worker", LONG);
    let claim = worker.run_one();
    let events = vec![b'x'; 100_000];
    let mut stored = worker.append(&claim, 0, &events).unwrap();
    fleet.server.fill_disk();
    let error = loop {
        match worker.append(&claim, stored, &events) {
            Ok(end) => stored = end,
            Err(error) => break error,
        }
    };
    assert!(error.is_transient(), "{error}");
    let refused = new_task();
    // A small change may still fit into a file that exists.
    let _ = fleet.client().submit(&refused);
    fleet.server.free_disk();
    // A server that cannot write its log ends.
    fleet.server.restart();
    until_answered(|| fleet.client().submit(&refused)).unwrap();
    let end = until_answered(|| worker.append(&claim, stored, &events)).unwrap();
    assert_eq!(end, stored + 100_000);
    worker.finish(&claim, TaskEnd::Completed).unwrap();
    assert_eq!(worker.work(1).unwrap(), 1);
    assert_eq!(end_of(fleet.task(&id)), TaskEnd::Completed);
    fleet.check(Unfinished::Forbidden);
}
