//! Creates the restore points of a task before its agent starts. If that of a directory which the caller
//! named cannot be created, the agent is not started. For a repository inside, the problem is reported with
//! the result.

use std::path::Path;
use std::time::Duration;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;
use delegator_git::{Baseline, CreatedPoint, Limits, create_restore_point};
use delegator_registry::TaskDir;
use delegator_supervisor::agent::Variables;

use crate::error::Result;
use crate::restore_points::record::{
    PointProblem, RecordedSettings, RestorePointRecord, first_line, reference,
};
use crate::shared::git_program::git;

/// How long the agent may have to wait for one restore point. Long, because the task fails without it.
const CREATE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct RestorePointWriter<'a> {
    task: &'a TaskId,
    dir: &'a TaskDir,
    environment: &'a Variables,
    directories: usize,
    record: RestorePointRecord,
    /// Why the last restore point could not be created.
    failure: Option<String>,
}

impl<'a> RestorePointWriter<'a> {
    pub(crate) fn new(
        task: &'a TaskId,
        dir: &'a TaskDir,
        environment: &'a Variables,
    ) -> RestorePointWriter<'a> {
        let record = RestorePointRecord::default();
        RestorePointWriter { task, dir, environment, directories: 0, record, failure: None }
    }

    /// Creates a restore point of the work tree that contains the directory. Returns the baseline for a later
    /// comparison: `None` outside a work tree; the problem if there is none.
    pub(crate) fn create(&mut self, directory: &Path) -> Result<Option<Baseline>, String> {
        let reference = reference(self.task, self.directories);
        self.directories += 1;
        match create_one(self.dir, directory, &reference, self.environment) {
            Ok(None) => Ok(None),
            Ok(Some(CreatedPoint { point, baseline })) => {
                crash_point(CrashPoint::RestorePointCreated);
                self.record.points.push(point);
                self.record.settings.extend(baseline.as_ref().ok().map(|baseline| RecordedSettings {
                    before: baseline.settings().clone(),
                    after: None,
                    is_restored: false,
                }));
                baseline.map(Some).map_err(|error| first_line(&error.to_string()))
            }
            Err(error) => {
                let problem = first_line(&error.to_string());
                self.failure = Some(problem.clone());
                Err(problem)
            }
        }
    }

    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    pub(crate) fn skip(&mut self, directory: &Path, problem: &str) {
        self.record.problems.push(PointProblem { path: directory.to_owned(), problem: problem.to_owned() });
    }

    /// Writes the record. Errors are ignored: without it, the restore points are found in the repository.
    pub(crate) fn finish(self) {
        if self.record != RestorePointRecord::default() {
            let _ = self.record.write(self.dir);
            crash_point(CrashPoint::RestorePointsNoted);
        }
    }
}

fn create_one(
    dir: &TaskDir,
    directory: &Path,
    reference: &str,
    environment: &Variables,
) -> Result<Option<CreatedPoint>> {
    let git = git(environment, directory, CREATE_TIMEOUT)?;
    let created = create_restore_point(&git, directory, dir.path(), reference, Limits::default());
    Ok(created.map_err(delegator_git::RestoreError::from)?)
}
