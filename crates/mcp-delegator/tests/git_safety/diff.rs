//! `diff` of tasks that worked in the user's own directory.

use delegator_testkit::terminal::run_on_terminal;
use serde_json::{Value, json};

use crate::{Stage, careless_steps};

fn names(files: &Value) -> Vec<(&str, &str)> {
    let files = files.as_array().unwrap().iter();
    files.map(|file| (file["path"].as_str().unwrap(), file["change"].as_str().unwrap())).collect()
}

#[test]
fn the_diff_of_a_task_has_its_changes_and_git_can_apply_it() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    for format in ["markdown", "human"] {
        let shown = stage.world.run(["local", "results", &id, "--format", format]).stdout;
        assert!(shown.contains(&format!("mcp-delegator diff {id}")), "{shown}");
    }
    stage.world.write("project/code.txt", "later\n");
    let names_only = stage.world.run(["diff", &id, "--name-only"]);
    assert_eq!(names_only.stdout, "added/file.txt\ncode.txt\nnotes.txt\n", "{names_only:?}");
    let summary = stage.world.run(["diff", &id, "--stat"]).stdout;
    assert!(summary.ends_with(" 3 files changed, 2 lines added, 2 lines deleted\n"), "{summary}");
    let answer = stage.run_json(&["diff", &id, "--format", "json"]);
    let data = &answer["data"];
    assert_eq!(
        names(&data["files"]),
        [("added/file.txt", "added"), ("code.txt", "modified"), ("notes.txt", "deleted")],
        "{answer}"
    );
    assert_eq!(data["files"][1]["hunks"][0]["lines"], json!(["-mine", "+agent"]), "{answer}");
    let part = stage.world.run(["diff", &id, "--path", "added"]).stdout;
    assert!(part.starts_with("diff --git a/added/file.txt") && part.matches("diff --git").count() == 1);

    // Applied to the state before the task, the text gives the state after it.
    let diff = stage.world.run(["diff", &id]).stdout;
    stage.world.write("project/code.txt", "mine\n");
    stage.world.write("project/notes.txt", "mine\n");
    std::fs::remove_dir_all(stage.world.project().join("added")).unwrap();
    stage.world.write("task.diff", &diff);
    stage.git(&["apply", "../task.diff"]);
    assert_eq!((stage.read("code.txt"), stage.read("added/file.txt")), ("agent\n".into(), "agent\n".into()));
    assert!(!stage.exists("notes.txt"));

    stage.run_json(&["restore", &id, "--drop", "--confirm-destructive"]);
    let gone = stage.world.run(["diff", &id, "--format", "json"]);
    let error = &gone.json()["error"];
    assert_eq!((gone.exit, &error["code"]), (Some(5), &json!("NOT_FOUND")), "{gone:?}");
    let suggestion = error["suggestion"].as_str().unwrap();
    assert!(suggestion.contains(&format!("mcp-delegator results {id}")), "{error}");
}

#[test]
fn a_running_task_shows_its_changes_so_far_and_one_outside_git_none() {
    let steps = [
        json!({"write_file": {"path": "new.txt", "text": "agent\n"}}),
        json!({"write_file": {"path": "ready.log", "text": ""}}),
        json!({"wait_for_file": "go.log"}),
    ];
    let stage = Stage::in_a_repository(&steps);
    let id = stage.exec(&["--mode", "workspace-write"]);
    stage.wait_for_file("ready.log");
    let answer = stage.run_json(&["diff", &id, "--format", "json"]);
    assert_eq!(answer["data"]["source"], "so_far", "{answer}");
    assert_eq!(names(&answer["data"]["files"]), [("new.txt", "added")], "{answer}");
    assert!(answer["warnings"].to_string().contains("W_DIFF_004"), "{answer}");
    stage.world.write("project/go.log", "");
    stage.run_json(&["local", "wait", &id]);
    assert_eq!(stage.run_json(&["diff", &id, "--format", "json"])["data"]["source"], "task");

    let stage = Stage::with_script(&careless_steps()[..2]);
    let id = stage.run_writing_task();
    let refused = stage.world.run(["diff", &id, "--format", "json"]);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "UNSUPPORTED", "{refused:?}");
    assert!(error["message"].as_str().unwrap().contains("not in a git work tree"), "{error}");
}

