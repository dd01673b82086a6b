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
