//! Replaces files one by one, each with a single rename, and can take every step back.
//!
//! New files are complete in a staging directory before the first step, so a killed process leaves each file either old
//! or new, and a full disk is noticed early. The file that a step moves out of the way is compared with what was read
//! before: a change in between is taken back, never overwritten.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use tempfile::TempDir;

use super::report::ApplyError;
use crate::error::GitError;
use crate::repository::Repository;
use crate::stamp::Stamp;

const DIR_NAME: &str = "mcp-delegator-apply";

/// A directory for new and replaced files, on the file system of the work tree. One process at a time has one.
#[derive(Debug)]
pub(crate) struct Staging {
    /// Its name is new for each application: git processes of a killed one may still write to theirs.
    dir: TempDir,
    /// The kernel releases the lock when the process ends, however it ends.
    _lock: File,
}

impl Staging {
    pub(crate) fn create(repository: &Repository) -> Result<Staging, ApplyError> {
        let (git_dir, top) = (&repository.git_dir, &repository.top_level);
        let lock = File::open(git_dir).map_err(GitError::io("open", git_dir))?;
        // Some network file systems cannot lock a directory; there a concurrent change is still noticed per file.
        if let Err(Errno::WOULDBLOCK) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            return Err(ApplyError::Busy { top_level: top.clone() });
        }
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let is_same_device = device(git_dir) == device(top);
        let parent = if is_same_device { git_dir.join(DIR_NAME) } else { top.join(format!(".{DIR_NAME}")) };
        // A killed process leaves its directory. What it replaced is in its restore point.
        let _ = fs::remove_dir_all(&parent);
        let create = || {
            fs::create_dir_all(&parent)?;
            let dir = tempfile::tempdir_in(&parent)?;
            fs::create_dir(dir.path().join("old"))?;
            Ok(dir)
        };
        let dir = create().map_err(GitError::io("create", &parent))?;
        Ok(Staging { dir, _lock: lock })
    }

    /// Below it, a new file has the path that it has in the work tree.
    pub(crate) fn new_files(&self) -> PathBuf {
        self.dir.path().join("new")
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // With whatever a killed process left beside it.
        let _ = self.dir.path().parent().map(fs::remove_dir_all);
    }
}

/// Why a step was not done.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The file is not as it was read.
    Changed,
    Io(io::Error),
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> StepError {
        match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound => StepError::Changed,
            _ => StepError::Io(error),
        }
    }
}

enum Step {
    Created(PathBuf),
    /// The old file is at `aside`.
    Replaced {
        file: PathBuf,
        aside: PathBuf,
    },
    Removed {
        file: PathBuf,
        aside: PathBuf,
    },
    MadeDirectory(PathBuf),
    RemovedDirectory(PathBuf, Permissions),
}

/// The steps done so far.
pub(crate) struct Journal<'a> {
    staging: &'a Staging,
    steps: Vec<Step>,
}

