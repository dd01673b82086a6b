//! The roles that `grant_sql` creates have the rights that they need and no more.

use delegator_domain::task::TaskEnd;
use delegator_fleet::{BlobName, EventPosition, FleetError, Retention, grant_sql};
use delegator_testkit::fleet_history::Unfinished;
use delegator_testkit::generated::{assert_up_to_date, workspace};

use crate::actors::end_of;
use crate::fleet::{Fleet, LONG, new_task};

/// What a role gets back for every read and write of every column, tried by the role itself. Each trial is rolled back.
const TRY: &str = "
create function public.try(statement text) returns boolean language plpgsql as $$
begin
    execute statement;
    raise exception 'rolled back';
exception
    when insufficient_privilege then return false;
    when others then return true;
end
$$;
create view public.trials as
select table_name as relation, kind, column_name as of_column, format(statement, table_schema, table_name, column_name) as statement
from information_schema.columns natural join information_schema.tables, (values
    ('read', 'select %3$I from %1$I.%2$I'),
    ('insert', 'insert into %1$I.%2$I (%3$I) overriding system value values (default)'),
    ('update', 'update %1$I.%2$I set %3$I = default'),
    ('delete', 'delete from %1$I.%2$I'),
    ('truncate', 'truncate %1$I.%2$I cascade')) kinds (kind, statement)
where table_schema = 'delegator';
create table public.statements as table public.trials;
grant select on public.statements to public;";

const RIGHTS: &str = "
with tried as (select *, public.try(statement) as is_allowed from public.statements),
kinds as (
    select relation, kind, case
        when bool_and(is_allowed) then kind
        when count(*) filter (where not is_allowed) = 1
            then kind || ' except ' || string_agg('`' || of_column || '`', ', ') filter (where not is_allowed)
        else kind || ' ' || string_agg('`' || of_column || '`', ', ' order by of_column) filter (where is_allowed) end as rights,
        array_position(array['read', 'insert', 'update', 'delete', 'truncate'], kind) as place
    from tried group by relation, kind)
select relation, coalesce(string_agg(rights, '; ' order by place), '-') from kinds group by relation order by relation";

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

/// The table of `docs/fleet.md`: every role tries every table and column, and every function.
#[test]
fn the_rights_of_each_role_are_up_to_date_in_the_documentation() {
    let fleet = fleet_with_roles();
    let worker = fleet.worker("worker", LONG);
    for _ in 0..3 {
        fleet.submit();
    }
    let claim = worker.run_one();
    worker.append(&claim, 0, b"event\n").unwrap();
    worker.database().put_blob(&claim, BlobName::Diff, b"+line\n").unwrap();
    fleet.server.execute("create role stranger login");
    fleet.server.execute(TRY);
    let roles = ["postgres", "submitter", "worker", "stranger"];
    let heading = "| | owner | submitter | worker | any other role |\n|---|---|---|---|---|\n";
    let rights = roles.map(|role| fleet.server.query_as(role, RIGHTS).unwrap());
    let mut table = heading.to_owned();
    for (index, row) in rights[0].iter().enumerate() {
        let cells = rights.each_ref().map(|rights| rights[index][1].as_str());
        table += &format!("| `{}` | {} |\n", row[0], cells.join(" | "));
    }
    table += &format!("\n{}", heading.replacen("| |", "| function |", 1));
    let functions = "select p.proname, string_agg(case when has_function_privilege(r, p.oid, 'execute') then 'yes' else '-' end,
            ' | ' order by place)
        from pg_proc p, unnest(array['postgres', 'submitter', 'worker', 'stranger']) with ordinality roles (r, place)
        where p.pronamespace = 'delegator'::regnamespace group by p.proname, p.oid order by p.proname";
    for row in fleet.server.query(functions) {
        table += &format!("| `{}` | {} |\n", row[0], row[1]);
    }
    println!("{table}");
    let page = std::fs::read_to_string(workspace().join("docs/fleet.md")).unwrap();
    let (before, rest) = page.split_once("<!-- rights -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of rights -->\n").unwrap();
    let generated = format!("{before}<!-- rights -->\n{table}<!-- end of rights -->\n{after}");
    assert_up_to_date("docs/fleet.md", &generated);
    fleet.check(Unfinished::Allowed);
}

