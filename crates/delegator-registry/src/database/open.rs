//! Opening and creating the database.
//!
//! It is created under another name, brought up to date there, and renamed. So `registry.db` is a registry from its first
//! moment on: one that is empty, or missing while its tasks or its log are there, has been damaged.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use delegator_domain::crash::{CrashPoint, crash_point};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use rustix::fs::FlockOperation;

use super::busy_handler::busy_handler;
use super::migrations::{self, APPLICATION_ID, LATEST, Versions};
use crate::error::{RegistryError, is_disk_full, map_sqlite_error};
use crate::files::durable;
use crate::state_dir::{IntegrityCheck, StateDir};

/// Pages after which the log is written back: 4 MiB.
const CHECKPOINT_PAGES: u32 = 1000;
/// What is kept of the log's file once it was longer. Kept, not cut to nothing: blocks that are there need not be found
/// on a full disk.
const WAL_SIZE_LIMIT: u32 = 8 * 1024 * 1024;
const SMALL_FILE_BYTES: u64 = 256 * 1024;

/// Opens the registry for reading and writing, creating it where there never was one.
pub(crate) fn open(dir: &StateDir) -> Result<(Connection, FileMark), RegistryError> {
    if !exists(&dir.database())? {
        create(dir)?;
    }
    open_existing(dir)
}

pub(crate) fn exists(path: &Path) -> Result<bool, RegistryError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(RegistryError::file(path, "look at")(error)),
    }
}

/// Opens the registry that is there. On a full disk even this takes some space (the shared index of the log), so what is
/// held back is given up for it.
pub(crate) fn open_existing(dir: &StateDir) -> Result<(Connection, FileMark), RegistryError> {
    let file = dir.database();
    let found = fs::metadata(&file).map_err(RegistryError::file(&file, "look at"))?;
    let size = found.len();
    if size == 0 {
        return Err(RegistryError::Damaged { file, detail: "it is empty".to_owned() });
    }
    // Only looked at until it is known to be ours and in order: SQLite would make a registry of anything.
    let (mut db, versions) = loop {
        match connect(&file).and_then(|db| Versions::read(&db).map(|versions| (db, versions))) {
            Err(error) if is_disk_full(&error) && dir.reserve_file().release_slice().unwrap_or(false) => {}
            other => break other.map_err(|error| explain_version(&file, error))?,
        }
    };
    check_versions(&file, &versions)?;
    configure(&db, dir.options().cache_kib).map_err(|error| map_sqlite_error(&file, error))?;
    migrate_if_needed(&file, &mut db, &versions)?;
    match dir.options().check {
        IntegrityCheck::Full => quick_check(&file, &db)?,
        IntegrityCheck::IfCheap if size <= SMALL_FILE_BYTES => quick_check(&file, &db)?,
        IntegrityCheck::IfCheap | IntegrityCheck::Header => {}
    }
    // The file as it was before: if another one has taken its place since, the mark does not fit, and that is right.
    let mark = FileMark::new(&found, &db).map_err(|error| map_sqlite_error(&file, error))?;
    Ok((db, mark))
}

/// Which file was opened, and in which version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileMark {
    device: u64,
    inode: u64,
    schema: i64,
}

impl FileMark {
    fn new(found: &fs::Metadata, db: &Connection) -> rusqlite::Result<FileMark> {
        let schema = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok(FileMark { device: found.dev(), inode: found.ino(), schema })
    }

    /// The file under this name now, in the version an open connection sees.
    pub(crate) fn of(file: &Path, db: &Connection) -> Result<FileMark, RegistryError> {
        let found = fs::symlink_metadata(file).map_err(RegistryError::file(file, "look at"))?;
        FileMark::new(&found, db).map_err(|error| map_sqlite_error(file, error))
    }
}

fn connect(file: &Path) -> rusqlite::Result<Connection> {
    // Neither CREATE, which would make an empty registry of a missing one, nor URI: a path is a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(file, flags)?;
    db.busy_handler(Some(busy_handler()))?;
    db.pragma_update(None, "cell_size_check", "ON")?;
    Ok(db)
}

fn configure(db: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    let mut change = db.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = change.query(())?;
    // To its end: a disk that fails is told only after the answer.
    while rows.next()?.is_some() {}
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", "ON")?;
    db.pragma_update(None, "trusted_schema", "OFF")?;
    // Sorting must not leave files elsewhere, nor need space.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    db.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    db.pragma_update_and_check(None, "journal_size_limit", WAL_SIZE_LIMIT, |_| Ok(()))
}

