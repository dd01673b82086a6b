//! Opens and creates the database.
//!
//! It is created under another name and renamed. So `registry.db` is complete from the moment it exists: a
//! file that is empty, or missing beside its tasks or its log, is damaged. A damaged file is reported, never
//! replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use delegator_domain::crash::{CrashPoint, crash_point};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::begin_write::{begin_write, busy_handler};
use super::schema::{self, APPLICATION_ID, LATEST, Versions};
use crate::error::{RegistryError, Result, is_disk_full, map_sqlite_error};
use crate::files::durable;
use crate::state_dir::{IntegrityCheck, OpenOptions, StateDir};

/// The write-ahead log is checkpointed after this many pages: 4 MiB.
const CHECKPOINT_PAGES: u32 = 1000;
/// A longer log file is truncated to this size after a checkpoint. Not to zero: blocks that are already
/// allocated need not be found on a full disk.
const WAL_SIZE_LIMIT: u32 = 8 * 1024 * 1024;
const SMALL_FILE_BYTES: u64 = 256 * 1024;

/// Opens the registry for reading and writing, creating it if there never was one.
pub(crate) fn open(dir: &StateDir) -> Result<(Connection, FileMark)> {
    if !exists(&dir.database())? {
        let _lock = dir.setup_lock()?;
        // Fails with `Damaged` if one must have existed.
        if never_existed(dir)? {
            create_locked(dir)?;
        }
    }
    open_existing(dir)
}

pub(crate) fn exists(path: &Path) -> Result<bool> {
    let found = durable::if_exists(fs::symlink_metadata(path));
    Ok(found.map_err(RegistryError::file(path, "inspect"))?.is_some())
}

/// Opens an existing registry. Even this takes some space (the shared-memory index of the log), so reserved
/// space is released for it on a full disk.
pub(crate) fn open_existing(dir: &StateDir) -> Result<(Connection, FileMark)> {
    let file = dir.database();
    let found = fs::metadata(&file).map_err(RegistryError::file(&file, "inspect"))?;
    let size = found.len();
    if size == 0 {
        return Err(RegistryError::Damaged { file, detail: "it is empty".to_owned() });
    }
    // Change nothing until the file is known to be an intact registry: SQLite would accept any database.
    let (db, versions) = loop {
        match connect(&file).and_then(|db| Versions::read(&db).map(|versions| (db, versions))) {
            Err(error) if is_disk_full(&error) && dir.reserve_file.release_slice().unwrap_or(false) => {}
            other => break other.map_err(|error| map_version_error(&file, error))?,
        }
    };
    check_versions(&file, &versions)?;
    configure(&db, dir.options()).map_err(|error| map_sqlite_error(&file, error))?;
    match dir.options().check {
        IntegrityCheck::Full => quick_check(&file, &db)?,
        IntegrityCheck::IfCheap if size <= SMALL_FILE_BYTES => quick_check(&file, &db)?,
        IntegrityCheck::IfCheap | IntegrityCheck::Header => {}
    }
    if versions.schema < LATEST {
        migrate(dir, &db).map_err(|error| map_sqlite_error(&file, error))?;
    }
    // The metadata from before opening: if the file was replaced meanwhile, the mark must not match.
    let mark = FileMark::new(&found, &db).map_err(|error| map_sqlite_error(&file, error))?;
    Ok((db, mark))
}

/// Migrates the schema, unless another process has just done so. Releases reserved space for it on a full disk.
fn migrate(dir: &StateDir, db: &Connection) -> rusqlite::Result<()> {
    loop {
        let migrated = begin_write(db).and_then(|transaction| {
            schema::migrate(&transaction)?;
            transaction.commit()
        });
        match migrated {
            Err(error) if is_disk_full(&error) && dir.reserve_file.release_slice().unwrap_or(false) => {}
            other => return other,
        }
    }
}

/// Identifies the opened file and its schema version.
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

    /// The mark of the file at this path now, with the version that an open connection reads.
    pub(crate) fn of(file: &Path, db: &Connection) -> Result<FileMark> {
        let found = fs::symlink_metadata(file).map_err(RegistryError::file(file, "inspect"))?;
        FileMark::new(&found, db).map_err(|error| map_sqlite_error(file, error))
    }
}

fn connect(file: &Path) -> rusqlite::Result<Connection> {
    // Not CREATE, which would create an empty registry in place of a missing one, and not URI, which would
    // interpret the path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    db.busy_handler(Some(busy_handler))?;
    db.pragma_update(None, "cell_size_check", "ON")?;
    Ok(db)
}

