//! A crash while the changes of a worktree are applied: the next call completes it.

use std::path::PathBuf;

use delegator_testkit::program::read_text;

use super::{Stage, git};
use crate::scripted::wait_until;

pub(super) fn crash_while_applying(stage: &mut Stage, name: &str) {
    git(stage, &["init", "--quiet", "--initial-branch=main"]);
    git(stage, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let isolated = ["--mode", "workspace-write", "--isolation", "worktree"];
    let response = stage.run_json(&[&["local", "exec", "do it"], &isolated[..]].concat());
    let id = stage.acknowledge(&response);
    let worktree = PathBuf::from(response["data"]["worktree"].as_str().unwrap());
    wait_until("the worktree exists", || worktree.join(".git").exists());
    // The change, and what the agent waits for.
    std::fs::write(worktree.join("go"), "now\n").unwrap();
    assert_eq!(stage.run_json(&["local", "wait", &id])["data"]["state"], "completed");
    stage.crash(name, &["apply", &id]);
    assert_eq!(read_text(&stage.world.project().join("go")), "now\n", "{name}");
    assert_eq!(stage.run_json(&["apply", &id])["ok"], true, "{name}");
    assert_eq!(read_text(&stage.world.project().join("go")), "now\n", "{name}");
    assert_eq!(git(stage, &["worktree", "list"]).lines().count(), 1, "{name}");
    assert_eq!(git(stage, &["branch", "--list", "delegator/*"]), "", "{name}");
    let directory = worktree.parent().unwrap();
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "{name}");
    // Its restore point holds nothing that matters to the next checks.
    assert_eq!(stage.run_json(&["restore", &id, "--drop", "--confirm-destructive"])["ok"], true, "{name}");
}
