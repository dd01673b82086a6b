//! What an operator does: pause, resume and drain workers.

use crate::database::Database;
use crate::error::FleetError;
use crate::statements::Statements;

/// The name that stands for all workers in the table of pauses.
const WHOLE_FLEET: &str = "";

impl Database {
    /// A paused worker claims no tasks, also after a restart; those that it has go on. `None`: all workers. False if it was
    /// paused already.
    pub fn pause(&self, worker: Option<&str>) -> Result<bool, FleetError> {
        self.transaction(async |db| {
            if let Some(worker) = worker {
                require_worker(db, worker).await?;
            }
            let inserted = sqlx::query!(
                "insert into delegator.pauses (worker) values ($1) on conflict do nothing",
                worker.unwrap_or(WHOLE_FLEET),
            )
            .execute(&mut *db)
            .await?;
            Ok(inserted.rows_affected() == 1)
        })
    }

    /// Ends a pause. False if there was none.
    pub fn resume(&self, worker: Option<&str>) -> Result<bool, FleetError> {
        self.transaction(async |db| {
            if let Some(worker) = worker {
                require_worker(db, worker).await?;
            }
            let worker = worker.unwrap_or(WHOLE_FLEET);
            let deleted = sqlx::query!("delete from delegator.pauses where worker = $1", worker)
                .execute(&mut *db)
                .await?;
            sqlx::query!("select pg_notify('delegator', 'sessions')").execute(&mut *db).await?;
            Ok(deleted.rows_affected() == 1)
        })
    }

    /// Lets a running worker end when its tasks have ended. False if it is draining already.
    pub fn drain(&self, worker: &str) -> Result<bool, FleetError> {
        self.transaction(async |db| {
            let session = sqlx::query!(
                "select id, is_draining from delegator.sessions where worker = $1 and ended_at is null for update",
                worker,
            )
            .fetch_optional(&mut *db)
            .await?;
            let Some(session) = session else {
                let known = live_workers(db).await?;
                return Err(FleetError::UnknownWorker { worker: worker.to_owned(), known });
            };
            sqlx::query!("update delegator.sessions set is_draining = true where id = $1", session.id)
                .execute(&mut *db)
                .await?;
            sqlx::query!("select pg_notify('delegator', $1)", session.id).execute(&mut *db).await?;
            Ok(!session.is_draining)
        })
    }
}

/// A name counts as known if a session ever had it, or if it is paused.
async fn require_worker(db: &mut Statements, worker: &str) -> Result<(), FleetError> {
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
