//! A pooler in transaction mode: each transaction may run on another connection to the server.

use std::time::Duration;

use delegator_domain::task::TaskEnd;
use delegator_fleet::{BlobName, EventPosition};
use delegator_testkit::fleet_history::Unfinished;
use delegator_testkit::postgres::{PgBouncer, PostgresServer};
use delegator_testkit::stage::wait_until;

use crate::actors::end_of;
use crate::fleet::{Fleet, LONG, database, new_task};

#[test]
fn the_whole_life_of_a_task_runs_through_a_pooler() {
    let server = PostgresServer::options().fast().start();
    let pooler = PgBouncer::start(&server, 2);
    let url = server.url_through(pooler.port());
    assert_eq!(database(&url).migrate().unwrap().before, 0);
    let fleet = Fleet::on(server);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (submitter, worker) = (fleet.client_at(&url), fleet.client_at(&url));
            scope.spawn(move || {
                let worker = worker.worker(&format!("worker-{number}"), LONG);
                // A hint of one client must not reach another one.
                let mut listener = worker.database().listener();
                assert!(!listener.wait(Duration::from_millis(20)));
                for _ in 0..10 {
                    submitter.submit(&new_task()).unwrap();
                    assert!(!listener.wait(Duration::from_millis(1)));
                    let claim = worker.run_one();
                    worker.append(&claim, 0, b"event\n").unwrap();
                    worker.database().heartbeat(&worker.session).unwrap();
                    worker.database().put_blob(&claim, BlobName::Diff, b"+line\n").unwrap();
                    worker.finish(&claim, TaskEnd::Completed).unwrap();
                    assert_eq!(end_of(submitter.task(&claim.task)), TaskEnd::Completed);
                    let page =
                        submitter.database.events(&claim.task, EventPosition::default(), 1000).unwrap();
                    assert_eq!(page.bytes, b"event\n");
                    let diff = submitter.database.blob(&claim.task, BlobName::Diff).unwrap();
                    assert_eq!(diff.as_deref(), Some(b"+line\n".as_slice()));
                }
                worker.database().close_session(&worker.session).unwrap();
            });
        }
    });
    assert_eq!(fleet.client_at(&url).database.status().unwrap().ended_last_day, 40);
    let history = fleet.check(Unfinished::Forbidden);
    assert_eq!(history.changes.len(), 160);
}

#[test]
fn a_pooler_that_ignores_unknown_parameters_passes_no_hints_either() {
    let fleet = Fleet::new();
    let pooler =
        PgBouncer::start_with(&fleet.server, 1, "ignore_startup_parameters = options, extra_float_digits\n");
    let client = fleet.client_at(&fleet.server.url_through(pooler.port()));
    let mut listener = client.database.listener();
    for _ in 0..3 {
        assert!(!listener.wait(Duration::from_millis(20)));
        client.submit(&new_task()).unwrap();
        fleet.client().submit(&new_task()).unwrap();
    }
    assert_eq!(fleet.check(Unfinished::Allowed).changes.len(), 6);
}

#[test]
fn hints_arrive_without_a_pooler_also_after_a_crash_of_the_database() {
    let fleet = Fleet::new();
    let client = fleet.client();
    let mut listener = client.database.listener();
    wait_until("a connection, which counts as a hint", || listener.wait(Duration::from_millis(100)));
    for _ in 0..2 {
        wait_until("a hint", || {
            fleet.submit();
            listener.wait(Duration::from_millis(100))
        });
        fleet.server.kill_now();
        assert!(!listener.wait(Duration::from_millis(20)));
        fleet.server.restart();
    }
    fleet.check(Unfinished::Allowed);
}
