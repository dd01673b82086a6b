//! The schema and its version.
//!
//! The file states which schema it has and which one a program must know to write it. A program that does not
//! know that schema refuses the file, and changes nothing.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, ToSql};

const SCHEMA: &str = include_str!("schema.sql");

/// What led from each version to the next, beginning with version 2. Migrations only add, and are only appended.
const MIGRATIONS: [&str; 3] =
    [include_str!("migrations/2.sql"), include_str!("migrations/3.sql"), include_str!("migrations/4.sql")];

/// The newest schema this program knows.
pub(crate) const LATEST: i64 = 1 + MIGRATIONS.len() as i64;

/// The schema that a program must know to write the newest one.
const MIN_WRITER: i64 = 1;

/// Marks a file as ours ("mcpd"), so that another program's database is not opened as a registry.
pub(crate) const APPLICATION_ID: i64 = 0x6D63_7064;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) application_id: i64,
    pub(crate) schema: i64,
    meta_schema: i64,
    min_writer: i64,
    pub(crate) program: Option<String>,
}

impl Versions {
    pub(crate) fn read(db: &Connection) -> rusqlite::Result<Versions> {
        let application_id = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let schema = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let mut versions = Versions { application_id, schema, meta_schema: 0, min_writer: 0, program: None };
        if application_id == APPLICATION_ID && schema >= 1 {
            versions.meta_schema = meta(db, "schema_version")?.unwrap_or(0);
            versions.min_writer = meta(db, "min_writer_version")?.unwrap_or(0);
            versions.program = meta(db, "written_by")?;
        }
        Ok(versions)
    }

    /// The schema a program must know to write this file. If `meta` does not confirm `user_version`, assume
    /// the highest.
    pub(crate) fn required_writer(&self) -> i64 {
        if self.meta_schema == self.schema { self.min_writer } else { self.schema.max(self.min_writer) }
    }
}

pub(crate) fn meta<T: FromSql>(db: &Connection, key: &str) -> rusqlite::Result<Option<T>> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    db.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()
}

pub(crate) fn set_meta(db: &Connection, key: &str, value: impl ToSql) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.prepare_cached(sql)?.execute((key, value)).map(drop)
}

pub(crate) fn create(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(SCHEMA)?;
    set_meta(db, "min_writer_version", MIN_WRITER)?;
    db.pragma_update(None, "user_version", 1)?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    migrate(db)
}

/// Brings an older schema to the newest version, in the transaction of the caller. A newer one stays as it is.
pub(crate) fn migrate(db: &Connection) -> rusqlite::Result<()> {
    let found: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found >= LATEST {
        return Ok(());
    }
    for (_, migration) in (2..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        db.execute_batch(migration)?;
    }
    set_meta(db, "schema_version", LATEST)?;
    set_meta(db, "written_by", env!("CARGO_PKG_VERSION"))?;
    db.pragma_update(None, "user_version", LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_version_that_meta_does_not_confirm_requires_that_version() {
        let required = |schema, vouched_schema, min_writer| {
            Versions {
                application_id: APPLICATION_ID,
                schema,
                meta_schema: vouched_schema,
                min_writer,
                program: None,
            }
            .required_writer()
        };
        assert_eq!(required(99, 99, 1), 1, "a newer file that older programs may write");
        assert_eq!(required(99, 99, 98), 98);
        assert_eq!(required(99, 1, 1), 99, "only user_version was changed");
    }
}
