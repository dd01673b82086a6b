//! What a restore and the results of a task report about a restore: warnings, errors and the command to revert.

use serde_json::{Value, json};

use crate::{Stage, careless_steps};

/// The message of the only warning with this code.
#[track_caller]
fn warning(envelope: &Value, code: &str) -> String {
    let warnings = envelope["meta"]["warning_details"].as_array().unwrap();
    let found: Vec<&Value> = warnings.iter().filter(|warning| warning["code"] == code).collect();
    assert_eq!(found.len(), 1, "{envelope}");
    found[0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn warnings_of_an_undo_are_about_the_restore_and_not_about_the_task() {
    let commit = "git -c user.name=a -c user.email=a@localhost commit --quiet -am agent";
    let stage = Stage::in_a_repository(&[
        json!({"write_file": {"path": "code.txt", "text": "agent\n"}}),
        json!({"command": {"run": commit}}),
    ]);
    let id = stage.run_writing_task();
    let planned = stage.run_json(&["restore", &id, "--dry-run"]);
    assert!(warning(&planned, "W_RESTORE_001").contains("before the task: refs/heads/main"), "{planned}");
    // An operation that was in progress before the restore and is over before the undo.
    stage.world.write("project/.git/MERGE_HEAD", &stage.git(&["rev-parse", "HEAD"]));
    stage.run_json(&["restore", &id, "--confirm-destructive", "--force"]);
    std::fs::remove_file(stage.world.project().join(".git/MERGE_HEAD")).unwrap();
    let undo = stage.run_json(&["restore", &id, "--dry-run", "--undo"]);
    for code in ["W_RESTORE_001", "W_RESTORE_005"] {
        let message = warning(&undo, code);
        assert!(message.contains("before the restore") && !message.contains("task"), "{message}");
    }
}

#[test]
fn results_offer_to_revert_only_what_changed() {
    for (steps, is_offered) in [(careless_steps(), true), (Vec::new(), false)] {
        let stage = Stage::in_a_repository(&steps);
        let id = stage.run_writing_task();
        let shown = stage.world.run(["local", "results", &id, "--format", "human"]).stdout;
        assert_eq!(shown.contains(&format!("mcp-delegator undo {id}")), is_offered, "{shown}");
    }
}

#[test]
fn a_damaged_state_after_the_task_is_named_with_what_to_do() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    let file = stage.world.project().join(".git/mcp-delegator/ends").join(&id);
    for (text, problem) in [("damaged", "is damaged"), ("{\"version\": 9}\n", "format version 9")] {
        std::fs::write(&file, text).unwrap();
        let refused = stage.world.run(["restore", &id, "--dry-run"]);
        assert_eq!(refused.exit, Some(4), "{refused:?}");
        let error = refused.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(file.to_str().unwrap()) && message.contains(problem), "{error}");
        let suggestion = error["suggestion"].as_str().unwrap();
        assert!(suggestion.contains("--all") && suggestion.contains("--dry-run"), "{error}");
    }
    let planned = stage.run_json(&["restore", &id, "--dry-run", "--all"]);
    assert!(
        warning(&planned, "W_RESTORE_009").contains("any restored or removed file may hold"),
        "{planned}"
    );
    assert_eq!(planned["data"].get("possible_user_edits"), None, "{planned}");
}

/// Codex's sandbox creates empty directories as mount points, and removes them only if it is not killed.
#[test]
fn mount_points_of_a_cancelled_sandbox_are_no_changes_and_a_restore_removes_them() {
    let mount_points = [".agents", ".aws", ".codex"];
    let run = format!("mkdir {}; touch ready.log; sleep 600", mount_points.join(" "));
    let stage = Stage::in_a_repository(&[json!({"command": {"run": run}})]);
    let id = stage.exec(&["--mode", "workspace-write"]);
    stage.wait_for_file("ready.log");
    stage.run_json(&["local", "cancel", &id]);
    let results = stage.run_json(&["local", "results", &id]);
    assert_eq!(results["data"]["state"], "cancelled", "{results}");
    let files = &results["data"]["metadata"]["file_operations"];
    for list in ["modified_files", "added_files", "deleted_files"] {
        assert_eq!(files[list], json!([]), "{results}");
    }
    let restored = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    let mut removed: Vec<&str> = restored["data"]["directories_removed"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    removed.sort_unstable();
    assert_eq!(removed, mount_points, "{restored}");
    assert!(mount_points.iter().all(|path| !stage.exists(path)));
}
