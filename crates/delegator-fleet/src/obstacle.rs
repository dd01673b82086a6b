//! Why a queued task is not claimed although time passes: only an operator can change it.

use std::collections::BTreeMap;

use delegator_domain::environment::FleetObstacle;

use crate::database::Database;
use crate::error::FleetError;

impl Database {
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
}
