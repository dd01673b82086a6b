//! The list of migrations.
//!
//! A released migration is never edited, because existing files were created by it. New ones are appended and only add
//! (a column with a default, a table, an index), so that older programs can still write the file. Where that is
//! impossible, `min_writer` states the schema a program must know, and older programs refuse the file.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, ToSql};

/// One migration; its number is its position in the list, from 1.
#[derive(Debug)]
pub(crate) struct Migration {
    pub(crate) sql: &'static str,
    /// The lowest schema a program must know to write a file with this migration.
    pub(crate) min_writer: i64,
}

pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { sql: include_str!("001-tasks.sql"), min_writer: 1 },
    Migration { sql: include_str!("002-usage.sql"), min_writer: 1 },
    Migration { sql: include_str!("003-work-trees.sql"), min_writer: 1 },
    Migration { sql: include_str!("004-imports.sql"), min_writer: 1 },
    Migration { sql: include_str!("005-restore-points.sql"), min_writer: 1 },
    Migration { sql: include_str!("006-mode-enforced.sql"), min_writer: 1 },
    // An older program would claim a queued task of a provider.
    Migration { sql: include_str!("007-remote-tasks.sql"), min_writer: 7 },
    // An older program would start a queued task without the sandbox that its row names.
    Migration { sql: include_str!("008-sandbox.sql"), min_writer: 8 },
    // An older program would end a task without settling its messages, and start tasks of a paused agent.
    Migration { sql: include_str!("009-messages.sql"), min_writer: 9 },
    Migration { sql: include_str!("010-budgets.sql"), min_writer: 9 },
    // An older program would run a queued task of a worktree in the directory of the user, and prune tasks whose
    // worktree exists.
    Migration { sql: include_str!("011-worktrees.sql"), min_writer: 11 },
    // An older program would start a task before the one it follows, and end a task without settling its followers.
    Migration { sql: include_str!("012-chains.sql"), min_writer: 12 },
    // An older program would end a task without its notifications.
    Migration { sql: include_str!("013-notifications.sql"), min_writer: 13 },
    Migration { sql: include_str!("014-groups.sql"), min_writer: 13 },
    // An older program would end a group or a chain without its notification.
    Migration { sql: include_str!("015-notification-subjects.sql"), min_writer: 15 },
];

/// The newest schema this program knows.
pub(crate) const LATEST: i64 = MIGRATIONS.len() as i64;

/// Marks a file as ours ("mcpd"), so that another program's database is not opened as a registry.
pub(crate) const APPLICATION_ID: i64 = 0x6D63_7064;

/// The versions stored in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) application_id: i64,
    pub(crate) schema: i64,
    /// The schema version stored in `meta`; every migration writes both.
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

    /// The schema a program must know to write this file. If `meta` does not confirm `user_version`, assume the
    /// highest.
    pub(crate) fn required_writer(&self) -> i64 {
        if self.meta_schema == self.schema { self.min_writer } else { self.schema.max(self.min_writer) }
    }
}

/// A value of the table `meta`.
pub(crate) fn meta<T: FromSql>(db: &Connection, key: &str) -> rusqlite::Result<Option<T>> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    db.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()
}

pub(crate) fn set_meta(db: &Connection, key: &str, value: impl ToSql) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.prepare_cached(sql)?.execute((key, value)).map(drop)
}

