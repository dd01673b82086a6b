//! SQL that creates roles with the least rights.

use std::fmt::Write;

/// Columns that a submitter provides; the database decides the others.
const SUBMITTED_COLUMNS: &str = "id, idempotency_key, request_hash, spec_version, spec, environment, title, submitter_task, labels, \
                                 priority, on_lost, max_claims";
/// All but the workspace: who knows the one of a worker can take over its tasks.
const SESSION_COLUMNS: &str = "id, worker, version, slots, labels, lease, lease_until, opened_at, heartbeat_at, is_draining, ended_at, \
                               end_reason";
const WORKER_FUNCTIONS: [&str; 16] = [
    "open_session(text, text, text, text, integer, text, double precision)",
    "heartbeat(text)",
    "close_session(text)",
    "claim_tasks(text, bigint, integer)",
    "start_task(text, text, integer)",
    "give_up_task(text, text, integer, text, text)",
    "finish_task(text, text, integer, text, text, text, text, bigint, text)",
    "append_events(text, text, integer, bigint, bytea)",
    "begin_blob(text, text, integer, text, bigint, bytea)",
    "put_blob_part(text, text, integer, text, integer, bytea)",
    "seal_blob(text, text, integer, text)",
    "set_pause(text, boolean)",
    "drain_worker(text)",
    "begin_pruning(double precision)",
    "continue_pruning()",
    "delete_ended_tasks(timestamptz, bigint)",
];

/// SQL that creates a role for submitters and one for workers, to be run by the owner of the tables. A
/// submitter can submit, read and cancel tasks, but cannot end one. A worker writes through functions, which
/// change only the tasks of its own session. Neither can change tables. Rights that an earlier version has
/// granted are revoked.
pub fn grant_sql(submitter: &str, worker: &str) -> String {
    let (submitter, worker) = (quoted(submitter), quoted(worker));
    let mut sql = String::new();
    for (role, about) in [(&submitter, "submits, reads and cancels tasks"), (&worker, "runs tasks")] {
        let name = literal(role);
        let _ = write!(
            sql,
            "-- {role} {about}. Set its password with \\password {role} in psql.\n\
             do $$ begin\n    if to_regrole({name}) is null then create role {role} login; end if;\nend $$;\n\
             revoke all on all tables in schema delegator from {role};\n\
             revoke all on all functions in schema delegator from {role};\n\
             grant usage on schema delegator to {role};\n\
             grant select on all tables in schema delegator to {role};\n\
             revoke select on delegator.sessions from {role};\n\
             grant select ({SESSION_COLUMNS}) on delegator.sessions to {role};\n\
             grant execute on function delegator.expire_sessions(), delegator.request_cancel(text, text) to {role};\n"
        );
    }
    let _ = write!(
        sql,
        "grant insert ({SUBMITTED_COLUMNS}) on delegator.tasks to {submitter};\n\
         grant execute on function delegator.refuse_task(text) to {submitter};\n"
    );
    for function in WORKER_FUNCTIONS {
        let _ = writeln!(sql, "grant execute on function delegator.{function} to {worker};");
    }
    sql
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
