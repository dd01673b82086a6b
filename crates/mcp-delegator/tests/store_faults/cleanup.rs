//! F39 and `cleanup-registry`: what is stuck is ended, what is old is forgotten, what crashes left is removed; what lives
//! and what nobody can account for is left alone.

use std::sync::atomic::{AtomicBool, Ordering};

use delegator_registry::TaskFile;
use serde_json::{Value, json};

use crate::old_tasks::{self, HOUR_MS, now_ms};
use crate::stage::{Stage, successful_turn, wait_until};

/// A state directory with one of each kind.
struct MixedRegistry {
    stage: Stage,
    stuck: String,
    old: String,
    recent: String,
    unclaimed: String,
    never_submitted: String,
}

fn make_old(path: &std::path::Path) {
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
}

fn mixed_registry() -> MixedRegistry {
    let stage = Stage::with_script(successful_turn(&[]));
    let mut registry = stage.registry();
    let old = old_tasks::ended_task(&mut registry, now_ms() - 30 * HOUR_MS).as_str().to_owned();
    let recent = old_tasks::ended_task(&mut registry, now_ms() - HOUR_MS).as_str().to_owned();
    let stuck = old_tasks::abandoned_task(&mut registry, now_ms() - 2 * HOUR_MS).task.id.as_str().to_owned();
    let folder = |file: TaskFile| {
        let id = old_tasks::fresh_id().as_str().to_owned();
        let dir = stage.task_dir(&id);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(file.name()), "x").unwrap();
        make_old(&dir);
        id
    };
    let (unclaimed, never_submitted) = (folder(TaskFile::Report), folder(TaskFile::Launch));
    MixedRegistry { stage, stuck, old, recent, unclaimed, never_submitted }
}

impl MixedRegistry {
    fn has_directory(&self, id: &str) -> bool {
        self.stage.task_dir(id).exists()
    }

    fn is_registered(&self, id: &str) -> bool {
        self.stage.registry().get(&id.parse().unwrap()).unwrap().is_some()
    }
}

#[test]
fn a_dry_run_reports_and_changes_nothing() {
    let mess = mixed_registry();
    let answer = mess.stage.run_json(&["cleanup-registry", "--dry-run"]);
    let data = &answer["data"];
    assert_eq!(data["stuck_tasks"], json!({"found": 1, "cleaned": 0, "task_ids": [mess.stuck]}), "{answer}");
    assert_eq!((&data["old_tasks"]["found"], &data["old_tasks"]["deleted"]), (&json!(1), &json!(0)));
    assert_eq!(data["old_tasks"]["oldest_age_hours"], 30);
    assert_eq!(data["leftovers"], json!({"found": 1, "removed": 0}));
    assert_eq!(data["unclaimed"], json!([mess.unclaimed]));
    assert_eq!(data["summary"], "Would clean 1 stuck task and delete 1 old task");
    let working = mess.stage.registry().get(&mess.stuck.parse().unwrap()).unwrap().unwrap();
    assert_eq!(working.state.name(), "working");
    for id in [&mess.stuck, &mess.old, &mess.recent, &mess.unclaimed, &mess.never_submitted] {
        assert!(mess.has_directory(id), "{id}");
    }
}