#[test]
fn a_worker_cannot_write_in_the_name_of_another_one() {
    let fleet = fleet_with_roles();
    let as_worker = || fleet.client_at(&fleet.server.url_for("worker"));
    let (victim, attacker) = (as_worker().worker("victim", LONG), as_worker().worker("attacker", LONG));
    fleet.submit();
    let claim = victim.run_one();
    victim.append(&claim, 0, b"event\n").unwrap();
    victim.database().put_blob(&claim, BlobName::Diff, b"+line\n").unwrap();
    // All that the attacker can read of the session.
    let known = fleet.server.query_as("worker", "select id from delegator.sessions where worker = 'victim'");
    let id = known.unwrap().remove(0).remove(0);
    assert_eq!(id, victim.session.to_string());
    let before = stored(&fleet);
    for secret in [id, attacker.session.to_string(), String::new()] {
        let owner = format!("'{secret}', '{}', {}", claim.task, claim.attempt);
        for call in [
            format!("start_task({owner})"),
            format!("give_up_task({owner}, null, 'gone')"),
            format!("finish_task({owner}, 'completed', null, null, null, null, '{{}}')"),
            format!("append_events({owner}, 6, 'forged')"),
            format!("begin_blob({owner}, 'diff', 6, 'forged')"),
            format!("put_blob_part({owner}, 'diff', 1, 'forged')"),
            format!("seal_blob({owner}, 'diff')"),
            format!("heartbeat('{secret}')"),
            format!("close_session('{secret}')"),
        ] {
            let answer = fleet.server.query_as("worker", &format!("select * from delegator.{call}")).unwrap();
            assert!(
                answer.is_empty() || [["f"], [""]].contains(&[answer[0][0].as_str()]),
                "{call}: {answer:?}"
            );
        }
    }
    for statement in [
        "select workspace from delegator.sessions",
        "select delegator.lose_task(id, attempt, session, null, '') from delegator.tasks",
        "select delegator.lock_attempt('', '', 1)",
    ] {
        let error = fleet.server.query_as("worker", statement).unwrap_err();
        assert!(error.contains("permission denied"), "{statement}: {error}");
    }
    assert_eq!(stored(&fleet), before);
    victim.finish(&claim, TaskEnd::Completed).unwrap();
    fleet.check(Unfinished::Forbidden);
}

/// The owner of the tables is stopped, too: by triggers.
#[test]
fn a_submission_and_everything_of_an_ended_task_are_immutable() {
    let fleet = Fleet::new();
    let worker = fleet.worker("worker", LONG);
    let (ended, queued) = (fleet.submit(), fleet.submit());
    let claim = worker.run_one();
    assert_eq!(claim.task, ended);
    worker.append(&claim, 0, b"event\n").unwrap();
    worker.database().put_blob(&claim, BlobName::Diff, b"+line\n").unwrap();
    worker.finish(&claim, TaskEnd::Completed).unwrap();
    let before = stored(&fleet);
    let refuse = |statement: &str| {
        let error = fleet.server.query_as("postgres", statement).unwrap_err();
        assert!(error.contains("must not change"), "{statement}: {error}");
    };
    for column in ["id", "spec", "labels"] {
        refuse(&format!("update delegator.tasks set {column} = '{{\"a\":\"b\"}}' where id = '{queued}'"));
    }
    let columns = "select table_name, column_name from information_schema.columns where table_schema = 'delegator'
        and table_name in ('tasks', 'attempts', 'event_chunks', 'blobs', 'blob_parts') and is_identity = 'NO'";
    for row in fleet.server.query(columns) {
        let key = if row[0] == "tasks" { "id" } else { "task" };
        refuse(&format!("update delegator.{} set {} = default where {key} = '{ended}'", row[0], row[1]));
    }
    for table in ["attempts", "event_chunks", "blobs", "blob_parts"] {
        refuse(&format!("delete from delegator.{table}"));
    }
    refuse(&format!("insert into delegator.event_chunks values ('{ended}', 1, 6, 'forged')"));
    refuse(&format!("insert into delegator.blobs values ('{ended}', 1, 'setup', 6, 'forged')"));
    refuse(&format!("insert into delegator.blob_parts values ('{ended}', 1, 'diff', 1, 'forged')"));
    assert_eq!(stored(&fleet), before);
    // Only together with the task.
    let pruned = fleet.client().database.prune(&Retention { max_bytes: Some(0), ..Retention::default() });
    assert_eq!(pruned.unwrap().tasks, 1);
}

/// Everything that is stored of tasks.
fn stored(fleet: &Fleet) -> Vec<Vec<String>> {
    let rows = ["tasks", "attempts", "event_chunks", "blobs", "blob_parts", "pauses"]
        .map(|table| format!("select '{table}', t::text from delegator.{table} t"));
    fleet.server.query(&format!("{} order by 1, 2", rows.join(" union all ")))
}
