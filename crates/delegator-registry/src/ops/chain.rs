//! Chains, the tasks that follow each other, and groups, the attempts at one task. Both are submitted
//! together.
//!
//! All tasks of a chain are inserted in one transaction. A follower awaits its predecessor, and cannot be
//! claimed, until the transaction that ends the predecessor settles it: a follower of this outcome may start
//! from then on, every other one ends as cancelled, and so do its own followers. So no follower of an ended
//! task awaits it.

use std::collections::BTreeMap;

use delegator_domain::task::{Follows, GroupId, TaskId};
use rusqlite::Row;

use crate::columns::Column;
use crate::error::{RegistryError, Result};
use crate::registry::{Registry, query_all};
use crate::task::{NewTask, Task};

pub(crate) const FOLLOWERS: &str = "SELECT * FROM tasks WHERE follows = ?1 ORDER BY seq";
/// Whether a follower that has not begun yet needs the report of this task.
pub(crate) const IS_NEEDED: &str =
    "SELECT EXISTS (SELECT 1 FROM tasks WHERE follows = ?1 AND state IN ('queued', 'starting'))";

pub(crate) const GROUP: &str = "SELECT * FROM tasks WHERE group_id = ?1 ORDER BY attempt";
pub(crate) const IS_GROUP: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE group_id = ?1)";
pub(crate) const GROUPS_BY_BEGINNING: &str = "SELECT DISTINCT group_id FROM tasks INDEXED BY tasks_group \
     WHERE group_id IS NOT NULL AND group_id >= ?1 AND group_id < ?2 ORDER BY group_id LIMIT 10";

impl Registry {
    pub fn predecessor(&self, id: &TaskId) -> Result<Option<TaskId>> {
        Ok(self.get(id)?.and_then(|task| task.follows).map(|follows| follows.task))
    }

    /// The tasks that directly follow this one, in order of submission.
    pub fn followers(&self, id: &TaskId) -> Result<Vec<Task>> {
        self.read(|db| query_all(db, FOLLOWERS, [id.as_str()], Task::from_row))
    }

    /// All tasks that follow this one, directly or not, each after its predecessor.
    pub fn rest_of_chain(&self, id: &TaskId) -> Result<Vec<Task>> {
        self.read(|db| {
            let mut found: Vec<Task> = query_all(db, FOLLOWERS, [id.as_str()], Task::from_row)?;
            let mut next = 0;
            while let Some(task) = found.get(next) {
                let followers = query_all(db, FOLLOWERS, [task.id.as_str()], Task::from_row)?;
                found.extend(followers);
                next += 1;
            }
            Ok(found)
        })
    }

    pub fn group(&self, id: &GroupId) -> Result<Vec<Task>> {
        self.read(|db| query_all(db, GROUP, [id.as_str()], Task::from_row))
    }

    /// The groups whose ids begin with this text: at most ten.
    pub fn groups_beginning_with(&self, beginning: &str) -> Result<Vec<GroupId>> {
        // Greater than every id with this beginning: the characters of an id end at `z`.
        let end = format!("{beginning}~");
        let group = |row: &Row<'_>| Column::read(row, "group_id");
        self.read(|db| query_all(db, GROUPS_BY_BEGINNING, (beginning, &end), group))
    }
}

/// No two tasks of a submission may have the same id. A predecessor must be an earlier one of them, so there
/// can be no cycle.
pub(crate) fn check_order(tasks: &[&NewTask]) -> Result<()> {
    let mut positions = BTreeMap::new();
    for (position, task) in tasks.iter().enumerate() {
        if positions.insert(&task.id, position).is_some() {
            return Err(RegistryError::IdInUse { id: task.id.clone() });
        }
    }
    for (position, task) in tasks.iter().enumerate() {
        let Some(Follows { task: predecessor, .. }) = &task.follows else { continue };
        let (id, predecessor) = (task.id.clone(), predecessor.clone());
        match positions.get(&predecessor) {
            Some(earlier) if *earlier < position => {}
            Some(_) => return Err(RegistryError::ChainCycle { id, predecessor }),
            None => return Err(RegistryError::MissingPredecessor { id, predecessor }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::{ChainOutcome, TaskLocation};

    use super::*;

    fn task(number: u8, predecessor: Option<u8>) -> NewTask {
        let id = |number| TaskId::from_random(TaskLocation::Local, [number; 16]);
        let follows = predecessor.map(|number| Follows { task: id(number), on: ChainOutcome::Success });
        NewTask { follows, ..NewTask::reading(id(number), "/p", "do it") }
    }

    fn check(tasks: &[NewTask]) -> Result<(), RegistryError> {
        check_order(&tasks.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_predecessor_must_be_an_earlier_task_of_the_submission() {
        check(&[task(1, None), task(2, Some(1)), task(3, Some(1)), task(4, Some(3))]).unwrap();
        let cycle = check(&[task(1, Some(2)), task(2, Some(1))]);
        assert!(matches!(cycle, Err(RegistryError::ChainCycle { .. })), "{cycle:?}");
        let own = check(&[task(1, Some(1))]);
        assert!(matches!(own, Err(RegistryError::ChainCycle { .. })), "{own:?}");
        let missing = check(&[task(1, None), task(2, Some(9))]);
        assert!(matches!(missing, Err(RegistryError::MissingPredecessor { .. })), "{missing:?}");
        let twice = check(&[task(1, None), task(1, Some(1))]);
        assert!(matches!(twice, Err(RegistryError::IdInUse { .. })), "{twice:?}");
    }
}
