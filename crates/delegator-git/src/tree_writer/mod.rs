//! The only way in which a user's work tree, index and branches are changed: completely, or not at all.
//!
//! ```text
//! open: lock, finish what a killed process left ─▶ stage new files ─▶ journal ─▶ steps ─▶ refs ─▶ decided ─▶ index
//! ```
//!
//! If a step fails, all steps are taken back. If the process is killed, the next one that opens the work tree takes the steps
//! back, or completes the operation if it was decided. Files that the user edits meanwhile stay as they are and are named.
//! Everything is in a directory inside the git directory, which exists as long as an operation has not ended.

mod journal;
mod recover;
mod steps;

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

pub use journal::Operation;
pub(crate) use journal::RefChange;
use journal::{IndexChange, Journal};
use recover::release_index_lock;
pub use recover::{Recovery, recover_interrupted};
pub(crate) use steps::TreeChanges;
use steps::{Places, StepError};

use crate::end_state::store_end_of;
use crate::error::{GitError, WriteError};
use crate::repository::{Head, Repository};
use crate::restore_point::{RestorePoint, drop_point};
use crate::restore_target::fill_index;
use crate::run::Git;
use crate::scratch::Scratch;
use crate::stamp::{Stamp, Stamps};

const DIR_NAME: &str = "mcp-delegator-apply";
/// Our index with the files to write.
const STAGED_INDEX: &str = "staged";

/// The right to change a work tree. One process at a time has it.
#[derive(Debug)]
pub(crate) struct TreeWriter {
    git: Git,
    repository: Repository,
    /// The journal, the new index, and files that show which locks are ours.
    dir: PathBuf,
    /// New and replaced files, on the file system of the work tree.
    staging: PathBuf,
    /// The kernel releases the lock when the process ends, however it ends.
    _lock: File,
}

/// What to write.
pub(crate) struct WritePlan<'a> {
    pub(crate) operation: Operation,
    pub(crate) changes: &'a TreeChanges,
    /// What the files were when they were read.
    pub(crate) stamps: &'a Stamps,
    pub(crate) index: Option<NewIndex>,
    pub(crate) refs: Vec<RefChange>,
    /// The branch that HEAD names afterwards, if it changes.
    pub(crate) attach: Option<String>,
    /// Where HEAD points afterwards.
    pub(crate) head: Head,
}

/// The index file after an operation.
#[derive(Debug)]
pub(crate) enum NewIndex {
    /// `modified` is its modification time (seconds, nanoseconds), by which git decides which entries to compare again.
    File {
        bytes: Vec<u8>,
        modified: Option<(u64, u32)>,
    },
    Missing,
}

