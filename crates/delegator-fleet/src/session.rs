//! Sessions of workers, one for each run of a worker process, and the tasks that they own. A session holds
//! the lease of all its tasks.
//!
//! Every change of a task is a function of the database that names task, attempt and the secret of the
//! session. One that comes too late matches no row.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::database::Database;
use crate::error::FleetError;
use crate::statements::Statements;
use crate::task::{TaskSpec, labels_text, new_id, storable};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    pub worker: String,
    /// The id of the workspace. Its lock guarantees that no other process works in it, so a new session may
    /// take over the tasks of an older one.
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
    /// Opens a session. Earlier sessions of the same workspace end: their claimed tasks are queued again, and
    /// their running tasks belong to the new session, with the same attempt.
    pub fn open_session(&self, session: &NewSession) -> Result<OpenedSession, FleetError> {
        let id = SessionId::random();
        self.transaction(async |db| {
            let is_open = sqlx::query_scalar!(
                r#"select delegator.open_session($1, $2, $3, $4, $5, $6, $7) as "is_open!""#,
                id.secret,
                session.worker,
                session.workspace,
                session.version,
                i32::try_from(session.slots).unwrap_or(i32::MAX),
                labels_text(&session.labels),
                session.lease.as_secs_f64(),
            )
            .fetch_one(&mut *db)
            .await?;
            if !is_open {
                return Err(name_in_use(db, &session.worker).await?);
            }
            Ok(OpenedSession { id: id.clone(), tasks: owned_tasks(db, &id).await? })
        })
    }

    /// Renews the lease. An error if the session has ended: its tasks belong to others then.
    pub fn heartbeat(&self, session: &SessionId) -> Result<Heartbeat, FleetError> {
        let heartbeat = self.transaction(async |db| {
            let renewed = sqlx::query!(
                r#"select is_draining as "is_draining!", is_paused as "is_paused!" from delegator.heartbeat($1)"#,
                session.secret,
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
            sqlx::query!("select delegator.close_session($1)", session.secret).execute(&mut *db).await?;
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

async fn owned_tasks(db: &mut Statements, session: &SessionId) -> Result<Vec<OwnedTask>, FleetError> {
    let rows = sqlx::query!(
        r#"select id, attempt, spec, message, state = 'running' as "is_running!",
            cancel_requested_at is not null as "cancel_requested!"
         from delegator.tasks where session = $1 order by seq"#,
        session.id,
    )
    .fetch_all(&mut *db)
    .await?;
    let mut tasks = Vec::new();
    for row in rows {
        let claim = FleetClaim { task: row.id, attempt: row.attempt, session: session.clone() };
        match TaskSpec::parse(&row.spec) {
            Ok(spec) => tasks.push(OwnedTask {
                claim,
                spec,
                is_running: row.is_running,
                cancel: row.cancel_requested.then_some(FleetCancelRequest { reason: row.message }),
            }),
            // A newer program wrote it, and this one took over its workspace.
            Err(error) => lose_task(db, &claim, None, &error.to_string()).await?,
        }
    }
    Ok(tasks)
}

/// The id of a session, which everyone may know, and the secret of which it is the hash. The secret is the
/// right to write in the name of the session: only its worker has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl SessionId {
    pub fn random() -> SessionId {
        let secret = new_id();
        let id = Sha256::digest(&secret).iter().map(|byte| format!("{byte:02x}")).collect();
        SessionId { id, secret }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.id)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionId({self})")
    }
}

/// The right of a session to run an attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FleetClaim {
    pub task: String,
    pub attempt: i32,
    pub session: SessionId,
}

impl FleetClaim {
    pub(crate) fn fenced(&self) -> FleetError {
        FleetError::Fenced { task: self.task.clone() }
    }

    /// An error unless the database has accepted a change in the name of this claim.
    pub(crate) fn require(&self, is_accepted: bool) -> Result<(), FleetError> {
        if is_accepted { Ok(()) } else { Err(self.fenced()) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTask {
    pub claim: FleetClaim,
    pub spec: TaskSpec,
    /// Otherwise it is claimed only.
    pub is_running: bool,
    pub cancel: Option<FleetCancelRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetCancelRequest {
    pub reason: Option<String>,
}

/// Ends the attempt as that of a lost worker, if the claim is still valid and the task in this state.
pub(crate) async fn lose_task(
    db: &mut Statements,
    claim: &FleetClaim,
    only_state: Option<&str>,
    cause: &str,
) -> Result<(), FleetError> {
    sqlx::query!(
        "select delegator.give_up_task($1, $2, $3, $4, $5)",
        claim.session.secret,
        claim.task,
        claim.attempt,
        only_state,
        storable(cause),
    )
    .execute(&mut *db)
    .await?;
    Ok(())
}
