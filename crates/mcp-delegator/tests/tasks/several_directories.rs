//! Tasks with additional directories: changes are examined and restored in all of them.

use std::path::PathBuf;

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Several directories beside `project`, and an agent that runs one command in `project`.
struct Directories {
    stage: Stage,
}

impl Directories {
    fn with_agent_running(command: &str) -> Directories {
        Directories {
            stage: Stage::with_script(PROGRAM, successful_turn(&[json!({"command": {"run": command}})])),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.stage.root().join(name)
    }

    fn write(&self, path: &str, text: &str) {
        self.stage.world.write(path, text);
    }

    fn read(&self, path: &str) -> String {
        read_text(&self.path(path))
    }

    #[track_caller]
    fn git(&self, directory: &str, args: &[&str]) {
        let identity =
            ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"];
        let directory = self.path(directory).display().to_string();
        let all = [&["-C", &directory], identity.as_slice(), args].concat();
        let run = self.stage.world.run_as(&PathBuf::from("/usr/bin/git"), all);
        assert_eq!(run.exit, Some(0), "{run:?}");
    }

    /// A repository with `file` committed and modified, and an untracked file.
    fn repository(&self, name: &str) {
        self.write(&format!("{name}/file"), "committed\n");
        self.git(name, &["init", "--quiet", "--initial-branch=main"]);
        self.git(name, &["add", "."]);
        self.git(name, &["commit", "--quiet", "-m", "first"]);
        self.write(&format!("{name}/file"), "the user's\n");
        self.write(&format!("{name}/notes"), "the user's\n");
    }

    /// Runs a task with these additional directories to its end; returns its id and the output of `local results`.
    fn run(&self, add_dirs: &[&str]) -> (String, Value) {
        let mut args = vec!["--mode".to_owned(), "workspace-write".to_owned()];
        for name in add_dirs {
            args.extend(["--add-dirs".to_owned(), self.path(name).display().to_string()]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let id = self.stage.exec(&args);
        let waited = self.stage.wait(&id);
        assert_eq!(waited["data"]["state"], "completed", "{waited}");
        let results = self.stage.run_json(&["local", "results", &id]);
        (id, results)
    }
}

fn files(results: &Value) -> &Value {
    &results["data"]["metadata"]["file_operations"]
}

fn codes(results: &Value) -> Vec<&str> {
    let warnings = results["meta"]["warning_details"].as_array().map(Vec::as_slice).unwrap_or_default();
    warnings.iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[test]
fn three_repositories_are_examined_and_restored() {
    let dirs = Directories::with_agent_running(
        "echo agent > file; echo agent > ../second/file; rm ../third/notes; echo agent > ../third/new",
    );
    for name in ["project", "second", "third"] {
        dirs.repository(name);
    }
    let (id, results) = dirs.run(&["second", "third"]);
    assert_eq!(files(&results)["modified_files"], json!(["../second/file", "file"]), "{results}");
    assert_eq!(files(&results)["added_files"], json!(["../third/new"]));
    assert_eq!(files(&results)["deleted_files"], json!(["../third/notes"]));
    assert_eq!((&files(&results)["scope"], &files(&results)["lines_changed"]), (&json!("whole"), &json!(6)));
    let artifacts: Vec<&Value> =
        results["data"]["artifacts"].as_array().unwrap().iter().map(|artifact| &artifact["ref"]).collect();
    assert_eq!(artifacts, ["file", "../second/file", "../third/new"]);
    let others = results["data"]["restore_point"]["other_work_trees"].as_array().unwrap();
    let others: Vec<&str> = others.iter().map(|point| point["work_tree"].as_str().unwrap()).collect();
    assert_eq!(others, ["second", "third"].map(|name| dirs.path(name).display().to_string()));
    let restored = dirs.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(restored["ok"], true, "{restored}");
    for name in ["project", "second", "third"] {
        assert_eq!(dirs.read(&format!("{name}/file")), "the user's\n", "{name}");
        assert_eq!(dirs.read(&format!("{name}/notes")), "the user's\n", "{name}");
    }
    assert!(!dirs.path("third/new").exists());
    let undone = dirs.stage.run_json(&["restore", &id, "--undo", "--confirm-destructive"]);
    assert_eq!(undone["ok"], true, "{undone}");
    assert_eq!(
        (dirs.read("second/file"), dirs.read("third/new")),
        ("agent\n".to_owned(), "agent\n".to_owned())
    );
    assert!(!dirs.path("third/notes").exists());
}

#[test]
fn a_directory_outside_of_git_is_examined_and_cannot_be_restored() {
    let dirs = Directories::with_agent_running("echo agent > ../plain/settings");
    dirs.repository("project");
    dirs.write("plain/settings", "the user's\n");
    let (_, results) = dirs.run(&["plain"]);
    assert_eq!(files(&results)["modified_files"], json!(["../plain/settings"]), "{results}");
    assert_eq!(files(&results)["scope"], "partial");
    assert!(codes(&results).contains(&"W_GIT_001"), "{results}");
    let warnings = results["meta"]["warning_details"].as_array().unwrap();
    let warning = warnings.iter().find(|warning| warning["code"] == "W_GIT_001").unwrap();
    assert_eq!(warning["context"]["path"], json!(dirs.path("plain")));
}

#[test]
fn directories_of_one_work_tree_are_examined_once() {
    let dirs = Directories::with_agent_running("echo agent > deep/file; echo agent > file");
    dirs.repository("project");
    dirs.write("project/deep/file", "the user's\n");
    let (_, results) = dirs.run(&["project/deep", "project"]);
    assert_eq!(files(&results)["modified_files"], json!(["deep/file", "file"]), "{results}");
    assert_eq!(results["data"]["restore_point"].get("other_work_trees"), None);
}

#[test]
fn submodules_and_inner_repositories_are_examined() {
    let dirs = Directories::with_agent_running("echo agent > module/file; echo agent > inner/file");
    dirs.repository("library");
    dirs.git("library", &["commit", "--quiet", "-am", "second"]);
    dirs.repository("project");
    dirs.repository("project/inner");
    dirs.git("project", &["submodule", "--quiet", "add", "../library", "module"]);
    dirs.write("project/module/file", "the user's in the submodule\n");
    let (id, results) = dirs.run(&[]);
    assert_eq!(files(&results)["modified_files"], json!(["inner/file", "module/file"]), "{results}");
    assert_eq!(files(&results)["scope"], "whole", "{results}");
    assert!(!codes(&results).contains(&"W_GIT_002"), "{results}");
    dirs.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(dirs.read("project/module/file"), "the user's in the submodule\n");
    assert_eq!(dirs.read("project/inner/file"), "the user's\n");
}

#[test]
fn a_deleted_dirty_submodule_is_reported_and_restored() {
    for delete in
        ["rm -rf module", "rm -rf module; mkdir module", "rm -rf module/.git module/file module/notes"]
    {
        let dirs = Directories::with_agent_running(delete);
        dirs.repository("library");
        dirs.git("library", &["commit", "--quiet", "-am", "second"]);
        dirs.repository("project");
        dirs.git("project", &["submodule", "--quiet", "add", "../library", "module"]);
        dirs.write("project/module/file", "the user's in the submodule\n");
        dirs.write("project/module/notes", "untracked in the submodule\n");
        let link = dirs.read("project/module/.git");
        let (id, results) = dirs.run(&[]);
        let deleted = json!(["module/file", "module/notes"]);
        assert_eq!(files(&results)["deleted_files"], deleted, "{delete}: {results}");
        let dry = dirs.stage.run_json(&["restore", &id, "--dry-run"]);
        assert_eq!(
            dry["data"]["other_work_trees"][0]["written"],
            json!(["file", "notes"]),
            "{delete}: {dry}"
        );
        assert!(!dirs.path("project/module/.git").exists(), "{delete}: a dry run changes nothing");
        let restored = dirs.stage.run_json(&["restore", &id, "--confirm-destructive"]);
        assert_eq!(restored["data"]["is_restored"], true, "{delete}: {restored}");
        assert_eq!(dirs.read("project/module/file"), "the user's in the submodule\n");
        assert_eq!(dirs.read("project/module/notes"), "untracked in the submodule\n");
        assert_eq!(dirs.read("project/module/.git"), link);
        dirs.git("project/module", &["rev-parse", "--verify", "HEAD"]);
        assert!(!restored["warnings"].to_string().contains("W_RESTORE_001"), "HEAD did not move: {restored}");
    }
}

#[test]
fn a_deleted_inner_repository_is_reported() {
    let dirs = Directories::with_agent_running("rm -rf inner");
    dirs.repository("project");
    dirs.repository("project/inner");
    let (id, results) = dirs.run(&[]);
    assert_eq!(files(&results)["deleted_files"], json!(["inner/file", "inner/notes"]), "{results}");
    // Its restore point was deleted with it.
    assert!(codes(&results).contains(&"W_GIT_005"), "{results}");
    let restored = dirs.stage.run_json(&["restore", &id, "--dry-run"]);
    let unavailable = &restored["meta"]["failure_data"]["unavailable_work_trees"];
    assert_eq!(unavailable[0]["work_tree"], json!(dirs.path("project/inner")), "{restored}");
}

#[test]
fn more_repositories_than_are_examined_are_named() {
    let dirs = Directories::with_agent_running("echo agent > inner-19/file");
    dirs.repository("project");
    for number in 0..20 {
        dirs.repository(&format!("project/inner-{number:02}"));
    }
    let (_, results) = dirs.run(&[]);
    assert_eq!(files(&results)["scope"], "partial", "{results}");
    let left_out = files(&results)["left_out"].as_array().unwrap();
    assert_eq!((left_out.len(), &left_out[4]["path"]), (5, &json!("inner-19/")), "{results}");
    assert_eq!(results["data"]["summary"], "Changed nothing in the files examined, ran 1 command");
    assert!(codes(&results).contains(&"W_FILES_008"), "{results}");
}

#[test]
fn an_ignored_file_of_the_user_is_examined_and_restored() {
    let dirs = Directories::with_agent_running("echo agent > .env; echo agent > build.log");
    dirs.repository("project");
    dirs.write("project/.gitignore", ".env\n*.log\n");
    dirs.write("project/.env", "PORT=1\n");
    let (id, results) = dirs.run(&[]);
    assert_eq!(files(&results)["modified_files"], json!([".env"]), "{results}");
    assert_eq!(files(&results)["added_files"], json!([]), "new files that git ignores are not listed");
    dirs.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(dirs.read("project/.env"), "PORT=1\n");
}

#[test]
fn a_linked_worktree_inside_the_tree_is_named_and_left_alone() {
    let dirs = Directories::with_agent_running("echo agent > linked/file; echo agent > file");
    dirs.repository("project");
    dirs.git("project", &["worktree", "add", "--quiet", "linked", "-b", "other"]);
    let (id, results) = dirs.run(&[]);
    assert_eq!(files(&results)["modified_files"], json!(["file"]), "{results}");
    assert_eq!(
        (&files(&results)["scope"], &files(&results)["left_out"][0]["path"]),
        (&json!("partial"), &json!("linked/"))
    );
    dirs.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(
        (dirs.read("project/file"), dirs.read("project/linked/file")),
        ("the user's\n".to_owned(), "agent\n".to_owned())
    );
}

#[test]
fn repositories_inside_a_directory_outside_of_git_are_examined_and_restored() {
    let dirs = Directories::with_agent_running("rm a/notes; cd deep/b; git add -A; git reset -q --hard");
    for name in ["project/a", "project/deep/b"] {
        dirs.repository(name);
    }
    let (id, results) = dirs.run(&[]);
    assert_eq!(files(&results)["deleted_files"], json!(["a/notes", "deep/b/notes"]), "{results}");
    assert_eq!(files(&results)["modified_files"], json!(["deep/b/file"]), "{results}");
    let restored = dirs.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(restored["ok"], true, "{restored}");
    for name in ["project/a", "project/deep/b"] {
        assert_eq!(dirs.read(&format!("{name}/notes")), "the user's\n", "{name}");
        assert_eq!(dirs.read(&format!("{name}/file")), "the user's\n", "{name}");
    }
}

#[test]
fn a_deleted_working_directory_is_not_called_unchanged() {
    let dirs = Directories::with_agent_running("rm -rf \"$PWD\"");
    dirs.repository("gone");
    let gone = dirs.path("gone").display().to_string();
    let id = dirs.stage.exec(&["--mode", "workspace-write", "--working-dir", &gone]);
    let waited = dirs.stage.wait(&id);
    let summary = waited["data"]["summary"].as_str().unwrap();
    assert!(summary.starts_with("Its changes could not be examined"), "{waited}");
}

#[test]
fn another_repository_in_the_same_place_is_reported() {
    let dirs = Directories::with_agent_running("rm -rf .git; git init -q .");
    dirs.repository("project");
    let (_, results) = dirs.run(&[]);
    assert!(codes(&results).contains(&"W_FILES_007"), "{results}");
}

#[test]
fn a_task_that_writes_cannot_have_our_own_directories() {
    let dirs = Directories::with_agent_running("true");
    dirs.write("home/.config/mcp-delegator/config.toml", "");
    let refused = |args: &[&str]| {
        let all = [&["local", "exec", "do it", "--mode", "workspace-write"], args].concat();
        let response = dirs.stage.run_json(&all);
        assert_eq!(response["error"]["code"], "POLICY_BLOCKED", "{args:?}: {response}");
    };
    let path = |name: &str| dirs.path(name).display().to_string();
    let state = dirs.stage.task_dir("x").parent().unwrap().parent().unwrap().display().to_string();
    std::fs::create_dir_all(format!("{state}/tasks")).unwrap();
    refused(&["--add-dirs", &state]);
    refused(&["--working-dir", &format!("{state}/tasks")]);
    refused(&["--add-dirs", &path("home")]);
    refused(&["--add-dirs", "/"]);
    refused(&["--add-dirs", &path("home/.config/mcp-delegator")]);
    let reading = dirs.stage.run_json(&["local", "exec", "do it", "--add-dirs", &path("home")]);
    assert_eq!(reading["ok"], true, "{reading}");
}

#[test]
fn limits_of_an_additional_directory_apply() {
    let dirs = Directories::with_agent_running("true");
    dirs.repository("limited");
    let limited = dirs.path("limited").display().to_string();
    for (text, code) in [("max_mode = \"read-only\"\n", "POLICY_BLOCKED"), ("broken = [", "CONFIG_INVALID")] {
        dirs.write("limited/.mcp-delegator.toml", text);
        let writing = ["local", "exec", "do it", "--mode", "workspace-write", "--add-dirs", &limited];
        let response = dirs.stage.run_json(&writing);
        assert_eq!(response["error"]["code"], code, "{response}");
    }
}

#[test]
fn a_restore_point_that_the_agent_deleted_is_not_offered() {
    let dirs = Directories::with_agent_running("rm -rf .git/mcp-delegator; rm notes");
    dirs.repository("project");
    let (_, results) = dirs.run(&[]);
    assert!(codes(&results).contains(&"W_GIT_005"), "{results}");
    assert_eq!(results["data"]["restore_point"].get("restore_command"), None, "{results}");
}

#[test]
fn labels_come_from_the_project_of_the_working_directory_alone() {
    let dirs = Directories::with_agent_running("true");
    for name in ["project", "second"] {
        dirs.repository(name);
        dirs.write(&format!("{name}/.mcp-delegator.toml"), &format!("[labels]\nteam = \"{name}\"\n"));
    }
    let (id, _) = dirs.run(&["second"]);
    let found = |team: &str| {
        let status = dirs.stage.run_json(&["local", "status", "--labels", &format!("team={team}")]);
        status["data"].to_string().contains(&id)
    };
    assert!(found("project") && !found("second"));
}

#[test]
fn relative_directories_on_the_command_line_start_in_the_current_one() {
    let dirs = Directories::with_agent_running("pwd > where; echo agent > ../second/file");
    dirs.repository("second");
    dirs.write("project/web/.keep", "");
    let stage = &dirs.stage;
    let args = ["--mode", "workspace-write", "--working-dir", "web", "--add-dirs", "../second"];
    let waited = stage.wait(&stage.exec(&args));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    assert_eq!(waited["data"]["working_dir"], json!(dirs.path("project/web")), "{waited}");
    assert_eq!(dirs.read("project/web/where"), format!("{}\n", dirs.path("project/web").display()));
    let missing = stage.world.run(["local", "exec", "x", "--working-dir", "webb"]);
    let place = dirs.path("project/webb").display().to_string();
    assert!(missing.exit == Some(2) && missing.stdout.contains(&place), "{missing:?}");
}

#[test]
fn a_retry_in_another_mode_runs_in_that_mode() {
    let dirs = Directories::with_agent_running("true");
    dirs.repository("project");
    let stage = dirs.stage.variable("MCP_DELEGATOR_MAX_MODE", "danger-full-access");
    let first = stage.exec(&[]);
    stage.wait(&first);
    let retried = stage.run_json(&["retry", &first, "--mode", "workspace-write"]);
    let second = retried["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{retried}"));
    assert!(stage.wait(second)["data"]["restore_point"].is_object(), "a writing task has a restore point");
    // The mode of a retry is consent, except for the one without a sandbox.
    let refused = stage.run_json(&["retry", &first, "--mode", "danger-full-access"]);
    assert_eq!(refused["error"]["code"], "CONFIRMATION_REQUIRED", "{refused}");
    let confirmed = stage.run_json(&["retry", &first, "--mode", "danger-full-access", "--confirm"]);
    let third = confirmed["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{confirmed}"));
    stage.wait(third);
    let again = stage.run_json(&["retry", third]);
    assert_eq!(again["error"]["code"], "CONFIRMATION_REQUIRED", "{again}");
}
