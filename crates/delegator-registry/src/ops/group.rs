//! Groups: the attempts at one task, which were submitted together.

use delegator_domain::task::GroupId;

use super::queries::query_all;
use crate::columns::Column;
use crate::error::RegistryError;
use crate::registry::Registry;
use crate::task::Task;

pub(crate) const MEMBERS: &str = "SELECT * FROM tasks WHERE group_id = ?1 ORDER BY attempt";
pub(crate) const IN_USE: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE group_id = ?1)";
pub(crate) const BY_BEGINNING: &str = "SELECT DISTINCT group_id FROM tasks INDEXED BY tasks_group \
     WHERE group_id IS NOT NULL AND group_id >= ?1 AND group_id < ?2 ORDER BY group_id LIMIT 10";

impl Registry {
    /// The attempts of a group that have not been pruned, in order.
    pub fn group(&self, id: &GroupId) -> Result<Vec<Task>, RegistryError> {
        self.read(|db| query_all(db, MEMBERS, [id.as_str()], Task::from_row))
    }

    /// The groups whose ids begin with this text: at most ten.
    pub fn groups_beginning_with(&self, beginning: &str) -> Result<Vec<GroupId>, RegistryError> {
        // Greater than every id with this beginning: the characters of an id end at `z`.
        let end = format!("{beginning}~");
        let group = |row: &rusqlite::Row<'_>| Column::read(row, "group_id");
        self.read(|db| query_all(db, BY_BEGINNING, (beginning, &end), group))
    }
}
