//! Finds, lists and deletes restore points.
//!
//! The record of a task (`restore-point.json`) names its restore points. If the task is no longer in the
//! registry, or the record was lost, they are found in the repository: each ref in its private store contains
//! all that a restore needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_git::{
    RestoreError, RestorePoint, delete_dropped_objects, drop_point, holds_unique_content, stored_points,
    stored_points_named,
};
use delegator_registry::{Registry, TaskDir};
use delegator_supervisor::agent::Variables;
use tempfile::TempDir;

use crate::RestorePoints;
use crate::error::{EngineError, Result};
use crate::restore_points::record::{REF_PREFIX, RestorePointRecord, reference};
use crate::shared::git_program::git;

/// Short, because lookup and deletion walk no history.
const GIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Long, because the packs of all restore points of a repository may be written again.
pub(crate) const MERGE_TIMEOUT: Duration = Duration::from_secs(600);

pub(crate) struct PointSource<'a> {
    pub(crate) registry: Option<&'a Registry>,
    pub(crate) environment: &'a Variables,
    /// A directory in the repository to search if the task is not in the registry.
    pub(crate) here: &'a Path,
}

pub(crate) struct FoundPoints {
    pub(crate) record: RestorePointRecord,
    /// For temporary files; removed on drop.
    pub(crate) scratch: TempDir,
    /// The task directory; `None` if the task is not in the registry.
    dir: Option<TaskDir>,
}

impl FoundPoints {
    /// Writes the record of the task. Without a task directory, the refs are the only record.
    pub(crate) fn save_record(&self) -> Result<()> {
        self.dir.as_ref().map_or(Ok(()), |dir| self.record.write(dir))
    }
}

impl PointSource<'_> {
    pub(crate) fn find(&self, task: &TaskId) -> Result<FoundPoints> {
        let row = self.registry.map(|registry| registry.get(task)).transpose()?.flatten();
        let Some((registry, row)) = self.registry.zip(row) else {
            let record = self.without_row(task)?;
            return if record.points.is_empty() && record.undo.is_empty() {
                Err(EngineError::RestorePointNotFound { task: task.clone(), directory: self.here.to_owned() })
            } else {
                Ok(FoundPoints { record, scratch: new_scratch_dir(None)?, dir: None })
            };
        };
        let dir = registry.dir().task(task);
        let mut record = RestorePointRecord::read(&dir)?.unwrap_or_default();
        if record.is_empty() {
            // An error means that there is no git work tree, so no restore point.
            let mut collected = CollectedPoints::default();
            let _ = self.collect(task, Path::new(&row.working_dir), &mut collected);
            record = RestorePointRecord { settings: record.settings, ..collected.into_record() };
        }
        Ok(FoundPoints { record, scratch: new_scratch_dir(Some(&dir))?, dir: Some(dir) })
    }

    /// Those in the repository of `here`, and those that were recorded when the task was deleted.
    fn without_row(&self, task: &TaskId) -> Result<RestorePointRecord> {
        let mut collected = CollectedPoints::default();
        let here = self.collect(task, self.here, &mut collected);
        let recorded = self.registry.map(|registry| registry.restore_points_of(task)).transpose()?;
        for recorded in recorded.unwrap_or_default() {
            let Ok(point) = serde_json::from_str::<RestorePoint>(&recorded.point) else { continue };
            if point.top_level.is_dir() {
                self.collect(task, &point.top_level, &mut collected)?;
            }
        }
        let record = collected.into_record();
        if record.is_empty() {
            here?;
        }
        Ok(record)
    }

    fn collect(&self, task: &TaskId, directory: &Path, into: &mut CollectedPoints) -> Result<()> {
        let git = git(self.environment, directory, GIT_TIMEOUT)?;
        let stored = stored_points_named(&git, directory, &reference(task, 0)).map_err(RestoreError::from)?;
        let is_of_task =
            |reference: &str| PointName::parse(reference).is_some_and(|name| name.task == task.as_str());
        let points = stored.into_iter().flatten().map(|stored| stored.point);
        points.filter(|point| is_of_task(&point.reference)).for_each(|point| into.add(point));
        Ok(())
    }
}

/// The distinct restore points of one task: `<task>`, `<task>.2` and their `.undo-N`.
#[derive(Default)]
struct CollectedPoints {
    points: BTreeMap<(PathBuf, String), RestorePoint>,
}

impl CollectedPoints {
    fn add(&mut self, point: RestorePoint) {
        self.points.entry((point.repository.clone(), point.reference.clone())).or_insert(point);
    }

    fn into_record(self) -> RestorePointRecord {
        let mut record = RestorePointRecord::default();
        let mut undo: BTreeMap<usize, Vec<RestorePoint>> = BTreeMap::new();
        for point in self.points.into_values() {
            match PointName::parse(&point.reference).and_then(|name| name.undo) {
                Some(number) => undo.entry(number).or_default().push(point),
                None => record.points.push(point),
            }
        }
        record.points.sort_by(|a, b| a.reference.cmp(&b.reference));
        record.undo = undo.into_values().collect();
        record
    }
}