impl TreeWriter {
    /// Waits for nothing: another process that changes the work tree is an error. First finishes what a killed process left.
    /// `reference` is the ref that the caller is going to create.
    pub(crate) fn open(
        git: &Git,
        repository: &Repository,
        reference: &str,
    ) -> Result<(TreeWriter, Option<Recovery>), WriteError> {
        let (git_dir, top) = (&repository.git_dir, &repository.top_level);
        let lock = File::open(git_dir).map_err(GitError::io("open", git_dir))?;
        // Some network file systems cannot lock a directory; there a concurrent change is still noticed per file.
        if let Err(Errno::WOULDBLOCK) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            return Err(WriteError::Busy { top_level: top.clone() });
        }
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let dir = git_dir.join(DIR_NAME);
        let staging = match device(git_dir) == device(top) {
            true => dir.join("staging"),
            false => top.join(format!(".{DIR_NAME}")),
        };
        let writer =
            TreeWriter { git: git.clone(), repository: repository.clone(), dir, staging, _lock: lock };
        let recovery = writer.recover(reference)?;
        writer.remove_dirs();
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let created = builder.create(&writer.dir).and_then(|()| builder.create(writer.staging.join("old")));
        created
            .and_then(|()| File::create(writer.dir.join("started")))
            .map_err(GitError::io("create", &writer.dir))?;
        Ok((writer, recovery))
    }

    fn places(&self) -> Places<'_> {
        Places { top: &self.repository.top_level, staging: &self.staging }
    }

    /// Prevents git from changing the index until this is dropped. The lock is a link to a file of ours, so that a later
    /// process recognises it.
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

    /// Makes all changes, or none. `point` is the restore point of the state before: the state after is stored beside it, and
    /// it is deleted if nothing changes.
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
            StepError::Changed => WriteError::ConcurrentChange { what: format!("the file {path}") },
            StepError::Io(source) => GitError::io("write", path)(source).into(),
        });
        let moved = written.and_then(|()| {
            if let Some(point) = point {
                // Without it only the whole tree can be restored, and an error then says so.
                let _ = store_end_of(scratch, point, plan.changes, (plan.index.as_ref(), plan.head));
            }
            Ok(journal.update_refs(&self.git, &self.repository)?)
        });
        if let Err(error) = moved {
            return Err(self.take_back_after(error, &journal));
        }
        journal.is_decided = true;
        let finished =
            journal.store(&self.dir).map_err(WriteError::from).and_then(|()| self.finish(&journal));
        finished.map_err(|error| incomplete(&error.to_string(), &journal))?;
        Ok(Journal::delete(&self.dir)?)
    }

    /// Changes a ref and nothing else. A later process recognises the locks that a killed one leaves.
    pub(crate) fn change_ref(&self, change: RefChange) -> Result<(), GitError> {
        let mut journal = Journal::new(Operation::Branch, None);
        journal.refs = vec![change];
        journal.store(&self.dir)?;
        let changed = journal.update_refs(&self.git, &self.repository);
        Journal::delete(&self.dir)?;
        changed
    }

    /// Writes the new files to the staging directory.
    fn stage(&self, scratch: &Scratch, changes: &TreeChanges) -> Result<(), GitError> {
        if changes.write.is_empty() {
            return Ok(());
        }
        fill_index(scratch, STAGED_INDEX, changes.write.iter().map(|(path, (version, _))| (path, version)))?;
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

    fn stage_index(&self, index: &NewIndex) -> Result<IndexChange, GitError> {
        let present = self.repository.index();
        let write = || {
            let NewIndex::File { bytes, modified } = index else { return Ok(()) };
            let mut file = File::create(self.staged_index())?;
            if let Ok(found) = fs::metadata(&present) {
                file.set_permissions(found.permissions())?;
            }
            file.write_all(bytes)?;
            if let Some((seconds, nanoseconds)) = modified {
                file.set_modified(UNIX_EPOCH + Duration::new(*seconds, *nanoseconds))?;
            }
            file.sync_all()
        };
        write().map_err(GitError::io("write", self.staged_index()))?;
        Ok(IndexChange { old: Stamp::at(&present), new: Stamp::at(&self.staged_index()) })
    }

    /// What remains to be done after the files and refs. Can be repeated.
    fn finish(&self, journal: &Journal) -> Result<(), WriteError> {
        if let Some(branch) = &journal.attach {
            let reason = format!("mcp-delegator: {}", journal.operation);
            let attach = self.repository.call(["symbolic-ref", "-m", &reason, "HEAD", branch]);
            self.git.run(&self.repository.top_level, &attach)?;
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

    /// Takes every step back after an error.
    fn take_back_after(&self, error: WriteError, journal: &Journal) -> WriteError {
        match self.take_back(journal) {
            Err(problem) => incomplete(&format!("{error}, and {problem}"), journal),
            Ok(edited) if edited.is_empty() => error,
            Ok(edited) => {
                let point = journal.point.as_ref().map(|point| point.reference.clone());
                let what = match error {
                    WriteError::ConcurrentChange { what } => format!("{what} changed meanwhile"),
                    other => other.to_string(),
                };
                WriteError::TakenBackInPart { what, edited, point: point.unwrap_or_default() }
            }
        }
    }

    /// Takes every step back and drops the restore point, unless a file had to stay. Returns those files.
    fn take_back(&self, journal: &Journal) -> Result<Vec<String>, WriteError> {
        let taken_back = self.places().take_back_all(&journal.steps);
        if let Some(problem) = taken_back.problem {
            return Err(incomplete(&format!("the changes could not be taken back: {problem}"), journal));
        }
        let point = journal.point.as_ref().filter(|_| taken_back.edited.is_empty());
        if let Some(point) = point {
            let store = crate::store::Store::of(&self.repository.common_dir).path().to_owned();
            let repository = self.repository.common_dir.clone();
            let _ = drop_point(&self.git, &RestorePoint { store, repository, ..point.clone() });
        }
        if Journal::exists(&self.dir) {
            Journal::delete(&self.dir)?;
        }
        Ok(taken_back.edited)
    }

    fn remove_dirs(&self) {
        let _ = fs::remove_dir_all(&self.staging);
        let _ = fs::remove_dir_all(&self.dir);
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

fn incomplete(problem: &str, journal: &Journal) -> WriteError {
    let point = journal.point.as_ref().map(|point| point.reference.clone()).unwrap_or_default();
    WriteError::Incomplete { operation: journal.operation, problem: problem.to_owned(), point }
}
