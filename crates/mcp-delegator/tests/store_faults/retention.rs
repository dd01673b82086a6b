//! What is older than `retention_hours` is forgotten by itself: by whoever waits, and by every supervisor at its end.

use crate::past::{self, HOUR_MS, now_ms};
use crate::stage::{Stage, turn};

#[test]
fn old_tasks_are_forgotten_by_themselves() {
    let stage = Stage::at(turn(&[]), None, "retention_hours = 48\n");
    let mut registry = stage.registry();
    let old = past::ended(&mut registry, now_ms() - 50 * HOUR_MS);
    let kept = past::ended(&mut registry, now_ms() - 46 * HOUR_MS);
    let id = stage.exec(&[]);
    stage.end_of(&id);
    // The supervisor does it after its task's end, when nobody waits any more.
    crate::stage::until(|| registry.get(&old).unwrap().is_none());
    crate::stage::until(|| !stage.task_dir(old.as_str()).exists());
    assert!(registry.get(&kept).unwrap().is_some() && stage.task_dir(kept.as_str()).exists());
    // Once an hour is enough: what has become old meanwhile waits for its turn.
    let next = past::ended(&mut registry, now_ms() - 50 * HOUR_MS);
    assert_eq!(stage.run(&["local", "run", "another"]).exit, Some(0));
    assert!(registry.get(&next).unwrap().is_some());
    assert_eq!(
        stage.answer(&["cleanup-registry", "--old-task-max-age-hours", "48"])["data"]["old_tasks"]["deleted"],
        1
    );
}

#[test]
fn a_question_forgets_nothing() {
    let stage = Stage::at(turn(&[]), None, "retention_hours = 1\n");
    let mut registry = stage.registry();
    let old = past::ended(&mut registry, now_ms() - 50 * HOUR_MS);
    stage.answer(&["local", "status"]);
    stage.answer(&["local", "results", old.as_str()]);
    assert!(registry.get(&old).unwrap().is_some());
}

/// A session of Codex that ended long before it is imported.
#[test]
fn retention_of_an_imported_session_counts_from_its_import() {
    let stage = Stage::at(turn(&[]), None, "retention_hours = 1\n");
    let session = delegator_testkit::generated::workspace()
        .join("crates/delegator-transcript/tests/transcripts/rollouts/0.166.0.patch.rollout.jsonl");
    let imported = stage.answer(&["import", session.to_str().unwrap()]);
    let id: delegator_domain::task::TaskId = imported["data"]["task_id"].as_str().unwrap().parse().unwrap();
    let registry = stage.registry();
    let ended_at_ms = registry.get(&id).unwrap().unwrap().ended.unwrap().at_ms;
    assert!(ended_at_ms < now_ms() - 2 * HOUR_MS, "the session's own end is shown: {ended_at_ms}");
    let dry_run = stage.answer(&["cleanup-registry", "--dry-run", "--old-task-max-age-hours", "1"]);
    assert_eq!(dry_run["data"]["old_tasks"]["found"], 0, "{dry_run}");
    let cleaned = stage.answer(&["cleanup-registry", "--old-task-max-age-hours", "1"]);
    assert_eq!(cleaned["data"]["old_tasks"]["deleted"], 0, "{cleaned}");
    assert!(registry.get(&id).unwrap().is_some());
    assert_eq!(stage.answer(&["local", "results", id.as_str()])["ok"], true);
}