impl<'a> Journal<'a> {
    pub(crate) fn new(staging: &'a Staging) -> Journal<'a> {
        Journal { staging, steps: Vec::new() }
    }

    /// Removes a file that has this stamp.
    pub(crate) fn remove(&mut self, file: &Path, expected: Option<Stamp>) -> Result<(), StepError> {
        let aside = self.aside();
        rename_to_free_name(file, &aside)?;
        if Stamp::at(&aside) != expected {
            rename_to_free_name(&aside, file)?;
            return Err(StepError::Changed);
        }
        self.steps.push(Step::Removed { file: file.to_owned(), aside });
        Ok(())
    }

    /// Moves a staged file to its place, where there is a file with this stamp, or none.
    pub(crate) fn write(
        &mut self,
        staged: &Path,
        file: &Path,
        expected: Option<Stamp>,
    ) -> Result<(), StepError> {
        match fs::symlink_metadata(file) {
            Ok(found) if found.is_dir() => self.remove_empty_directories(file)?,
            Ok(_) => {
                let aside = self.aside();
                exchange(staged, file, &aside, expected)?;
                self.steps.push(Step::Replaced { file: file.to_owned(), aside });
                return Ok(());
            }
            Err(_) => {}
        }
        rename_to_free_name(staged, file)?;
        self.steps.push(Step::Created(file.to_owned()));
        Ok(())
    }

    /// Creates the missing directories between `top` and a file. Anything but a directory in between is an error.
    pub(crate) fn make_parents(&mut self, top: &Path, file: &Path) -> Result<(), StepError> {
        let parents: Vec<&Path> =
            file.ancestors().skip(1).take_while(|above| *above != top && above.starts_with(top)).collect();
        for above in parents.into_iter().rev() {
            match fs::symlink_metadata(above) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(StepError::Changed),
                Err(_) => {
                    fs::create_dir(above)?;
                    self.steps.push(Step::MadeDirectory(above.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn remove_empty_directories(&mut self, directory: &Path) -> Result<(), StepError> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                return Err(StepError::Changed);
            }
            self.remove_empty_directories(&entry.path())?;
        }
        let permissions = fs::symlink_metadata(directory)?.permissions();
        fs::remove_dir(directory)?;
        self.steps.push(Step::RemovedDirectory(directory.to_owned(), permissions));
        Ok(())
    }

    fn aside(&self) -> PathBuf {
        self.staging.dir.path().join("old").join(self.steps.len().to_string())
    }

    /// Takes back every step, the last one first. Continues after an error and returns the first one.
    pub(crate) fn roll_back(self) -> io::Result<()> {
        let mut result = Ok(());
        for step in self.steps.into_iter().rev() {
            let taken_back = match step {
                Step::Created(file) => fs::remove_file(file),
                Step::Replaced { file, aside } => fs::rename(aside, file),
                Step::Removed { file, aside } => rename_to_free_name(&aside, &file),
                Step::MadeDirectory(directory) => fs::remove_dir(directory),
                Step::RemovedDirectory(directory, permissions) => {
                    fs::create_dir(&directory).and_then(|()| fs::set_permissions(&directory, permissions))
                }
            };
            result = result.and(taken_back);
        }
        result
    }
}

/// Whether the file system lacks the kind of rename.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Replaces `file`, whose old content is then at `aside`.
fn exchange(staged: &Path, file: &Path, aside: &Path, expected: Option<Stamp>) -> Result<(), StepError> {
    match renameat_with(CWD, staged, CWD, file, RenameFlags::EXCHANGE) {
        Err(error) if is_unsupported(error) => {
            fs::hard_link(file, aside)?;
            if Stamp::at(aside) != expected {
                return Err(StepError::Changed);
            }
            return Ok(fs::rename(staged, file)?);
        }
        exchanged => exchanged.map_err(io::Error::from)?,
    }
    if Stamp::at(staged) != expected {
        renameat_with(CWD, staged, CWD, file, RenameFlags::EXCHANGE).map_err(io::Error::from)?;
        return Err(StepError::Changed);
    }
    Ok(fs::rename(staged, aside)?)
}

fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(error) => match fs::symlink_metadata(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        renamed => Ok(renamed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    fn contents(dir: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.clone(), fs::read(&path).ok());
            if path.is_dir() {
                contents(&path, found);
            }
        }
    }

    #[test]
    fn a_failure_takes_every_step_back() {
        let root = tempfile::tempdir().unwrap();
        let (top, git_dir) = (root.path().join("tree"), root.path().join("git"));
        fs::create_dir_all(top.join("d/e")).unwrap();
        fs::create_dir(&git_dir).unwrap();
        for name in ["changed", "removed", "d/e/inner"] {
            fs::write(top.join(name), name).unwrap();
        }
        fs::set_permissions(top.join("d/e"), Permissions::from_mode(0o700)).unwrap();
        let mut before = BTreeMap::new();
        contents(&top, &mut before);
        let repository = Repository {
            top_level: top.clone(),
            git_dir: git_dir.clone(),
            common_dir: git_dir.clone(),
            object_format: "sha1".to_owned(),
        };
        let staging = Staging::create(&repository).unwrap();
        assert!(matches!(Staging::create(&repository), Err(ApplyError::Busy { .. })));
        let new = staging.new_files();
        fs::create_dir(&new).unwrap();
        for name in ["a", "b", "c", "d"] {
            fs::write(new.join(name), "new").unwrap();
        }
        let mut journal = Journal::new(&staging);
        let stamp = |name: &str| Stamp::at(&top.join(name));
        journal.remove(&top.join("d/e/inner"), stamp("d/e/inner")).unwrap();
        journal.write(&new.join("a"), &top.join("d"), None).unwrap();
        journal.write(&new.join("b"), &top.join("changed"), stamp("changed")).unwrap();
        journal.make_parents(&top, &top.join("x/y/created")).unwrap();
        journal.write(&new.join("c"), &top.join("x/y/created"), None).unwrap();
        // What is not as it was read stays, whether it is replaced or removed.
        let result = journal.write(&new.join("d"), &top.join("removed"), stamp("changed"));
        assert!(matches!(result, Err(StepError::Changed)));
        assert!(matches!(journal.remove(&top.join("removed"), None), Err(StepError::Changed)));
        assert!(matches!(journal.make_parents(&top, &top.join("removed/x")), Err(StepError::Changed)));
        journal.remove(&top.join("removed"), stamp("removed")).unwrap();
        assert_eq!(fs::read(top.join("d")).unwrap(), b"new");
        journal.roll_back().unwrap();
        let mut after = BTreeMap::new();
        contents(&top, &mut after);
        assert_eq!(after, before);
        assert_eq!(fs::metadata(top.join("d/e")).unwrap().permissions().mode() & 0o777, 0o700);
        drop(staging);
        assert_eq!(fs::read_dir(&git_dir).unwrap().count(), 0);
    }
}
