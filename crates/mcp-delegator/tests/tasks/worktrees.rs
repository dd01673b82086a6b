//! Isolated tasks: each works in a git worktree of its own; its changes are looked at, applied or discarded afterwards.

use std::path::{Path, PathBuf};

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;

/// An agent that runs the first line of its prompt in a shell.
const AGENT: &str = r#"if [ "$1" = sandbox ]; then echo 'bwrap: No permissions'; exit 1; fi
echo '{"type":"thread.started","thread_id":"thread"}'
echo '{"type":"turn.started"}'
read -r line
eval "$line"
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{}}'"#;

const ISOLATED: [&str; 4] = ["--mode", "workspace-write", "--isolation", "worktree"];

/// A repository with one commit of `code`.
fn stage() -> Stage {
    let stage = Stage::with_shell_agent(PROGRAM, AGENT).variable("MCP_DELEGATOR_MAX_CONCURRENT", "4");
    stage.world.write("project/code", "1\n2\n3\n4\n5\n6\n7\n");
    git(&stage, &["init", "--quiet", "--initial-branch=main"]);
    git(&stage, &["add", "."]);
    git(&stage, &["commit", "--quiet", "-m", "first"]);
    stage
}

#[track_caller]
fn git(stage: &Stage, args: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let run = stage.world.run_as(Path::new("/usr/bin/git"), [&identity, args].concat());
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.stdout
}

fn submit(stage: &Stage, task: &str, args: &[&str]) -> (String, PathBuf) {
    let response = stage.run_json(&[&["local", "exec", task], &ISOLATED[..], args].concat());
    let text = |key: &str| response["data"][key].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
    (text("task_id"), text("worktree").into())
}

#[track_caller]
fn completed(stage: &Stage, task: &str, args: &[&str]) -> (String, PathBuf) {
    let (id, worktree) = submit(stage, task, args);
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    (id, worktree)
}

fn worktrees_left(stage: &Stage) -> (usize, usize) {
    let directories = std::fs::read_dir(stage.world.home().join("state-worktrees"));
    (git(stage, &["worktree", "list"]).lines().count() - 1, directories.map_or(0, Iterator::count))
}

fn read(stage: &Stage, name: &str) -> String {
    read_text(&stage.world.project().join(name))
}

