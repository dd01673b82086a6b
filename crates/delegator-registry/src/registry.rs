//! The registry: one connection to the database of one state directory.
//!
//! Every change goes through [`Registry::write`], which takes the write lock first (`BEGIN IMMEDIATE`), so
//! nothing can change between reading and writing. Connections are cheap; each thread and each process opens
//! its own.

use delegator_domain::redact::Redactor;
use rusqlite::{Connection, Params, Row, Transaction};

use crate::database::begin_write::{begin_write, data_version};
use crate::database::open::{self, FileMark};
use crate::error::{RegistryError, Result, is_disk_full, map_sqlite_error};
use crate::redact_before_store::Sink;
use crate::state_dir::StateDir;

#[derive(Debug)]
pub struct Registry {
    pub(crate) db: Connection,
    pub(crate) dir: StateDir,
    mark: FileMark,
    pub(crate) sink: Sink,
}

/// Compare two marks to find out whether anything changed in between. Reads no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeMark {
    /// Changes by other connections.
    others: i64,
    /// Rows changed through this connection.
    ours: u64,
}

impl Registry {
    /// Opens the registry, creating it if there never was one.
    pub fn open(dir: &StateDir) -> Result<Registry> {
        let (db, mark) = open::open(dir)?;
        Ok(Registry { db, dir: dir.clone(), mark, sink: Sink::default() })
    }

    /// Opens an existing registry; `None` if there never was one. Creates nothing, so a query on a fresh
    /// machine leaves no files. The connection can write, because a reader may have to rescue a task.
    pub fn find(dir: &StateDir) -> Result<Option<Registry>> {
        if open::never_existed(dir)? {
            return Ok(None);
        }
        let (db, mark) = open::open_existing(dir)?;
        Ok(Some(Registry { db, dir: dir.clone(), mark, sink: Sink::default() }))
    }

    /// Whether the file is still the one that was opened, and no newer program has migrated it.
    pub fn is_current(&self) -> bool {
        FileMark::of(&self.dir.database(), &self.db).is_ok_and(|mark| mark == self.mark)
    }

    /// Replaces all redactors by this one.
    pub fn redact_with(&mut self, redactor: Option<Redactor>) {
        self.sink = Sink::of(redactor);
    }

    pub fn also_redact(&mut self, redactor: Redactor) {
        self.sink.add(redactor);
    }

    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// Checks every page of the database.
    pub fn check(&self) -> Result<()> {
        open::quick_check(&self.dir.database(), &self.db)
    }

    /// It exceeds a few MiB only during a long read; over 64 MiB deserves a warning.
    pub fn wal_bytes(&self) -> u64 {
        std::fs::metadata(self.dir.beside_database("-wal")).map_or(0, |metadata| metadata.len())
    }

    /// For waiting: compare marks, and read tables only if they differ.
    pub fn change_mark(&self) -> Result<ChangeMark> {
        Ok(ChangeMark {
            others: data_version(&self.db).map_err(|error| self.map_error(error))?,
            ours: self.db.total_changes(),
        })
    }

    pub(crate) fn map_error(&self, error: rusqlite::Error) -> RegistryError {
        match map_sqlite_error(&self.dir.database(), error) {
            RegistryError::DiskFull { path, .. } => {
                let available = self.dir.free_bytes().unwrap_or(0);
                RegistryError::DiskFull { path, available, needed: self.dir.options().min_free_bytes }
            }
            other => other,
        }
    }

    pub(crate) fn write<T>(
        &mut self,
        operation: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        write(&mut self.db, operation).map_err(|error| self.map_error(error))
    }

    /// Runs a writing transaction that a power cut may undo: it does not wait for the disk.
    pub(crate) fn write_unsynced<T>(
        &mut self,
        operation: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let set_synchronous = |db: &Connection, level: &str| db.pragma_update(None, "synchronous", level);
        let written = set_synchronous(&self.db, "NORMAL").and_then(|()| write(&mut self.db, operation));
        set_synchronous(&self.db, "FULL").and(written).map_err(|error| self.map_error(error))
    }

    /// For what must not fail on a full disk, such as an end. Releases reserved space slice by slice.
    pub(crate) fn write_with_reserve<T>(
        &mut self,
        operation: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        loop {
            match write(&mut self.db, &operation) {
                Err(error)
                    if is_disk_full(&error) && self.dir.reserve_file.release_slice().unwrap_or(false) => {}
                other => return other.map_err(|error| self.map_error(error)),
            }
        }
    }

    /// Runs all reads of this connection in `act` in one transaction, so that they see one state of the
    /// database. While others write, that is also much faster than a transaction for each read: after a
    /// change, a new one has to read its pages again.
    pub fn in_read_transaction<T, E: From<RegistryError>>(
        &self,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.db.unchecked_transaction().map_err(|error| self.map_error(error))?;
        let value = act()?;
        transaction.finish().map_err(|error| self.map_error(error))?;
        Ok(value)
    }

    /// Runs several reads in one transaction: in the present one within [`Registry::in_read_transaction`].
    pub(crate) fn read<T>(&self, operation: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let run = || operation(&self.db).map_err(|error| self.map_error(error));
        if self.db.is_autocommit() { self.in_read_transaction(run) } else { run() }
    }
}

fn write<T>(
    db: &mut Connection,
    operation: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = begin_write(db)?;
    let value = operation(&transaction)?;
    transaction.commit().map(|()| value)
}

pub(crate) fn query_all<T>(
    db: &Connection,
    sql: &str,
    values: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(sql)?.query_map(values, read)?.collect()
}