fn migrate_if_needed(file: &Path, db: &mut Connection, versions: &Versions) -> Result<(), RegistryError> {
    if versions.schema >= LATEST {
        return Ok(());
    }
    let fail = |error| map_sqlite_error(file, error);
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    // Somebody may have been faster.
    let versions = Versions::read(&transaction).map_err(fail)?;
    check_versions(file, &versions)?;
    if versions.schema < LATEST {
        migrations::migrate(&transaction, versions.schema).map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

/// A file that says it is a registry and has no `meta` is none.
fn explain_version(file: &Path, error: rusqlite::Error) -> RegistryError {
    match map_sqlite_error(file, error) {
        RegistryError::Database { file, code: Some(rusqlite::ffi::SQLITE_ERROR), detail } => {
            RegistryError::Damaged { file, detail }
        }
        other => other,
    }
}

fn check_versions(file: &Path, versions: &Versions) -> Result<(), RegistryError> {
    if versions.application_id != APPLICATION_ID || versions.schema < 1 {
        let detail = "it is a database, but not a registry of mcp-delegator".to_owned();
        return Err(RegistryError::Damaged { file: file.to_owned(), detail });
    }
    let needs = versions.required_writer();
    if needs > LATEST {
        let program = versions.program.clone();
        return Err(RegistryError::NeedsNewerWriter { file: file.to_owned(), needs, knows: LATEST, program });
    }
    Ok(())
}

pub(crate) fn quick_check(file: &Path, db: &Connection) -> Result<(), RegistryError> {
    let fail = |error| map_sqlite_error(file, error);
    let mut statement = db.prepare("PRAGMA quick_check(5)").map_err(fail)?;
    let found = statement.query_map((), |row| row.get::<_, String>(0)).map_err(fail)?;
    let problems: Vec<String> = found.collect::<rusqlite::Result<_>>().map_err(fail)?;
    if problems == ["ok"] {
        return Ok(());
    }
    Err(RegistryError::Damaged { file: file.to_owned(), detail: problems.join("; ") })
}

/// Creates the registry. Fails with `Damaged` where one must have been.
fn create(dir: &StateDir) -> Result<(), RegistryError> {
    let _lock = setup_lock(dir)?;
    if never_existed(dir)? { create_locked(dir) } else { Ok(()) }
}

/// Whether there is no registry because nobody made one yet. `Damaged` if it is missing and must have been there.
pub(crate) fn never_existed(dir: &StateDir) -> Result<bool, RegistryError> {
    let file = dir.database();
    if exists(&file)? {
        return Ok(false);
    }
    let detail = if exists(&dir.beside_database("-wal"))? {
        "it is missing, but its log is there"
    } else if has_tasks(dir)? {
        "it is missing, but there are tasks"
    } else {
        return Ok(true);
    };
    // A registry comes before its log and its tasks: whoever made those since we looked has made it, too.
    if exists(&file)? {
        return Ok(false);
    }
    Err(RegistryError::Damaged { file, detail: detail.to_owned() })
}

fn has_tasks(dir: &StateDir) -> Result<bool, RegistryError> {
    let tasks = dir.tasks();
    match fs::read_dir(&tasks) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(RegistryError::file(&tasks, "read")(error)),
    }
}

/// Whoever creates or sets aside is alone.
pub(crate) fn setup_lock(dir: &StateDir) -> Result<File, RegistryError> {
    let path = dir.setup_lock();
    let options = &mut fs::OpenOptions::new();
    let lock = durable::open_private(&path, options.write(true).create(true).truncate(false));
    let lock = lock.map_err(RegistryError::file(&path, "open"))?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)
        .map_err(|errno| RegistryError::file(&path, "lock")(errno.into()))?;
    Ok(lock)
}

/// The lock of the process that prunes; `None` while another one holds it.
pub(crate) fn try_lock_pruning(dir: &StateDir) -> Result<Option<File>, RegistryError> {
    let path = dir.path().join("prune.lock");
    let options = &mut fs::OpenOptions::new();
    let lock = durable::open_private(&path, options.write(true).create(true).truncate(false));
    let lock = lock.map_err(RegistryError::file(&path, "open"))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(RegistryError::file(&path, "lock")(errno.into())),
    }
}

/// Creates the registry under the setup lock, when it is known that there is none.
pub(crate) fn create_locked(dir: &StateDir) -> Result<(), RegistryError> {
    let new = dir.beside_database(".new");
    for suffix in [".new", ".new-wal", ".new-shm", ".new-journal"] {
        let leftover = dir.beside_database(suffix);
        durable::remove_if_exists(&leftover).map_err(RegistryError::file(&leftover, "remove"))?;
    }
    let fail = |error| map_sqlite_error(&new, error);
    durable::write_new(&new, b"").map_err(RegistryError::file(&new, "create"))?;
    let mut db = connect(&new).map_err(fail)?;
    configure(&db, dir.options().cache_kib).map_err(fail)?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    migrations::migrate(&transaction, 0).map_err(fail)?;
    transaction.commit().map_err(fail)?;
    // The file must be whole without its log, which keeps the other name. Closing would write it back as well, but say
    // nothing of a disk that fails.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).map_err(fail)?;
    db.close().map_err(|(_, error)| map_sqlite_error(&new, error))?;
    crash_point(CrashPoint::RegistryBuilt);
    fs::rename(&new, dir.database()).map_err(RegistryError::file(&new, "rename"))?;
    crash_point(CrashPoint::RegistryNamed);
    durable::sync_dir(dir.path()).map_err(RegistryError::file(dir.path(), "sync"))
}
