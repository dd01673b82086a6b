//! Writes a plan: stages files and index, writes the journal, does the steps, and takes them back after an
//! error.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::journal::{IndexChange, Journal, RefChange};
use super::steps::{Places, StepError, TreeChanges};
use crate::capture::survey_tree;
use crate::diff::NewVersion;
use crate::error::{GitError, Operation, Result, WriteError};

use crate::files::{Stamp, Stamps};
use crate::index::IndexFile;
use crate::repository::{Head, Repository, Store};
use crate::restore_point::{AgentChanges, EndRecord, RestorePoint, drop_point};
use crate::run::Git;
use crate::scratch::Scratch;

pub(super) const DIR_NAME: &str = "mcp-delegator-apply";
/// Our index with the files to write.
const STAGED_INDEX: &str = "staged";

/// The right to change a work tree. One process at a time has it.
#[derive(Debug)]
pub(crate) struct TreeWriter {
    pub(super) git: Git,
    pub(super) repository: Repository,
    /// The journal, the new index, and files that show which locks are ours.
    pub(super) dir: PathBuf,
    /// New and replaced files, on the file system of the work tree.
    pub(super) staging: PathBuf,
    /// The kernel releases the lock when the process ends, however it ends.
    pub(super) _lock: File,
}

pub(crate) struct WritePlan<'a> {
    pub(crate) operation: Operation,
    pub(crate) changes: &'a TreeChanges,
    /// What the files were when they were read.
    pub(crate) stamps: &'a Stamps,
    /// The index file afterwards, if it changes.
    pub(crate) index: Option<IndexFile>,
    pub(crate) refs: Vec<RefChange>,
    /// The branch that HEAD names afterwards, if it changes.
    pub(crate) attach: Option<String>,
    pub(crate) head: Head,
}

