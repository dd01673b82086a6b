//! Claims: a worker takes queued tasks, starts them and ends them.
//!
//! Every change names task, attempt and session. One that comes too late matches no row.

use delegator_domain::task::{FailureKind, TaskEnd};
use sqlx::Executor;

use crate::blobs::BlobName;
use crate::database::Database;
use crate::error::FleetError;
use crate::session::SessionId;
use crate::statements::Statements;
use crate::task::{EndColumns, SPEC_VERSION, TaskSpec, storable};

/// The right of a session to run an attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    pub task: String,
    pub attempt: i32,
    pub session: SessionId,
}

impl Claim {
    pub(crate) fn fenced(&self) -> FleetError {
        FleetError::Fenced { task: self.task.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedTask {
    pub claim: Claim,
    pub spec: TaskSpec,
}

/// A task that a session owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTask {
    pub claim: Claim,
    pub spec: TaskSpec,
    /// Otherwise it is claimed only.
    pub is_running: bool,
    pub cancel: Option<CancelRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelRequest {
    pub reason: Option<String>,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTask {
    pub end: TaskEnd,
    /// JSON that the engine writes and reads.
    pub result: String,
    /// Blobs that the result refers to.
    pub blobs: Vec<BlobName>,
}

impl Database {
    /// Claims up to `max` queued tasks whose labels the worker has, by priority and age.
    pub fn claim(&self, session: &SessionId, max: u32) -> Result<Vec<ClaimedTask>, FleetError> {
        self.transaction(async |db| {
            // First without a lock, which is a write that the server would have to flush: most polls find no task.
            if !is_any_queued(db, session).await? {
                return Ok(Vec::new());
            }
            // The lock prevents that the session ends, in whichever way, before the claim is committed.
            let worker = sqlx::query!(
                r#"select s.worker, s.labels, s.is_draining or s.lease_until < now() or
                    exists (select from delegator.pauses p where p.worker in ('', s.worker)) as "may_not_claim!"
                 from delegator.sessions s where s.id = $1 and s.ended_at is null for share"#,
                session.0,
            )
            .fetch_optional(&mut *db)
            .await?;
            let worker = worker.ok_or(FleetError::SessionEnded)?;
            if worker.may_not_claim {
                return Ok(Vec::new());
            }
            let tasks = claim_queued(db, session, &worker.labels, i64::from(max)).await?;
            for task in &tasks {
                sqlx::query!(
                    "insert into delegator.attempts (task, attempt, session, worker) values ($1, $2, $3, $4)",
                    task.claim.task,
                    task.claim.attempt,
                    session.0,
                    worker.worker,
                )
                .execute(&mut *db)
                .await?;
            }
            Ok(tasks)
        })
    }

    /// Marks a claimed task as running. Must be called before the agent, or a command of the repository, is started: from
    /// now on the loss of the worker is not repaired silently.
    pub fn start(&self, claim: &Claim) -> Result<(), FleetError> {
        self.transaction(async |db| {
            let started = sqlx::query!(
                "update delegator.tasks set state = 'running', starts = starts + 1, started_at = now()
                 where id = $1 and attempt = $2 and session = $3 and state = 'claimed'",
                claim.task,
                claim.attempt,
                claim.session.0,
            )
            .execute(&mut *db)
            .await?;
            // A repetition after a lost answer.
            if started.rows_affected() == 1 || is_running(db, claim).await? {
                return Ok(());
            }
            Err(claim.fenced())
        })
    }

    /// Returns a claimed task to the queue.
    pub fn release(&self, claim: &Claim) -> Result<(), FleetError> {
        self.transaction(async |db| lose_task(db, claim, Some("claimed"), "").await)
    }

    /// Reports that a running task cannot be continued, as if the worker was lost.
    pub fn give_up(&self, claim: &Claim, cause: &str) -> Result<(), FleetError> {
        self.transaction(async |db| lose_task(db, claim, Some("running"), cause).await)
    }

    /// Ends a running task. A repetition of the same end is accepted.
    pub fn finish(&self, claim: &Claim, finished: &FinishedTask) -> Result<(), FleetError> {
        let columns = EndColumns::of(&finished.end);
        self.transaction(async |db| {
            for name in &finished.blobs {
                require_sealed(db, claim, *name).await?;
            }
            let ended = sqlx::query!(
                "update delegator.tasks set state = $4, session = null, ended_at = now(), failure_kind = $5,
                    limit_kind = $6, message = $7, retry_at_ms = $8, result = $9,
                    stored_bytes = delegator.stored_bytes(id) + octet_length($9)
                 where id = $1 and attempt = $2 and session = $3 and state = 'running'",
                claim.task,
                claim.attempt,
                claim.session.0,
                columns.state,
                columns.failure_kind,
                columns.limit_kind,
                columns.message,
                columns.retry_at_ms,
                finished.result,
            )
            .execute(&mut *db)
            .await?;
            if ended.rows_affected() == 0 {
                return match is_recorded_end(db, claim, &columns.state).await? {
                    true => Ok(()),
                    false => Err(claim.fenced()),
                };
            }
            sqlx::query!(
                "update delegator.attempts set ended_at = now(), outcome = $3 where task = $1 and attempt = $2",
                claim.task,
                claim.attempt,
                columns.state,
            )
            .execute(&mut *db)
            .await?;
            Ok(())
        })
    }
}

async fn is_any_queued(db: &mut Statements, session: &SessionId) -> Result<bool, FleetError> {
    let is_any_queued = sqlx::query_scalar!(
        r#"select exists (select from delegator.tasks where state = 'queued') as "is_any_queued!"
         from delegator.sessions where id = $1 and ended_at is null"#,
        session.0,
    )
    .fetch_optional(&mut *db)
    .await?;
    is_any_queued.ok_or(FleetError::SessionEnded)
}

/// The first tasks of each set of labels that the worker has; of these the first by priority and age. The sets are found by
/// jumping from one to the next in the index, so the length of the queue does not matter.
async fn claim_queued(
    db: &mut Statements,
    session: &SessionId,
    labels: &str,
    max: i64,
) -> Result<Vec<ClaimedTask>, FleetError> {
    // Statistics of a queue that was just filled are wrong, and lead to a sort of the whole queue.
    (&mut *db).execute("set local enable_bitmapscan = off").await?;
    let rows = sqlx::query!(
        r#"with recursive label_sets as (
            (select labels from delegator.tasks where state = 'queued' order by labels limit 1)
            union all
            select (select t.labels from delegator.tasks t
                    where t.state = 'queued' and t.labels > l.labels order by t.labels limit 1)
            from label_sets l where l.labels is not null),
         first as (
            select t.id from label_sets l
            cross join lateral (
                select id, priority, seq from delegator.tasks
                where state = 'queued' and labels = l.labels and spec_version <= $4
                order by priority desc, seq limit $3 for update skip locked) t
            where l.labels is not null and l.labels::jsonb <@ $2::text::jsonb
            order by t.priority desc, t.seq limit $3)
         update delegator.tasks t set state = 'claimed', attempt = t.attempt + 1, session = $1
         from first where t.id = first.id
         returning t.id, t.attempt, t.spec"#,
        session.0,
        labels,
        max,
        SPEC_VERSION,
    )
    .fetch_all(&mut *db)
    .await?;
    let mut claimed = Vec::new();
    for row in rows {
        let claim = Claim { task: row.id, attempt: row.attempt, session: session.clone() };
        match parse_spec(&row.spec) {
            Ok(spec) => claimed.push(ClaimedTask { claim, spec }),
            Err(error) => fail_unreadable(db, &claim, &error.to_string()).await?,
        }
    }
    Ok(claimed)
}

/// Ends a task that no worker can read: otherwise it would be the first of the queue for ever.
async fn fail_unreadable(db: &mut Statements, claim: &Claim, message: &str) -> Result<(), FleetError> {
    sqlx::query!(
        "update delegator.tasks set state = 'failed', session = null, ended_at = now(), failure_kind = $3,
            message = $4 where id = $1 and attempt = $2",
        claim.task,
        claim.attempt,
        FailureKind::Internal.name(),
        storable(message),
    )
    .execute(&mut *db)
    .await?;
    Ok(())
}

/// Ends the attempt as that of a lost worker, if the claim is still valid and the task in this state.
pub(crate) async fn lose_task(
    db: &mut Statements,
    claim: &Claim,
    only_state: Option<&str>,
    cause: &str,
) -> Result<(), FleetError> {
    sqlx::query!(
        "select delegator.lose_task($1, $2, $3, $4, $5)",
        claim.task,
        claim.attempt,
        claim.session.0,
        only_state,
        storable(cause),
    )
    .execute(&mut *db)
    .await?;
    Ok(())
}

async fn is_running(db: &mut Statements, claim: &Claim) -> Result<bool, FleetError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select from delegator.tasks
            where id = $1 and attempt = $2 and session = $3 and state = 'running') as "is_running!""#,
        claim.task,
        claim.attempt,
        claim.session.0,
    )
    .fetch_one(&mut *db)
    .await?)
}

async fn is_recorded_end(db: &mut Statements, claim: &Claim, state: &str) -> Result<bool, FleetError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select from delegator.attempts
            where task = $1 and attempt = $2 and session = $3 and outcome = $4) as "is_recorded!""#,
        claim.task,
        claim.attempt,
        claim.session.0,
        state,
    )
    .fetch_one(&mut *db)
    .await?)
}

async fn require_sealed(db: &mut Statements, claim: &Claim, name: BlobName) -> Result<(), FleetError> {
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

pub(crate) fn parse_spec(text: &str) -> Result<TaskSpec, FleetError> {
    serde_json::from_str(text).map_err(|error| FleetError::Corrupt {
        what: "the specification of a task",
        problem: error.to_string(),
    })
}