fn configure(db: &Connection, options: &OpenOptions) -> rusqlite::Result<()> {
    db.set_prepared_statement_cache_capacity(options.cached_statements);
    // `query_map` reads to the end: SQLite reports a disk error only after the row.
    let mut change = db.prepare("PRAGMA journal_mode = WAL")?;
    change.query_map((), |_| Ok(()))?.collect::<rusqlite::Result<()>>()?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", "ON")?;
    db.pragma_update(None, "trusted_schema", "OFF")?;
    // Sorting must not create temporary files, nor need disk space.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "cache_size", -i64::from(options.cache_kib))?;
    db.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    db.pragma_update_and_check(None, "journal_size_limit", WAL_SIZE_LIMIT, |_| Ok(()))
}

/// A file with our application id but without `meta` is damaged.
fn map_version_error(file: &Path, error: rusqlite::Error) -> RegistryError {
    match map_sqlite_error(file, error) {
        RegistryError::Database { file, code: Some(rusqlite::ffi::SQLITE_ERROR), detail } => {
            RegistryError::Damaged { file, detail }
        }
        other => other,
    }
}

fn check_versions(file: &Path, versions: &Versions) -> Result<()> {
    if versions.application_id != APPLICATION_ID || versions.schema < 1 {
        let detail = "it is a database, but not a registry of mcp-delegator".to_owned();
        return Err(RegistryError::Damaged { file: file.to_owned(), detail });
    }
    let required = versions.required_writer();
    if required > LATEST {
        let program = versions.program.clone();
        let (file, supported) = (file.to_owned(), LATEST);
        return Err(RegistryError::NeedsNewerWriter { file, required, supported, program });
    }
    Ok(())
}

pub(crate) fn quick_check(file: &Path, db: &Connection) -> Result<()> {
    let fail = |error| map_sqlite_error(file, error);
    let mut statement = db.prepare("PRAGMA quick_check(5)").map_err(fail)?;
    let found = statement.query_map((), |row| row.get::<_, String>(0)).map_err(fail)?;
    let problems: Vec<String> = found.collect::<rusqlite::Result<_>>().map_err(fail)?;
    if problems == ["ok"] {
        return Ok(());
    }
    Err(RegistryError::Damaged { file: file.to_owned(), detail: problems.join("; ") })
}

/// Whether no registry was ever created here. `Damaged` if it is missing but must have existed.
pub(crate) fn never_existed(dir: &StateDir) -> Result<bool> {
    let file = dir.database();
    if exists(&file)? {
        return Ok(false);
    }
    let detail = if exists(&dir.beside_database("-wal"))? {
        "it is missing, but its log exists"
    } else if has_tasks(dir)? {
        "it is missing, but tasks exist"
    } else {
        return Ok(true);
    };
    // The database is created before its log and its tasks. If another process created them just now, it
    // exists by now.
    if exists(&file)? {
        return Ok(false);
    }
    Err(RegistryError::Damaged { file, detail: detail.to_owned() })
}

fn has_tasks(dir: &StateDir) -> Result<bool> {
    let tasks = dir.tasks();
    let entries = durable::if_exists(fs::read_dir(&tasks)).map_err(RegistryError::file(&tasks, "read"))?;
    Ok(entries.is_some_and(|mut entries| entries.next().is_some()))
}

/// Creates the registry under the setup lock, when there is none.
pub(crate) fn create_locked(dir: &StateDir) -> Result<()> {
    let new = dir.beside_database(".new");
    for suffix in [".new", ".new-wal", ".new-shm", ".new-journal"] {
        let leftover = dir.beside_database(suffix);
        durable::remove_if_exists(&leftover).map_err(RegistryError::file(&leftover, "remove"))?;
    }
    let fail = |error| map_sqlite_error(&new, error);
    durable::write_new(&new, b"").map_err(RegistryError::file(&new, "create"))?;
    let mut db = connect(&new).map_err(fail)?;
    configure(&db, dir.options()).map_err(fail)?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    schema::create(&transaction).map_err(fail)?;
    transaction.commit().map_err(fail)?;
    // The file must be complete without its log, which has another name. Closing would also write the log
    // back, but not report a disk error.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).map_err(fail)?;
    db.close().map_err(|(_, error)| map_sqlite_error(&new, error))?;
    crash_point(CrashPoint::RegistryBuilt);
    fs::rename(&new, dir.database()).map_err(RegistryError::file(&new, "rename"))?;
    crash_point(CrashPoint::RegistryNamed);
    durable::sync_dir(dir.path()).map_err(RegistryError::file(dir.path(), "sync"))
}
