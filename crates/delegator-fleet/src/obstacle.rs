//! Why a queued task is not claimed although time passes: only an operator can change it.

use std::collections::BTreeMap;

use delegator_domain::named_enum;

use crate::database::Database;
use crate::error::FleetError;

named_enum! {
    /// What keeps a queued task from being claimed.
    pub enum Obstacle {
        FleetPaused = "fleet_paused",
        /// No live worker has the labels that the task requires.
        NoWorker = "no_worker",
        /// Every live worker with the labels is draining.
        WorkersDraining = "workers_draining",
        /// Every live worker with the labels is paused or draining.
        WorkersPaused = "workers_paused",
    }
}

impl Database {
    /// The obstacles of these tasks, in the same order. A task that is not queued has none.
    pub fn obstacles(&self, ids: &[String]) -> Result<Vec<Option<Obstacle>>, FleetError> {
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
            let parse = |name: &str| Obstacle::ALL.into_iter().find(|obstacle| obstacle.name() == name);
            let found: BTreeMap<String, Option<Obstacle>> =
                rows.into_iter().map(|row| (row.id, row.obstacle.as_deref().and_then(parse))).collect();
            Ok(ids.iter().map(|id| found.get(id).copied().flatten()).collect())
        })
    }
}