impl TreeWriter {
    fn places(&self) -> Places<'_> {
        Places { top: &self.repository.top_level, staging: &self.staging }
    }

    /// Prevents git from changing the index until this is dropped. The lock is a link to a file of ours, so
    /// that a later process recognises it.
    pub(crate) fn lock_index(&self) -> Result<(), WriteError> {
        let (own, lock) = (self.dir.join("lock"), self.repository.git_dir.join("index.lock"));
        let created = File::create(&own).and_then(|_| fs::hard_link(&own, &lock));
        match created {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(WriteError::IndexLocked { top_level: self.repository.top_level.clone(), lock })
            }
            created => Ok(created.map_err(GitError::io("lock the index of", &self.repository.top_level))?),
        }
    }

    /// Makes all changes, or none. `point` is the restore point of the state before: the state after is
    /// stored beside it, and it is deleted if nothing changes.
    pub(crate) fn write<'a>(
        &self,
        scratch: &Scratch,
        point: Option<&RestorePoint>,
        plan: impl FnOnce() -> Result<WritePlan<'a>, WriteError>,
    ) -> Result<(), WriteError> {
        let written = plan().and_then(|plan| self.perform(scratch, point, plan));
        if let (Err(error), Some(point)) = (&written, point)
            && !error.has_changed_files()
        {
            let _ = drop_point(&self.git, point);
        }
        written
    }

    fn perform(
        &self,
        scratch: &Scratch,
        point: Option<&RestorePoint>,
        plan: WritePlan<'_>,
    ) -> Result<(), WriteError> {
        self.stage(scratch, plan.changes)?;
        let steps = plan.changes.steps(&self.places(), plan.stamps);
        let mut journal = Journal {
            steps: steps.map_err(GitError::io("read", &self.staging))?,
            index: plan.index.as_ref().map(|index| self.stage_index(index)).transpose()?,
            refs: plan.refs,
            attach: plan.attach,
            ..Journal::new(plan.operation, point.cloned())
        };
        journal.store(&self.dir)?;
        let written = self.places().perform_all(&journal.steps);
        let written = written.map_err(|(path, problem)| match problem {
            StepError::Changed => WriteError::changed_file(&path),
            StepError::Io(source) => GitError::io("write", path)(source).into(),
        });
        let moved = written.and_then(|()| {
            if let Some(point) = point {
                // Without it only the whole tree can be restored, and an error then says so.
                let _ = store_end_of(scratch, point, plan.changes, plan.index.as_ref(), plan.head);
            }
            Ok(journal.update_refs(&self.git, &self.repository)?)
        });
        if let Err(error) = moved {
            return Err(self.take_back_after(error, &journal));
        }
        journal.is_decided = true;
        let finished =
            journal.store(&self.dir).map_err(WriteError::from).and_then(|()| self.finish(&journal));
        finished.map_err(|error| incomplete(error.to_string(), &journal))?;
        Ok(Journal::delete(&self.dir)?)
    }

    /// Changes a ref and nothing else. A later process recognises the locks that a killed one leaves.
    pub(crate) fn change_ref(&self, change: RefChange) -> Result<()> {
        let refs = vec![change];
        let journal = Journal { refs, ..Journal::new(Operation::Branch, None) };
        journal.store(&self.dir)?;
        let changed = journal.update_refs(&self.git, &self.repository);
        Journal::delete(&self.dir)?;
        changed
    }

    fn stage(&self, scratch: &Scratch, changes: &TreeChanges) -> Result<()> {
        if changes.write.is_empty() {
            return Ok(());
        }
        scratch.fill_index(STAGED_INDEX, changes.write.iter().map(|(path, (version, _))| (path, version)))?;
        let prefix = format!("--prefix={}/", self.staging.join("new").display());
        scratch.run(STAGED_INDEX, ["checkout-index", "--all", "--force", &prefix], b"")?;
        for (path, (_, mode)) in &changes.write {
            let staged = self.places().staged(path);
            let is_file = fs::symlink_metadata(&staged).is_ok_and(|found| found.is_file());
            if let Some(mode) = mode.filter(|_| is_file) {
                fs::set_permissions(&staged, Permissions::from_mode(mode))
                    .map_err(GitError::io("set the mode of", &staged))?;
            }
        }
        Ok(())
    }

    fn staged_index(&self) -> PathBuf {
        self.dir.join("index")
    }

    fn stage_index(&self, index: &IndexFile) -> Result<IndexChange> {
        let present = self.repository.index();
        let write = || {
            let Some(bytes) = &index.bytes else { return Ok(()) };
            let mut file = File::create(self.staged_index())?;
            if let Ok(found) = fs::metadata(&present) {
                file.set_permissions(found.permissions())?;
            }
            file.write_all(bytes)?;
            if let Some((seconds, nanoseconds)) = index.modified {
                file.set_modified(UNIX_EPOCH + Duration::new(seconds, nanoseconds))?;
            }
            file.sync_all()
        };
        write().map_err(GitError::io("write", self.staged_index()))?;
        Ok(IndexChange { old: Stamp::at(&present), new: Stamp::at(&self.staged_index()) })
    }

    /// What remains to be done after the files and refs. Can be repeated.
    pub(super) fn finish(&self, journal: &Journal) -> Result<(), WriteError> {
        if let Some(branch) = &journal.attach {
            let reason = format!("mcp-delegator: {}", journal.operation);
            self.repository.run(&self.git, ["symbolic-ref", "-m", &reason, "HEAD", branch])?;
        }
        let index = self.repository.index();
        // Another stamp means that this is done, or that the user changed the index since.
        let Some(change) = journal.index.filter(|change| Stamp::at(&index) == change.old) else {
            return Ok(());
        };
        let staged = self.staged_index();
        let replaced = match (change.new, change.old) {
            (Some(_), _) if Stamp::at(&staged) == change.new => fs::rename(&staged, &index),
            (None, Some(_)) => fs::remove_file(&index),
            _ => Ok(()),
        };
        Ok(replaced.map_err(GitError::io("write", &index))?)
    }

    fn take_back_after(&self, error: WriteError, journal: &Journal) -> WriteError {
        match self.take_back(journal) {
            Err(problem) => incomplete(format!("{error}, and {problem}"), journal),
            Ok(edited) if edited.is_empty() => error,
            Ok(edited) => {
                let what = match error {
                    WriteError::ConcurrentChange { what } => format!("{what} changed meanwhile"),
                    other => other.to_string(),
                };
                WriteError::TakenBackInPart { what, edited, point: journal.point_name() }
            }
        }
    }

    /// Takes every step back and drops the restore point, unless a file had to stay. Returns those files.
    pub(super) fn take_back(&self, journal: &Journal) -> Result<Vec<String>, WriteError> {
        let taken_back = self.places().take_back_all(&journal.steps);
        if let Some(problem) = taken_back.problem {
            return Err(incomplete(format!("the changes could not be taken back: {problem}"), journal));
        }
        if let Some(point) = journal.point.as_ref().filter(|_| taken_back.edited.is_empty()) {
            let store = Store::of(&self.repository.common_dir).path;
            let repository = self.repository.common_dir.clone();
            let _ = drop_point(&self.git, &RestorePoint { store, repository, ..point.clone() });
        }
        if Journal::exists(&self.dir) {
            Journal::delete(&self.dir)?;
        }
        Ok(taken_back.edited)
    }

    pub(super) fn remove_dirs(&self) {
        let _ = fs::remove_dir_all(&self.staging);
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes git's lock on the index if it is a link to our file.
pub(super) fn release_index_lock(repository: &Repository, dir: &Path) {
    let lock = repository.git_dir.join("index.lock");
    let identity = |path: &PathBuf| fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()));
    if identity(&lock).is_some() && identity(&lock) == identity(&dir.join("lock")) {
        let _ = fs::remove_file(lock);
    }
}

impl Drop for TreeWriter {
    fn drop(&mut self) {
        release_index_lock(&self.repository, &self.dir);
        // With a journal, a later process finishes the operation.
        if !Journal::exists(&self.dir) {
            self.remove_dirs();
        }
    }
}

fn incomplete(problem: String, journal: &Journal) -> WriteError {
    WriteError::Incomplete { operation: journal.operation, problem, point: journal.point_name() }
}

/// Stores the state after changes of files beside the restore point of the state before. Index and HEAD are
/// those that will be set.
fn store_end_of(
    scratch: &Scratch,
    point: &RestorePoint,
    changes: &TreeChanges,
    index: Option<&IndexFile>,
    head: Head,
) -> Result<()> {
    let mut files = scratch.tree_files(&point.tree)?;
    let mut versions = Vec::new();
    for path in &changes.remove {
        let existed = files.remove(path).is_some();
        versions.push(NewVersion { path: path.clone(), version: None, existed });
    }
    for (path, (version, _)) in &changes.write {
        let existed = files.insert(path.clone(), version.clone()).is_some();
        versions.push(NewVersion { path: path.clone(), version: Some(version.clone()), existed });
    }
    let record = EndRecord {
        versions: &versions,
        unread: &[],
        survey: &survey_tree(scratch, &files),
        index,
        head: Some(head),
        agent: &AgentChanges { ran_commands: true, moved_head: true, ..AgentChanges::default() },
    };
    record.store(scratch, point)
}
