//! When a restore point is created, and how many packs are left of many.

use super::{Stage, careless_steps};

#[test]
fn a_writing_task_without_a_restore_point_is_not_started_unless_the_caller_wants_none() {
    let stage = Stage::in_a_repository(&careless_steps());
    stage.world.write("project/.git/refs/mcp-delegator", "in the way");
    let id = stage.run_writing_task();
    let failed = stage.run_json(&["local", "results", &id]);
    assert_eq!(failed["data"]["state"], "failed", "{failed}");
    assert_eq!(
        failed["data"]["metadata"]["error_context"]["failure_kind"], "restore_point_failed",
        "{failed}"
    );
    assert!(failed.to_string().contains("--no-restore-point"), "{failed}");
    assert_eq!((stage.read("code.txt"), stage.exists("added")), ("mine\n".into(), false));
    let id = stage.exec(&["--mode", "workspace-write", "--no-restore-point"]);
    stage.run_json(&["local", "wait", &id]);
    let results = stage.run_json(&["local", "results", &id]);
    assert_eq!(results["data"]["state"], "completed", "{results}");
    assert!(results["warnings"].to_string().contains("W_GIT_001"), "{results}");
    assert_eq!(stage.read("code.txt"), "agent\n");
    let none = stage.world.run(["restore", &id, "--dry-run"]);
    assert_eq!(none.exit, Some(5), "{none:?}");
    // A read-only task needs none.
    let id = stage.exec(&[]);
    assert_eq!(stage.run_json(&["local", "wait", &id])["data"]["state"], "completed");
}

#[test]
fn a_restore_point_is_left_out_only_on_request() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.exec(&["--mode", "workspace-write", "--no-restore-point"]);
    stage.run_json(&["local", "wait", &id]);
    let results = stage.run_json(&["local", "results", &id]);
    assert_eq!(results["data"].get("restore_point"), None, "{results}");
    assert!(results["data"]["metadata"]["file_operations"]["modified_files"][0] == "code.txt", "{results}");
    assert_eq!(stage.git(&["for-each-ref", "refs/mcp-delegator"]), "");
}

#[test]
fn the_packs_of_many_restore_points_are_merged_after_a_task() {
    let stage = Stage::in_a_repository(&careless_steps());
    let first = stage.run_writing_task();
    let store = stage.world.project().join(".git/mcp-delegator");
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(store.join("objects/pack")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    // Further restore points that equal the first one.
    let references = store.join("refs/mcp-delegator");
    for (number, name) in (0..60).flat_map(|number| names().into_iter().map(move |name| (number, name))) {
        let copy = format!("T-local-copy{number}");
        if let Some(rest) = name.strip_prefix(&first) {
            let packs = store.join("objects/pack");
            std::fs::hard_link(packs.join(&name), packs.join(format!("{copy}{rest}"))).unwrap();
            std::fs::copy(references.join(&first), references.join(copy)).unwrap();
        }
    }
    let second = stage.run_writing_task();
    while names().iter().filter(|name| name.ends_with(".pack")).count() > 20 {
        std::thread::yield_now();
    }
    let listed = stage.run_json(&["restore", "--list"]);
    assert_eq!(listed["data"]["restore_points"].as_array().unwrap().len(), 62, "{listed}");
    for id in [&second, &first] {
        let dry = stage.run_json(&["restore", id, "--all", "--dry-run"]);
        assert_eq!(dry["ok"], true, "{dry}");
    }
}
