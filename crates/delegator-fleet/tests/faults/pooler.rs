//! A pooler in transaction mode: each transaction may run on another connection to the server.

use std::time::Duration;

use delegator_domain::task::TaskEnd;
use delegator_fleet::{BlobName, EventPosition, Hints};
use delegator_testkit::fleet_history::Unfinished;
use delegator_testkit::postgres::{PgBouncer, PostgresServer};

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
                let mut listener = worker.listener();
                assert_eq!(listener.wait(Duration::from_millis(20)), Hints::default());
                for _ in 0..10 {
                    submitter.submit(&new_task()).unwrap();
                    assert_eq!(listener.wait(Duration::from_millis(1)), Hints::default());
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
    let worker = fleet.client_at(&fleet.server.url_through(pooler.port())).worker("worker", LONG);
    let mut listener = worker.listener();
    for _ in 0..3 {
        assert_eq!(listener.wait(Duration::from_millis(20)), Hints::default());
        worker.client.submit(&new_task()).unwrap();
        fleet.client().submit(&new_task()).unwrap();
    }
    assert_eq!(fleet.check(Unfinished::Allowed).changes.len(), 6);
}
