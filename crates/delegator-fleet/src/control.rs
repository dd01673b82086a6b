//! What an operator does: pause, resume and drain workers, and cancel tasks of all machines.

use crate::database::Database;
use crate::error::FleetError;
use crate::statements::Statements;
use crate::task::storable;

/// The name that stands for all workers in the table of pauses.
const WHOLE_FLEET: &str = "";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelledTask {
    pub id: String,
    /// The id that the task has on the machine that submitted it.
    pub submitter_task: Option<String>,
    /// `running` until its worker has stopped it.
    pub state: String,
    /// Who runs it, or ran it last.
    pub worker: Option<String>,
    /// False if it had ended, or was being cancelled already.
    pub is_changed: bool,
}

impl Database {
    /// A paused worker claims no tasks, also after a restart; those that it has go on. `None`: all workers.
    /// False if it was paused already.
    pub fn pause(&self, worker: Option<&str>) -> Result<bool, FleetError> {
        self.transaction(async |db| set_pause(db, worker, true).await)
    }

    /// Ends a pause. False if there was none.
    pub fn resume(&self, worker: Option<&str>) -> Result<bool, FleetError> {
        self.transaction(async |db| set_pause(db, worker, false).await)
    }

    /// Lets a running worker end when its tasks have ended. False if it is draining already.
    pub fn drain(&self, worker: &str) -> Result<bool, FleetError> {
        self.transaction(async |db| {
            let is_new =
                sqlx::query_scalar!("select delegator.drain_worker($1)", worker).fetch_one(&mut *db).await?;
            match is_new {
                Some(is_new) => Ok(is_new),
                None => {
                    let known = live_workers(db).await?;
                    Err(FleetError::UnknownWorker { worker: worker.to_owned(), known })
                }
            }
        })
    }

    /// Cancels a task by its own id or by the one that it has on the machine that submitted it.
    pub fn cancel_by_any_id(&self, given: &str, reason: Option<&str>) -> Result<CancelledTask, FleetError> {
        self.transaction(async |db| {
            let found = sqlx::query!(
                r#"select t.id as "id!", t.submitter_task, a.worker as "worker?",
                    t.ended_at is null and t.cancel_requested_at is null as "is_open!"
                 from delegator.tasks t left join delegator.attempts a on a.task = t.id and a.attempt = t.attempt
                 where t.id = $1 or t.submitter_task = $1 order by (t.id = $1) desc, t.seq desc limit 1"#,
                given,
            )
            .fetch_optional(&mut *db)
            .await?;
            let found = found.ok_or_else(|| FleetError::UnknownTask { id: given.to_owned() })?;
            let reason = reason.map(storable);
            let state = sqlx::query_scalar!("select delegator.request_cancel($1, $2)", found.id, reason)
                .fetch_one(&mut *db)
                .await?;
            // Another process may have deleted it.
            let state = state.ok_or_else(|| FleetError::UnknownTask { id: given.to_owned() })?;
            Ok(CancelledTask {
                id: found.id,
                submitter_task: found.submitter_task,
                state,
                worker: found.worker,
                is_changed: found.is_open,
            })
        })
    }
}

/// Whether that changed something.
async fn set_pause(db: &mut Statements, worker: Option<&str>, is_paused: bool) -> Result<bool, FleetError> {
    if let Some(worker) = worker {
        require_worker(db, worker).await?;
    }
    let worker = worker.unwrap_or(WHOLE_FLEET);
    let is_changed =
        sqlx::query_scalar!(r#"select delegator.set_pause($1, $2) as "is_changed!""#, worker, is_paused);
    Ok(is_changed.fetch_one(&mut *db).await?)
}

/// A name counts as known if a session ever had it, or if it is paused.
pub(crate) async fn require_worker(db: &mut Statements, worker: &str) -> Result<(), FleetError> {
    let is_known = sqlx::query_scalar!(
        r#"select exists (select from delegator.sessions where worker = $1)
            or exists (select from delegator.pauses where worker = $1) as "is_known!""#,
        worker,
    )
    .fetch_one(&mut *db)
    .await?;
    if is_known {
        return Ok(());
    }
    Err(FleetError::UnknownWorker { worker: worker.to_owned(), known: live_workers(db).await? })
}

async fn live_workers(db: &mut Statements) -> Result<Vec<String>, FleetError> {
    let names =
        sqlx::query_scalar!("select worker from delegator.sessions where ended_at is null order by worker");
    Ok(names.fetch_all(&mut *db).await?)
}
