//! File changes of a task as the program reports them, with a scripted agent in place of Codex.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;

pub(crate) const WRITE_MODE: [&str; 2] = ["--mode", "workspace-write"];

/// A project directory, and an agent that runs these steps in it.
pub(crate) struct Project {
    pub(crate) stage: Stage,
}

impl Project {
    pub(crate) fn without_git(steps: &[Value]) -> Project {
        Project { stage: Stage::with_script(PROGRAM, successful_turn(steps)) }
    }

    /// A repository with one commit, one modified file and one untracked file.
    pub(crate) fn repository(steps: &[Value]) -> Project {
        let project = Project::without_git(steps);
        project.write("code.txt", "one\ntwo\n");
        project.write("old.txt", "a file\nof some\nlines\n");
        project.write("dirty.txt", "committed\n");
        project.write("src/deep.txt", "deep\n");
        project.write(".gitignore", "*.log\n");
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        project.git(&["add", "."]);
        project.git(&["commit", "--quiet", "-m", "first"]);
        project.write("dirty.txt", "mine\n");
        project.write("notes.txt", "mine\n");
        project
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.stage.world.write(&format!("project/{path}"), text);
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let run = self.stage.world.run_as(&PathBuf::from("/usr/bin/git"), [&identity, args].concat());
        assert_eq!(run.exit, Some(0), "{run:?}");
        run.stdout
    }

    /// Runs a task to its end and returns the output of `local results`.
    fn results(&self, more: &[&str]) -> Value {
        let id = self.stage.exec(more);
        let waited = self.stage.wait(&id);
        assert_eq!(waited["data"]["state"], "completed", "{waited}");
        let results = self.stage.run_json(&["local", "results", &id]);
        let leftovers = std::fs::read_dir(self.stage.task_dir(&id)).unwrap().flatten();
        let leftovers: Vec<_> = leftovers.filter(|entry| entry.path().is_dir()).collect();
        assert!(leftovers.is_empty(), "a temporary directory of the evidence is left: {leftovers:?}");
        results
    }
}

pub(crate) fn write(path: &str, text: &str) -> Value {
    json!({"write_file": {"path": path, "text": text}})
}

pub(crate) fn command(text: &str) -> Value {
    json!({"command": {"run": text}})
}

/// A file change that the agent reports but does not make.
fn claim(path: &str) -> Value {
    let item = json!({"id": format!("claim-{path}"), "type": "file_change", "status": "completed",
                      "changes": [{"path": path, "kind": "update"}]});
    json!({"raw": {"text": format!("{}\n", json!({"type": "item.completed", "item": item}))}})
}

pub(crate) fn operations(results: &Value) -> [&Value; 4] {
    ["modified_files", "added_files", "deleted_files", "lines_changed"]
        .map(|key| &results["data"]["metadata"]["file_operations"][key])
}

fn file_warnings(results: &Value) -> Vec<(String, String)> {
    let details = results["meta"]["warning_details"].as_array().cloned().unwrap_or_default();
    let text = |warning: &Value, key: &str| warning[key].as_str().unwrap_or_default().to_owned();
    let all = details.iter().map(|warning| (text(warning, "code"), text(warning, "message")));
    all.filter(|(code, _)| code.starts_with("W_FILES_")).collect()
}

/// The `context` of each `W_FILES_*` warning.
fn file_warning_contexts(results: &Value) -> Vec<Value> {
    let all = results["meta"]["warning_details"].as_array().cloned().unwrap_or_default();
    let about_files = all.iter().filter(|warning| warning["code"].as_str().unwrap().starts_with("W_FILES_"));
    about_files.map(|warning| warning["context"].clone()).collect()
}