#[test]
fn three_tasks_write_at_once_and_all_are_applied() {
    let stage = stage();
    let text = |name: &str| {
        let all = "while [ \"$(ls \"$HOME\"/../begun-* | wc -l)\" -lt 3 ]; do sleep 0.02; done";
        format!(
            ": > \"$HOME/../begun-{name}\"; {all}; echo {name} > {name}; git add {name}; git -c user.name=a -c user.email=a@a commit -qm {name}"
        )
    };
    let ids = ["a", "b", "c"].map(|name| submit(&stage, &text(name), &[]).0);
    for id in &ids {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
    assert_eq!(git(&stage, &["status", "--porcelain"]), "", "the user's work tree did not change");
    for id in &ids {
        let applied = stage.run_json(&["apply", id]);
        assert_eq!(applied["data"]["is_applied"], true, "{applied}");
    }
    assert_eq!(git(&stage, &["status", "--porcelain"]), "?? a\n?? b\n?? c\n");
    assert_eq!(worktrees_left(&stage), (0, 0));
    assert_eq!(git(&stage, &["branch"]), "* main\n");
    // Each is reverted by itself.
    stage.run_json(&["restore", &ids[1], "--confirm-destructive"]);
    assert_eq!(git(&stage, &["status", "--porcelain"]), "?? a\n?? c\n");
}

#[test]
fn a_conflict_changes_nothing_and_a_discarded_diff_can_still_be_applied() {
    let stage = stage();
    let (id, worktree) = completed(&stage, "sed -i s/4/agent/ code; echo new > new", &[]);
    assert_eq!(stage.run_json(&["diff", &id, "--format", "json"])["data"]["source"], "worktree");
    stage.world.write("project/code", "1\n2\n3\nmine\n5\n6\n7\n");
    for check in [&[][..], &["--check"]] {
        let refused = stage.run_json(&[&["apply", &id], check].concat());
        let text = refused.to_string();
        assert!(text.contains("code") && text.contains("conflicts"), "{refused}");
        assert_eq!(git(&stage, &["status", "--porcelain"]), " M code\n");
        assert!(worktree.exists());
    }
    let discarded = stage.run_json(&["discard", &id]);
    assert_eq!(discarded["data"]["has_changes"], true, "{discarded}");
    assert_eq!((worktrees_left(&stage), worktree.exists()), ((0, 0), false));
    stage.world.write("project/code", "1\n2\n3\n4\n5\n6\nmine\n");
    let applied = stage.run_json(&["apply", &id, "--commit", "--message", "Agent's work"]);
    assert_eq!(applied["data"]["is_applied"], true, "{applied}");
    assert_eq!(git(&stage, &["log", "-1", "--format=%s"]), "Agent's work\n");
    assert_eq!(read(&stage, "code"), "1\n2\n3\nagent\n5\n6\nmine\n");
    assert_eq!(
        git(&stage, &["status", "--porcelain"]),
        " M code\n",
        "the user's own change is not committed"
    );
}

#[test]
fn uncommitted_changes_are_carried_and_a_branch_leaves_the_work_tree_alone() {
    let stage = stage();
    stage.world.write("project/code", "1\n2\n3\n4\n5\n6\n7\nmine\n");
    let (id, worktree) = completed(&stage, "cat code > seen; echo agent >> code", &["--carry-dirty"]);
    assert!(read_text(&worktree.join("seen")).ends_with("mine\n"));
    let branch = stage.run_json(&["apply", &id, "--branch", "result"]);
    assert_eq!(branch["data"]["branch"], "result", "{branch}");
    assert_eq!(git(&stage, &["diff", "--stat", "main", "result"]).lines().count(), 3);
    assert_eq!(git(&stage, &["status", "--porcelain"]), " M code\n");
    assert_eq!(worktrees_left(&stage), (0, 0));
}

#[test]
fn a_resumed_task_and_a_review_work_in_the_same_worktree() {
    let stage = stage();
    let (id, worktree) = completed(&stage, "echo one > one", &[]);
    let resumed =
        stage.run_json(&["local", "resume", "--task-id", &id, "cat one > two", "--mode", "workspace-write"]);
    assert_eq!(resumed["data"]["worktree"].as_str(), worktree.to_str(), "{resumed}");
    let second = resumed["data"]["task_id"].as_str().unwrap();
    assert_eq!(stage.wait(second)["data"]["state"], "completed");
    let review = stage.run_json(&["review", &id]);
    assert_eq!(review["data"]["worktree"].as_str(), worktree.to_str(), "{review}");
    stage.wait(review["data"]["task_id"].as_str().unwrap());
    // Whichever of its tasks is named, the whole worktree is applied.
    assert_eq!(stage.run_json(&["apply", second])["data"]["files"].as_array().map(Vec::len), Some(2));
    assert_eq!((read(&stage, "one"), read(&stage, "two")), ("one\n".to_owned(), "one\n".to_owned()));
}

#[test]
fn a_worktree_is_prepared_before_the_agent_starts() {
    let stage = stage();
    let project = stage.world.project().canonicalize().unwrap();
    let config = |setup: &str| {
        let section = format!("[repositories.\"{}\"]\n", project.display());
        let text = format!("{section}worktree_copy = [\".env*\"]\nworktree_setup = '{setup}'\n");
        stage.world.write("home/.config/mcp-delegator/config.toml", &text);
    };
    stage.world.write("project/.env", "KEY=1\n");
    config("echo prepared; cp .env installed; test -f \"$SOURCE_TREE/code\"");
    let (id, worktree) = completed(&stage, "cat installed > seen", &[]);
    assert_eq!(read_text(&worktree.join("seen")), "KEY=1\n");
    let applied = stage.run_json(&["apply", &id]);
    let files: Vec<&str> = applied["data"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    assert_eq!(files, ["seen"], "what the setup created is not applied: {applied}");
    config("echo it is broken; exit 3");
    let (id, _) = submit(&stage, "echo never > never", &[]);
    let failed = stage.wait(&id);
    let text = failed.to_string();
    assert!(text.contains("setup_failed") && text.contains("it is broken"), "{failed}");
    config("echo $$ > \"$HOME/../setup-pid\"; sleep 600");
    let (id, _) = submit(&stage, "echo never > never", &[]);
    wait_until("the setup runs", || stage.root().join("setup-pid").exists());
    stage.run_json(&["local", "cancel", &id]);
    assert_eq!(stage.wait(&id)["data"]["state"], "cancelled");
    for id in [failed["data"]["task_id"].as_str().unwrap(), &id] {
        stage.run_json(&["discard", id]);
    }
    assert_eq!(worktrees_left(&stage), (0, 0));
}

#[test]
fn the_quota_removes_only_worktrees_without_changes() {
    let stage = stage().variable("MCP_DELEGATOR_WORKTREE_QUOTA_BYTES", "1048576");
    let megabytes = "head -c 3000000 /dev/zero > ";
    let (changed, _) = completed(&stage, &format!("{megabytes}big"), &[]);
    let refused = stage.run_json(&[&["local", "exec", "true"], &ISOLATED[..]].concat());
    assert_eq!(refused["error"]["code"], "POLICY_BLOCKED", "{refused}");
    assert!(refused.to_string().contains(&changed), "{refused}");
    let usage = stage.run_json(&["local", "status", "--usage"])["data"]["usage"]["worktrees"].clone();
    assert_eq!(
        (&usage["count"], usage["total_bytes"].as_u64() > Some(3_000_000)),
        (&json!(1), true),
        "{usage}"
    );
    stage.run_json(&["discard", &changed]);
    // Ignored files are no changes.
    stage.world.write("project/.gitignore", "big\n");
    git(&stage, &["add", ".gitignore"]);
    git(&stage, &["commit", "--quiet", "-m", "ignore"]);
    let (_, unchanged) = completed(&stage, &format!("{megabytes}big"), &[]);
    let (next, _) = completed(&stage, "true", &[]);
    assert!(!unchanged.exists());
    stage.run_json(&["discard", &next]);
}

#[test]
fn what_cannot_be_isolated_is_refused_before_anything_starts() {
    let stage = Stage::with_shell_agent(PROGRAM, AGENT);
    let refused = |stage: &Stage, args: &[&str]| -> Value {
        let response = stage.run_json(&[&["local", "exec", "true"], &ISOLATED[..], args].concat());
        assert_eq!(response["ok"], false, "{response}");
        response["error"].clone()
    };
    assert!(refused(&stage, &[]).to_string().contains("not in a git work tree"));
    git(&stage, &["init", "--quiet"]);
    assert!(refused(&stage, &[]).to_string().contains("no commit yet"));
    git(&stage, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    assert!(refused(&stage, &["--base", "nothing"]).to_string().contains("has no commit 'nothing'"));
    git(&stage, &["branch", "delegator"]);
    assert!(refused(&stage, &[]).to_string().contains("delegator"));
    let task = stage.run_json(&["local", "exec", "true"]);
    let id = task["data"]["task_id"].as_str().unwrap();
    stage.wait(id);
    for command in ["apply", "discard"] {
        assert_eq!(stage.run_json(&[command, id])["error"]["code"], "UNSUPPORTED");
    }
}
