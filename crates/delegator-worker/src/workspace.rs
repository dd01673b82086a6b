//! The directory in which a worker keeps mirrors, prepared checkouts and the checkouts of its tasks.
//!
//! A random id in a file names it in the database, and a lock guarantees that only one worker uses it: so a
//! restarted worker may take over the tasks of its predecessor.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use delegator_fleet::{Claim, new_id};
use delegator_registry::{Durability, replace_file};
use sha2::{Digest, Sha256};

#[derive(Debug)]
pub struct Workspace {
    dir: PathBuf,
    id: String,
    _lock: File,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("another worker uses the workspace {}", dir.display())]
    InUse { dir: PathBuf },
    #[error("could not use the workspace {}: {source}", dir.display())]
    Unusable { dir: PathBuf, source: io::Error },
}

impl Workspace {
    /// Creates the directory if it is missing, and locks it until the process ends.
    pub fn open(dir: &Path) -> Result<Workspace, WorkspaceError> {
        let unusable = |source| WorkspaceError::Unusable { dir: dir.to_owned(), source };
        for folder in [dir.to_owned(), dir.join("mirrors"), dir.join("setups"), dir.join("tasks")] {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
        }
        // git reports real paths.
        let dir = &dir.canonicalize().map_err(unusable)?;
        let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock"));
        let lock = lock.map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(WorkspaceError::InUse { dir: dir.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let id = read_or_create_id(dir).map_err(unusable)?;
        Ok(Workspace { dir: dir.to_owned(), id, _lock: lock })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file in which supervisors find the last contact with the fleet.
    pub(crate) fn contact(&self) -> PathBuf {
        self.dir.join("contact")
    }

    pub(crate) fn mirrors(&self) -> PathBuf {
        self.dir.join("mirrors")
    }

    pub(crate) fn setups(&self) -> PathBuf {
        self.dir.join("setups")
    }

    pub(crate) fn tasks(&self) -> PathBuf {
        self.dir.join("tasks")
    }

    pub(crate) fn attempt(&self, claim: &Claim) -> PathBuf {
        self.tasks().join(format!("{}-{}", file_name(&claim.task), claim.attempt))
    }
}

fn read_or_create_id(dir: &Path) -> io::Result<String> {
    let path = dir.join("id");
    match fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let id = new_id();
    replace_file(&path, format!("{id}\n").as_bytes(), Durability::Synced)?;
    Ok(id)
}

/// A file name for an id that another machine has chosen.
pub(crate) fn file_name(id: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !id.is_empty() && id.len() <= 64 && id.bytes().all(is_plain) {
        id.to_owned()
    } else {
        hash(id.as_bytes())
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_stays_and_a_second_worker_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = Workspace::open(&folder.path().join("w")).unwrap();
        assert!(matches!(Workspace::open(first.dir()), Err(WorkspaceError::InUse { .. })));
        let (id, dir) = (first.id().to_owned(), first.dir().to_owned());
        drop(first);
        assert_eq!(Workspace::open(&dir).unwrap().id(), id);
    }

    #[test]
    fn ids_of_others_cannot_leave_the_workspace() {
        assert_eq!(file_name("3f2a-b"), "3f2a-b");
        for hostile in ["../../x", "", "a/b", "a\0b", &"x".repeat(100)] {
            assert_eq!(file_name(hostile).len(), 32, "{hostile:?}");
        }
    }
}