fn file_warning_codes(results: &Value) -> Vec<String> {
    file_warnings(results).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn claimed_changes_are_reported_with_lines_and_digests() {
    let project = Project::repository(&[
        write("code.txt", "one\n2\nthree\n"),
        write("new/file.txt", "hello\n"),
        json!({"delete_file": "notes.txt"}),
    ]);
    let results = project.results(&WRITE_MODE);
    let expected = [json!(["code.txt"]), json!(["new/file.txt"]), json!(["notes.txt"]), json!(5)];
    assert_eq!(operations(&results), expected.each_ref(), "{results}");
    assert_eq!(file_warnings(&results), [], "{results}");
    assert_eq!(results["data"]["summary"], "Modified 1 file, added 1 and deleted 1 (+3 −2)");
    let files = &results["data"]["metadata"]["file_operations"];
    assert_eq!((&files["source"], &files["scope"]), (&json!("git"), &json!("whole")));
    let digest = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    let artifacts = results["data"]["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 2, "{results}");
    let file = json!({
        "type": "file", "ref": "new/file.txt", "size": 6, "sha256": digest, "attributed_to": "agent"
    });
    assert_eq!(artifacts[1], file);
    assert_eq!(files.get("unattributed_files"), None);
    let shown = project.stage.world.run([
        "local",
        "results",
        results["data"]["task_id"].as_str().unwrap(),
        "--format",
        "markdown",
    ]);
    assert!(shown.stdout.contains("+3 −2"), "{shown:?}");
}

#[test]
fn a_claimed_change_that_did_not_happen_is_a_warning_with_its_path() {
    let project = Project::repository(&[
        claim("code.txt"),
        write("run.log", "ignored\n"),
        claim("/somewhere/else.txt"),
        write("src/deep.txt", "deeper\n"),
    ]);
    let results = project.results(&WRITE_MODE);
    assert_eq!(operations(&results)[..2], [&json!(["src/deep.txt"]), &json!([])], "{results}");
    let warnings = file_warnings(&results);
    assert_eq!(file_warning_codes(&results), ["W_FILES_001", "W_FILES_002", "W_FILES_002"], "{warnings:?}");
    let paths: Vec<Value> =
        file_warning_contexts(&results).iter().map(|context| context["paths"].clone()).collect();
    assert_eq!(paths, [json!(["code.txt"]), json!(["run.log"]), json!(["/somewhere/else.txt"])], "{results}");
    assert!(warnings[1].1.contains("ignores") && warnings[2].1.contains("outside"), "{warnings:?}");
}

#[test]
fn changes_by_commands_are_reported_committed_or_not() {
    let project = Project::repository(&[
        command("git mv old.txt moved.txt && git -c user.name=a -c user.email=a@b commit -qm 'Move it'"),
        command("echo 3 >> code.txt && git -c user.name=a -c user.email=a@b commit -qm 'And more' code.txt"),
        command("echo made > made.txt && echo x > made.log"),
    ]);
    let results = project.results(&WRITE_MODE);
    let expected = [json!(["code.txt"]), json!(["made.txt", "moved.txt"]), json!(["old.txt"]), json!(2)];
    assert_eq!(operations(&results), expected.each_ref(), "{results}");
    let files = &results["data"]["metadata"]["file_operations"];
    assert_eq!(files["renamed_files"], json!([{"from": "old.txt", "to": "moved.txt"}]));
    let git = &results["data"]["git"];
    assert_eq!((&git["commit_count"], &git["commits"]), (&json!(2), &json!(["And more", "Move it"])));
    assert_eq!((&git["is_index_changed"], &git["branch_after"]), (&json!(true), &json!("refs/heads/main")));
    assert_ne!(git["head_before"], git["head_after"]);
    assert_eq!(file_warning_codes(&results), ["W_FILES_004"], "{results}");
    let summary = "Modified 1 file, added 1 and renamed 1 (+2 −0), made 2 commits, ran 3 commands";
    assert_eq!(results["data"]["summary"], summary);
}

#[test]
fn uncommitted_changes_before_the_task_are_not_reported() {
    for mode in ["read-only", "workspace-write"] {
        let project = Project::repository(&[command("touch code.txt; git status")]);
        let results = project.results(&["--mode", mode]);
        assert_eq!(operations(&results), [&json!([]), &json!([]), &json!([]), &json!(0)], "{results}");
        assert_eq!(file_warnings(&results), [], "{results}");
        assert_eq!(results["data"]["artifacts"], json!([]));
        assert_eq!(results["data"]["git"]["is_index_changed"], false);
        assert_eq!(results["data"]["summary"], "Changed nothing, ran 1 command");
    }
}

#[test]
fn a_write_by_a_read_only_task_is_reported() {
    let project = Project::repository(&[write("dirty.txt", "mine\nand its\n")]);
    let objects = project.git(&["count-objects"]);
    let results = project.results(&["--mode", "read-only"]);
    assert_eq!(operations(&results)[0], &json!(["dirty.txt"]), "{results}");
    assert_eq!(operations(&results)[3], &json!(1), "only what the task added: {results}");
    assert_eq!(file_warning_codes(&results), ["W_FILES_005"]);
    assert_eq!(project.git(&["count-objects"]), objects, "examining added objects to the repository");
}

/// Starts a task whose agent waits, changes files as a user would, and returns the results of the task.
fn results_with_changes_meanwhile(project: &Project, mode: &[&str], change: impl FnOnce()) -> Value {
    let id = project.stage.exec(mode);
    project.stage.wait_for_project_file("ready.log");
    change();
    project.write("go.log", "");
    project.stage.wait(&id);
    project.stage.run_json(&["local", "results", &id])
}

fn waiting_steps(steps: &[Value]) -> Vec<Value> {
    [steps, &[json!({"touch_file": "ready.log"}), json!({"wait_for_file": "go.log"})]].concat()
}

#[test]
fn files_written_by_others_are_not_blamed_on_the_agent() {
    let project = Project::repository(&waiting_steps(&[write("code.txt", "one\n2\n")]));
    let results = results_with_changes_meanwhile(&project, &WRITE_MODE, || {
        project.write("mine.txt", "the user's\n");
        project.git(&["commit", "--quiet", "--allow-empty", "-m", "the user's"]);
    });
    let files = &results["data"]["metadata"]["file_operations"];
    assert_eq!(
        (&files["modified_files"], &files["added_files"]),
        (&json!(["code.txt"]), &json!(["mine.txt"]))
    );
    assert_eq!(files["unattributed_files"], json!(["mine.txt"]), "{results}");
    assert_eq!(
        results["data"]["summary"],
        "Modified 1 file (+1 −1); 1 file changed during the task, not attributed to the agent; \
         1 commit made during the task, not attributed to the agent"
    );
    let artifact = |path: &str| {
        let artifacts = results["data"]["artifacts"].as_array().unwrap();
        artifacts.iter().find(|file| file["ref"] == path).unwrap()["attributed_to"].clone()
    };
    assert_eq!((artifact("code.txt"), artifact("mine.txt")), (json!("agent"), json!("unknown")));
    assert_eq!(results["data"]["git"]["attributed_to"], "unknown", "{results}");
    assert_eq!(file_warning_codes(&results), ["W_FILES_003"], "{results}");
    // A restore leaves them alone and says why.
    let id = results["data"]["task_id"].as_str().unwrap();
    let restored = project.stage.run_json(&["restore", id, "--confirm-destructive"]);
    assert_eq!(restored["data"]["written"], json!(["code.txt"]), "{restored}");
    let reason = "changed during the task, but nothing attributes it to the agent";
    assert_eq!(restored["data"]["kept"], json!([{"path": "mine.txt", "reason": reason}]), "{restored}");
    let head = || project.git(&["rev-parse", "HEAD"]);
    let users = head();
    // Nothing else is left to restore: this is no success.
    let sentence = "Nothing restored: 1 file is not attributed to the agent; --all reverts it";
    let planned = project.stage.world.run(["restore", id, "--dry-run", "--envelope", "standard"]);
    assert!(planned.exit == Some(0) && planned.stdout.contains(sentence), "{planned:?}");
    let forced = project.stage.world.run(["restore", id, "--force", "--confirm-destructive"]);
    assert_eq!(forced.exit, Some(4), "{forced:?}");
    let forced = forced.json();
    assert_eq!(forced["error"]["message"], format!("{sentence}."), "{forced}");
    assert_eq!(forced["meta"]["failure_data"]["kept"][0]["path"], "mine.txt", "{forced}");
    assert_eq!((&forced["meta"]["failure_data"]["is_head_restored"], head()), (&json!(false), users.clone()));
    let warnings = forced["warnings"].to_string();
    assert!(warnings.contains("nothing attributes the move to the agent"), "{forced}");
    let all = project.stage.run_json(&["restore", id, "--all", "--force", "--confirm-destructive"]);
    assert_eq!(all["data"]["removed"], json!(["mine.txt"]), "{all}");
    assert_ne!(head(), users, "{all}");
}

#[test]
fn changes_during_a_read_only_task_are_not_the_agents() {
    let project = Project::repository(&waiting_steps(&[command("true")]));
    let results = results_with_changes_meanwhile(&project, &["--mode", "read-only"], || {
        project.write("code.txt", "the user's\n");
    });
    assert_eq!(
        results["data"]["summary"],
        "Changed nothing, ran 1 command; 1 file changed during the task, not attributed to the agent"
    );
    let warnings = file_warnings(&results);
    assert_eq!(warnings.len(), 1, "{results}");
    assert_eq!(
        warnings[0],
        (
            "W_FILES_003".to_owned(),
            "1 file changed during the task, not by the agent: its sandbox was read-only".to_owned()
        )
    );
}

/// An event of the agent about an item.
fn item_event(event: &str, item: &Value) -> Value {
    json!({"raw": {"text": format!("{}\n", json!({"type": event, "item": item}))}})
}

#[test]
fn an_mcp_call_of_a_read_only_task_does_not_make_changes_the_agents() {
    let call = json!({"id": "m", "type": "mcp_tool_call", "server": "s", "tool": "t", "status": "completed"});
    let project = Project::repository(&waiting_steps(&[item_event("item.completed", &call)]));
    let results = results_with_changes_meanwhile(&project, &["--mode", "read-only"], || {
        project.write("mine.txt", "the user's\n");
    });
    assert_eq!(
        results["data"]["summary"],
        "Changed nothing; 1 file changed during the task, not attributed to the agent"
    );
    let warnings = results["meta"]["warning_details"].as_array().unwrap();
    assert_eq!((warnings.len(), &warnings[0]["code"]), (1, &json!("W_FILES_003")), "{results}");
    assert!(warnings[0]["message"].as_str().unwrap().contains("may have been changed by MCP tools"));
}

#[test]
fn the_files_of_a_failed_patch_are_the_agents_and_restored() {
    let patch = |path: &str| json!([{"path": path, "kind": "update"}]);
    let failed = json!({"id": "f", "type": "file_change", "status": "failed", "changes": patch("code.txt")});
    let open =
        json!({"id": "o", "type": "file_change", "status": "in_progress", "changes": patch("old.txt")});
    let events = [item_event("item.completed", &failed), item_event("item.started", &open)];
    let project = Project::repository(&waiting_steps(&events));
    let results = results_with_changes_meanwhile(&project, &WRITE_MODE, || {
        project.write("code.txt", "half\n");
        project.write("old.txt", "half\n");
    });
    assert_eq!(results["data"]["summary"], "Modified 2 files (+2 −5)");
    let id = results["data"]["task_id"].as_str().unwrap();
    let restored = project.stage.run_json(&["restore", id, "--confirm-destructive"]);
    assert_eq!(restored["data"]["written"], json!(["code.txt", "old.txt"]), "{restored}");
}

#[test]
fn the_new_name_of_a_renamed_and_rewritten_file_may_be_the_agents() {
    let project = Project::repository(&waiting_steps(&[claim("old.txt")]));
    let results = results_with_changes_meanwhile(&project, &WRITE_MODE, || {
        std::fs::remove_file(project.stage.world.project().join("old.txt")).unwrap();
        project.write("new.txt", "nothing in common\n");
    });
    let files = &results["data"]["metadata"]["file_operations"];
    assert_eq!(files["possibly_agent_files"], json!(["new.txt"]), "{results}");
    assert_eq!(results["data"]["summary"], "Added 1 file and deleted 1 (+1 −3)");
}

#[test]
fn the_state_directory_is_not_reported_as_changed() {
    let project = Project::without_git(&[json!({"touch_file": "made.txt"})]);
    let root = project.stage.root().display().to_string();
    let results = project.results(&["--mode", "read-only", "--working-dir", &root]);
    let [modified, added, deleted, _] = operations(&results);
    let own = |list: &Value| list.to_string().contains("home/state");
    assert!(!own(modified) && !own(added) && !own(deleted), "{results}");
}

#[test]
fn paths_are_relative_to_the_working_directory() {
    let project = Project::repository(&[
        write("deep.txt", "deeper\n"),
        write("../code.txt", "beside\n"),
        command("echo x > ../made.txt"),
    ]);
    let src = project.stage.world.project().join("src");
    let results = project.results(&[&WRITE_MODE[..], &["--working-dir", src.to_str().unwrap()]].concat());
    let expected = [json!(["../code.txt", "deep.txt"]), json!(["../made.txt"])];
    assert_eq!(operations(&results)[..2], [&expected[0], &expected[1]], "{results}");
    assert_eq!(file_warning_codes(&results), ["W_FILES_004"], "{results}");
    let refs: Vec<&Value> =
        results["data"]["artifacts"].as_array().unwrap().iter().map(|artifact| &artifact["ref"]).collect();
    assert_eq!(refs, [&json!("deep.txt")], "only artifacts below the working directory");
}

#[test]
fn special_files_are_listed_and_not_opened() {
    let project = Project::repository(&[command(
        "rm code.txt old.txt && mkfifo code.txt && ln -s /etc/passwd old.txt && mkfifo fresh && \
         truncate -s 20G huge.bin && printf x > \"$(printf 'caf\\351.txt')\" && ln -s / out",
    )]);
    let results = project.results(&WRITE_MODE);
    let expected = [json!(["code.txt", "old.txt"]), json!(["caf\u{fffd}.txt", "huge.bin", "out"]), json!([])];
    assert_eq!(operations(&results)[..3], [&expected[0], &expected[1], &expected[2]], "{results}");
    let files = &results["data"]["metadata"]["file_operations"];
    assert_eq!((&files["scope"], &files["left_out_count"]), (&json!("partial"), &json!(2)), "{files}");
    let artifacts = results["data"]["artifacts"].as_array().unwrap();
    let hashed: Vec<(&Value, bool)> =
        artifacts.iter().map(|file| (&file["ref"], file["sha256"].is_string())).collect();
    assert_eq!(hashed, [(&json!("caf\u{fffd}.txt"), true), (&json!("huge.bin"), false)], "{results}");
    assert_eq!(artifacts[1]["not_hashed"], "too_large");
    assert_eq!(artifacts[1]["size"], 20_u64 << 30);
    let odd = project.stage.world.project().join(OsStr::from_bytes(b"caf\xe9.txt"));
    assert!(odd.exists(), "the file name is valid UTF-8");
}

#[test]
fn outside_of_git_changes_are_found_by_name_size_and_time() {
    let project = Project::without_git(&[
        write("code.txt", "changed\n"),
        write("new/file.txt", "new\n"),
        claim("same.txt"),
        json!({"delete_file": "gone.txt"}),
        command("mkdir -p node_modules/x && echo x > node_modules/x/y; echo x > by-command.txt"),
        write("target/z", "z"),
    ]);
    for (path, text) in [("code.txt", "a\n"), ("same.txt", "b\n"), ("gone.txt", "c\n")] {
        project.write(path, text);
    }
    let results = project.results(&WRITE_MODE);
    let expected =
        [json!(["code.txt"]), json!(["by-command.txt", "new/file.txt"]), json!(["gone.txt"]), json!(2)];
    assert_eq!(operations(&results), expected.each_ref(), "{results}");
    let files = &results["data"]["metadata"]["file_operations"];
    assert_eq!((&files["source"], &files["scope"]), (&json!("scan"), &json!("partial")));
    assert_eq!(files["is_lines_changed_exact"], false, "{files}");
    let expected = ["W_FILES_001", "W_FILES_002", "W_FILES_004", "W_FILES_008"];
    assert_eq!(file_warning_codes(&results), expected, "{results}");
    assert_eq!(results["data"].get("git"), None);
    assert_eq!(results["data"]["artifacts"].as_array().unwrap().len(), 3);
}

#[test]
fn lines_changed_is_a_number_with_its_exactness() {
    let exact = |project: &Project| {
        let results = project.results(&WRITE_MODE);
        let files = &results["data"]["metadata"]["file_operations"];
        (files["lines_changed"].clone(), files["is_lines_changed_exact"].clone())
    };
    let nothing = Project::without_git(&[command("true")]);
    assert_eq!(exact(&nothing), (json!(0), json!(true)));
    let new_file = Project::without_git(&[write("new.txt", "a\nb\n")]);
    assert_eq!(exact(&new_file), (json!(2), json!(true)));
    let in_git = Project::repository(&[write("code.txt", "changed\n")]);
    assert_eq!(exact(&in_git).1, json!(true));
    let changed = Project::without_git(&[write("old.txt", "other text\n"), write("new.txt", "a\n")]);
    changed.write("old.txt", "text\n");
    assert_eq!(exact(&changed), (json!(1), json!(false)));
}

#[test]
fn a_created_removed_or_switched_repository_is_reported() {
    let created = Project::without_git(&[command("git init -q . && echo x > x.txt && git add x.txt")]);
    let results = created.results(&WRITE_MODE);
    assert_eq!(operations(&results)[1], &json!(["x.txt"]), "{results}");
    assert!(file_warning_codes(&results).contains(&"W_FILES_007".to_owned()), "{results}");

    let removed = Project::repository(&[command("rm -rf .git"), write("code.txt", "changed\n")]);
    let results = removed.results(&WRITE_MODE);
    assert_eq!(operations(&results)[0], &json!(["code.txt"]), "{results}");
    assert!(file_warning_codes(&results).contains(&"W_FILES_007".to_owned()), "{results}");

    let switched = Project::repository(&[command("git switch -q -c other")]);
    let results = switched.results(&WRITE_MODE);
    assert_eq!(operations(&results)[..3], [&json!([]), &json!([]), &json!([])], "{results}");
    let context = &file_warning_contexts(&results)[0];
    assert_eq!(
        (&context["branch_before"], &context["branch_after"]),
        (&json!("main"), &json!("other")),
        "{results}"
    );
}

#[test]
fn changes_of_parallel_writers_are_marked_as_shared() {
    let wait = "touch started-$$; while [ ! -e go ]; do sleep 0.02; done; echo x > by-$$.txt; touch done-$$; \
                while [ $(ls done-* | wc -l) -lt 2 ]; do sleep 0.02; done";
    let project = Project::repository(&[command(wait)]);
    let both: Vec<String> = (0..2)
        .map(|_| project.stage.exec(&[&WRITE_MODE[..], &["--allow-parallel-writes"]].concat()))
        .collect();
    let started_count = || {
        let entries = std::fs::read_dir(project.stage.world.project()).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("started-")).count()
    };
    delegator_testkit::stage::wait_until("both tasks have started", || started_count() == 2);
    project.write("go", "");
    for (own, other) in [(0, 1), (1, 0)] {
        project.stage.wait(&both[own]);
        let results = project.stage.run_json(&["local", "results", &both[own]]);
        let at = file_warning_codes(&results).iter().position(|code| code == "W_FILES_006");
        let at = at.unwrap_or_else(|| panic!("{results}"));
        assert_eq!(file_warning_contexts(&results)[at]["task_ids"], json!([both[other]]), "{results}");
    }
    // Either task may have written these files, so a restore of one leaves them.
    let restored = project.stage.run_json(&["restore", &both[0], "--confirm-destructive"]);
    let restored = &restored["meta"]["failure_data"];
    assert_eq!(restored["removed"], json!([]), "{restored}");
    assert!(restored["kept"].to_string().contains("by-"), "{restored}");
}

#[test]
fn examining_changes_runs_no_hook_or_filter_of_the_repository() {
    let canary = "\"$PWD\"/../canary";
    let plant = format!(
        "printf '#!/bin/sh\\n: > {canary}\\ncat\\n' > ../evil && chmod 755 ../evil && \
         git config core.fsmonitor \"$PWD/../evil\" && git config filter.evil.clean \"$PWD/../evil\" && \
         git config filter.evil.required true && git config diff.evil.textconv \"$PWD/../evil\" && \
         git config diff.external \"$PWD/../evil\" && mkdir -p .git/hooks && \
         cp ../evil .git/hooks/post-index-change && cp ../evil .git/hooks/reference-transaction && \
         echo '* filter=evil diff=evil' > .gitattributes && echo evil > code.txt"
    );
    let project = Project::repository(&[command(&plant)]);
    let results = project.results(&WRITE_MODE);
    assert_eq!(operations(&results)[..2], [&json!(["code.txt"]), &json!([".gitattributes"])], "{results}");
    let root = project.stage.root();
    let evil = std::fs::read_to_string(root.join("evil")).unwrap();
    assert!(evil.contains("canary") && !root.join("canary").exists(), "{evil}");
    assert!(std::fs::metadata(root.join("evil")).unwrap().permissions().mode() & 0o111 != 0);
    // Control: plain git runs the planted program.
    project.stage.world.run_as(&PathBuf::from("/usr/bin/git"), ["add", "-A"]);
    assert!(root.join("canary").exists(), "plain git did not run the planted program");
}

#[test]
fn without_a_git_program_changes_are_found_by_scan_with_a_warning() {
    let project = Project::repository(&[write("code.txt", "changed\n")]);
    let without_git_program = Project { stage: project.stage.variable("PATH", "/nowhere") };
    let results = without_git_program.results(&[&WRITE_MODE[..], &["--no-restore-point"]].concat());
    assert_eq!(operations(&results)[0], &json!(["code.txt"]), "{results}");
    assert_eq!(results["data"]["metadata"]["file_operations"]["source"], "scan");
    let warnings = file_warnings(&results);
    assert!(
        warnings.iter().any(|(code, message)| code == "W_FILES_008" && message.contains("git")),
        "{warnings:?}"
    );
}

#[test]
fn a_lost_supervisor_leaves_no_evidence_directory() {
    let project =
        Project::repository(&[write("begun.txt", "x\n"), command("while [ ! -e go ]; do sleep 0.02; done")]);
    let id = project.stage.exec(&WRITE_MODE);
    project.stage.wait_for_project_file("begun.txt");
    let folders = || {
        let entries = std::fs::read_dir(project.stage.task_dir(&id)).unwrap().flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    };
    assert_eq!(folders(), 1, "the directory of the evidence");
    let supervisor = rustix::process::Pid::from_raw(project.stage.supervisor_pid(&id)).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
    let data = project.stage.wait(&id)["data"].clone();
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{data}");
    assert_eq!(data["metadata"]["file_operations"]["source"], "late");
    assert_eq!(folders(), 0);
}

#[test]
fn a_restore_marks_files_that_may_hold_edits_of_the_user() {
    let steps = [command("echo made > made.txt"), write("old.txt", "agent\n"), write("code.txt", "agent\n")];
    let project = Project::repository(&waiting_steps(&steps));
    let id = project.stage.exec(&WRITE_MODE);
    project.stage.wait_for_project_file("ready.log");
    let events = project.stage.task_dir(&id).join("events.jsonl");
    while !read_text(&events).contains("code.txt") {
        std::thread::yield_now();
    }
    // The supervisor has read the event. File times are coarser than its clock, so write until the time is a later one.
    let modified =
        |path: &str| project.stage.world.project().join(path).metadata().unwrap().modified().unwrap();
    project.write("read.log", "");
    while modified("code.txt") < modified("read.log") + Duration::from_millis(10) {
        project.write("code.txt", "agent\nthe user's\n");
    }
    project.write("go.log", "");
    project.stage.wait(&id);
    let planned = project.stage.run_json(&["restore", &id, "--dry-run"]);
    assert_eq!(planned["data"]["written"], json!(["code.txt", "old.txt"]), "{planned}");
    let edits = json!([
        {"path": "code.txt",
         "reason": "the agent changed it, and it changed again while no action of the agent ran"},
        {"path": "made.txt",
         "reason": "changed while a command of the agent ran, and no event of the agent names it"},
    ]);
    assert_eq!(planned["data"]["possible_user_edits"], edits, "{planned}");
    assert!(planned["warnings"].to_string().contains("2 restored or removed files may hold"), "{planned}");
    let shown = project.stage.world.run(["restore", &id, "--dry-run", "--format", "human"]).stdout;
    assert!(shown.contains("MAY HOLD YOUR OWN EDITS") && shown.contains("made.txt"), "{shown}");
    project.write("notes.txt", "later\n");
    let all = project.stage.run_json(&["restore", &id, "--all", "--confirm-destructive"]);
    let later = json!({"path": "notes.txt", "reason": "changed later"});
    assert_eq!(all["data"]["possible_user_edits"], json!([edits[0], later, edits[1]]), "{all}");
}
