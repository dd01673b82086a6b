//! What a worker does with tasks: claims queued ones, starts them and ends them.

use delegator_domain::task::{FailureKind, TaskEnd};

use crate::blobs::BlobName;
use crate::database::Database;
use crate::error::FleetError;
use crate::session::{FleetClaim, OwnedTask, SessionId, lose_task};
use crate::statements::Statements;
use crate::task::{EndColumns, SPEC_VERSION, TaskSpec, storable};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTask {
    pub end: TaskEnd,
    /// JSON that the engine writes and reads.
    pub result: String,
    pub blobs: Vec<BlobName>,
}

impl Database {
    /// Claims up to `max` queued tasks whose labels the worker has, by priority and age.
    pub fn claim(&self, session: &SessionId, max: u32) -> Result<Vec<OwnedTask>, FleetError> {
        self.transaction(async |db| {
            // First without a lock, which is a write that the server would have to flush: most polls find no
            // task.
            if !is_any_queued(db, session).await? {
                return Ok(Vec::new());
            }
            let rows = sqlx::query!(
                r#"select task as "task!", attempt as "attempt!", spec as "spec!"
                 from delegator.claim_tasks($1, $2, $3)"#,
                session.secret,
                i64::from(max),
                SPEC_VERSION,
            )
            .fetch_all(&mut *db)
            .await?;
            let mut claimed = Vec::new();
            for row in rows {
                let claim = FleetClaim { task: row.task, attempt: row.attempt, session: session.clone() };
                match TaskSpec::parse(&row.spec) {
                    Ok(spec) => claimed.push(OwnedTask { claim, spec, is_running: false, cancel: None }),
                    Err(error) => fail_unreadable(db, &claim, &error.to_string()).await?,
                }
            }
            Ok(claimed)
        })
    }

    /// Marks a claimed task as running. Must be called before the agent, or a command of the repository, is
    /// started: from now on the loss of the worker is not repaired silently.
    pub fn start(&self, claim: &FleetClaim) -> Result<(), FleetError> {
        self.transaction(async |db| start(db, claim).await)
    }

    pub fn release(&self, claim: &FleetClaim) -> Result<(), FleetError> {
        self.transaction(async |db| lose_task(db, claim, Some("claimed"), "").await)
    }

    /// Reports that a running task cannot be continued, as if the worker was lost.
    pub fn give_up(&self, claim: &FleetClaim, cause: &str) -> Result<(), FleetError> {
        self.transaction(async |db| lose_task(db, claim, Some("running"), cause).await)
    }

    /// Ends a running task. A repetition of the same end is accepted.
    pub fn finish(&self, claim: &FleetClaim, finished: &FinishedTask) -> Result<(), FleetError> {
        let columns = EndColumns::of(&finished.end);
        self.transaction(async |db| {
            for name in &finished.blobs {
                require_sealed(db, claim, *name).await?;
            }
            finish(db, claim, &columns, Some(&finished.result)).await
        })
    }
}

async fn start(db: &mut Statements, claim: &FleetClaim) -> Result<(), FleetError> {
    let is_running = sqlx::query_scalar!(
        r#"select delegator.start_task($1, $2, $3) as "is_running!""#,
        claim.session.secret,
        claim.task,
        claim.attempt,
    );
    claim.require(is_running.fetch_one(&mut *db).await?)
}

async fn finish(
    db: &mut Statements,
    claim: &FleetClaim,
    columns: &EndColumns,
    result: Option<&str>,
) -> Result<(), FleetError> {
    let is_ended = sqlx::query_scalar!(
        r#"select delegator.finish_task($1, $2, $3, $4, $5, $6, $7, $8, $9) as "is_ended!""#,
        claim.session.secret,
        claim.task,
        claim.attempt,
        columns.state,
        columns.failure_kind,
        columns.limit_kind,
        columns.message,
        columns.retry_at_ms,
        result,
    );
    claim.require(is_ended.fetch_one(&mut *db).await?)
}

async fn is_any_queued(db: &mut Statements, session: &SessionId) -> Result<bool, FleetError> {
    let is_any_queued = sqlx::query_scalar!(
        r#"select exists (select from delegator.tasks where state = 'queued') as "is_any_queued!"
         from delegator.sessions where id = $1 and ended_at is null"#,
        session.id,
    )
    .fetch_optional(&mut *db)
    .await?;
    is_any_queued.ok_or(FleetError::SessionEnded)
}

/// Ends a task that no worker can read: otherwise it would be the first of the queue for ever.
async fn fail_unreadable(db: &mut Statements, claim: &FleetClaim, message: &str) -> Result<(), FleetError> {
    let (kind, message) = (FailureKind::Internal, storable(message));
    start(db, claim).await?;
    finish(db, claim, &EndColumns::of(&TaskEnd::Failed { kind, message, retry_at_ms: None }), None).await
}

async fn require_sealed(db: &mut Statements, claim: &FleetClaim, name: BlobName) -> Result<(), FleetError> {
    let is_sealed = sqlx::query_scalar!(
        "select is_sealed from delegator.blobs where task = $1 and attempt = $2 and name = $3",
        claim.task,
        claim.attempt,
        name.name(),
    )
    .fetch_optional(&mut *db)
    .await?;
    if is_sealed == Some(true) { Ok(()) } else { Err(FleetError::NotSealed { name: name.name() }) }
}
