//! What a submitter does: submit, query, cancel.

use std::collections::BTreeMap;

use delegator_domain::environment::FleetObstacle;

use crate::database::Database;
use crate::error::FleetError;
use crate::statements::Statements;
use crate::task::{
    EndColumns, FleetEnd, FleetState, FleetTask, NewFleetTask, SPEC_VERSION, Submitted, labels_text, storable,
};

/// The state of a task whose agent runs, as stored.
const RUNNING: &str = "running";

impl Database {
    /// Stores a task. A repetition with the same id, or the same key and request, returns the stored one.
    pub fn submit(&self, task: &NewFleetTask) -> Result<Submitted, FleetError> {
        let spec = serde_json::to_string(&task.spec)
            .map_err(|error| FleetError::Corrupt { what: "a task", problem: error.to_string() })?;
        let labels = labels_text(&task.labels);
        let (key, hash) = match &task.idempotency {
            Some(idempotency) => (Some(&idempotency.key), Some(&idempotency.request_hash)),
            None => (None, None),
        };
        let max_claims = i32::try_from(task.max_claims).unwrap_or(i32::MAX);
        self.transaction(async |db| {
            let inserted = sqlx::query!(
                "insert into delegator.tasks
                    (id, idempotency_key, request_hash, spec_version, spec, labels, priority, on_lost, max_claims,
                     environment, title, submitter_task)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict do nothing",
                task.id,
                key,
                hash,
                SPEC_VERSION,
                spec,
                labels,
                task.priority,
                task.on_lost.name(),
                max_claims,
                storable(&task.spec.environment),
                storable(&task.spec.title),
                task.spec.submitter_task,
            )
            .execute(&mut *db)
            .await?;
            if inserted.rows_affected() == 1 {
                sqlx::query!("select pg_notify('delegator', 'queued')").execute(&mut *db).await?;
                return Ok(Submitted { id: task.id.clone(), replayed: false });
            }
            let stored = sqlx::query!(
                "select id, request_hash from delegator.tasks where id = $1 or idempotency_key = $2
                 order by (id = $1) desc limit 1",
                task.id,
                key,
            )
            .fetch_one(&mut *db)
            .await?;
            if stored.id == task.id || stored.request_hash.as_ref() == hash { Ok(Submitted { id: stored.id, replayed: true }) } else { Err(FleetError::KeyConflict) }
        })
    }

    /// The tasks with these ids, in the same order. Tasks of lost workers have ended or are queued again. A
    /// task that cannot be read does not affect the others.
    pub fn tasks(&self, ids: &[String]) -> Result<Vec<Result<FleetTask, FleetError>>, FleetError> {
        let read = || self.transaction(async |db| read_tasks(db, ids).await);
        let mut rows = read()?;
        // Followers poll, so sessions are ended only if there is one whose lease has passed.
        if rows.iter().any(|row| row.has_expired_sessions) {
            self.expire_others();
            rows = read()?;
        }
        let mut found: BTreeMap<String, _> =
            rows.into_iter().map(|row| (row.id.clone(), row.parse())).collect();
        let unknown = |id: &String| Err(FleetError::UnknownTask { id: id.clone() });
        Ok(ids.iter().map(|id| found.remove(id).unwrap_or_else(|| unknown(id))).collect())
    }

