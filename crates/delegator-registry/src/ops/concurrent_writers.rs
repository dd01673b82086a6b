//! Finds the tasks that could write to the same work tree while a task ran.
//!
//! The SQL repeats [`Mode::may_write`]. Overlap is decided by the order of transitions, not by times, because clocks can go backwards.

use delegator_domain::task::{Mode, TaskId, WorkTree};
use rusqlite::{OptionalExtension, Row};

use super::queries::query_all;
use crate::error::RegistryError;
use crate::registry::Registry;
use crate::row;

pub(crate) const RUNNING_WRITERS: &str = "SELECT id, work_tree, more_work_trees FROM tasks \
     WHERE state IN ('starting', 'working') AND (mode <> ?1 OR NOT mode_enforced) AND id <> ?2";
pub(crate) const ENDED_WRITERS: &str = "SELECT id, work_tree, more_work_trees FROM tasks INDEXED BY tasks_ended \
     WHERE ended_order > ?3 AND started_at_ms IS NOT NULL AND (mode <> ?1 OR NOT mode_enforced) AND id <> ?2";
pub(crate) const START_ORDER: &str = "SELECT work_tree, more_work_trees, \
     (SELECT max(n) FROM transitions WHERE task = tasks.seq) AS began FROM tasks WHERE id = ?1";

impl Registry {
    /// The tasks that ran at the same time as this one and may write to its work trees. Call this while the task is
    /// running.
    pub fn concurrent_writers(&self, id: &TaskId) -> Result<Vec<TaskId>, RegistryError> {
        let read_only = Mode::ReadOnly.name();
        self.read(|db| {
            let start_from = |row: &Row<'_>| Ok((row::work_trees_from(row)?, row.get::<_, i64>("began")?));
            let Some((own_trees, start_order)) =
                db.query_row(START_ORDER, [id.as_str()], start_from).optional()?
            else {
                return Ok(Vec::new());
            };
            let mut others = query_all(db, RUNNING_WRITERS, (read_only, id.as_str()), writer_from)?;
            others.extend(query_all(db, ENDED_WRITERS, (read_only, id.as_str(), start_order), writer_from)?);
            let overlaps = |trees: &[WorkTree]| trees.iter().any(|tree| tree.overlaps_any(&own_trees));
            let overlapping = others.into_iter().filter(|(_, trees)| overlaps(trees));
            Ok(overlapping.map(|(other, _)| other).collect())
        })
    }
}

fn writer_from(row: &Row<'_>) -> rusqlite::Result<(TaskId, Vec<WorkTree>)> {
    Ok((row::id_from(row)?, row::work_trees_from(row)?))
}
