//! Tasks that may write in more than their working directory: what they change is examined everywhere.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

use std::path::PathBuf;

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");

/// Directories beside each other, `project` among them, and an agent that runs one command in `project`.
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

    /// A repository with `file` committed, changed since, and a file git does not know.
    fn repository(&self, name: &str) {
        self.write(&format!("{name}/file"), "committed\n");
        self.git(name, &["init", "--quiet", "--initial-branch=main"]);
        self.git(name, &["add", "."]);
        self.git(name, &["commit", "--quiet", "-m", "first"]);
        self.write(&format!("{name}/file"), "the user's\n");
        self.write(&format!("{name}/notes"), "the user's\n");
    }

    /// Runs a task to its end with these additional directories; returns its id and what `local results` answers.
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
    let here = Directories::with_agent_running(
        "echo agent > file; echo agent > ../second/file; rm ../third/notes; echo agent > ../third/new",
    );
    for name in ["project", "second", "third"] {
        here.repository(name);
    }
    let (id, results) = here.run(&["second", "third"]);
    assert_eq!(files(&results)["modified_files"], json!(["../second/file", "file"]), "{results}");
    assert_eq!(files(&results)["added_files"], json!(["../third/new"]));
    assert_eq!(files(&results)["deleted_files"], json!(["../third/notes"]));
    assert_eq!((&files(&results)["scope"], &files(&results)["lines_changed"]), (&json!("whole"), &json!(6)));
    let artifacts: Vec<&Value> =
        results["data"]["artifacts"].as_array().unwrap().iter().map(|artifact| &artifact["ref"]).collect();
    assert_eq!(artifacts, ["file", "../second/file", "../third/new"]);
    let others = results["data"]["restore_point"]["other_work_trees"].as_array().unwrap();
    let others: Vec<&str> = others.iter().map(|point| point["work_tree"].as_str().unwrap()).collect();
    assert_eq!(others, ["second", "third"].map(|name| here.path(name).display().to_string()));
    let restored = here.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(restored["ok"], true, "{restored}");
    for name in ["project", "second", "third"] {
        assert_eq!(here.read(&format!("{name}/file")), "the user's\n", "{name}");
        assert_eq!(here.read(&format!("{name}/notes")), "the user's\n", "{name}");
    }
    assert!(!here.path("third/new").exists());
    let undone = here.stage.run_json(&["restore", &id, "--undo", "--confirm-destructive"]);
    assert_eq!(undone["ok"], true, "{undone}");
    assert_eq!(
        (here.read("second/file"), here.read("third/new")),
        ("agent\n".to_owned(), "agent\n".to_owned())
    );
    assert!(!here.path("third/notes").exists());
}

#[test]
fn a_directory_outside_of_git_is_examined_and_cannot_be_restored() {
    let here = Directories::with_agent_running("echo agent > ../plain/settings");
    here.repository("project");
    here.write("plain/settings", "the user's\n");
    let (_, results) = here.run(&["plain"]);
    assert_eq!(files(&results)["modified_files"], json!(["../plain/settings"]), "{results}");
    assert_eq!(files(&results)["scope"], "partial");
    assert!(codes(&results).contains(&"W_GIT_001"), "{results}");
    let warnings = results["meta"]["warning_details"].as_array().unwrap();
    let warning = warnings.iter().find(|warning| warning["code"] == "W_GIT_001").unwrap();
    assert_eq!(warning["context"]["path"], json!(here.path("plain")));
}

#[test]
fn directories_of_one_work_tree_are_examined_once() {
    let here = Directories::with_agent_running("echo agent > deep/file; echo agent > file");
    here.repository("project");
    here.write("project/deep/file", "the user's\n");
    let (_, results) = here.run(&["project/deep", "project"]);
    assert_eq!(files(&results)["modified_files"], json!(["deep/file", "file"]), "{results}");
    assert_eq!(results["data"]["restore_point"].get("other_work_trees"), None);
}

#[test]
fn submodules_and_inner_repositories_are_examined() {
    let here = Directories::with_agent_running("echo agent > module/file; echo agent > inner/file");
    here.repository("library");
    here.git("library", &["commit", "--quiet", "-am", "second"]);
    here.repository("project");
    here.repository("project/inner");
    here.git("project", &["submodule", "--quiet", "add", "../library", "module"]);
    here.write("project/module/file", "the user's in the submodule\n");
    let (id, results) = here.run(&[]);
    assert_eq!(files(&results)["modified_files"], json!(["inner/file", "module/file"]), "{results}");
    assert_eq!(files(&results)["scope"], "whole", "{results}");
    assert!(!codes(&results).contains(&"W_GIT_002"), "{results}");
    here.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(here.read("project/module/file"), "the user's in the submodule\n");
    assert_eq!(here.read("project/inner/file"), "the user's\n");
}

#[test]
fn more_repositories_than_are_examined_are_named() {
    let here = Directories::with_agent_running("echo agent > inner-19/file");
    here.repository("project");
    for number in 0..20 {
        here.repository(&format!("project/inner-{number:02}"));
    }
    let (_, results) = here.run(&[]);
    assert_eq!(files(&results)["scope"], "partial", "{results}");
    let left_out = files(&results)["left_out"].as_array().unwrap();
    assert_eq!((left_out.len(), &left_out[4]["path"]), (5, &json!("inner-19/")), "{results}");
    assert_eq!(results["data"]["summary"], "Changed nothing in the files examined, ran 1 command");
    assert!(codes(&results).contains(&"W_FILES_008"), "{results}");
}

