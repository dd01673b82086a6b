//! Stores the state after a task beside the restore point of its baseline.

use std::time::Duration;

use super::compare::Comparison;
use super::take::Baseline;
use crate::capture::{WORK_INDEX, directories_of, take_survey};
use crate::error::GitError;
use crate::index::IndexFile;
use crate::restore_point::{AgentChanges, EndRecord, RestorePoint, StoredIndex};
use crate::stamp::Stamp;

impl Baseline {
    /// Stores the state after the task, so that a restore can revert the task's changes only. Returns false
    /// if there is no restore point of this baseline, or if the changed files are known by name only.
    pub fn store_end_state(
        &self,
        compared: &Comparison,
        agent: &AgentChanges,
        time: Duration,
    ) -> Result<bool, GitError> {
        let (Some(point), Some(versions)) = (&self.point, &compared.new_versions) else { return Ok(false) };
        let scratch = &self.scratch;
        let known = directories_of(&IndexFile::read_copy(scratch, WORK_INDEX)?);
        let survey = take_survey(scratch, &known, time);
        let index = self.index_after(point, compared)?;
        let record = EndRecord {
            versions,
            unread: &compared.unread,
            survey: &survey,
            index: index.as_ref(),
            head: compared.head_after.clone(),
            agent,
        };
        record.store(scratch, point).map(|()| true)
    }

    /// The index after the task, if it differs from the one in the restore point.
    fn index_after(
        &self,
        point: &RestorePoint,
        compared: &Comparison,
    ) -> Result<Option<IndexFile>, GitError> {
        if Stamp::at(&self.scratch.repository.index()) == self.index {
            return Ok(None);
        }
        let index = IndexFile::read(&self.scratch)?;
        // A tree represents both completely, and the trees are equal.
        let is_as_before = point.index == StoredIndex::Tree && !compared.index_changed && !index.is_special();
        Ok((!is_as_before).then_some(index))
    }
}
