//! The tasks of all machines, for an operator.

use serde::Deserialize;

use crate::control::require_worker;
use crate::database::Database;
use crate::error::FleetError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFilter {
    /// `None`: all.
    pub phase: Option<TaskPhase>,
    /// Only tasks that this worker runs, or ran last.
    pub worker: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    Queued,
    /// Claimed or running.
    Running,
    Ended,
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
        let phase = filter.phase.map(|phase| match phase {
            TaskPhase::Queued => "queued",
            TaskPhase::Running => "running",
            TaskPhase::Ended => "ended",
        });
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
