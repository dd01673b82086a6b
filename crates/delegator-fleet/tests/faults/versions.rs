//! Programs and tables of different versions.

use delegator_domain::task::TaskEnd;
use delegator_fleet::{FleetError, SchemaProblem, grant_sql};
use delegator_testkit::fleet_history::Unfinished;
use delegator_testkit::postgres::PostgresServer;

use crate::actors::end_of;
use crate::fleet::{Fleet, LONG, database};

#[test]
fn eight_processes_migrate_once() {
    let server = PostgresServer::options().fast().start();
    let missing = database(&server.url()).status().unwrap_err();
    assert_eq!(missing, FleetError::Schema(SchemaProblem::Missing));
    let migrated: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| database(&server.url()).migrate().unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(migrated.iter().all(|other| other.after == migrated[0].after), "{migrated:?}");
    assert_eq!(migrated.iter().filter(|migrated| migrated.before == 0).count(), 1, "{migrated:?}");
}

/// What a newer program leaves in the table of migrations.
fn migrate_further(fleet: &Fleet, min_program: i32) {
    fleet.server.execute(&format!(
        "insert into delegator.migrations (version, min_program)
         select max(version) + 1, {min_program} from delegator.migrations"
    ));
}

#[test]
fn an_old_worker_goes_on_with_newer_tables_that_permit_it() {
    let fleet = Fleet::new();
    let worker = fleet.worker("old", LONG);
    fleet.submit();
    migrate_further(&fleet, 1);
    assert_eq!(worker.work(1).unwrap(), 1);
    fleet.client().database.status().unwrap();
    let migrated = fleet.client().database.migrate().unwrap();
    assert_eq!(migrated.before, migrated.after);
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn an_old_worker_stops_when_the_tables_need_a_newer_one() {
    let fleet = Fleet::new();
    let worker = fleet.worker("old", LONG);
    fleet.submit();
    migrate_further(&fleet, 1000);
    let too_new = |error: FleetError| matches!(error, FleetError::Schema(SchemaProblem::TooNew { .. }));
    assert!(too_new(fleet.client().database.migrate().unwrap_err()));
    assert!(too_new(fleet.client().database.status().unwrap_err()));
    // Also on the connection that it has.
    assert!(too_new(worker.claim(1).unwrap_err()));
    assert!(too_new(worker.database().heartbeat(&worker.session).map(drop).unwrap_err()));
}

#[test]
fn an_old_worker_leaves_tasks_of_newer_submitters_in_the_queue() {
    let fleet = Fleet::new();
    let (_newer, known) = (fleet.submit(), fleet.submit());
    fleet.server.execute(
        "update delegator.tasks set spec_version = spec_version + 1 where seq = (select min(seq) from delegator.tasks)",
    );
    let worker = fleet.worker("old", LONG);
    let claimed = worker.claim(5).unwrap();
    assert_eq!(claimed.iter().map(|task| &task.claim.task).collect::<Vec<_>>(), [&known]);
}

#[test]
fn rights_to_write_to_tables_are_reported_until_the_rights_are_granted_again() {
    let fleet = Fleet::new();
    fleet.server.execute(
        "create role worker login; grant usage on schema delegator to worker;
         grant select, update on all tables in schema delegator to worker;
         grant execute on all functions in schema delegator to worker",
    );
    let tasks = [(); 2].map(|()| fleet.submit());
    let as_worker = || fleet.client_at(&fleet.server.url_for("worker"));
    assert!(as_worker().database.status().unwrap().has_excess_rights);
    assert_eq!(as_worker().worker("new", LONG).work(1).unwrap(), 1);
    fleet.server.execute(&grant_sql("submitter", "worker"));
    assert!(!as_worker().database.status().unwrap().has_excess_rights);
    let update = "update delegator.tasks set title = ''";
    assert!(fleet.server.query_as("worker", update).unwrap_err().contains("permission denied"));
    assert_eq!(as_worker().worker("newer", LONG).work(1).unwrap(), 1);
    for task in tasks {
        assert_eq!(end_of(fleet.task(&task)), TaskEnd::Completed);
    }
    fleet.check(Unfinished::Forbidden);
}
