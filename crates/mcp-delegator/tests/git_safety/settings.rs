//! Changes of git's own settings during a task: reported first, and reverted by a restore.

use serde_json::{Value, json};

use super::Stage;

const ATTACK: &str = "git config core.fsmonitor ./evil && printf '#!/bin/sh\\n' > .git/hooks/post-checkout && \
                      chmod +x .git/hooks/post-checkout && chmod +x .git/hooks/mine && mkdir -p .git/info && \
                      echo '* filter=evil' > .git/info/attributes";

fn stage_with(command: &str) -> Stage {
    let stage = Stage::in_a_repository(&[json!({"command": {"run": command}})]);
    stage.world.write("project/.git/hooks/mine", "#!/bin/sh\n");
    stage
}

fn ended(stage: &Stage, args: &[&str]) -> (String, Value) {
    let id = stage.exec(args);
    stage.run_json(&["local", "wait", &id]);
    let results = stage.run_json(&["local", "results", &id]);
    assert_eq!(results["data"]["state"], "completed", "{results}");
    (id, results)
}

/// Asserts that the first warning is the one about these files.
#[track_caller]
fn assert_reported(results: &Value, files: &[&str]) {
    let first = &results["meta"]["warning_details"][0];
    assert_eq!(first["code"], "W_GIT_006", "{results:#}");
    assert_eq!(first["context"]["paths"], json!(files), "{first}");
    assert!(results["data"]["summary"].as_str().unwrap().starts_with("Settings of git changed"), "{results}");
}

const FILES: [&str; 4] =
    [".git/config", ".git/hooks/mine", ".git/hooks/post-checkout", ".git/info/attributes"];

#[test]
fn changed_settings_are_reported_first_and_a_restore_reverts_them() {
    let stage = stage_with(ATTACK);
    let config = stage.read(".git/config");
    let (id, results) = ended(&stage, &["--mode", "workspace-write"]);
    assert_reported(&results, &FILES);
    let dry = stage.run_json(&["restore", &id, "--dry-run"]);
    assert_eq!(dry["data"]["git_settings"].as_array().unwrap().len(), 4, "{dry}");
    assert_ne!(stage.read(".git/config"), config);
    let done = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!((&done["ok"], &done["data"]["is_restored"]), (&json!(true), &json!(true)), "{done}");
    assert_eq!(stage.read(".git/config"), config);
    assert!(!stage.exists(".git/hooks/post-checkout") && !stage.exists(".git/info/attributes"));
    let mode = std::fs::metadata(stage.world.project().join(".git/hooks/mine")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o111, 0);
    let again = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(again["data"]["is_restored"], false, "{again}");
    stage.run_json(&["restore", &id, "--undo", "--confirm-destructive"]);
    assert!(stage.exists(".git/hooks/post-checkout") && stage.read(".git/config").contains("evil"));
}

#[test]
fn settings_that_were_changed_again_are_an_overlap() {
    let stage = stage_with(ATTACK);
    let (id, _) = ended(&stage, &["--mode", "workspace-write"]);
    stage.git(&["config", "user.email", "later@localhost"]);
    let refused = stage.world.run(["restore", &id, "--confirm-destructive"]);
    assert_eq!(refused.exit, Some(4), "{refused:?}");
    let config = stage.world.project().join(".git/config");
    assert_eq!(refused.json()["meta"]["error_context"]["overlaps"][0]["path"], json!(config), "{refused:?}");
    assert!(stage.exists(".git/hooks/post-checkout"), "nothing was restored");
    stage.run_json(&["restore", &id, "--all", "--confirm-destructive"]);
    assert!(!stage.exists(".git/hooks/post-checkout") && !stage.read(".git/config").contains("evil"));
}

#[test]
fn settings_of_the_user_survive_a_restore_of_a_task_that_changed_none() {
    let stage = stage_with("echo agent > code.txt");
    let (id, results) = ended(&stage, &["--mode", "workspace-write"]);
    assert!(!results["warnings"].to_string().contains("W_GIT_006"), "{results}");
    stage.git(&["config", "user.email", "later@localhost"]);
    stage.run_json(&["restore", &id, "--all", "--confirm-destructive"]);
    assert!(stage.read(".git/config").contains("later@localhost"));
}

#[test]
fn settings_changed_in_read_only_mode_are_reported() {
    let stage = stage_with(ATTACK);
    let (_, results) = ended(&stage, &[]);
    assert_reported(&results, &FILES);
}

#[test]
fn an_isolated_task_that_changes_settings_of_the_repository_is_reported_and_restored() {
    let command =
        "git config core.fsmonitor ./evil; echo x > \"$(git rev-parse --git-common-dir)/hooks/pre-push\"";
    let stage = stage_with(command);
    let config = stage.read(".git/config");
    let (id, results) = ended(&stage, &["--mode", "workspace-write", "--isolation", "worktree"]);
    assert_eq!(results["meta"]["warning_details"][0]["code"], "W_GIT_006", "{results}");
    let done = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(done["data"]["is_restored"], true, "{done}");
    assert_eq!((stage.read(".git/config"), stage.exists(".git/hooks/pre-push")), (config, false));
}
