//! `cleanup-registry`: ends stuck tasks, removes old tasks and leftovers of crashes; leaves live tasks and results
//! without a registry row alone.

use std::sync::atomic::{AtomicBool, Ordering};

use delegator_registry::TaskFile;
use serde_json::{Value, json};

use crate::old_tasks::{self, HOUR_MS, now_ms};
use crate::stage::{Stage, successful_turn, wait_until};

/// A state directory with one task of each kind.
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
    let mixed = mixed_registry();
    let response = mixed.stage.run_json(&["cleanup-registry", "--old-task-max-age-hours", "24", "--dry-run"]);
    let data = &response["data"];
    assert_eq!(
        data["stuck_tasks"],
        json!({"found": 1, "cleaned": 0, "task_ids": [mixed.stuck]}),
        "{response}"
    );
    assert_eq!((&data["old_tasks"]["found"], &data["old_tasks"]["deleted"]), (&json!(1), &json!(0)));
    assert_eq!(data["old_tasks"]["oldest_age_hours"], 30);
    assert_eq!(data["leftovers"], json!({"found": 1, "removed_count": 0}));
    assert_eq!(data["unclaimed"], json!([mixed.unclaimed]));
    assert_eq!(data["summary"], "Would clean 1 stuck task and delete 1 old task");
    let working = mixed.stage.registry().get(&mixed.stuck.parse().unwrap()).unwrap().unwrap();
    assert_eq!(working.state.name(), "working");
    for id in [&mixed.stuck, &mixed.old, &mixed.recent, &mixed.unclaimed, &mixed.never_submitted] {
        assert!(mixed.has_directory(id), "{id}");
    }
}

