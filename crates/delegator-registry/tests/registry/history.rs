//! The words and the usage of past tasks, and the migration that added them.

use std::slice::from_ref;

use delegator_domain::task::{FailureKind, TaskEnd, TaskId, Verification};
use delegator_registry::{HistoryOutcome, HistoryQuery, IndexedTask, Registry, UsageGroup};
use rusqlite::Connection;

use crate::support::{World, ended, submit};

fn entry(id: &TaskId, message: &str, verification: Option<Verification>) -> IndexedTask {
    IndexedTask {
        id: id.clone(),
        has_ended: true,
        verification,
        repository: "/home/me/project".to_owned(),
        title: "fix the parser".to_owned(),
        text: "fix the parser\nand test it".to_owned(),
        message: message.to_owned(),
    }
}

fn found(registry: &Registry, words: &str) -> Vec<TaskId> {
    let query = HistoryQuery { words: Some(words.to_owned()), ..HistoryQuery::default() };
    ids(registry, &query)
}

fn ids(registry: &Registry, query: &HistoryQuery) -> Vec<TaskId> {
    registry.history(query, 100).unwrap().into_iter().map(|task| task.id).collect()
}

#[test]
fn tasks_are_found_by_words_of_all_their_texts() {
    let world = World::new();
    let mut registry = world.registry();
    let first = ended(&mut registry, TaskEnd::Completed, 1_000);
    let failed = TaskEnd::failed(FailureKind::AgentError, "no".to_owned());
    let second = ended(&mut registry, failed, 2_000);
    let live = submit(&mut registry).id;
    let mut missing: Vec<TaskId> =
        registry.not_in_history(10).unwrap().into_iter().map(|task| task.id).collect();
    missing.sort();
    let mut all = vec![first.clone(), second.clone(), live.clone()];
    all.sort();
    assert_eq!(missing, all);
    let live_entry = IndexedTask { has_ended: false, ..entry(&live, "", None) };
    let entries = [
        entry(&first, "Leap years are Überprüft", Some(Verification::Verified)),
        entry(&second, "gave up", Some(Verification::Refuted)),
        live_entry,
    ];
    registry.store_history(&entries).unwrap();
    registry.store_history(&entries).unwrap();
    assert_eq!(registry.not_in_history(10).unwrap(), []);
    assert_eq!(found(&registry, "PARS"), [live.clone(), second.clone(), first.clone()]);
    assert_eq!(found(&registry, "leap parser"), from_ref(&first), "words of different texts");
    assert_eq!(found(&registry, "uberpruft"), from_ref(&first));
    assert_eq!(found(&registry, "leap gave"), []);
    let by = |outcome| ids(&registry, &HistoryQuery { outcome: Some(outcome), ..HistoryQuery::default() });
    assert_eq!(by(HistoryOutcome::Verified), from_ref(&first));
    assert_eq!(by(HistoryOutcome::Failed), from_ref(&second));
    let in_repository = |name: &str| {
        ids(&registry, &HistoryQuery { repository: Some(name.into()), ..HistoryQuery::default() }).len()
    };
    assert_eq!(["/home/me/project", "project", "roject", "me"].map(in_repository), [3, 3, 0, 0]);
    let (groups, total) = registry.usage_by(UsageGroup::Repository, 0, 10).unwrap();
    assert_eq!((groups.len(), total.cost.tasks, total.with_verify, total.verified), (1, 2, 2, 1));
    assert_eq!(registry.usage_by(UsageGroup::Agent, 1_500, 10).unwrap().1.cost.tasks, 1);
    registry.prune(&[first]).unwrap();
    assert_eq!(found(&registry, "leap"), []);
    registry.check().unwrap();
}

#[test]
fn no_query_is_an_error() {
    let world = World::new();
    let mut registry = world.registry();
    let id = ended(&mut registry, TaskEnd::Completed, 1_000);
    registry.store_history(&[entry(&id, "a \"quoted\" message", None)]).unwrap();
    for words in [
        "\"", "a\"b", "*", "NEAR(", "a AND", "title:", "^", "-", "(", "\"quoted", "\0", "a\0b", "½", "{a}",
        "'",
    ] {
        found(&registry, words);
    }
    assert_eq!(found(&registry, "\"quoted\""), [id]);
    assert_eq!(found(&registry, "-- *"), []);
}

#[test]
fn a_registry_of_the_first_version_is_migrated() {
    let world = World::new();
    let id = ended(&mut world.registry(), TaskEnd::Completed, 1_000);
    let file = world.path().join("registry.db");
    let first_version = "DROP TABLE history; DROP TABLE history_text; ALTER TABLE tasks DROP COLUMN verification; \
                         ALTER TABLE tasks DROP COLUMN lines_added; ALTER TABLE tasks DROP COLUMN lines_deleted; \
                         DROP INDEX notifications_due; DROP INDEX notifications_given_up; DROP INDEX notifications_recent; \
                         ALTER TABLE tasks DROP COLUMN notify_later; ALTER TABLE tasks DROP COLUMN has_apply_conflict; \
                         ALTER TABLE notifications DROP COLUMN detail; \
                         PRAGMA user_version = 1; UPDATE meta SET value = 1 WHERE key = 'schema_version'";
    Connection::open(&file).unwrap().execute_batch(first_version).unwrap();
    let mut registry = world.registry();
    assert_eq!(registry.not_in_history(10).unwrap().len(), 1);
    registry.store_history(&[entry(&id, "done", None)]).unwrap();
    assert_eq!(found(&world.registry(), "done"), [id]);
    let db = Connection::open(&file).unwrap();
    let min_writer: i64 = db
        .query_row("SELECT value FROM meta WHERE key = 'min_writer_version'", (), |row| row.get(0))
        .unwrap();
    assert_eq!(min_writer, 1, "programs of the first version may still write");
}