/// Applies missing migrations. The caller holds the write lock of a transaction and has read `from` inside it.
pub(crate) fn migrate(db: &Connection, from: i64) -> rusqlite::Result<()> {
    let applied = usize::try_from(from).unwrap_or_default();
    for migration in MIGRATIONS.iter().skip(applied) {
        db.execute_batch(migration.sql)?;
    }
    let min_writer = MIGRATIONS.iter().map(|migration| migration.min_writer).max().unwrap_or(1);
    set_meta(db, "schema_version", LATEST)?;
    set_meta(db, "min_writer_version", min_writer)?;
    set_meta(db, "written_by", env!("CARGO_PKG_VERSION"))?;
    db.pragma_update(None, "user_version", LATEST)?;
    db.pragma_update(None, "application_id", APPLICATION_ID)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// Append only. If this fails, write a new migration instead of editing an old one.
    const FROZEN: &[&str] = &[
        "5b28699e5954c1696e57a7592a5cca0e8c6bc5e0e388b767c0a49b8cd7a58ae4",
        "e8d6ff5b0a8d74b129a256a06bfa006adb1ced5bfb3e3ce16775cac774cea8f7",
        "c64e41a51edc71c22a575c5022bcdbef8803e95a5928f115cfbf86d65454f40f",
        "bbb919e73ab1fc656aa995414b70c6bbc09cb0430989957fa9ecd809114b3e6c",
        "5b5f610a02c7b93b04a7606dff050cbec7f8ab6929703ae6b21cc14bf62665a6",
        "823b94ba721763607318dcbb9115b584da157b07a1aecfb244a64e90fe682a6d",
        "6722e1330c4f264c83b50f4b146a16e909d435f2a5b4149f47eb71d3327524e9",
        "18f944ead9956c36f9a49f371b4b3dc40e38d8203f4743f205a2b975dd651eae",
        "623d42744a9762fbcae70a7bca58aec9d4b7a836cf7e4af4195d43e760815988",
        "423cddbc3e11bf6c61ea663a0cc59a83d866cf1ba1af22cb66a0863ad0309151",
        "f15c321a5215fe1735a623143002db7bc64b0169abacce574f71520932d0c5b7",
        "88ed317e2847928d65d48b182af780b3c56d552f48793ca02743afd05618dc52",
        "afc8d6557112226a0a30faf43f0f69dd2a0905fc5b0996f6bd9c6174576206ff",
        "df8ba2b4bc646ebeca05877e37732c798917e025b546d314f7828742713a84a4",
        "017a3af1e62c9c3f3513860c56919023b9bbe686f358ff27595f7b3f6647e182",
    ];

    #[test]
    fn migrations_are_frozen() {
        let sums: Vec<String> = MIGRATIONS
            .iter()
            .map(|step| Sha256::digest(step.sql).iter().map(|byte| format!("{byte:02x}")).collect())
            .collect();
        assert_eq!(sums, FROZEN);
    }

    #[test]
    fn a_file_of_every_older_schema_is_migrated() {
        for age in 1..=MIGRATIONS.len() {
            let db = Connection::open_in_memory().unwrap();
            for migration in &MIGRATIONS[..age] {
                db.execute_batch(migration.sql).unwrap();
            }
            migrate(&db, i64::try_from(age).unwrap()).unwrap();
            let versions = Versions::read(&db).unwrap();
            assert_eq!((versions.schema, versions.required_writer()), (LATEST, 15), "from {age}");
            db.execute_batch("SELECT output_tokens FROM usage").unwrap();
            db.execute_batch(
                "SELECT more_work_trees, mode_enforced, sandbox, follows, notify, group_id, submission FROM tasks",
            )
            .unwrap();
        }
    }

    #[test]
    fn a_migration_loses_no_pending_notification() {
        let db = Connection::open_in_memory().unwrap();
        let before = 14;
        for migration in &MIGRATIONS[..before] {
            db.execute_batch(migration.sql).unwrap();
        }
        db.execute_batch(
            "INSERT INTO tasks (id, state, created_at_ms, updated_at_ms, working_dir, allow_parallel_writes, mode, agent, title, labels, input) \
             VALUES ('T-local-7777777777', 'failed', 1, 2, '/p', 0, 'read-only', 'codex', 't', '{}', '{}'); \
             INSERT INTO notifications (task, channel, state, attempts, created_at_ms, due_at_ms, last_error) \
             SELECT seq, 'webhook', 'pending', 3, 2, 9, 'refused' FROM tasks",
        )
        .unwrap();
        migrate(&db, i64::try_from(before).unwrap()).unwrap();
        let migrated: String = db
            .query_row(
                "SELECT concat_ws(' ', subject, subject_id, channel, notifications.state, attempts, due_at_ms, last_error) \
                 FROM notifications JOIN tasks ON seq = task",
                (),
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(migrated, "task T-local-7777777777 webhook pending 3 9 refused");
    }

    #[test]
    fn min_writer_is_at_most_the_migration_number() {
        for (number, migration) in (1..).zip(MIGRATIONS) {
            assert!((1..=number).contains(&migration.min_writer), "migration {number}");
        }
    }

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
