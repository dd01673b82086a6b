//! The state directory: ownership, permissions and layout.
//!
//! A directory or file that belongs to another user, is a symbolic link or is on a network file system is
//! refused; group and world permissions are removed.
//!
//! [`StateDir::find`] creates nothing: on a fresh machine a query finds no tasks and leaves no files. It does
//! tighten permissions, because a readable secret is worse than a changed mode.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use delegator_domain::task::TaskId;

use crate::error::{RegistryError, Result, StateDirError};
use crate::files::durable::{self, EntryKind, require_private, require_private_if_exists};
use crate::files::file_system;
use crate::files::reserve_file::ReserveFile;
use crate::files::task_dir::TaskDir;

const DATABASE: &str = "registry.db";
const DELIVERY_LOCK: &str = "notify.lock";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegrityCheck {
    /// Only the header, the size and the version.
    Header,
    /// Every page if the file is small enough to be checked quickly (256 KiB).
    IfCheap,
    Full,
}

#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Disk space reserved for recording ends.
    pub reserve_bytes: u64,
    /// Disk space that must be free, besides the reserve, to accept a task.
    pub min_free_bytes: u64,
    pub check: IntegrityCheck,
    /// Memory for database pages.
    pub cache_kib: u32,
    /// Parsed statements that are kept. A server executes the same ones again and again.
    pub cached_statements: usize,
}

impl OpenOptions {
    /// For a supervisor. The process that started it has just opened the file and checked it. There may be
    /// hundreds of supervisors, so each takes little memory.
    pub fn of_supervisor() -> OpenOptions {
        OpenOptions {
            check: IntegrityCheck::Header,
            cache_kib: 64,
            cached_statements: 8,
            ..OpenOptions::default()
        }
    }
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            reserve_bytes: 2 * 1024 * 1024,
            min_free_bytes: 16 * 1024 * 1024,
            check: IntegrityCheck::IfCheap,
            cache_kib: 2048,
            cached_statements: 64,
        }
    }
}

#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
    options: OpenOptions,
    pub(crate) reserve_file: ReserveFile,
}

impl StateDir {
    pub fn open(path: &Path, options: &OpenOptions) -> Result<StateDir, StateDirError> {
        if fs::symlink_metadata(path).is_err() {
            // Check the file system of the nearest existing parent first, so that no directory is created on
            // a refused file system.
            let above = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("."));
            refuse_network(above, path)?;
            durable::make_private_path(path).map_err(StateDirError::io(path, "create"))?;
        }
        let dir = StateDir::open_checked(path, options)?;
        let tasks = dir.tasks();
        durable::make_private_path(&tasks).map_err(StateDirError::io(&tasks, "create"))?;
        require_private(&tasks, EntryKind::Directory)?;
        dir.fill_reserve();
        Ok(dir)
    }

    /// Opens the directory if it exists; creates nothing.
    pub fn find(path: &Path, options: &OpenOptions) -> Result<Option<StateDir>, StateDirError> {
        let found = durable::if_exists(fs::symlink_metadata(path));
        if found.map_err(StateDirError::io(path, "inspect"))?.is_none() {
            return Ok(None);
        }
        let dir = StateDir::open_checked(path, options)?;
        require_private_if_exists(&dir.tasks(), EntryKind::Directory)?;
        Ok(Some(dir))
    }

    fn open_checked(path: &Path, options: &OpenOptions) -> Result<StateDir, StateDirError> {
        require_private(path, EntryKind::Directory)?;
        refuse_network(path, path)?;
        let reserve_file = ReserveFile::new(path.join("held-back"), options.reserve_bytes);
        let dir = StateDir { path: path.to_owned(), options: options.clone(), reserve_file };
        for ending in ["", "-wal", "-shm"] {
            require_private_if_exists(&dir.beside_database(ending), EntryKind::File)?;
        }
        require_private_if_exists(&dir.submitting(), EntryKind::Directory)?;
        Ok(dir)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    pub fn task(&self, id: &TaskId) -> TaskDir {
        TaskDir::new(&self.tasks(), id.clone(), self.reserve_file.clone())
    }

    pub(crate) fn tasks(&self) -> PathBuf {
        self.path.join("tasks")
    }

    pub(crate) fn submitting(&self) -> PathBuf {
        self.path.join("submitting")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// A file such as `registry.db-wal`.
    pub(crate) fn beside_database(&self, ending: &str) -> PathBuf {
        self.path.join(format!("{DATABASE}{ending}"))
    }

    /// Takes the lock for creating a registry or setting it aside.
    pub(crate) fn setup_lock(&self) -> Result<File> {
        let path = self.path.join("setup.lock");
        let lock = durable::open_lock_file(&path).map_err(RegistryError::file(&path, "open"))?;
        lock.lock().map_err(RegistryError::file(&path, "lock"))?;
        Ok(lock)
    }

    pub fn try_lock_pruning(&self) -> Result<Option<File>> {
        self.try_lock("prune.lock")
    }

    pub fn try_lock_delivery(&self) -> Result<Option<File>> {
        self.try_lock(DELIVERY_LOCK)
    }

    /// What the process that delivers notifications wrote into its lock file: who it is.
    pub fn delivery_process(&self) -> Option<Vec<u8>> {
        fs::read(self.path.join(DELIVERY_LOCK)).ok()
    }

    fn try_lock(&self, name: &str) -> Result<Option<File>> {
        let path = self.path.join(name);
        let lock = durable::open_lock_file(&path).map_err(RegistryError::file(&path, "open"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(RegistryError::file(&path, "lock")(error)),
        }
    }

    /// Bytes that an unprivileged user may still write here.
    pub fn free_bytes(&self) -> Result<u64, StateDirError> {
        self.free_space().map(|(bytes, _)| bytes)
    }

    /// Free bytes, and free files where the file system counts them: some report 0 of 0.
    fn free_space(&self) -> Result<(u64, Option<u64>), StateDirError> {
        let stats = rustix::fs::statvfs(&self.path)
            .map_err(|errno| StateDirError::io(&self.path, "read the free space of")(errno.into()))?;
        let bytes = stats.f_bavail.saturating_mul(stats.f_frsize);
        Ok((bytes, (stats.f_files > 0).then_some(stats.f_favail)))
    }

    /// Refuses a new task if there is too little free space; otherwise fills the reserve again.
    pub(crate) fn check_space_for(&self, launch_bytes: usize) -> Result<()> {
        const FILES_OF_A_TASK: u64 = 16;
        let needed = self.options.min_free_bytes.saturating_add(launch_bytes as u64);
        let (bytes, files) = self.free_space()?;
        if bytes < needed || files.is_some_and(|files| files < FILES_OF_A_TASK) {
            let available = if bytes < needed { bytes } else { 0 };
            return Err(RegistryError::DiskFull { path: self.path.clone(), available, needed });
        }
        self.fill_reserve();
        Ok(())
    }

    /// A failure is ignored: the reserve is only needed on a full disk.
    fn fill_reserve(&self) {
        let missing = self.reserve_file.missing_bytes();
        let plenty = self.options.min_free_bytes.saturating_add(missing);
        if missing > 0 && self.free_bytes().is_ok_and(|free| free >= plenty) {
            let _ = self.reserve_file.fill();
        }
    }
}

fn refuse_network(existing: &Path, path: &Path) -> Result<(), StateDirError> {
    let file_system_type = file_system::network_file_system_at(existing);
    match file_system_type.map_err(StateDirError::io(existing, "read the file system type of"))? {
        Some(file_system) => Err(StateDirError::Network { path: path.to_owned(), file_system }),
        None => Ok(()),
    }
}
