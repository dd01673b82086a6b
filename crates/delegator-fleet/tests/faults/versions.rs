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

/// What `fleet grant` of the first version printed for a worker.
const FIRST_GRANTS: &str = "create role worker login;
grant usage on schema delegator to worker;
grant select on all tables in schema delegator to worker;
grant execute on function delegator.expire_sessions(), delegator.request_cancel(text, text) to worker;
grant insert, update on delegator.sessions, delegator.attempts, delegator.event_chunks, delegator.blobs,
    delegator.blob_parts, delegator.pauses to worker;
grant update on delegator.tasks, delegator.upkeep to worker;
grant delete on delegator.tasks, delegator.sessions, delegator.blobs, delegator.pauses to worker;
grant execute on function delegator.lose_task(text, integer, text, text, text), delegator.stored_bytes(text) to worker";

/// The writes of a worker of the first version, from its claim to its end of the oldest queued task.
const FIRST_WORKER: &str = "begin;
insert into delegator.sessions (id, worker, workspace, version, slots, labels, lease, lease_until)
    values ('old', 'old', 'w', '3', 1, '{}', '1 hour', now() + interval '1 hour') on conflict do nothing;
create temp table claimed as with first as (select id from delegator.tasks where state = 'queued' order by seq limit 1)
    select first.id from first;
update delegator.tasks t set state = 'claimed', attempt = t.attempt + 1, session = 'old' from claimed c where t.id = c.id;
insert into delegator.attempts (task, attempt, session, worker) select id, 1, 'old', 'old' from claimed;
update delegator.tasks t set state = 'running', starts = 1, started_at = now() from claimed c where t.id = c.id;
insert into delegator.event_chunks (task, attempt, byte_offset, bytes) select id, 1, 0, 'event' from claimed;
update delegator.attempts a set event_bytes = 5 from claimed c where a.task = c.id;
insert into delegator.blobs (task, attempt, name, size, sha256) select id, 1, 'diff', 0, 'old' from claimed;
delete from delegator.blobs b using claimed c where b.task = c.id and b.sha256 <> 'new';
update delegator.tasks t set state = 'completed', session = null, ended_at = now(), result = '1/old' from claimed c
    where t.id = c.id;
update delegator.attempts a set ended_at = now(), outcome = 'completed' from claimed c where a.task = c.id;
commit";

/// Tables of the first version: its workers go on after the upgrade, beside new ones, until the rights are granted again.
#[test]
fn workers_of_the_first_version_go_on_until_the_rights_are_granted_again() {
    let server = PostgresServer::options().fast().start();
    server.execute(
        "create schema delegator; create table delegator.migrations (version integer primary key,
            min_program integer not null, applied_at timestamptz not null default now());
         insert into delegator.migrations (version, min_program) values (1, 1)",
    );
    server.execute(include_str!("../../migrations/001-fleet.sql"));
    server.execute(FIRST_GRANTS);
    let fleet = Fleet::on(server);
    let tasks = [(); 3].map(|()| fleet.submit());
    fleet.server.query_as("worker", FIRST_WORKER).unwrap();
    let as_worker = || fleet.client_at(&fleet.server.url_for("worker"));
    assert!(as_worker().database.status().unwrap().has_excess_rights);
    assert_eq!(as_worker().worker("new", LONG).work(1).unwrap(), 1);
    fleet.server.execute(&grant_sql("submitter", "worker"));
    assert!(!as_worker().database.status().unwrap().has_excess_rights);
    assert!(fleet.server.query_as("worker", FIRST_WORKER).unwrap_err().contains("permission denied"));
    assert_eq!(as_worker().worker("newer", LONG).work(1).unwrap(), 1);
    for task in tasks {
        assert_eq!(end_of(fleet.task(&task)), TaskEnd::Completed);
    }
    fleet.check(Unfinished::Forbidden);
}
