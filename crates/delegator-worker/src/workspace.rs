//! The directory in which a worker keeps mirrors, prepared checkouts and the checkouts of its tasks.
//!
//! A random id in a file names it in the database, and a lock guarantees that only one worker uses it: so a
//! restarted worker may take over the tasks of its predecessor.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, FileTimes, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use delegator_fleet::{FleetClaim, new_id};
use delegator_registry::{Durability, replace_file};
use sha2::{Digest, Sha256};

#[derive(Debug)]
pub struct Workspace {
    pub(crate) dirs: WorkspaceDirs,
    id: String,
    _lock: File,
}

#[derive(Debug, Clone)]
pub(crate) struct WorkspaceDirs(PathBuf);

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
        Ok(Workspace { dirs: WorkspaceDirs(dir.to_owned()), id, _lock: lock })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub fn dir(&self) -> &Path {
        &self.dirs.0
    }

    /// The file in which supervisors find the last contact with the fleet.
    pub(crate) fn contact(&self) -> PathBuf {
        self.dir().join("contact")
    }

    pub(crate) fn attempt(&self, claim: &FleetClaim) -> PathBuf {
        self.dirs.tasks().join(format!("{}-{}", file_name(&claim.task), claim.attempt))
    }
}

impl WorkspaceDirs {
    pub(crate) fn mirrors(&self) -> PathBuf {
        self.0.join("mirrors")
    }

    pub(crate) fn setups(&self) -> PathBuf {
        self.0.join("setups")
    }

    pub(crate) fn tasks(&self) -> PathBuf {
        self.0.join("tasks")
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

const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct SetupLocks {
    held: Mutex<BTreeSet<PathBuf>>,
    released: Condvar,
}

pub(crate) struct SetupLock<'a> {
    locks: &'a SetupLocks,
    dir: PathBuf,
}

impl SetupLocks {
    pub(crate) fn try_lock(&self, dir: &Path) -> Option<SetupLock<'_>> {
        let is_new = self.held().insert(dir.to_owned());
        is_new.then(|| SetupLock { locks: self, dir: dir.to_owned() })
    }

    /// `None` if the wait was cancelled.
    pub(crate) fn lock(&self, dir: &Path, cancel: &AtomicBool) -> Option<SetupLock<'_>> {
        loop {
            if let Some(lock) = self.try_lock(dir) {
                return Some(lock);
            }
            if cancel.load(Ordering::Relaxed) {
                return None;
            }
            drop(self.released.wait_timeout_while(self.held(), POLL_INTERVAL, |held| held.contains(dir)));
        }
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SetupLock<'_> {
    fn drop(&mut self) {
        self.locks.held().remove(&self.dir);
        self.locks.released.notify_all();
    }
}

/// Copies files, directories and symbolic links with their modes and times; other files are left out. `to`
/// must not exist.
pub(crate) fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_directory(&source, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            copy_file(&source, &target)?;
        }
    }
    // Last: the mode may forbid to write, and every entry changes the time.
    let found = fs::metadata(from)?;
    fs::set_permissions(to, found.permissions())?;
    File::open(to)?.set_times(FileTimes::new().set_modified(found.modified()?))
}

/// The times must be equal: by them git recognises unchanged files.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let found = fs::metadata(from)?;
    File::open(to)?.set_times(FileTimes::new().set_modified(found.modified()?))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use delegator_engine::remove_directory;

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

    #[test]
    fn a_copy_has_the_same_content_modes_times_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/tool"), "x").unwrap();
        fs::set_permissions(from.join("sub/tool"), Permissions::from_mode(0o755)).unwrap();
        fs::write(from.join("sub/fixed"), "y").unwrap();
        fs::set_permissions(from.join("sub/fixed"), Permissions::from_mode(0o444)).unwrap();
        std::os::unix::fs::symlink("sub/tool", from.join("link")).unwrap();
        fs::set_permissions(from.join("sub"), Permissions::from_mode(0o555)).unwrap();
        copy_directory(&from, &to).unwrap();
        let (a, b) =
            (fs::metadata(from.join("sub/tool")).unwrap(), fs::metadata(to.join("sub/tool")).unwrap());
        assert_eq!((a.modified().unwrap(), a.permissions()), (b.modified().unwrap(), b.permissions()));
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("sub/tool"));
        assert_eq!(fs::metadata(to.join("sub")).unwrap().permissions().mode() & 0o777, 0o555);
        for dir in [from, to] {
            remove_directory(&dir).unwrap();
            assert!(!dir.exists());
            remove_directory(&dir).unwrap();
        }
    }
}
