//! The registry: one connection to the database of one state directory.
//!
//! Every change goes through [`Registry::write`]: it takes the write lock first (`BEGIN IMMEDIATE`), so what is read inside
//! is what is changed. Connections are cheap; each thread and each process has its own.

use delegator_domain::redact::Redactor;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::database::open::{self, FileMark};
use crate::error::{RegistryError, is_disk_full, map_sqlite_error};
use crate::sink::Sink;
use crate::state_dir::StateDir;

#[derive(Debug)]
pub struct Registry {
    pub(crate) db: Connection,
    pub(crate) dir: StateDir,
    mark: FileMark,
    /// Through which texts go into the database.
    pub(crate) sink: Sink,
}

/// Something to compare: if it differs, something has changed in between. Costs no read of any table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeMark {
    /// Changes made by others.
    others: i64,
    /// Rows changed through this very connection.
    ours: u64,
}

impl Registry {
    /// Opens the registry, creating it where there never was one.
    pub fn open(dir: &StateDir) -> Result<Registry, RegistryError> {
        let (db, mark) = open::open(dir)?;
        Ok(Registry { db, dir: dir.clone(), mark, sink: Sink::default() })
    }

    /// Opens the registry that is there; `None` where nobody made one yet. Creates nothing: a question asked on a fresh
    /// machine leaves it fresh. It can write all the same, because whoever looks may have to rescue.
    pub fn find(dir: &StateDir) -> Result<Option<Registry>, RegistryError> {
        if open::never_existed(dir)? {
            return Ok(None);
        }
        let (db, mark) = open::open_existing(dir)?;
        Ok(Some(Registry { db, dir: dir.clone(), mark, sink: Sink::default() }))
    }

    /// Whether this still is the registry of its directory, as it was when it was opened: the same file, and no newer
    /// program has changed its tables.
    pub fn is_current(&self) -> bool {
        FileMark::of(&self.dir.database(), &self.db).is_ok_and(|mark| mark == self.mark)
    }

    /// Hides from now on what this redactor hides, and nothing that was added before.
    pub fn redact_with(&mut self, redactor: Option<Redactor>) {
        self.sink = Sink::of(redactor);
    }

    /// Hides what this redactor hides as well.
    pub fn also_redact(&mut self, redactor: Redactor) {
        self.sink.add(redactor);
    }

    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// Looks at every page.
    pub fn check(&self) -> Result<(), RegistryError> {
        open::quick_check(&self.dir.database(), &self.db)
    }

    /// How long the log is. It grows beyond some MiB only while somebody reads for long; worth a warning over 64 MiB.
    pub fn wal_bytes(&self) -> u64 {
        std::fs::metadata(self.dir.beside_database("-wal")).map_or(0, |metadata| metadata.len())
    }

    /// For waiters: look, compare, and read only if it differs.
    pub fn change_mark(&self) -> Result<ChangeMark, RegistryError> {
        let others = self.db.pragma_query_value(None, "data_version", |row| row.get(0));
        Ok(ChangeMark {
            others: others.map_err(|error| self.map_error(error))?,
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

    /// One transaction that changes something.
    pub(crate) fn write<T>(
        &mut self,
        operation: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        write(&mut self.db, operation).map_err(|error| self.map_error(error))
    }

    /// A transaction that must not fail for want of space: an end. Held-back space is given up for it, slice by slice.
    pub(crate) fn write_with_reserve<T>(
        &mut self,
        operation: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        loop {
            match write(&mut self.db, &operation) {
                Err(error)
                    if is_disk_full(&error) && self.dir.reserve_file().release_slice().unwrap_or(false) => {}
                other => return other.map_err(|error| self.map_error(error)),
            }
        }
    }

    /// Several reads of one moment.
    pub(crate) fn read<T>(
        &self,
        operation: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        let run = || -> rusqlite::Result<T> {
            let transaction = self.db.unchecked_transaction()?;
            let value = operation(&transaction)?;
            transaction.finish()?;
            Ok(value)
        };
        run().map_err(|error| self.map_error(error))
    }
}

fn write<T>(
    db: &mut Connection,
    operation: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = operation(&transaction)?;
    transaction.commit()?;
    Ok(value)
}
