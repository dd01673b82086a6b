//! Finishes the operation of a process that was killed.
//!
//! A lock file is removed only if it is ours: the index lock is a link to a file in our directory, and other
//! locks were created by git after the operation began and no git process is left that could hold them.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::journal::Journal;
use super::writer::{DIR_NAME, TreeWriter, release_index_lock};
use crate::error::{GitError, Operation, WriteError};
use crate::repository::{Repository, find_repository};
use crate::run::{Git, OWN_ARGUMENT};

/// How long a git process of a killed one may still run.
const CHILD_TIME: Duration = Duration::from_secs(5);

/// What became of an operation whose process was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    pub operation: Operation,
    /// Whether it was completed; else it was taken back.
    pub is_completed: bool,
    /// Files that changed after the operation wrote them, and stay as they are.
    pub edited: Vec<String>,
}

/// Finishes what a killed process left in the work tree that contains `dir`. `reference` is the ref that it
/// may have created.
pub fn recover_interrupted(git: &Git, dir: &Path, reference: &str) -> Result<Option<Recovery>, WriteError> {
    let Some(repository) = find_repository(git, dir)? else { return Ok(None) };
    match fs::symlink_metadata(repository.git_dir.join(DIR_NAME)) {
        Ok(_) => Ok(TreeWriter::open(git, &repository, reference)?.1),
        Err(_) => Ok(None),
    }
}

impl TreeWriter {
    /// Waits for nothing: another process that changes the work tree is an error. First finishes what a
    /// killed process left. `reference` is the ref that the caller is going to create.
    pub(crate) fn open(
        git: &Git,
        repository: &Repository,
        reference: &str,
    ) -> Result<(TreeWriter, Option<Recovery>), WriteError> {
        let (git_dir, top) = (&repository.git_dir, &repository.top_level);
        let lock = File::open(git_dir).map_err(GitError::io("open", git_dir))?;
        // Some network file systems cannot lock a directory; there a concurrent change is still noticed per
        // file.
        if let Err(Errno::WOULDBLOCK) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            return Err(WriteError::Busy { top_level: top.clone() });
        }
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let dir = git_dir.join(DIR_NAME);
        let is_same_device = device(git_dir) == device(top);
        let staging = if is_same_device { dir.join("staging") } else { top.join(format!(".{DIR_NAME}")) };
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

    fn recover(&self, reference: &str) -> Result<Option<Recovery>, WriteError> {
        let repository = &self.repository;
        if fs::symlink_metadata(&self.dir).is_err() {
            return Ok(None);
        }
        if !wait_for_own_git(repository) {
            return Err(WriteError::Busy { top_level: repository.top_level.clone() });
        }
        release_index_lock(repository, &self.dir);
        let journal = Journal::read(&self.dir);
        let refs = journal.iter().flat_map(|journal| &journal.refs).map(|change| change.name.clone());
        self.remove_ref_locks(refs.chain(locked_refs(&repository.common_dir, reference)))?;
        let journal = match journal {
            Some(journal) => journal,
            None if !Journal::exists(&self.dir) => return Ok(None),
            None => {
                let (top_level, dir) = (repository.top_level.clone(), self.dir.clone());
                return Err(WriteError::ForeignJournal { top_level, dir });
            }
        };
        let (operation, is_completed) = (journal.operation, journal.is_done(&self.git, repository)?);
        let mut edited = Vec::new();
        if is_completed {
            if journal.index.is_some() {
                self.lock_index()?;
            }
            self.finish(&journal)?;
            release_index_lock(repository, &self.dir);
            Journal::delete(&self.dir)?;
        } else {
            edited = self.take_back(&journal)?;
        }
        let is_visible = operation != Operation::Branch;
        Ok(is_visible.then_some(Recovery { operation, is_completed, edited }))
    }

    /// Removes the locks that git processes of ours left when they were killed.
    fn remove_ref_locks(&self, refs: impl Iterator<Item = String>) -> Result<(), WriteError> {
        let Repository { top_level, git_dir, common_dir, .. } = &self.repository;
        let is_ref = |name: &String| {
            name.starts_with("refs/") && Path::new(name).components().all(|part| part.as_os_str() != "..")
        };
        let mut locks = vec![git_dir.join("HEAD.lock"), common_dir.join("packed-refs.lock")];
        locks.extend(refs.filter(is_ref).map(|name| common_dir.join(format!("{name}.lock"))));
        let modified = |path: &Path| fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
        let started = modified(&self.dir.join("started"));
        for lock in locks {
            if modified(&lock).is_none_or(|created| started.is_none_or(|started| created < started)) {
                continue;
            }
            if !git_processes(&self.repository, &[]).is_empty() {
                return Err(WriteError::IndexLocked { top_level: top_level.clone(), lock });
            }
            let _ = fs::remove_file(lock);
        }
        Ok(())
    }
}

/// The ref and those whose names begin with its name, such as the undo points of a restore point, as far as
/// they are locked.
fn locked_refs(common_dir: &Path, reference: &str) -> Vec<String> {
    let Some((folder, name)) = reference.rsplit_once('/') else { return Vec::new() };
    let entries = fs::read_dir(common_dir.join(folder)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let locked = names.filter(|file| file.starts_with(name));
    locked.filter_map(|file| Some(format!("{folder}/{}", file.strip_suffix(".lock")?))).collect()
}

/// Waits for git processes that a killed process started. Returns whether none is left.
fn wait_for_own_git(repository: &Repository) -> bool {
    for pid in git_processes(repository, OWN_ARGUMENT.as_bytes()) {
        let limit = Timespec::try_from(CHILD_TIME).ok();
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
            let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], limit.as_ref());
        }
    }
    git_processes(repository, OWN_ARGUMENT.as_bytes()).is_empty()
}

/// The git processes that run in a repository and have this argument.
fn git_processes(repository: &Repository, argument: &[u8]) -> Vec<Pid> {
    let is_in_repository = |process: &Path| {
        let dir = fs::read_link(process.join("cwd")).unwrap_or_default();
        dir.starts_with(&repository.top_level) || dir.starts_with(&repository.common_dir)
    };
    let is_git = |process: &Path| {
        let name = fs::read(process.join("comm")).unwrap_or_default();
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        let mut arguments = arguments.split(|byte| *byte == 0);
        name.starts_with(b"git") && (argument.is_empty() || arguments.any(|found| found == argument))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let found = processes.filter(|process| is_git(process) && is_in_repository(process));
    found.filter_map(|process| Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)).collect()
}