    /// Makes final that a task was not accepted: a submission that is still under way has no effect
    /// afterwards. Returns false if the task was accepted.
    pub fn refuse(&self, id: &str) -> Result<bool, FleetError> {
        self.transaction(async |db| {
            let refused = sqlx::query_scalar!(r#"select delegator.refuse_task($1) as "refused!""#, id);
            Ok(refused.fetch_one(&mut *db).await?)
        })
    }

    /// Cancels a queued task; requests the end of a running one from its worker. A task that has ended stays
    /// as it is. Returns whether it runs, so that its worker still has to end it.
    pub fn cancel(&self, id: &str, reason: Option<&str>) -> Result<bool, FleetError> {
        self.transaction(async |db| {
            let state =
                sqlx::query_scalar!("select delegator.request_cancel($1, $2)", id, reason.map(storable))
                    .fetch_one(&mut *db)
                    .await?;
            let unknown = || FleetError::UnknownTask { id: id.to_owned() };
            state.map(|state| state == RUNNING).ok_or_else(unknown)
        })
    }

    /// The obstacles of these tasks, in the same order. A task that is not queued has none.
    pub fn obstacles(&self, ids: &[String]) -> Result<Vec<Option<FleetObstacle>>, FleetError> {
        self.transaction(async |db| {
            let rows = sqlx::query!(
                r#"select t.id as "id!",
                    case when exists (select from delegator.pauses where worker = '') then 'fleet_paused'
                    else (select case
                            when count(*) = 0 then 'no_worker'
                            when bool_and(s.is_draining) then 'workers_draining'
                            when bool_and(s.is_draining or p.worker is not null) then 'workers_paused' end
                        from delegator.sessions s left join delegator.pauses p on p.worker = s.worker
                        where s.ended_at is null and s.lease_until >= now() and t.labels::jsonb <@ s.labels::jsonb)
                    end as obstacle
                 from delegator.tasks t where t.id = any($1) and t.state = 'queued'"#,
                ids,
            )
            .fetch_all(&mut *db)
            .await?;
            let found: BTreeMap<String, Option<FleetObstacle>> =
                rows.into_iter().map(|row| (row.id, row.obstacle.as_deref().and_then(FleetObstacle::from_name))).collect();
            Ok(ids.iter().map(|id| found.get(id).copied().flatten()).collect())
        })
    }

    /// Ends the sessions whose lease has passed. If that fails, a later call does it.
    pub(crate) fn expire_others(&self) {
        let _ = self.transaction(async |db| {
            Ok(sqlx::query_scalar!("select delegator.expire_sessions()").fetch_one(&mut *db).await?)
        });
    }
}

async fn read_tasks(db: &mut Statements, ids: &[String]) -> Result<Vec<TaskRow>, FleetError> {
    let rows = sqlx::query_as!(
        TaskRow,
        r#"select t.id as "id!", t.state as "state!", t.attempt as "attempt!",
            t.failure_kind, t.limit_kind, t.message, t.retry_at_ms, t.result,
            (extract(epoch from t.created_at) * 1000)::bigint as "created_at_ms!",
            (extract(epoch from t.started_at) * 1000)::bigint as started_at_ms,
            (extract(epoch from t.ended_at) * 1000)::bigint as ended_at_ms,
            a.worker as "worker?",
            t.ended_at is null and exists (select from delegator.sessions s
                where s.ended_at is null and s.lease_until < now()) as "has_expired_sessions!"
         from delegator.tasks t
         left join delegator.attempts a on a.task = t.id and a.attempt = t.attempt
         where t.id = any($1)"#,
        ids,
    )
    .fetch_all(&mut *db)
    .await?;
    Ok(rows)
}

struct TaskRow {
    id: String,
    state: String,
    attempt: i32,
    failure_kind: Option<String>,
    limit_kind: Option<String>,
    message: Option<String>,
    retry_at_ms: Option<i64>,
    result: Option<String>,
    created_at_ms: i64,
    started_at_ms: Option<i64>,
    ended_at_ms: Option<i64>,
    worker: Option<String>,
    /// The task has not ended, and the lease of some worker has passed.
    has_expired_sessions: bool,
}

impl TaskRow {
    fn parse(self) -> Result<FleetTask, FleetError> {
        let state = match self.state.as_str() {
            "queued" => FleetState::Queued,
            "claimed" => FleetState::Claimed,
            RUNNING => FleetState::Running,
            _ => {
                let columns = EndColumns {
                    state: self.state,
                    failure_kind: self.failure_kind,
                    limit_kind: self.limit_kind,
                    message: self.message,
                    retry_at_ms: self.retry_at_ms,
                };
                FleetState::Ended(Box::new(FleetEnd { end: columns.parse()?, result: self.result }))
            }
        };
        Ok(FleetTask {
            id: self.id,
            state,
            attempt: self.attempt,
            worker: self.worker,
            created_at_ms: self.created_at_ms,
            started_at_ms: self.started_at_ms,
            ended_at_ms: self.ended_at_ms,
        })
    }
}
