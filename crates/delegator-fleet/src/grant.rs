//! SQL that creates roles with the least rights.

use std::fmt::Write;

/// Columns that a submitter provides; the database decides the others.
const SUBMITTED_COLUMNS: &str = "id, idempotency_key, request_hash, spec_version, spec, environment, title, submitter_task, labels, \
                                 priority, on_lost, max_claims";

/// SQL that creates a role for submitters and one for workers, to be run by the owner of the tables. A submitter can submit,
/// read and cancel tasks, but cannot end one. A worker can run tasks and delete old ones. Neither can change tables.
pub fn grant_sql(submitter: &str, worker: &str) -> String {
    let (submitter, worker) = (quoted(submitter), quoted(worker));
    let mut sql = String::new();
    for (role, about) in [(&submitter, "submits, reads and cancels tasks"), (&worker, "runs tasks")] {
        let name = literal(role);
        let _ = write!(
            sql,
            "-- {role} {about}. Set its password with \\password {role} in psql.\n\
             do $$ begin\n    if to_regrole({name}) is null then create role {role} login; end if;\nend $$;\n\
             grant usage on schema delegator to {role};\n\
             grant select on all tables in schema delegator to {role};\n\
             grant execute on function delegator.expire_sessions(), delegator.request_cancel(text, text) to {role};\n"
        );
    }
    let _ = write!(
        sql,
        "grant insert ({SUBMITTED_COLUMNS}) on delegator.tasks to {submitter};\n\
         grant execute on function delegator.refuse_task(text) to {submitter};\n\
         grant insert, update on delegator.sessions, delegator.attempts, delegator.event_chunks, delegator.blobs,\n    \
             delegator.blob_parts, delegator.pauses to {worker};\n\
         grant update on delegator.tasks, delegator.upkeep to {worker};\n\
         grant delete on delegator.tasks, delegator.sessions, delegator.blobs, delegator.pauses to {worker};\n\
         grant execute on function delegator.lose_task(text, integer, text, text, text), delegator.stored_bytes(text) to {worker};\n"
    );
    sql
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
