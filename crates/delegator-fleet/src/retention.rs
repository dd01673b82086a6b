//! Deletes old tasks, by age and by size.

use std::time::{Duration, Instant};

use sqlx::Executor;

use crate::database::Database;
use crate::error::FleetError;
use crate::events::signed;

/// Tasks to delete in one transaction. A task may have many chunks of events, and a large diff.
const BATCH: i64 = 20;
/// Time for all transactions of one call, and for one of them.
const CALL_LIMIT: Duration = Duration::from_secs(10);
const BATCH_LIMIT: Duration = Duration::from_secs(60);
const LONG_STATEMENTS: &str = "set local statement_timeout = '60s'";
/// PostgreSQL has no dates before this age.
const MAX_AGE: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// How long ended tasks stay in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    pub max_age: Option<Duration>,
    /// The size of events and results; the oldest tasks are deleted first.
    pub max_bytes: Option<u64>,
    /// Do nothing if any worker has pruned within this time.
    pub interval: Duration,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    pub tasks: u64,
    /// More tasks than one call deletes are due.
    pub is_partial: bool,
}

impl Database {
    /// Deletes ended tasks that are too old, and the oldest ones while all together are too large.
    pub fn prune(&self, retention: &Retention) -> Result<Pruned, FleetError> {
        let mut pruned = Pruned::default();
        if !self.begin_pruning(retention.interval)? {
            return Ok(pruned);
        }
        let Some(last_end) = self.last_end_to_delete(retention)? else { return Ok(pruned) };
        let started = Instant::now();
        loop {
            let deleted = self.delete_batch(&last_end)?;
            pruned.tasks += deleted;
            if deleted < BATCH.unsigned_abs() {
                return Ok(pruned);
            }
            if started.elapsed() >= CALL_LIMIT {
                pruned.is_partial = true;
                self.continue_pruning_later()?;
                return Ok(pruned);
            }
        }
    }

    /// False if another worker has pruned lately, or does so now.
    fn begin_pruning(&self, interval: Duration) -> Result<bool, FleetError> {
        self.transaction(async |db| {
            let is_due = sqlx::query_scalar!(
                r#"select delegator.begin_pruning($1) as "is_due!""#,
                interval.min(MAX_AGE).as_secs_f64(),
            );
            Ok(is_due.fetch_one(&mut *db).await?)
        })
    }

    fn continue_pruning_later(&self) -> Result<(), FleetError> {
        self.transaction(async |db| {
            sqlx::query!("select delegator.continue_pruning()").execute(&mut *db).await?;
            Ok(())
        })
    }

    /// Tasks that ended until this time are deleted; `None`: nothing is due. A time as PostgreSQL writes it.
    fn last_end_to_delete(&self, retention: &Retention) -> Result<Option<String>, FleetError> {
        let age = retention.max_age.map(|age| age.min(MAX_AGE).as_secs_f64());
        let bytes = retention.max_bytes.map(signed);
        self.long_transaction(BATCH_LIMIT, async |db| {
            (&mut *db).execute(LONG_STATEMENTS).await?;
            Ok(sqlx::query_scalar!(
                "select greatest(now() - make_interval(secs => $1), (
                    select max(ended_at) from (
                        select ended_at, sum(stored_bytes) over (order by ended_at desc, id desc) as total
                        from delegator.tasks where ended_at is not null) newest_first
                    where total > $2::bigint))::text",
                age,
                bytes,
            )
            .fetch_one(&mut *db)
            .await?)
        })
    }

    fn delete_batch(&self, last_end: &str) -> Result<u64, FleetError> {
        self.long_transaction(BATCH_LIMIT, async |db| {
            (&mut *db).execute(LONG_STATEMENTS).await?;
            let deleted = sqlx::query_scalar!(
                r#"select delegator.delete_ended_tasks($1::text::timestamptz, $2) as "deleted!""#,
                last_end,
                BATCH,
            );
            Ok(deleted.fetch_one(&mut *db).await?.unsigned_abs())
        })
    }
}