#[test]
fn the_diff_of_a_worktree_can_be_shown_before_and_after_it_is_applied() {
    let stage = Stage::in_a_repository(&careless_steps()[..2]);
    let id = stage.exec(&["--mode", "workspace-write", "--isolation", "worktree"]);
    stage.run_json(&["local", "wait", &id]);
    let before = stage.run_json(&["diff", &id, "--format", "json"])["data"].clone();
    assert_eq!(
        (names(&before["files"]), &before["source"]),
        (vec![("added/file.txt", "added"), ("code.txt", "modified")], &json!("worktree")),
        "{before}"
    );
    assert_eq!(before["files"][1]["hunks"][0]["lines"], json!(["-committed", "+agent"]), "{before}");
    // The user has changed the same line: nothing happens, and the hunk is named.
    let refused = stage.world.run(["apply", &id]);
    let conflict = &refused.json()["meta"]["error_context"]["conflicts"][0];
    assert_eq!((&conflict["path"], &conflict["hunks"][0]["old_start"]), (&json!("code.txt"), &json!(1)));
    assert_eq!((stage.read("code.txt"), stage.exists("added")), ("mine\n".into(), false));
    stage.git(&["checkout", "--quiet", "HEAD", "--", "code.txt"]);
    stage.run_json(&["apply", &id]);
    assert_eq!(stage.read("code.txt"), "agent\n");
    assert_eq!(stage.run_json(&["diff", &id, "--format", "json"])["data"], before, "it was stored");
}

#[test]
fn the_diff_of_a_task_without_changes_is_empty_only_in_a_pipe() {
    let stage = Stage::in_a_repository(&[json!({"message": "I fixed leap.sh."})]);
    let id = stage.run_writing_task();
    let nothing = format!("Task {id} changed nothing.");
    for more in [&[][..], &["--stat"], &["--name-only"]] {
        let shown = run_on_terminal(stage.world.command([&["diff", id.as_str()], more].concat()));
        assert_eq!((shown.exit, shown.stdout.trim_end()), (Some(0), nothing.as_str()), "{more:?}");
    }
    let markdown = stage.world.run(["diff", &id, "--format", "markdown"]).stdout;
    assert_eq!(markdown.trim_end(), format!("# Changes of {id}: none"));
    let piped = stage.world.run(["diff", &id]);
    assert_eq!((piped.exit, piped.stdout.as_str(), piped.stderr.as_str()), (Some(0), "", ""));
    // The message of the agent is prose: the summary has what was observed.
    let results = stage.run_json(&["results", &id]);
    assert_eq!(results["data"]["summary"], "Changed nothing", "{results}");
}

#[test]
fn on_a_terminal_the_diff_goes_through_the_pager_without_control_sequences() {
    let steps = [json!({"write_file": {"path": "new.txt", "text": "\u{1b}]0;title\u{7}agent\n"}})];
    let stage = Stage::in_a_repository(&steps);
    let id = stage.run_writing_task();
    let on_terminal = |variables: &[(&str, &str)], more: &[&str]| {
        let mut command = stage.world.command([&["diff", id.as_str()], more].concat());
        command.env("TERM", "xterm").env_remove("CI").env_remove("NO_COLOR").envs(variables.iter().copied());
        let shown = run_on_terminal(command);
        assert_eq!(shown.exit, Some(0), "{shown:?}");
        shown.stdout
    };
    let pager = ("PAGER", "sed 's/^/paged: /'");
    let shown = on_terminal(&[pager], &[]);
    assert!(shown.contains("paged: \u{1b}[32m+agent\u{1b}[0m") && !shown.contains("title"), "{shown:?}");
    let shown = on_terminal(&[pager, ("NO_COLOR", "1")], &["--no-pager"]);
    assert!(shown.contains("+agent") && !shown.contains("paged") && !shown.contains('\u{1b}'), "{shown:?}");
    let shown = on_terminal(&[("PAGER", "/nowhere/pager 2>/dev/null")], &["--name-only"]);
    assert_eq!(shown.trim_end(), "new.txt");
}
