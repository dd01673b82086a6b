//! Creates and upgrades the tables.

use std::time::Duration;

use sqlx::Executor;

use crate::database::{CALL_TIMEOUT, Database};
use crate::error::FleetError;
use crate::schema::{MIGRATIONS, NEEDED, VERSIONS_TABLE, check_versions, read};

/// Key of the advisory lock; any number that other programs do not use.
const LOCK: i64 = 0x6d63_702d_6465_6c67;
/// A migration may have to wait for another one, and for open transactions.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The versions of the tables; equal if nothing had to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    pub before: i32,
    pub after: i32,
}

impl Database {
    /// Creates or upgrades the tables, in one transaction and under a lock. Tables that are current need no
    /// right to do so.
    pub fn migrate(&self) -> Result<Migrated, FleetError> {
        let found = self.transaction_without_check(CALL_TIMEOUT, async |db| read(db).await)?;
        if found.tables >= NEEDED {
            check_versions(found)?;
            return Ok(Migrated { before: found.tables, after: found.tables });
        }
        self.transaction_without_check(TIME_LIMIT, async |db| {
            (&mut *db).execute("set local statement_timeout = 0; set local lock_timeout = 0").await?;
            sqlx::query("select pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *db).await?;
            // Another process may have migrated meanwhile.
            let before = read(db).await?.tables;
            if before == 0 {
                (&mut *db).execute(VERSIONS_TABLE).await?;
            }
            for (version, migration) in (1..).zip(&MIGRATIONS).skip_while(|(version, _)| *version <= before) {
                (&mut *db).execute(migration.sql).await?;
                let insert = "insert into delegator.migrations (version, min_program) values ($1, $2)";
                sqlx::query(insert).bind(version).bind(migration.min_program).execute(&mut *db).await?;
            }
            Ok(Migrated { before, after: before.max(NEEDED) })
        })
    }
}
