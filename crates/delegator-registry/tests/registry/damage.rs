//! Damaged files are reported with their path and the next step, never changed, and never replaced by an empty
//! registry.

use std::fs;
use std::path::{Path, PathBuf};

use delegator_domain::task::{State, TaskEnd};
use delegator_registry::{
    Filter, IntegrityCheck, OpenOptions, Registry, RegistryError, StateDir, set_aside_damaged,
};

use crate::support::{World, ended, submit};

/// A closed registry with some tasks, so that everything is in the database file.
fn filled_registry() -> (World, PathBuf) {
    let world = World::new();
    let mut registry = world.registry();
    for _ in 0..20 {
        ended(&mut registry, TaskEnd::Completed, 2_000);
    }
    submit(&mut registry);
    drop(registry);
    let file = world.path().join("registry.db");
    assert!(!world.path().join("registry.db-wal").exists(), "closing did not write the log back");
    (world, file)
}

fn open_checked(path: &Path, check: IntegrityCheck) -> Result<Registry, RegistryError> {
    Registry::open(&StateDir::open(path, &OpenOptions { check, ..OpenOptions::default() }).unwrap())
}

#[track_caller]
fn assert_damaged(world: &World, file: &Path) {
    let before = fs::read(file).ok();
    for check in [IntegrityCheck::IfCheap, IntegrityCheck::Full] {
        let error = open_checked(&world.path(), check).map(drop).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, RegistryError::Damaged { .. }), "{error:?}");
        assert!(message.contains(file.to_str().unwrap()) && message.contains("set it aside"), "{message}");
    }
    assert!(fs::read(file).ok() == before, "a damaged file was changed");
}

#[test]
fn a_file_that_is_no_database_is_damaged() {
    let (world, file) = filled_registry();
    fs::write(&file, "not a database, but long enough to be read as the head of one".repeat(100)).unwrap();
    assert_damaged(&world, &file);
}

#[test]
fn an_empty_file_is_damaged() {
    let (world, file) = filled_registry();
    fs::write(&file, "").unwrap();
    assert_damaged(&world, &file);
}

#[test]
fn a_truncated_file_is_damaged_wherever_it_was_cut() {
    let (world, file) = filled_registry();
    let whole = fs::read(&file).unwrap();
    for length in [1, 100, 4_096, 4_097, whole.len() / 2, whole.len() - 4_096] {
        fs::write(&file, &whole[..length]).unwrap();
        assert_damaged(&world, &file);
    }
}

#[test]
fn a_missing_database_beside_tasks_is_damaged() {
    let (world, file) = filled_registry();
    fs::remove_file(&file).unwrap();
    assert_damaged(&world, &file);
    let dir = StateDir::find(&world.path(), &OpenOptions::default()).unwrap().unwrap();
    assert!(matches!(Registry::find(&dir), Err(RegistryError::Damaged { .. })));
}

#[test]
fn a_database_of_another_program_is_damaged() {
    let (world, file) = filled_registry();
    fs::remove_file(&file).unwrap();
    rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE cookies (name TEXT)").unwrap();
    assert_damaged(&world, &file);
}

/// SQLite has no page checksums, so a flipped bit in a text cannot be detected. But nothing may panic, and a damaged
/// file must not read as a registry with other tasks.
#[test]
fn flipped_bytes_are_found_or_change_no_state() {
    let (world, file) = filled_registry();
    let whole = fs::read(&file).unwrap();
    let pages = whole.len() / 4_096;
    let mut found = 0;
    for page in 0..pages {
        // The page header: type, number of cells, start of the cell content.
        for offset in [0, 3, 4, 5, 8] {
            let mut flipped = whole.clone();
            let head = if page == 0 { 100 } else { 0 };
            flipped[page * 4_096 + head + offset] ^= 0x5a;
            fs::write(&file, &flipped).unwrap();
            let result = open_checked(&world.path(), IntegrityCheck::Full).and_then(|registry| {
                let page = registry.list(&Filter::default(), 100, None)?;
                Ok((page.tasks.len(), registry.counts()?.of(State::Completed)))
            });
            match result {
                Ok(counts) => assert_eq!(counts, (21, 20), "page {page}, byte {offset}"),
                Err(RegistryError::Damaged { .. }) => found += 1,
                Err(other) => panic!("page {page}, byte {offset}: {other:?}"),
            }
            for ending in ["-wal", "-shm"] {
                let _ = fs::remove_file(world.path().join(format!("registry.db{ending}")));
            }
        }
    }
    assert!(found > pages, "only {found} of {} flips were found", pages * 5);
}