#[test]
fn cleanup_removes_stuck_old_and_leftover_tasks_only() {
    let mixed = mixed_registry();
    let response = mixed.stage.run_json(&["cleanup-registry", "--old-task-max-age-hours", "24"]);
    let data = &response["data"];
    assert_eq!(
        data["stuck_tasks"],
        json!({"found": 1, "cleaned": 1, "task_ids": [mixed.stuck]}),
        "{response}"
    );
    assert_eq!((&data["old_tasks"]["found"], &data["old_tasks"]["deleted"]), (&json!(1), &json!(1)));
    assert_eq!(data["leftovers"], json!({"found": 1, "removed_count": 1}));
    assert_eq!(data["summary"], "Cleaned 1 stuck task, deleted 1 old task");
    assert!(
        response["warnings"].to_string().contains("not in the registry; they are retained"),
        "{response}"
    );
    assert!(!mixed.has_directory(&mixed.old) && !mixed.is_registered(&mixed.old));
    assert!(!mixed.has_directory(&mixed.never_submitted));
    assert!(mixed.has_directory(&mixed.recent) && mixed.is_registered(&mixed.recent));
    assert!(mixed.has_directory(&mixed.unclaimed), "results without a registry row were deleted");
    let lost = mixed.stage.wait_for_end(&mixed.stuck);
    assert_eq!(lost["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{lost}");
    let again = mixed.stage.run_json(&["cleanup-registry", "--old-task-max-age-hours", "24"]);
    assert_eq!(again["data"]["summary"], "Cleaned 0 stuck tasks, deleted 0 old tasks");
    assert_eq!(again["data"]["unclaimed"], json!([mixed.unclaimed]), "the warning must be repeated");
    let gone = mixed.stage.run(&["local", "results", &mixed.old]);
    assert_eq!((gone.exit, &gone.json()["error"]["code"]), (Some(5), &json!("TASK_NOT_FOUND")));
}

/// A task whose restore points cannot be read is not deleted: their content could be lost. The others are.
#[test]
fn cleanup_reports_a_task_that_it_could_not_delete_and_deletes_the_others() {
    let mixed = mixed_registry();
    let mut registry = mixed.stage.registry();
    let damaged = old_tasks::ended_task(&mut registry, now_ms() - 40 * HOUR_MS).as_str().to_owned();
    std::fs::write(mixed.stage.task_dir(&damaged).join(TaskFile::RestorePoint.name()), "{").unwrap();
    let check = |args: &[&str], summary: &str| {
        let run = mixed.stage.run(args);
        assert_eq!(run.exit, Some(3), "{run:?}");
        let data = run.json()["meta"]["failure_data"].clone();
        assert_eq!((&data["summary"], &data["partial_success"]), (&json!(summary), &json!(true)), "{data}");
        let counts = ["total_operations", "successful", "failed"].map(|key| data[key].clone());
        assert_eq!(counts, [4, 3, 1], "{data}");
        let failed: Vec<&Value> =
            data["results"].as_array().unwrap().iter().filter(|item| item["success"] == false).collect();
        assert_eq!((failed.len(), &failed[0]["target"]), (1, &json!(damaged)), "{data}");
        assert_eq!(failed[0]["error"]["code"], "IO_ERROR", "{data}");
    };
    let dry_run = ["cleanup-registry", "--old-task-max-age-hours", "24", "--dry-run"];
    check(&dry_run, "Would clean 1 stuck task and delete 2 old tasks; 1 would fail");
    assert!(mixed.has_directory(&mixed.old), "the dry run deleted a task");
    check(
        &["cleanup-registry", "--old-task-max-age-hours", "24"],
        "Cleaned 1 stuck task, deleted 1 old task; 1 failed",
    );
    assert!(!mixed.is_registered(&mixed.old) && mixed.is_registered(&damaged));
    for (args, phase) in
        [(&dry_run[..], "execution"), (&["cleanup-registry", "--old-task-max-age-hours", "24"], "cleanup")]
    {
        assert_eq!(mixed.stage.run(args).json()["error"]["phase"], phase);
    }
    let again =
        mixed.stage.run(&["cleanup-registry", "--old-task-max-age-hours", "24", "--envelope", "standard"]);
    let envelope = again.document();
    assert_eq!(
        (again.exit, &envelope["success"]),
        (Some(1), &json!(false)),
        "nothing was cleaned: {again:?}"
    );
    assert_eq!(envelope["error"]["details"]["failure_data"]["results"][0]["target"], json!(damaged));
}

/// The row is deleted first, so a directory that cannot be removed is all that remains of its task.
#[test]
fn a_task_whose_directory_remains_is_one_failed_item_and_the_others_are_listed() {
    let stage = Stage::with_script(successful_turn(&[]));
    let mut registry = stage.registry();
    let mut ids: Vec<String> = (0..4)
        .map(|_| old_tasks::ended_task(&mut registry, now_ms() - 30 * HOUR_MS).as_str().to_owned())
        .collect();
    let damaged = ids[1].clone();
    // A lock file that is a directory cannot be locked, so its task directory is not removed.
    let lock = stage.task_dir(&damaged).join(TaskFile::Lock.name());
    let _ = std::fs::remove_file(&lock);
    std::fs::create_dir(&lock).unwrap();
    let run = stage.run(&["cleanup-registry", "--old-task-max-age-hours", "24", "--envelope", "standard"]);
    let data = run.document()["data"].clone();
    let counts = ["total_operations", "successful", "failed"].map(|key| data[key].clone());
    assert_eq!((run.exit, counts), (Some(3), [4, 3, 1].map(|count| json!(count))), "{data}");
    assert_eq!(data["leftovers"], json!({"found": 0, "removed_count": 0}), "{data}");
    let results = data["results"].as_array().unwrap();
    let mut targets: Vec<&str> = results.iter().map(|item| item["target"].as_str().unwrap()).collect();
    targets.sort_unstable();
    ids.sort_unstable();
    assert_eq!(targets, ids);
    for item in results.iter().filter(|item| item["target"] != damaged.as_str()) {
        assert_eq!((&item["success"], &item["result"]), (&json!(true), &json!({"kind": "old_task"})));
    }
    let message = |results: &Value| {
        let failed = results.as_array().unwrap().iter().find(|item| item["success"] == false);
        failed.unwrap()["error"]["message"].as_str().unwrap().to_owned()
    };
    let remains = "The task is no longer in the registry, but its directory could not be removed";
    assert!(message(&data["results"]).starts_with(remains), "{data}");
    let again =
        stage.run(&["cleanup-registry", "--old-task-max-age-hours", "24"]).json()["meta"]["failure_data"]
            .clone();
    assert_eq!((&again["old_tasks"]["found"], &again["leftovers"]["found"]), (&json!(0), &json!(1)));
    assert!(message(&again["results"]).starts_with(remains), "{again}");
    std::fs::remove_dir(&lock).unwrap();
    assert_eq!(
        stage.run_json(&["cleanup-registry", "--old-task-max-age-hours", "24"])["data"]["leftovers"]["removed_count"],
        1
    );
}

#[test]
fn the_action_of_the_standard_envelope_states_what_the_call_did() {
    let mixed = mixed_registry();
    let action = |args: &[&str]| {
        let run = mixed.stage.run(&[args, &["--envelope", "standard"]].concat());
        run.document()["data"]["action"].clone()
    };
    assert_eq!(action(&["cleanup-registry", "--dry-run"]), "cleanup_planned");
    assert_eq!(action(&["cleanup-registry"]), "registry_cleaned");
    assert_eq!(action(&["cleanup-registry"]), "nothing_to_clean");
    assert_eq!(action(&["cancel", "--all", "--dry-run"]), "cancel_planned");
    assert_eq!(action(&["cancel", "--all"]), "nothing_to_cancel");
}

/// After a power cut a launch file may have neither a row nor an entry; the supervisor of the next task removes it.
#[test]
fn an_orphaned_launch_file_is_removed_without_cleaning() {
    let mixed = mixed_registry();
    std::fs::write(mixed.stage.task_dir(&mixed.old).join("launch"), "a prompt").unwrap();
    mixed.stage.run_json(&["local", "run", "x"]);
    wait_until(|| !mixed.has_directory(&mixed.never_submitted));
    wait_until(|| !mixed.stage.task_dir(&mixed.old).join("launch").exists());
    assert!(mixed.has_directory(&mixed.unclaimed), "results were deleted");
}

#[test]
fn cleanup_uses_the_thresholds_of_the_caller() {
    let mixed = mixed_registry();
    let patient =
        ["cleanup-registry", "--stuck-task-max-age-seconds", "86400", "--old-task-max-age-hours", "100"];
    let data = mixed.stage.run_json(&patient)["data"].clone();
    assert_eq!(
        (&data["stuck_tasks"]["found"], &data["old_tasks"]["found"]),
        (&json!(0), &json!(0)),
        "{data}"
    );
    let eager = ["cleanup-registry", "--old-task-max-age-hours", "1"];
    assert_eq!(mixed.stage.run_json(&eager)["data"]["old_tasks"]["deleted"], 2);
}

#[test]
fn cleanup_without_a_registry_creates_nothing() {
    let stage = Stage::with_script(successful_turn(&[]));
    let response = stage.run_json(&["cleanup-registry"]);
    assert_eq!(response["data"]["summary"], "Cleaned 0 stuck tasks, deleted 0 old tasks");
    assert!(!stage.state_dir().exists());
}

/// A debug build panics on an envelope that violates its schema, so a successful command proves validity.
#[test]
fn batch_commands_match_every_envelope_schema() {
    let stage = Stage::with_script(successful_turn(&[])).variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let id = stage.exec(&[]);
    stage.wait_for_end(&id);
    let commands: &[&[&str]] = &[
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
        for args in commands.iter().copied() {
            let run = stage.run(&[args, &["--envelope", envelope]].concat());
            assert_eq!(run.exit, Some(0), "{args:?} as {envelope}: {run:?}");
            let response = run.document();
            let good = match envelope {
                "agent" => response["ok"] == true,
                "standard" => response["success"] == true,
                _ => response["status"] == "ok",
            };
            assert!(good, "{args:?} as {envelope}: {response}");
        }
    }
    let refused = stage.run(&["cancel"]);
    assert_eq!((refused.exit, &refused.json()["error"]["code"]), (Some(2), &json!("MISSING_ARGUMENT")));
}

/// The names of all files of a running task.
fn files_of(stage: &Stage, id: &str) -> Vec<String> {
    let entries = std::fs::read_dir(stage.task_dir(id)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    // Replaced once a second, so two may exist for a moment.
    names.retain(|name| !name.starts_with("snapshot") && !name.starts_with('.'));
    names.sort();
    names
}

/// Sets a flag when dropped, also when the test panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn f39_continuous_cleanup_leaves_live_tasks_intact() {
    const LIVING: usize = 4;
    let events = json!({"events": {"count": 200, "per_second": 400}});
    let stage = Stage::with_script(successful_turn(&[events, json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", &LIVING.to_string());
    let done = AtomicBool::new(false);
    let clean = || {
        let mut deleted = 0;
        while !done.load(Ordering::SeqCst) {
            let eager =
                ["cleanup-registry", "--stuck-task-max-age-seconds", "1", "--old-task-max-age-hours", "1"];
            let data = stage.run_json(&eager)["data"].clone();
            assert_eq!(data["stuck_tasks"]["found"], 0, "a live task was reported as stuck: {data}");
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
    assert_eq!(deleted, 200, "not every old task was deleted once");
    assert_eq!(std::fs::read_dir(stage.state_dir().join("tasks")).unwrap().count(), ids.len());
    stage.registry().check().unwrap();
}

/// Runs tasks while old ones are created and cleaned; returns the tasks that must remain.
fn run_tasks_during_cleanup(stage: &Stage, live_count: usize) -> Vec<String> {
    let ids: Vec<String> = (0..=live_count).map(|_| stage.exec(&[])).collect();
    let (running, queued) = ids.split_at(live_count);
    let all_printed = |id: &String| {
        let events = std::fs::read_to_string(stage.task_dir(id).join("events.jsonl")).unwrap_or_default();
        events.contains("event 200 ")
    };
    let mut registry = stage.registry();
    for _ in 0..200 {
        old_tasks::ended_task(&mut registry, now_ms() - 5 * HOUR_MS);
    }
    crate::stage::wait_until(|| {
        running.iter().all(all_printed) && registry.ended_before(now_ms() - HOUR_MS, 1).unwrap().is_empty()
    });
    for id in running {
        let files = files_of(stage, id);
        for name in ["control.sock", "events.jsonl", "lock", "task.txt"] {
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