fn new_scratch_dir(dir: Option<&TaskDir>) -> Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("restore-");
    let made = match dir {
        Some(dir) => builder.tempdir_in(dir.path()),
        None => builder.tempdir(),
    };
    made.map_err(EngineError::io("create a temporary directory"))
}

/// The parts of `refs/mcp-delegator/<task>[.N][.undo-N]`.
struct PointName<'a> {
    task: &'a str,
    undo: Option<usize>,
}

impl PointName<'_> {
    fn parse(reference: &str) -> Option<PointName<'_>> {
        let name = reference.strip_prefix(REF_PREFIX)?;
        let task = name.split('.').next()?;
        let undo = name.rsplit_once(".undo-").map(|(_, number)| number.parse());
        Some(PointName { task, undo: undo.transpose().ok()? })
    }
}

#[derive(Debug)]
pub struct ListedPoint {
    /// The task id in the name of the ref.
    pub task: String,
    pub is_undo: bool,
    pub point: RestorePoint,
    pub bytes: u64,
}

#[derive(Debug)]
pub struct DroppedPoint {
    pub is_undo: bool,
    pub point: RestorePoint,
    /// Whether it holds content that no branch, tag or remote-tracking ref reaches.
    pub is_only_copy: bool,
    pub bytes: u64,
}

impl RestorePoints<'_> {
    /// The restore points in the repository that contains `here`; `None` outside a git work tree.
    pub fn list(&self, here: &Path, environment: &Variables) -> Result<Option<Vec<ListedPoint>>> {
        let git = git(environment, here, GIT_TIMEOUT)?;
        let stored = stored_points(&git, here).map_err(RestoreError::from)?;
        let to_listed = |stored: delegator_git::StoredPoint| {
            let name = PointName::parse(&stored.point.reference)?;
            let (task, is_undo) = (name.task.to_owned(), name.undo.is_some());
            Some(ListedPoint { task, is_undo, point: stored.point, bytes: stored.bytes })
        };
        Ok(stored.map(|stored| stored.into_iter().filter_map(to_listed).collect()))
    }

    /// Deletes all restore points of a task, including undo points, with their objects.
    pub fn delete(
        &self,
        task: &TaskId,
        dry_run: bool,
        environment: &Variables,
        here: &Path,
    ) -> Result<Vec<DroppedPoint>> {
        let mut registry = self.engine.find_registry()?;
        let row = registry.as_deref().map(|registry| registry.get(task)).transpose()?.flatten();
        if let Some(row) = row.filter(|row| !row.state.is_terminal()) {
            return Err(EngineError::NotEnded { task: task.clone(), state: row.state });
        }
        let found = PointSource { registry: registry.as_deref(), environment, here }.find(task)?;
        let mut dropped = Vec::new();
        for point in found.record.points.iter().chain(found.record.undo.iter().flatten()) {
            let git = git(environment, &point.top_level, GIT_TIMEOUT)?;
            // If it cannot be examined, assume that it is the only copy.
            let is_only_copy = holds_unique_content(&git, point).unwrap_or(true);
            let bytes = point.bytes();
            if !dry_run && point.repository.is_dir() {
                drop_point(&git, point).map_err(RestoreError::from)?;
            }
            let is_undo = PointName::parse(&point.reference).is_some_and(|name| name.undo.is_some());
            dropped.push(DroppedPoint { is_undo, point: point.clone(), is_only_copy, bytes });
        }
        if dropped.is_empty() {
            return Err(EngineError::NoRestorePoint { task: task.clone(), problem: None });
        }
        if dry_run {
            return Ok(dropped);
        }
        for point in dropped.iter().map(|dropped| &dropped.point) {
            let git = git(environment, &point.top_level, MERGE_TIMEOUT)?;
            delete_dropped_objects(&git, point).map_err(RestoreError::from)?;
        }
        if let Some(dir) = found.dir {
            RestorePointRecord { problems: found.record.problems, ..RestorePointRecord::default() }
                .write(&dir)?;
        }
        if let Some(registry) = &mut registry {
            for recorded in registry.restore_points_of(task)? {
                registry.delete_restore_point_record(&recorded)?;
            }
        }
        Ok(dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_restore_points_are_read() {
        let parse = |name: &str| {
            let reference = format!("{REF_PREFIX}{name}");
            PointName::parse(&reference).map(|name| (name.task.to_owned(), name.undo))
        };
        let task = "T-local-1".to_owned();
        assert_eq!(parse("T-local-1"), Some((task.clone(), None)));
        assert_eq!(parse("T-local-1.2"), Some((task.clone(), None)));
        assert_eq!(parse("T-local-1.2.undo-13"), Some((task.clone(), Some(13))));
        assert_eq!(parse("T-local-1.undo-x"), None);
        assert!(PointName::parse("refs/heads/main").is_none());
    }
}
