//! The roles that `grant_sql` creates have the rights that they need and no more.

use delegator_domain::task::TaskEnd;
use delegator_fleet::{BlobName, EventPosition, FleetError, Retention, grant_sql};
use delegator_testkit::fleet_history::Unfinished;

use crate::actors::end_of;
use crate::fleet::{Fleet, LONG, new_task};

fn fleet_with_roles() -> Fleet {
    let fleet = Fleet::new();
    for _ in 0..2 {
        fleet.server.execute(&grant_sql("submitter", "worker"));
    }
    fleet
}

#[test]
fn each_role_can_do_its_work() {
    let fleet = fleet_with_roles();
    let submitter = fleet.client_at(&fleet.server.url_for("submitter"));
    let worker = fleet.client_at(&fleet.server.url_for("worker"));
    assert_eq!(worker.database.migrate().unwrap().before, worker.database.migrate().unwrap().after);
    let worker = worker.worker("worker", LONG);
    let tasks: Vec<String> = (0..4).map(|_| submitter.submit(&new_task()).unwrap().id).collect();
    let claim = worker.run_one();
    worker.append(&claim, 0, b"event\n").unwrap();
    worker.database().put_blob(&claim, BlobName::Diff, b"old\n").unwrap();
    worker.database().put_blob(&claim, BlobName::Diff, b"+line\n").unwrap();
    submitter.database.cancel(&claim.task, None).unwrap();
    assert_eq!(worker.database().heartbeat(&worker.session).unwrap().tasks.len(), 1);
    worker.finish(&claim, TaskEnd::Completed).unwrap();
    assert_eq!(end_of(submitter.task(&tasks[0])), TaskEnd::Completed);
    assert_eq!(
        submitter.database.events(&tasks[0], EventPosition::default(), 100).unwrap().bytes,
        b"event\n"
    );
    assert!(submitter.database.blob(&tasks[0], BlobName::Diff).unwrap().is_some());
    let released = worker.claim_one();
    worker.database().release(&released).unwrap();
    let given_up = worker.run_one();
    worker.database().give_up(&given_up, "the agent is gone").unwrap();
    worker.database().pause(None).unwrap();
    worker.database().resume(None).unwrap();
    worker.database().drain("worker").unwrap();
    submitter.database.status().unwrap();
    submitter.database.cancel(&tasks[3], None).unwrap();
    assert!(submitter.database.refuse("interrupted").unwrap());
    worker.database().prune(&Retention { max_bytes: Some(0), ..Retention::default() }).unwrap();
    worker.database().close_session(&worker.session).unwrap();
    fleet.check(Unfinished::Allowed);
}

#[test]
fn a_submitter_cannot_end_claim_or_change_tasks() {
    let fleet = fleet_with_roles();
    let worker = fleet.worker("worker", LONG);
    fleet.submit();
    let claim = worker.run_one();
    fleet.submit();
    let submitter = fleet.client_at(&fleet.server.url_for("submitter")).database;
    let end = submitter.finish(&claim, &crate::actors::finished(&claim, TaskEnd::Completed));
    for denied in [
        end,
        submitter.claim(&worker.session, 1).map(drop),
        submitter.append_events(&claim, 0, b"forged").map(drop),
        submitter.give_up(&claim, "forged"),
        submitter.heartbeat(&worker.session).map(drop),
        submitter.pause(None).map(drop),
        submitter.prune(&Retention::default()).map(drop),
    ] {
        assert!(matches!(denied, Err(FleetError::PermissionDenied { .. })), "{denied:?}");
    }
    for statement in [
        "update delegator.tasks set state = 'completed', session = null, ended_at = now()",
        "update delegator.tasks set priority = 9",
        "delete from delegator.tasks",
        "insert into delegator.tasks (id, state, spec_version, spec, labels, priority, on_lost, max_claims)
            values ('x', 'completed', 1, '', '{}', 0, 'fail', 1)",
        "select delegator.lose_task('x', 1, '', null, '')",
        "drop table delegator.tasks",
        "create table delegator.mine ()",
        "alter table delegator.tasks disable trigger protect_ended_tasks",
    ] {
        let error = fleet.server.query_as("submitter", statement).unwrap_err();
        assert!(
            error.contains("permission denied") || error.contains("must be owner"),
            "{statement}: {error}"
        );
    }
    worker.finish(&claim, TaskEnd::Completed).unwrap();
    assert_eq!(worker.work(1).unwrap(), 1);
    fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_worker_cannot_submit_or_change_tables() {
    let fleet = fleet_with_roles();
    let worker = fleet.client_at(&fleet.server.url_for("worker")).database;
    let denied = worker.submit(&new_task());
    assert!(matches!(denied, Err(FleetError::PermissionDenied { .. })), "{denied:?}");
    let denied = worker.refuse("x");
    assert!(matches!(denied, Err(FleetError::PermissionDenied { .. })), "{denied:?}");
    for statement in [
        "drop table delegator.tasks",
        "truncate delegator.tasks",
        "alter table delegator.tasks disable trigger protect_ended_tasks",
        "create table delegator.mine ()",
        "insert into delegator.migrations (version, min_program) values (9, 9)",
        "create or replace function delegator.stored_bytes(of_task text) returns bigint language sql as 'select 0::bigint'",
    ] {
        let error = fleet.server.query_as("worker", statement).unwrap_err();
        assert!(
            error.contains("permission denied") || error.contains("must be owner"),
            "{statement}: {error}"
        );
    }
}

#[test]
fn names_of_roles_are_quoted() {
    let fleet = Fleet::new();
    let (submitter, worker) = ("Web \"app\"", "it's; drop table delegator.tasks");
    fleet.server.execute(&grant_sql(submitter, worker));
    let roles = fleet.server.query("select rolname from pg_roles where rolcanlogin order by oid");
    assert_eq!(roles, [["postgres"], [submitter], [worker]]);
}
