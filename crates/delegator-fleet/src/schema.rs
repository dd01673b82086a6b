//! The tables and their versions.
//!
//! Migrations are only appended. Each states the oldest program that can still work with the tables
//! afterwards, so that workers can be upgraded one after the other.

use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::error::{FleetError, SchemaProblem};
use crate::statements::Statements;

pub(crate) struct Migration {
    pub(crate) sql: &'static str,
    /// The oldest version of the tables that a program must know to use these.
    pub(crate) min_program: i32,
}

pub(crate) const MIGRATIONS: [Migration; 1] =
    [Migration { sql: include_str!("../migrations/001-fleet.sql"), min_program: 1 }];

pub(crate) const NEEDED: i32 = MIGRATIONS.len() as i32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) tables: i32,
    min_program: i32,
}

pub(crate) const VERSIONS_TABLE: &str = "create schema if not exists delegator;
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

pub(crate) fn check_versions(found: Versions) -> Result<(), FleetError> {
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
pub(crate) async fn read(db: &mut Statements) -> Result<Versions, FleetError> {
    let exists = "select exists (select from pg_catalog.pg_tables where schemaname = 'delegator' and tablename = 'migrations')";
    let exists: bool = sqlx::query_scalar(exists).fetch_one(&mut *db).await?;
    if !exists {
        return Ok(Versions { tables: 0, min_program: 0 });
    }
    let row = sqlx::query(VERSIONS).fetch_one(&mut *db).await?;
    Versions::of(&row)
}
