//! The fleet at one moment, for an operator.

use std::collections::BTreeMap;

use crate::database::Database;
use crate::error::FleetError;
use crate::events::unsigned;
use crate::statements::Statements;
use crate::task::parse_json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetStatus {
    /// By name.
    pub workers: Vec<WorkerStatus>,
    /// Whether no worker claims tasks.
    pub is_paused: bool,
    pub queued: u64,
    /// Claimed or running.
    pub running: u64,
    pub oldest_wait_ms: Option<i64>,
    /// Queued tasks whose labels no live worker has.
    pub unmatched: u64,
    /// Attempts that ended in the last 24 hours because their worker was lost.
    pub lost_last_day: u64,
    pub ended_last_day: u64,
    pub stored_bytes: u64,
    pub schema: i32,
    /// The role of this connection does not own the tables, and can write to tasks that are not its own.
    pub has_excess_rights: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerStatus {
    pub name: String,
    pub version: String,
    pub slots: u32,
    pub busy: u32,
    pub labels: BTreeMap<String, String>,
    pub is_paused: bool,
    pub is_draining: bool,
    pub heartbeat_age_ms: i64,
    pub opened_at_ms: i64,
    /// Since it was opened, by the database's clock.
    pub age_ms: i64,
}

impl Database {
    pub fn status(&self) -> Result<FleetStatus, FleetError> {
        self.expire_others();
        self.transaction(async |db| {
            let workers = read_workers(db).await?;
            let queue = sqlx::query!(
                r#"select count(*) filter (where state = 'queued') as "queued!",
                    count(*) filter (where state <> 'queued') as "running!",
                    (extract(epoch from now() - min(created_at) filter (where state = 'queued')) * 1000)::bigint
                        as oldest_wait_ms
                 from delegator.tasks where ended_at is null"#
            )
            .fetch_one(&mut *db)
            .await?;
            let unmatched = sqlx::query_scalar!(
                r#"select coalesce(sum(waiting), 0)::bigint as "unmatched!" from (
                    select labels, count(*) as waiting from delegator.tasks where state = 'queued' group by labels) t
                 where not exists (select from delegator.sessions s
                    where s.ended_at is null and t.labels::jsonb <@ s.labels::jsonb)"#
            )
            .fetch_one(&mut *db)
            .await?;
            let history = sqlx::query!(
                r#"select
                    (select count(*) from delegator.attempts
                        where outcome = 'lost' and ended_at > now() - interval '1 day') as "lost!",
                    (select count(*) from delegator.tasks where ended_at > now() - interval '1 day') as "ended!",
                    (select coalesce(sum(stored_bytes), 0)::bigint from delegator.tasks
                        where ended_at is not null) as "stored_bytes!",
                    (select max(version) from delegator.migrations) as "schema!",
                    exists (select from delegator.pauses where worker = '') as "is_paused!",
                    (select has_table_privilege(oid, 'update') and not pg_has_role(relowner, 'usage')
                        from pg_class where oid = 'delegator.tasks'::regclass) as "has_excess_rights!""#
            )
            .fetch_one(&mut *db)
            .await?;
            Ok(FleetStatus {
                workers,
                is_paused: history.is_paused,
                queued: unsigned(queue.queued),
                running: unsigned(queue.running),
                oldest_wait_ms: queue.oldest_wait_ms,
                unmatched: unsigned(unmatched),
                lost_last_day: unsigned(history.lost),
                ended_last_day: unsigned(history.ended),
                stored_bytes: unsigned(history.stored_bytes),
                schema: history.schema,
                has_excess_rights: history.has_excess_rights,
            })
        })
    }
}

async fn read_workers(db: &mut Statements) -> Result<Vec<WorkerStatus>, FleetError> {
    let rows = sqlx::query!(
        r#"select s.worker, s.version, s.slots, s.labels, s.is_draining,
            (select count(*) from delegator.tasks t where t.session = s.id) as "busy!",
            exists (select from delegator.pauses p where p.worker = s.worker) as "is_paused!",
            (extract(epoch from now() - s.heartbeat_at) * 1000)::bigint as "heartbeat_age_ms!",
            (extract(epoch from s.opened_at) * 1000)::bigint as "opened_at_ms!",
            (extract(epoch from now() - s.opened_at) * 1000)::bigint as "age_ms!"
         from delegator.sessions s where s.ended_at is null order by s.worker"#
    )
    .fetch_all(&mut *db)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(WorkerStatus {
                name: row.worker,
                version: row.version,
                slots: u32::try_from(row.slots).unwrap_or_default(),
                busy: u32::try_from(row.busy).unwrap_or_default(),
                labels: parse_json("the labels of a worker", &row.labels)?,
                is_paused: row.is_paused,
                is_draining: row.is_draining,
                heartbeat_age_ms: row.heartbeat_age_ms,
                opened_at_ms: row.opened_at_ms,
                age_ms: row.age_ms,
            })
        })
        .collect()
}
