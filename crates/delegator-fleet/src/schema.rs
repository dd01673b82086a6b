//! The tables and their versions.
//!
//! Migrations are only appended. Each states the oldest program that can still work with the tables
//! afterwards, so that workers can be upgraded one after the other.

use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{Executor, Row};

use crate::database::{CALL_TIMEOUT, Database};
use crate::error::{FleetError, SchemaProblem};
use crate::statements::Statements;

/// Key of the advisory lock; any number that other programs do not use.
const LOCK: i64 = 0x6d63_702d_6465_6c67;
/// A migration may have to wait for another one, and for open transactions.
const TIME_LIMIT: Duration = Duration::from_secs(60);

struct Migration {
    sql: &'static str,
    /// The oldest version of the tables that a program must know to use these.
    min_program: i32,
}

const MIGRATIONS: [Migration; 1] =
    [Migration { sql: include_str!("../migrations/001-fleet.sql"), min_program: 1 }];

const NEEDED: i32 = MIGRATIONS.len() as i32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Versions {
    tables: i32,
    min_program: i32,
}

const VERSIONS_TABLE: &str = "create schema if not exists delegator;
    create table delegator.migrations (
        version integer primary key,
        min_program integer not null,
        applied_at timestamptz not null default now()
    )";

pub(crate) const VERSIONS: &str =
    "select coalesce(max(version), 0), coalesce(max(min_program), 0) from delegator.migrations";

impl Versions {
    fn of(row: &PgRow) -> Result<Versions, FleetError> {
        Ok(Versions { tables: row.try_get(0)?, min_program: row.try_get(1)? })
    }
}

/// An error if the result of [`VERSIONS`] does not fit this program.
pub(crate) fn check_row(row: &PgRow) -> Result<(), FleetError> {
    check_versions(Versions::of(row)?)
}

/// An error if the tables do not fit this program.
pub(crate) async fn check(db: &mut Statements) -> Result<(), FleetError> {
    check_versions(read(db).await?)
}

fn check_versions(found: Versions) -> Result<(), FleetError> {
    if found.tables == 0 {
        return Err(SchemaProblem::Missing.into());
    }
    if found.tables < NEEDED {
        return Err(SchemaProblem::Outdated { found: found.tables, needed: NEEDED }.into());
    }
    if found.min_program > NEEDED {
        return Err(SchemaProblem::TooNew { found: found.tables }.into());
    }
    Ok(())
}

/// Version 0: there are no tables.
async fn read(db: &mut Statements) -> Result<Versions, FleetError> {
    let exists = "select exists (select from pg_catalog.pg_tables where schemaname = 'delegator' and tablename = 'migrations')";
    let exists: bool = sqlx::query_scalar(exists).fetch_one(&mut *db).await?;
    if !exists {
        return Ok(Versions { tables: 0, min_program: 0 });
    }
    let row = sqlx::query(VERSIONS).fetch_one(&mut *db).await?;
    Versions::of(&row)
}

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