#[test]
fn a_database_that_needs_a_newer_writer_is_refused() {
    let (world, file) = filled_registry();
    let change = |sql: &str| rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    change("PRAGMA user_version = 99");
    let error = open_checked(&world.path(), IntegrityCheck::IfCheap).map(drop).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, RegistryError::NeedsNewerWriter { required: 99, supported: 4, .. }), "{error:?}");
    assert!(
        message.contains(file.to_str().unwrap()) && message.contains("Use the newer program"),
        "{message}"
    );
    change("UPDATE meta SET value = 99 WHERE key = 'schema_version'");
    assert!(open_checked(&world.path(), IntegrityCheck::IfCheap).is_ok(), "a newer file that we may write");
    change("UPDATE meta SET value = 98 WHERE key = 'min_writer_version'");
    let error = open_checked(&world.path(), IntegrityCheck::IfCheap).map(drop).unwrap_err();
    assert!(matches!(error, RegistryError::NeedsNewerWriter { required: 98, .. }), "{error:?}");
}

#[test]
fn only_a_damaged_database_is_set_aside_and_its_files_remain() {
    let (world, file) = filled_registry();
    let dir = world.dir();
    assert!(matches!(set_aside_damaged(&dir, 77), Err(RegistryError::NotDamaged { .. })));
    fs::write(&file, "broken").unwrap();
    fs::write(world.path().join("registry.db-wal"), "old log").unwrap();
    let set_aside = set_aside_damaged(&dir, 77).unwrap();
    let aside = world.path().join("registry.db.damaged-77");
    assert!(set_aside.contains(&aside), "{set_aside:?}");
    assert_eq!(fs::read(&aside).unwrap(), b"broken");
    assert_eq!(fs::read_dir(world.path().join("tasks")).unwrap().count(), 21, "results were touched");
    let registry = world.registry();
    assert_eq!(registry.list(&Filter::default(), 9, None).unwrap().tasks, []);
    // The old tasks have no row now; cleaning must still not remove their results.
    fs::write(&file, "broken again").unwrap();
    drop(registry);
    fs::write(&file, "broken again").unwrap();
    assert_eq!(set_aside_damaged(&dir, 77).unwrap(), [world.path().join("registry.db.damaged-77x")]);
}

#[test]
fn a_missing_database_can_be_replaced_on_request() {
    let (world, file) = filled_registry();
    fs::remove_file(&file).unwrap();
    assert_eq!(set_aside_damaged(&world.dir(), 1).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(world.registry().counts().unwrap().iter().count(), 0);
}

#[test]
fn leftovers_of_a_crashed_creation_are_replaced() {
    let world = World::new();
    world.dir();
    for ending in [".new", ".new-wal", ".new-shm"] {
        fs::write(world.path().join(format!("registry.db{ending}")), "half").unwrap();
    }
    submit(&mut world.registry());
    assert_eq!(world.registry().counts().unwrap().of(State::Queued), 1);
}

#[test]
fn a_database_that_was_not_closed_is_complete() {
    let world = World::new();
    let mut registry = world.registry();
    let id = ended(&mut registry, TaskEnd::Completed, 2_000);
    // As after a kill: a copy of the files, with the log not checkpointed.
    let copy = world.folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::create_dir(copy.join("tasks")).unwrap();
    for name in ["registry.db", "registry.db-wal"] {
        fs::copy(world.path().join(name), copy.join(name)).unwrap();
    }
    let after = open_checked(&copy, IntegrityCheck::Full).unwrap();
    assert_eq!(after.get(&id).unwrap(), registry.get(&id).unwrap());
}

#[test]
fn is_current_detects_a_replaced_or_migrated_database() {
    let (world, file) = filled_registry();
    let registry = world.registry();
    assert!(registry.is_current());
    submit(&mut world.registry());
    assert!(registry.is_current(), "its content may change");
    let version = |number: i64| {
        let newer = rusqlite::Connection::open(&file).unwrap();
        newer.pragma_update(None, "user_version", number).unwrap();
    };
    let ours: i64 = {
        let db = rusqlite::Connection::open(&file).unwrap();
        db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    version(ours + 1);
    assert!(!registry.is_current(), "a newer program has migrated it");
    version(ours);
    assert!(registry.is_current());
    fs::rename(&file, file.with_extension("aside")).unwrap();
    assert!(!registry.is_current(), "the file is gone");
    fs::copy(file.with_extension("aside"), &file).unwrap();
    assert!(!registry.is_current(), "it is a different file");
}
