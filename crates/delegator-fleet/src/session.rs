//! Sessions of workers: one for each run of a worker process. A session holds the lease of all its tasks.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::claim::{CancelRequest, Claim, OwnedTask, lose_task, parse_spec};
use crate::database::Database;
use crate::error::FleetError;
use crate::statements::Statements;
use crate::submit::expire_sessions;
use crate::task::{labels_text, new_id};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) String);

impl SessionId {
    pub fn random() -> SessionId {
        SessionId(new_id())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionId({})", self.0)
    }
}

/// A worker that begins to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    pub worker: String,
    /// The id of the workspace. Its lock guarantees that no other process works in it, so a new session may take over the
    /// tasks of an older one.
    pub workspace: String,
    pub slots: u32,
    pub labels: BTreeMap<String, String>,
    pub version: String,
    /// The session is lost after this time without a heartbeat.
    pub lease: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    pub id: SessionId,
    /// Running tasks of an earlier session of the workspace: their agents may still run.
    pub tasks: Vec<OwnedTask>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Every task that the session owns, also those whose claim was not answered.
    pub tasks: Vec<OwnedTask>,
    /// The fleet or this worker claims no tasks.
    pub is_paused: bool,
    /// The worker shall end when its tasks have ended.
    pub is_draining: bool,
}

impl Database {
    /// Opens a session. Earlier sessions of the same workspace end: their claimed tasks are queued again, and their running
    /// tasks belong to the new session, with the same attempt.
    pub fn open_session(&self, session: &NewSession) -> Result<OpenedSession, FleetError> {
        let id = SessionId::random();
        self.transaction(async |db| {
            end_earlier_sessions(db, &session.workspace).await?;
            expire_sessions(db).await?;
            let inserted = sqlx::query!(
                "insert into delegator.sessions (id, worker, workspace, version, slots, labels, lease, lease_until)
                 values ($1, $2, $3, $4, $5, $6, make_interval(secs => $7), now() + make_interval(secs => $7))
                 on conflict (worker) where ended_at is null do nothing",
                id.0,
                session.worker,
                session.workspace,
                session.version,
                i32::try_from(session.slots).unwrap_or(i32::MAX),
                labels_text(&session.labels),
                session.lease.as_secs_f64(),
            )
            .execute(&mut *db)
            .await?;
            if inserted.rows_affected() == 0 {
                return Err(name_in_use(db, &session.worker).await?);
            }
            take_over(db, &session.workspace, &id).await?;
            Ok(OpenedSession { id: id.clone(), tasks: owned_tasks(db, &id).await? })
        })
    }

    /// Renews the lease. An error if the session has ended: its tasks belong to others then.
    pub fn heartbeat(&self, session: &SessionId) -> Result<Heartbeat, FleetError> {
        let heartbeat = self.transaction(async |db| {
            let renewed = sqlx::query!(
                r#"update delegator.sessions s set heartbeat_at = now(), lease_until = now() + s.lease
                 where s.id = $1 and s.ended_at is null
                 returning s.is_draining,
                    exists (select from delegator.pauses p where p.worker in ('', s.worker)) as "is_paused!""#,
                session.0,
            )
            .fetch_optional(&mut *db)
            .await?;
            let renewed = renewed.ok_or(FleetError::SessionEnded)?;
            Ok(Heartbeat {
                tasks: owned_tasks(db, session).await?,
                is_paused: renewed.is_paused,
                is_draining: renewed.is_draining,
            })
        })?;
        self.expire_others();
        Ok(heartbeat)
    }

    /// Ends a session. Its claimed tasks are queued again, its running ones are lost.
    pub fn close_session(&self, session: &SessionId) -> Result<(), FleetError> {
        self.transaction(async |db| {
            sqlx::query!(
                "update delegator.sessions set ended_at = now(), end_reason = 'closed'
                 where id = $1 and ended_at is null",
                session.0,
            )
            .execute(&mut *db)
            .await?;
            sqlx::query!(
                "select delegator.lose_task(id, attempt, $1, null, 'the worker was stopped')
                 from delegator.tasks where session = $1",
                session.0,
            )
            .execute(&mut *db)
            .await?;
            Ok(())
        })
    }
}

async fn name_in_use(db: &mut Statements, worker: &str) -> Result<FleetError, FleetError> {
    let age = sqlx::query_scalar!(
        r#"select extract(epoch from now() - heartbeat_at)::bigint as "age!" from delegator.sessions
         where worker = $1 and ended_at is null"#,
        worker,
    )
    .fetch_optional(&mut *db)
    .await?;
    // It may have ended just now.
    Ok(FleetError::NameInUse { worker: worker.to_owned(), heartbeat_age_sec: age.unwrap_or_default() })
}

async fn end_earlier_sessions(db: &mut Statements, workspace: &str) -> Result<(), FleetError> {
    sqlx::query!(
        "update delegator.sessions set ended_at = now(), end_reason = 'replaced'
         where workspace = $1 and ended_at is null",
        workspace,
    )
    .execute(&mut *db)
    .await?;
    Ok(())
}

/// The tasks of ended sessions of this workspace: claimed ones are queued again, running ones get the new session.
async fn take_over(db: &mut Statements, workspace: &str, to: &SessionId) -> Result<(), FleetError> {
    sqlx::query!(
        "select delegator.lose_task(t.id, t.attempt, t.session, 'claimed', 'it was started again') from delegator.tasks t
         join delegator.sessions s on s.id = t.session
         where s.workspace = $1 and s.id <> $2 and t.state = 'claimed'",
        workspace,
        to.0,
    )
    .execute(&mut *db)
    .await?;
    sqlx::query!(
        "with taken as (
            update delegator.tasks t set session = $2 from delegator.sessions s
            where s.id = t.session and s.workspace = $1 and s.id <> $2 and t.state = 'running'
            returning t.id, t.attempt)
         update delegator.attempts a set session = $2 from taken
         where a.task = taken.id and a.attempt = taken.attempt",
        workspace,
        to.0,
    )
    .execute(&mut *db)
    .await?;
    Ok(())
}

async fn owned_tasks(db: &mut Statements, session: &SessionId) -> Result<Vec<OwnedTask>, FleetError> {
    let rows = sqlx::query!(
        r#"select id, attempt, spec, message, state = 'running' as "is_running!",
            cancel_requested_at is not null as "cancel_requested!"
         from delegator.tasks where session = $1 order by seq"#,
        session.0,
    )
    .fetch_all(&mut *db)
    .await?;
    let mut tasks = Vec::new();
    for row in rows {
        let claim = Claim { task: row.id, attempt: row.attempt, session: session.clone() };
        match parse_spec(&row.spec) {
            Ok(spec) => tasks.push(OwnedTask {
                claim,
                spec,
                is_running: row.is_running,
                cancel: row.cancel_requested.then_some(CancelRequest { reason: row.message }),
            }),
            // A newer program wrote it, and this one took over its workspace.
            Err(error) => lose_task(db, &claim, None, &error.to_string()).await?,
        }
    }
    Ok(tasks)
}
