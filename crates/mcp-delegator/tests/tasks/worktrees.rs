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

const CONFIRM: &str = "--confirm-destructive";
const ONLY_COPIES: &str = "--include-only-copies";

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
    let count = |name| std::fs::read_dir(stage.world.home().join(name)).map_or(0, Iterator::count);
    let refs = git(stage, &["for-each-ref", "refs/mcp-delegator-worktrees"]);
    (refs.lines().count(), count("state-worktrees") + count("state-worktree-git"))
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

/// Each task writes in its own worktree, so what others do there is no reason to wait with a decision.
#[test]
fn changes_are_applied_while_other_isolated_tasks_run_and_wait() {
    let stage = stage().variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let (done, _) = completed(&stage, "sed -i s/1/one/ code", &[]);
    let (running, worktree) = submit(&stage, "touch started; until [ -e go ]; do sleep 0.05; done", &[]);
    let (queued, _) = submit(&stage, "true", &[]);
    wait_until("the task runs", || worktree.join("started").exists());
    // A task that writes in the directory itself is a reason.
    let in_place = stage.exec(&["--mode", "workspace-write"]);
    let refused = stage.world.run(["apply", &done, "--json"]);
    assert!(refused.stdout.contains(&in_place), "{refused:?}");
    stage.run_json(&["cancel", &in_place]);
    let applied = stage.run_json(&["apply", &done]);
    assert_eq!(applied["ok"], true, "{applied}");
    assert!(read(&stage, "code").starts_with("one\n"));
    std::fs::write(worktree.join("go"), "").unwrap();
    for id in [&running, &queued] {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
}

#[test]
fn a_conflict_changes_nothing_and_a_discarded_diff_can_still_be_applied() {
    let stage = stage();
    let (id, worktree) = completed(&stage, "sed -i s/4/agent/ code; echo new > new", &[]);
    assert_eq!(stage.run_json(&["diff", &id, "--format", "json"])["data"]["source"], "worktree");
    stage.world.write("project/code", "1\n2\n3\nmine\n5\n6\n7\n");
    for check in [&[][..], &["--check"]] {
        let refused = stage.world.run([&["apply", &id], check].concat());
        assert_eq!(refused.exit, Some(4), "a check exits as applying does: {refused:?}");
        let conflicts = &refused.json()["meta"]["error_context"]["conflicts"];
        assert_eq!(conflicts[0]["path"], "code", "{refused:?}");
        assert_eq!(git(&stage, &["status", "--porcelain"]), " M code\n");
        assert!(worktree.exists());
    }
    let section = || stage.run_json(&["status"])["data"]["recently_completed"][0]["section"].clone();
    assert_eq!(section(), "needs_you");
    stage.run_json(&["read", &id]);
    assert_eq!(section(), "finished", "a person has read it");
    assert_eq!(stage.world.run(["apply", &id]).exit, Some(4));
    assert_eq!(section(), "needs_you", "it happened again");
    let discarded = stage.run_json(&["discard", &id, CONFIRM]);
    assert_eq!(section(), "finished_unread");
    assert_eq!(discarded["data"]["has_changes"], true, "{discarded}");
    assert_eq!((worktrees_left(&stage), worktree.exists()), ((0, 0), false));
    stage.world.write("project/code", "1\n2\n3\n4\n5\n6\nmine\n");
    git(&stage, &["config", "user.name", "Repository's user"]);
    git(&stage, &["config", "user.email", "user@repository"]);
    git(&stage, &["config", "committer.name", "Repository's committer"]);
    let applied = stage.run_json(&["apply", &id, "--commit", "--message", "Agent's work"]);
    assert_eq!(applied["data"]["is_applied"], true, "{applied}");
    let commit = git(&stage, &["rev-parse", "HEAD"]);
    assert_eq!(applied["data"]["commit"], commit.trim(), "{applied}");
    let summary = format!("2 files changed and committed as {}", &commit[..12]);
    assert_eq!(applied["data"]["summary"], summary, "{applied}");
    assert_eq!(
        git(&stage, &["log", "-1", "--format=%an %ae %cn %ce"]),
        "Repository's user user@repository Repository's committer user@repository\n"
    );
    // Once more, it is not committed twice.
    let again = stage.run_json(&["apply", &id, "--commit", "--message", "Agent's work"]);
    assert_eq!((&again["data"]["commit"], &again["ok"]), (&json!(commit.trim()), &json!(true)), "{again}");
    let text = stage.world.run(["apply", &id, "--commit", "--message", "Agent's work", "--format", "text"]);
    assert!(text.stdout.contains(&format!("Committed as {}", commit.trim())), "{text:?}");
    assert_eq!(git(&stage, &["rev-parse", "HEAD"]), commit);
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
        stage.run_json(&["discard", id, CONFIRM]);
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
    let discard = |args: &[&str]| {
        let discarded = stage.run_json(&[&["discard"], args].concat());
        assert_eq!(discarded["ok"], true, "{discarded}");
    };
    discard(&[&changed, CONFIRM]);
    // An ignored file that a person would miss is a change; what a tool creates again is none.
    stage.world.write("project/.gitignore", "big\nnode_modules\n");
    git(&stage, &["add", ".gitignore"]);
    git(&stage, &["commit", "--quiet", "-m", "ignore"]);
    let (ignored, worktree) = completed(&stage, &format!("{megabytes}big"), &[]);
    let refused = stage.run_json(&[&["local", "exec", "true"], &ISOLATED[..]].concat());
    assert!(worktree.join("big").exists() && refused.to_string().contains(&ignored), "{refused}");
    let diff = stage.run_json(&["diff", &ignored, "--format", "json"]);
    assert!(diff["data"]["left_out"].to_string().contains("big"), "{diff}");
    discard(&[&ignored, CONFIRM, ONLY_COPIES]);
    let commit = "git -c user.name=a -c user.email=a@a commit --allow-empty -qm empty";
    let modules = "mkdir node_modules; head -c 3000000 /dev/zero > node_modules/x";
    let (commits, worktree) = completed(&stage, &format!("{modules}; {commit}"), &[]);
    let refused = stage.run_json(&[&["local", "exec", "true"], &ISOLATED[..]].concat());
    assert!(worktree.exists() && refused.to_string().contains(&commits), "{refused}");
    assert_eq!(stage.run_json(&["apply", &commits, "--branch", "kept"])["ok"], true);
    assert_eq!(git(&stage, &["log", "-1", "--format=%s", "kept"]), "empty\n");
    let (_, unchanged) = completed(&stage, modules, &[]);
    completed(&stage, "true", &[]);
    assert!(!unchanged.exists());
}

#[test]
fn a_task_is_not_accepted_into_a_worktree_that_is_being_removed() {
    let mut stage = stage();
    // Holds a command while it compares, until the file is there.
    let wrapper = stage.write_program(
        "slow/git",
        "#!/bin/sh\ncase \" $* \" in *' diff-tree '*) : > \"$HELD\"; while [ -e \"$HELD\" ]; do sleep 0.02; done;; esac\n\
         exec /usr/bin/git \"$@\"\n",
    );
    let held = stage.root().join("held");
    let slow_path = format!("{}:/usr/local/bin:/usr/bin:/bin", wrapper.parent().unwrap().display());
    std::fs::write(&wrapper, read_text(&wrapper).replace("$HELD", held.to_str().unwrap())).unwrap();
    stage = stage.variable("MCP_DELEGATOR_WORKTREE_QUOTA_BYTES", "1048576");
    stage.world.write("project/.git/info/exclude", "node_modules\n");
    let pruning = [&["local", "exec", "true"], &ISOLATED[..]].concat();
    for (command, needs_id) in [(vec!["discard", CONFIRM], true), (vec!["apply"], true), (pruning, false)] {
        // The quota prunes only what did not change.
        let modules = "mkdir node_modules; head -c 3000000 /dev/zero > node_modules/x; echo one > one";
        let text = if needs_id { "echo one > one" } else { modules };
        let (id, worktree) = completed(&stage, text, &[]);
        if !needs_id {
            std::fs::remove_file(worktree.join("one")).unwrap();
        }
        let args: Vec<&str> = command.iter().copied().chain(needs_id.then_some(id.as_str())).collect();
        let mut slow = stage.world.command(&args);
        let child = slow.env("PATH", &slow_path).stdout(std::process::Stdio::piped()).spawn().unwrap();
        wait_until("the comparison runs", || held.exists());
        let resume = ["local", "resume", "--task-id", &id, "echo two > two", "--mode", "workspace-write"];
        let refused = stage.run_json(&resume);
        assert_eq!(refused["error"]["code"], "LOCK_HELD", "{args:?}: {refused}");
        std::fs::remove_file(&held).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        assert!(!worktree.exists(), "{args:?}");
        let _ = std::fs::remove_file(stage.world.project().join("one"));
        for task in stage.run_json(&["local", "status"])["data"]["tasks"].as_array().into_iter().flatten() {
            let id = task["task_id"].as_str().unwrap();
            stage.wait(id);
            stage.run_json(&["discard", id, CONFIRM]);
        }
    }
}

#[test]
fn a_claim_ends_with_its_process_and_a_submission_does_not_wait_for_ever() {
    let stage = stage();
    let (id, worktree) = completed(&stage, "echo one > one", &[]);
    let lock = std::fs::File::create(stage.task_dir(&id).join("worktree.lock")).unwrap();
    lock.lock_shared().unwrap();
    let refused = stage.run_json(&["discard", &id, CONFIRM]);
    assert_eq!((&refused["error"]["code"], worktree.exists()), (&json!("LOCK_HELD"), true), "{refused}");
    drop(lock);
    assert_eq!(stage.run_json(&["discard", &id, CONFIRM])["ok"], true);
}

#[test]
fn what_exists_nowhere_else_is_named_and_lost_only_on_request() {
    let stage = stage();
    let (id, worktree) = completed(&stage, "head -c 22020096 /dev/zero > large.bin", &[]);
    let unconfirmed = stage.run_json(&["discard", &id]);
    assert_eq!(unconfirmed["error"]["code"], "CONFIRMATION_REQUIRED", "{unconfirmed}");
    let refused = stage.run_json(&["discard", &id, CONFIRM]);
    let text = refused["error"].to_string();
    assert!(text.contains("large.bin (21 MiB)") && text.contains(ONLY_COPIES), "{refused}");
    let mut applied = stage.run_json(&["apply", &id]);
    assert_eq!((&applied["data"]["is_applied"], worktree.exists()), (&json!(false), true), "{applied}");
    assert!(!applied.to_string().contains("here already"), "{applied}");
    assert_eq!(stage.run_json(&["discard", &id, CONFIRM, ONLY_COPIES])["ok"], true);
    assert!(!worktree.exists());
    for command in ["diff", "apply"] {
        applied = stage.run_json(&[command, &id, "--format", "json"]);
        assert_eq!(applied["error"]["code"], "NOT_FOUND", "{command}: {applied}");
        assert!(applied.to_string().contains("large.bin"), "{command}: {applied}");
    }
    assert_eq!(stage.run_json(&["discard", &id, CONFIRM])["ok"], true, "again");
    // A worktree that another program deleted.
    let (id, worktree) = completed(&stage, "echo one > one", &[]);
    std::fs::remove_dir_all(worktree).unwrap();
    assert_eq!(stage.run_json(&["diff", &id, "--format", "json"])["error"]["code"], "NOT_FOUND");
    assert_eq!(stage.run_json(&["discard", &id, CONFIRM])["ok"], true);
    assert_eq!(worktrees_left(&stage), (0, 0));
}

#[test]
fn a_damaged_git_directory_can_be_compared_applied_and_discarded() {
    let stage = stage();
    let damages = [
        "rm -rf \"$dir\"",
        "rm \"$dir/index\" \"$dir/HEAD\"; mkfifo \"$dir/index\" \"$dir/HEAD\"",
        "echo garbage > \"$dir/index\"; echo garbage > \"$dir/HEAD\"",
        ": > \"$dir/index.lock\"; rm -rf \"$dir/objects\"; ln -s /etc \"$dir/objects\"",
    ];
    for damage in damages {
        for command in [&["apply"][..], &["discard", CONFIRM]] {
            let text = format!("echo one > one; dir=$(git rev-parse --git-dir); {damage}");
            let (id, _) = completed(&stage, &text, &[]);
            assert_eq!(
                stage.run_json(&["diff", &id, "--format", "json"])["data"]["file_count"],
                1,
                "{damage}"
            );
            let ended = stage.run_json(&[command, &[&id]].concat());
            assert_eq!(ended["ok"], true, "{damage}: {ended}");
            assert_eq!(worktrees_left(&stage), (0, 0), "{damage}");
            let _ = std::fs::remove_file(stage.world.project().join("one"));
        }
    }
}

#[test]
fn an_agent_cannot_destroy_the_repository_from_its_worktree() {
    let stage = stage();
    let destroy = "rm -rf \"$(git rev-parse --git-common-dir)\"";
    let (id, _) = completed(&stage, &format!("echo one > one; {destroy}"), &[]);
    git(&stage, &["fsck", "--strict"]);
    assert_eq!(stage.run_json(&["apply", &id])["data"]["is_applied"], true);
    assert_eq!(read(&stage, "one"), "one\n");
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
    for command in [&["apply", id][..], &["discard", id, CONFIRM]] {
        assert_eq!(stage.run_json(command)["error"]["code"], "UNSUPPORTED");
    }
}

/// What `worktrees` says about the worktree of a task; null if it is not listed.
fn listed(stage: &Stage, id: &str) -> Value {
    let list = stage.run_json(&["worktrees"]);
    let all = list["data"]["worktrees"].as_array().unwrap_or_else(|| panic!("{list}")).clone();
    all.into_iter().find(|worktree| worktree["task_id"] == id).unwrap_or_default()
}

#[test]
fn worktrees_are_listed_and_only_those_of_which_nothing_is_lost_are_pruned() {
    let stage = stage();
    let (changed, _) = completed(&stage, "echo one > one", &[]);
    let (applied, applied_dir) = completed(&stage, "echo two > two", &[]);
    let (edited, edited_dir) = completed(&stage, "echo three > three", &[]);
    let commit = "git add -A; git -c user.name=a -c user.email=a@a commit -qm commit";
    let (commits, _) = completed(&stage, &format!("echo four > four; {commit}"), &[]);
    let (branched, branched_dir) = completed(&stage, &format!("echo five > five; {commit}"), &[]);
    for id in [&applied, &edited, &commits] {
        assert_eq!(stage.run_json(&["apply", id, "--keep"])["data"]["is_applied"], true);
    }
    assert_eq!(stage.run_json(&["apply", &branched, "--branch", "five", "--keep"])["ok"], true);
    stage.world.write(edited_dir.join("three").to_str().unwrap(), "of the user\n");
    let (running, _) =
        submit(&stage, "touch \"$HOME/../begun\"; while [ -e \"$HOME/../begun\" ]; do sleep 0.02; done", &[]);
    wait_until("the agent runs", || stage.root().join("begun").exists());
    let found = listed(&stage, &changed);
    assert_eq!((&found["content"], &found["lines_added"]), (&json!("changed"), &json!(1)), "{found}");
    assert_eq!(found["branch"], format!("delegator/{changed}"), "{found}");
    assert!(found["size_bytes"].as_u64() > Some(0), "{found}");
    let expected = [(&applied, "applied"), (&edited, "changed_after_apply"), (&commits, "only_copies")];
    for (id, content) in expected.into_iter().chain([(&branched, "applied")]) {
        let found = listed(&stage, id);
        assert_eq!((&found["content"], &found["is_applied"]), (&json!(content), &json!(true)), "{found}");
        assert_eq!(found["is_removable"], content == "applied", "{found}");
    }
    assert_eq!(listed(&stage, &running)["used_by_task_id"], running.as_str());
    let text = stage.world.run(["worktrees", "--format", "text"]).stdout;
    assert!(text.contains("changed after apply") && text.contains("in use"), "{text}");
    let planned = stage.run_json(&["worktrees", "prune", "--dry-run"]);
    assert_eq!(planned["data"]["removed"].as_array().map(Vec::len), Some(2), "{planned}");
    let refused = stage.run_json(&["worktrees", "prune"]);
    assert_eq!(refused["error"]["code"], "CONFIRMATION_REQUIRED", "{refused}");
    assert!(applied_dir.exists() && branched_dir.exists());
    let pruned = stage.run_json(&["worktrees", "prune", CONFIRM]);
    let removed = |at: usize| pruned["data"]["removed"][at]["task_id"].as_str().unwrap().to_owned();
    assert_eq!([removed(0), removed(1)], [applied, branched], "{pruned}");
    assert!(!applied_dir.exists() && !branched_dir.exists());
    assert_eq!(pruned["data"]["retained"].as_array().map(Vec::len), Some(4), "{pruned}");
    assert_eq!(read_text(&edited_dir.join("three")), "of the user\n");
    std::fs::remove_file(stage.root().join("begun")).unwrap();
    stage.wait(&running);
    let again = stage.run_json(&["worktrees", "prune", CONFIRM]);
    assert_eq!(again["ok"], true, "{again}");
}

#[test]
fn an_unchanged_worktree_goes_with_its_task_and_returns_when_the_task_is_resumed() {
    let stage = stage();
    stage.world.write("project/code", "1\n2\n3\n4\n5\n6\n7\nmine\n");
    let (id, worktree) = completed(&stage, "true", &["--carry-dirty"]);
    wait_until("the worktree is removed", || worktrees_left(&stage) == (0, 0));
    assert_eq!(stage.run_json(&["diff", &id, "--format", "json"])["data"]["file_count"], 0);
    let text = "cp code seen";
    let resumed = stage.run_json(&["local", "resume", "--task-id", &id, text, "--mode", "workspace-write"]);
    assert_eq!(resumed["data"]["worktree"].as_str(), worktree.to_str(), "{resumed}");
    let waited = stage.wait(resumed["data"]["task_id"].as_str().unwrap());
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    assert!(read_text(&worktree.join("seen")).ends_with("mine\n"));
    let applied = stage.run_json(&["apply", &id]);
    assert_eq!(applied["data"]["files"].as_array().map(Vec::len), Some(1), "{applied}");
    // A cancelled task that has changed nothing.
    let (id, worktree) = submit(&stage, "touch \"$HOME/../begun\"; sleep 600", &[]);
    wait_until("the agent runs", || stage.root().join("begun").exists());
    stage.run_json(&["local", "cancel", &id]);
    stage.wait(&id);
    wait_until("the worktree is removed", || !worktree.exists());
}