#[test]
fn cleanup_removes_stuck_old_and_leftover_tasks_only() {
    let mess = mixed_registry();
    let answer = mess.stage.run_json(&["cleanup-registry"]);
    let data = &answer["data"];
    assert_eq!(data["stuck_tasks"], json!({"found": 1, "cleaned": 1, "task_ids": [mess.stuck]}), "{answer}");
    assert_eq!((&data["old_tasks"]["found"], &data["old_tasks"]["deleted"]), (&json!(1), &json!(1)));
    assert_eq!(data["leftovers"], json!({"found": 1, "removed": 1}));
    assert_eq!(data["summary"], "Cleaned 1 stuck task, deleted 1 old task");
    assert!(answer["warnings"].to_string().contains("not in the registry; they are retained"), "{answer}");
    assert!(!mess.has_directory(&mess.old) && !mess.is_registered(&mess.old));
    assert!(!mess.has_directory(&mess.never_submitted));
    assert!(mess.has_directory(&mess.recent) && mess.is_registered(&mess.recent));
    assert!(mess.has_directory(&mess.unclaimed), "results nobody can account for were thrown away");
    let lost = mess.stage.wait_for_end(&mess.stuck);
    assert_eq!(lost["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{lost}");
    let again = mess.stage.run_json(&["cleanup-registry"]);
    assert_eq!(again["data"]["summary"], "Cleaned 0 stuck tasks, deleted 0 old tasks");
    assert_eq!(again["data"]["unclaimed"], json!([mess.unclaimed]), "the warning does not go away by itself");
    let gone = mess.stage.run(&["local", "results", &mess.old]);
    assert_eq!((gone.exit, &gone.json()["error"]["code"]), (Some(5), &json!("TASK_NOT_FOUND")));
}

/// After a power cut a launch file may have neither a row nor an entry; a running task's supervisor removes it in the end.
#[test]
fn an_orphaned_launch_file_is_removed_without_cleaning() {
    let mess = mixed_registry();
    std::fs::write(mess.stage.task_dir(&mess.old).join("launch"), "a prompt").unwrap();
    mess.stage.run_json(&["local", "run", "x"]);
    wait_until(|| !mess.has_directory(&mess.never_submitted));
    wait_until(|| !mess.stage.task_dir(&mess.old).join("launch").exists());
    assert!(mess.has_directory(&mess.unclaimed), "results are kept");
}

#[test]
fn cleanup_uses_the_thresholds_of_the_caller() {
    let mess = mixed_registry();
    let patient =
        ["cleanup-registry", "--stuck-task-max-age-seconds", "86400", "--old-task-max-age-hours", "100"];
    let data = mess.stage.run_json(&patient)["data"].clone();
    assert_eq!(
        (&data["stuck_tasks"]["found"], &data["old_tasks"]["found"]),
        (&json!(0), &json!(0)),
        "{data}"
    );
    let eager = ["cleanup-registry", "--old-task-max-age-hours", "1"];
    assert_eq!(mess.stage.run_json(&eager)["data"]["old_tasks"]["deleted"], 2);
}

#[test]
fn cleanup_without_a_registry_creates_nothing() {
    let stage = Stage::with_script(successful_turn(&[]));
    let answer = stage.run_json(&["cleanup-registry"]);
    assert_eq!(answer["data"]["summary"], "Cleaned 0 stuck tasks, deleted 0 old tasks");
    assert!(!stage.state_dir().exists());
}

/// Each command in each wrapper. A debug build stops at an envelope that breaks its schema, so an answer is proof.
#[test]
fn batch_commands_match_every_envelope_schema() {
    let stage = Stage::with_script(successful_turn(&[])).variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let id = stage.exec(&[]);
    stage.wait_for_end(&id);
    let said: &[&[&str]] = &[
        &["queue", "pause"],
        &["local", "exec", "do it"],
        &["cancel", "--all", "--dry-run"],
        &["cancel", "--state", "queued"],
        &["cancel", "--all"],
        &["queue", "resume"],
        &["retry", &id],
        &["cleanup-registry", "--dry-run"],
        &["cleanup-registry"],
        &["local", "status", "--labels", "a=b", "--state", "completed"],
    ];
    for envelope in ["agent", "standard", "tool"] {
        for args in said.iter().copied() {
            let run = stage.run(&[args, &["--envelope", envelope]].concat());
            assert_eq!(run.exit, Some(0), "{args:?} as {envelope}: {run:?}");
            let answer = run.document();
            let good = match envelope {
                "agent" => answer["ok"] == true,
                "standard" => answer["success"] == true,
                _ => answer["status"] == "ok",
            };
            assert!(good, "{args:?} as {envelope}: {answer}");
        }
    }
    let refused = stage.run(&["cancel"]);
    assert_eq!((refused.exit, &refused.json()["error"]["code"]), (Some(2), &json!("MISSING_ARGUMENT")));
}

/// Everything a living task has, by name.
fn files_of(stage: &Stage, id: &str) -> Vec<String> {
    let entries = std::fs::read_dir(stage.task_dir(id)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    // Replaced once a second, so for a moment there may be two.
    names.retain(|name| !name.starts_with("snapshot") && !name.starts_with('.'));
    names.sort();
    names
}

/// Says that it is over, also when a test fails before it could.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn f39_continuous_cleanup_leaves_live_tasks_intact() {
    const LIVING: usize = 4;
    let said = json!({"events": {"count": 200, "per_second": 400}});
    let stage = Stage::with_script(successful_turn(&[said, json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", &LIVING.to_string());
    let done = AtomicBool::new(false);
    let clean = || {
        let mut deleted = 0;
        while !done.load(Ordering::SeqCst) {
            let eager =
                ["cleanup-registry", "--stuck-task-max-age-seconds", "1", "--old-task-max-age-hours", "1"];
            let data = stage.run_json(&eager)["data"].clone();
            assert_eq!(data["stuck_tasks"]["found"], 0, "a living task was called stuck: {data}");
            deleted += data["old_tasks"]["deleted"].as_u64().unwrap();
        }
        deleted
    };
    let (deleted, ids) = std::thread::scope(|scope| {
        let cleaners = [scope.spawn(clean), scope.spawn(clean)];
        let stop = SetOnDrop(&done);
        let ids = run_tasks_during_cleanup(&stage, LIVING);
        drop(stop);
        (cleaners.map(|cleaner| cleaner.join().unwrap()).iter().sum::<u64>(), ids)
    });
    assert_eq!(deleted, 200, "not everything old was forgotten once");
    assert_eq!(std::fs::read_dir(stage.state_dir().join("tasks")).unwrap().count(), ids.len());
    stage.registry().check().unwrap();
}

/// Tasks that run while old ones are made and cleaned away; gives those that must be left.
fn run_tasks_during_cleanup(stage: &Stage, living: usize) -> Vec<String> {
    let ids: Vec<String> = (0..=living).map(|_| stage.exec(&[])).collect();
    let (running, queued) = ids.split_at(living);
    let all_said = |id: &String| {
        let events = std::fs::read_to_string(stage.task_dir(id).join("events.jsonl")).unwrap_or_default();
        events.contains("event 200 ")
    };
    let mut registry = stage.registry();
    for _ in 0..200 {
        old_tasks::ended_task(&mut registry, now_ms() - 5 * HOUR_MS);
    }
    crate::stage::wait_until(|| {
        running.iter().all(all_said) && registry.ended_before(now_ms() - HOUR_MS, 1).unwrap().is_empty()
    });
    for id in running {
        let files = files_of(stage, id);
        for name in ["control.path", "control.sock", "events.jsonl", "lock", "task.txt"] {
            assert!(files.iter().any(|file| file == name), "{id} lost {name}: {files:?}");
        }
    }
    assert!(stage.task_dir(&queued[0]).join("launch").exists(), "the queued task lost its launch file");
    stage.touch("go");
    for id in &ids {
        let end = stage.wait_for_end(id);
        assert_eq!((&end["state"], &end["final_message"]), (&json!("completed"), &json!("All done.")));
        let results: Value = stage.run_json(&["local", "results", id, "--include-events"]);
        assert_eq!(results["data"]["events"]["count"], 204, "{results}");
    }
    ids
}
