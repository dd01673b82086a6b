//! Database locks: a long read transaction, and a writer that holds the write lock.

use std::collections::BTreeMap;

use delegator_registry::{NewTask, Registry};
use rusqlite::Connection;

use crate::old_tasks::{new_task, now_ms};
use crate::stage::{Stage, successful_turn};

const WARN_OVER: u64 = 64 * 1024 * 1024;

fn wide_task() -> NewTask {
    // Wide rows fill the write-ahead log with few writes.
    NewTask { input: serde_json::json!({"note": "x".repeat(1024 * 1024)}), ..new_task() }
}

fn small_writes(registry: &mut Registry, count: usize) {
    for number in 0..count {
        let key = format!("turn-{}", number % 7);
        assert!(registry.claim_periodic_job(&key, 0, i64::try_from(number).unwrap()).unwrap());
    }
}

fn warnings(stage: &Stage, args: &[&str]) -> String {
    stage.run_json(args)["warnings"].to_string()
}

fn state_dir_check(stage: &Stage) -> String {
    // The scripted agent has no sandbox, which is a problem.
    let checks = stage.run(&["doctor"]).json()["meta"]["failure_data"]["checks"].clone();
    let check =
        checks.as_array().unwrap().iter().find(|check| check["name"] == "state_dir").cloned().unwrap();
    format!("{} {}", check["status"].as_str().unwrap(), check["message"].as_str().unwrap())
}

#[test]
fn f36_a_long_reader_blocks_no_writer_and_a_long_log_is_a_warning() {
    let stage = Stage::with_script(successful_turn(&[]));
    let mut registry = stage.registry();
    registry.set_queue_paused(true).unwrap();
    let id = stage.exec(&[]);
    let reader = Connection::open(stage.database()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = |db: &Connection| -> i64 {
        db.query_row("SELECT count(*) FROM tasks", (), |row| row.get(0)).unwrap()
    };
    assert_eq!(count(&reader), 1);
    // None of these writes may fail.
    small_writes(&mut registry, 1_000);
    assert_eq!(warnings(&stage, &["local", "status"]), "[]");
    assert!(state_dir_check(&stage).starts_with("ok"), "{}", state_dir_check(&stage));
    let mut submitted = BTreeMap::new();
    while registry.wal_bytes() <= WARN_OVER {
        let task = registry.submit(&wide_task(), b"{}", now_ms()).unwrap().task;
        submitted.insert(task.id.clone(), task);
    }
    assert!(warnings(&stage, &["local", "status"]).contains("log has grown"));
    let check = state_dir_check(&stage);
    assert!(check.starts_with("warning") && check.contains("log has grown"), "{check}");
    assert_eq!(count(&reader), 1, "the read transaction lost its snapshot");
    // After the reader ends, the log is checkpointed and truncated; no task is lost.
    drop(reader);
    small_writes(&mut registry, 10);
    assert!(registry.wal_bytes() <= WARN_OVER, "{} bytes", registry.wal_bytes());
    assert_eq!(warnings(&stage, &["local", "status"]), "[]");
    for (id, task) in &submitted {
        assert_eq!(registry.get(id).unwrap().as_ref(), Some(task));
        registry.request_cancel(id, None, now_ms()).unwrap();
    }
    registry.check().unwrap();
    registry.set_queue_paused(false).unwrap();
    assert_eq!(stage.wait_for_end(&id)["state"], "completed");
}

/// A command waits for a held write lock, then fails without any change.
#[test]
fn f36_a_busy_registry_is_a_retryable_error() {
    let stage = Stage::with_script(successful_turn(&[]));
    let id = stage.exec(&[]);
    stage.wait_for_end(&id);
    let writer = Connection::open(stage.database()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let run = stage.run(&["local", "exec", "do it"]);
    let error = run.json()["error"].clone();
    assert_eq!((run.exit, &error["code"], &error["retryable"]), (Some(4), &"LOCK_HELD".into(), &true.into()));
    assert!(error["message"].as_str().unwrap().contains(stage.database().to_str().unwrap()), "{error}");
    assert_eq!(
        std::fs::read_dir(stage.state_dir().join("tasks")).unwrap().count(),
        1,
        "a task directory was left"
    );
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(stage.run(&["local", "run", "do it"]).exit, Some(0));
}

/// What a call has done is reported, even if the registry then refuses to mark the tasks as read or to start others.
#[test]
fn a_failed_write_after_the_work_is_a_warning() {
    let stage = Stage::with_script(successful_turn(&[]));
    let mut registry = stage.registry();
    registry.set_queue_paused(true).unwrap();
    let (first, second, next) = (stage.exec(&[]), stage.exec(&[]), stage.exec(&[]));
    registry.set_queue_paused(false).unwrap();
    // The next task cannot be started.
    for column in ["read_at_ms", "claimed_at_ms"] {
        let trigger = format!(
            "CREATE TRIGGER refuse_{column} BEFORE UPDATE OF {column} ON tasks \
             BEGIN SELECT RAISE(ABORT, 'refused'); END"
        );
        Connection::open(stage.database()).unwrap().execute_batch(&trigger).unwrap();
    }
    let run = stage.run(&["cancel", &first, &second]);
    let response = run.json();
    assert_eq!((run.exit, &response["data"]["successful"]), (Some(0), &2.into()), "{run:?}");
    assert_eq!(response["warnings"].to_string().matches("could not be marked as read").count(), 2, "{run:?}");
    let run = stage.run(&["local", "wait", &first]);
    assert_eq!((run.exit, &run.json()["data"]["state"]), (Some(0), &"cancelled".into()), "{run:?}");
    let run = stage.run(&["local", "cancel", &next]);
    assert_eq!((run.exit, &run.json()["data"]["state"]), (Some(0), &"cancelled".into()), "{run:?}");
}