#[test]
fn an_ignored_file_of_the_user_is_examined_and_restored() {
    let here = Directories::with_agent_running("echo agent > .env; echo agent > build.log");
    here.repository("project");
    here.write("project/.gitignore", ".env\n*.log\n");
    here.write("project/.env", "PORT=1\n");
    let (id, results) = here.run(&[]);
    assert_eq!(files(&results)["modified_files"], json!([".env"]), "{results}");
    assert_eq!(files(&results)["added_files"], json!([]), "new files that git ignores are not listed");
    here.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(here.read("project/.env"), "PORT=1\n");
}

#[test]
fn a_linked_worktree_inside_the_tree_is_named_and_left_alone() {
    let here = Directories::with_agent_running("echo agent > linked/file; echo agent > file");
    here.repository("project");
    here.git("project", &["worktree", "add", "--quiet", "linked", "-b", "other"]);
    let (id, results) = here.run(&[]);
    assert_eq!(files(&results)["modified_files"], json!(["file"]), "{results}");
    assert_eq!(
        (&files(&results)["scope"], &files(&results)["left_out"][0]["path"]),
        (&json!("partial"), &json!("linked/"))
    );
    here.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(
        (here.read("project/file"), here.read("project/linked/file")),
        ("the user's\n".to_owned(), "agent\n".to_owned())
    );
}

#[test]
fn repositories_inside_a_directory_outside_of_git_are_examined_and_restored() {
    let here = Directories::with_agent_running("rm a/notes; cd deep/b; git add -A; git reset -q --hard");
    for name in ["project/a", "project/deep/b"] {
        here.repository(name);
    }
    let (id, results) = here.run(&[]);
    assert_eq!(files(&results)["deleted_files"], json!(["a/notes", "deep/b/notes"]), "{results}");
    assert_eq!(files(&results)["modified_files"], json!(["deep/b/file"]), "{results}");
    let restored = here.stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(restored["ok"], true, "{restored}");
    for name in ["project/a", "project/deep/b"] {
        assert_eq!(here.read(&format!("{name}/notes")), "the user's\n", "{name}");
        assert_eq!(here.read(&format!("{name}/file")), "the user's\n", "{name}");
    }
}

#[test]
fn a_deleted_working_directory_is_not_called_unchanged() {
    let here = Directories::with_agent_running("rm -rf \"$PWD\"");
    here.repository("gone");
    let gone = here.path("gone").display().to_string();
    let id = here.stage.exec(&["--mode", "workspace-write", "--working-dir", &gone]);
    let waited = here.stage.wait(&id);
    let summary = waited["data"]["summary"].as_str().unwrap();
    assert!(summary.starts_with("Its changes could not be examined"), "{waited}");
}

#[test]
fn another_repository_in_the_same_place_is_reported() {
    let here = Directories::with_agent_running("rm -rf .git; git init -q .");
    here.repository("project");
    let (_, results) = here.run(&[]);
    assert!(codes(&results).contains(&"W_FILES_007"), "{results}");
}

#[test]
fn a_task_that_writes_cannot_have_our_own_directories() {
    let here = Directories::with_agent_running("true");
    here.write("home/.config/mcp-delegator/config.toml", "");
    let refused = |args: &[&str]| {
        let all = [&["local", "exec", "do it", "--mode", "workspace-write"], args].concat();
        let answer = here.stage.run_json(&all);
        assert_eq!(answer["error"]["code"], "POLICY_BLOCKED", "{args:?}: {answer}");
    };
    let path = |name: &str| here.path(name).display().to_string();
    let state = here.stage.task_dir("x").parent().unwrap().parent().unwrap().display().to_string();
    std::fs::create_dir_all(format!("{state}/tasks")).unwrap();
    refused(&["--add-dirs", &state]);
    refused(&["--working-dir", &format!("{state}/tasks")]);
    refused(&["--add-dirs", &path("home")]);
    refused(&["--add-dirs", "/"]);
    refused(&["--add-dirs", &path("home/.config/mcp-delegator")]);
    let reading = here.stage.run_json(&["local", "exec", "do it", "--add-dirs", &path("home")]);
    assert_eq!(reading["ok"], true, "{reading}");
}

#[test]
fn limits_of_an_additional_directory_apply() {
    let here = Directories::with_agent_running("true");
    here.repository("limited");
    let limited = here.path("limited").display().to_string();
    for (text, code) in [("max_mode = \"read-only\"\n", "POLICY_BLOCKED"), ("broken = [", "CONFIG_INVALID")] {
        here.write("limited/.mcp-delegator.toml", text);
        let writing = ["local", "exec", "do it", "--mode", "workspace-write", "--add-dirs", &limited];
        let answer = here.stage.run_json(&writing);
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
}

#[test]
fn a_restore_point_that_the_agent_deleted_is_not_offered() {
    let here = Directories::with_agent_running("rm -rf .git/mcp-delegator; rm notes");
    here.repository("project");
    let (_, results) = here.run(&[]);
    assert!(codes(&results).contains(&"W_GIT_005"), "{results}");
    assert_eq!(results["data"]["restore_point"].get("restore_command"), None, "{results}");
}

#[test]
fn labels_come_from_the_project_of_the_working_directory_alone() {
    let here = Directories::with_agent_running("true");
    for name in ["project", "second"] {
        here.repository(name);
        here.write(&format!("{name}/.mcp-delegator.toml"), &format!("[labels]\nteam = \"{name}\"\n"));
    }
    let (id, _) = here.run(&["second"]);
    let found = |team: &str| {
        let status = here.stage.run_json(&["local", "status", "--labels", &format!("team={team}")]);
        status["data"].to_string().contains(&id)
    };
    assert!(found("project") && !found("second"));
}
