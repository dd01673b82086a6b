//! What an operator does: pause, resume and drain workers, list and cancel tasks of all machines.

use delegator_domain::named_enum;
use serde::Deserialize;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFilter {
    /// `None`: all.
    pub phase: Option<TaskPhase>,
    /// Only tasks that this worker runs, or ran last.
    pub worker: Option<String>,
    pub limit: u32,
}

named_enum! {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TaskPhase {
        Queued = "queued",
        /// Claimed or running.
        Running = "running",
        Ended = "ended",
    }
}

/// Running tasks, then queued ones as they are claimed, then ended ones, the last first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskList {
    pub tasks: Vec<ListedTask>,
    pub has_more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTask {
    pub id: String,
    /// The id that the task has on the machine that submitted it.
    pub submitter_task: Option<String>,
    /// The submitter's id of the environment.
    pub environment: String,
    /// The first line of the text, redacted.
    pub title: String,
    /// As stored: queued, claimed, running, completed, failed, timeout or cancelled.
    pub state: String,
    /// Whether its worker shall stop it.
    pub is_cancel_requested: bool,
    /// Who runs it, or ran it last; `None` for a queued task.
    pub worker: Option<String>,
    pub created_at_ms: i64,
    /// Since its submission, by the database's clock.
    pub age_ms: i64,
}

impl Database {
    /// Tasks of lost workers have ended or are queued again.
    pub fn list_tasks(&self, filter: &TaskFilter) -> Result<TaskList, FleetError> {
        self.expire_others();
        let phase = filter.phase.map(TaskPhase::name);
        // One more shows whether there are more.
        let limit = i64::from(filter.limit) + 1;
        self.transaction(async |db| {
            // Ended tasks are many: they are read from an index, up to the limit.
            let mut tasks = sqlx::query_as!(
                ListedTask,
                r#"select t.id as "id!", t.submitter_task, left(t.environment, 200) as "environment!",
                    left(t.title, 200) as "title!", t.state as "state!",
                    t.cancel_requested_at is not null and t.ended_at is null as "is_cancel_requested!",
                    case when t.state <> 'queued' then a.worker end as worker,
                    (extract(epoch from t.created_at) * 1000)::bigint as "created_at_ms!",
                    (extract(epoch from now() - t.created_at) * 1000)::bigint as "age_ms!"
                 from (
                    (select r.id, 1 as part, row_number() over (order by r.seq) as place
                        from delegator.tasks r where r.state in ('claimed', 'running') and r.ended_at is null
                            and coalesce($1, 'running') = 'running'
                            and ($2::text is null or exists (select from delegator.attempts a
                                where a.task = r.id and a.attempt = r.attempt and a.worker = $2))
                        order by r.seq limit $3)
                    union all
                    (select q.id, 2, row_number() over (order by q.priority desc, q.seq)
                        from delegator.tasks q where q.state = 'queued'
                            and coalesce($1, 'queued') = 'queued' and $2::text is null
                        order by q.priority desc, q.seq limit $3)
                    union all
                    (select e.id, 3, row_number() over (order by e.ended_at desc, e.id desc)
                        from delegator.tasks e where e.ended_at is not null
                            and coalesce($1, 'ended') = 'ended'
                            and ($2::text is null or exists (select from delegator.attempts a
                                where a.task = e.id and a.attempt = e.attempt and a.worker = $2))
                        order by e.ended_at desc, e.id desc limit $3)
                 ) listed
                 join delegator.tasks t on t.id = listed.id
                 left join delegator.attempts a on a.task = t.id and a.attempt = t.attempt
                 order by listed.part, listed.place limit $3"#,
                phase,
                filter.worker,
                limit,
            )
            .fetch_all(&mut *db)
            .await?;
            if let Some(worker) = filter.worker.as_deref().filter(|_| tasks.is_empty()) {
                require_worker(db, worker).await?;
            }
            let has_more = tasks.len() > filter.limit as usize;
            tasks.truncate(filter.limit as usize);
            Ok(TaskList { tasks, has_more })
        })
    }
}
