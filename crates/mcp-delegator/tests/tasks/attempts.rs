//! Several attempts at one task: submitted together, compared, one applied and the others removed.

use std::path::{Path, PathBuf};

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;

const GIT: &str = "/usr/bin/git";

/// A stage whose project is a repository with a commit, and with a plain agent for each of these scripts.
fn stage_with_agents(scripts: &[(&str, &str)]) -> Stage {
    let stage =
        Stage::with_shell_agent(PROGRAM, "exit 99").variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true");
    let mut config = String::new();
    for (name, script) in scripts {
        let program = stage.write_program(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        config += &format!("[agents.{name}]\nprotocol = \"plain\"\ncommand = [\"{}\"]\n", program.display());
    }
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage.world.write("project/answer.txt", "unknown\n");
    let commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "start"];
    for args in [&["init", "--quiet"][..], &["add", "answer.txt"], &commit] {
        git(&stage, args);
    }
    stage
}

fn git(stage: &Stage, args: &[&str]) -> String {
    let run = stage.world.run_as(Path::new(GIT), args);
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.stdout
}

/// Starts a group; returns its id and those of its attempts.
fn exec_group(stage: &Stage, args: &[&str]) -> (String, Vec<String>) {
    let accepted =
        stage.run_json(&[&["local", "exec", "find it", "--mode", "workspace-write"], args].concat());
    let data = &accepted["data"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let attempts = data["attempts"].as_array().unwrap();
    (text(&data["group_id"]), attempts.iter().map(|attempt| text(&attempt["task_id"])).collect())
}

/// Everything beside the state directory that belongs to worktrees.
fn left_on_disk(stage: &Stage) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(stage.world.home().join("state-worktrees")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_only_verified_attempt_is_recommended_and_applied_and_the_others_are_gone() {
    let stage = stage_with_agents(&[
        ("wrong", "echo wrong > answer.txt"),
        ("right", "echo right > answer.txt; echo more > more.txt; echo own >> carried.txt"),
        ("failing", "echo half > answer.txt; exit 3"),
    ]);
    stage.world.write("project/carried.txt", "not committed\n");
    let agents = ["--agents", "wrong", "--agents", "right", "--agents", "failing"];
    let verify = ["--verify", "grep -q right answer.txt && test -e carried.txt"];
    let args =
        [&["--attempts", "3", "--carry-dirty", "--idempotency-key", "k"], &agents[..], &verify].concat();
    let (group, ids) = exec_group(&stage, &args);
    assert_eq!(exec_group(&stage, &args), (group.clone(), ids.clone()), "the key covers the group");

    let waited = stage.run_json(&["local", "wait", &group]);
    let states: Vec<&Value> =
        waited["data"]["tasks"].as_array().unwrap().iter().map(|task| &task["state"]).collect();
    assert_eq!(states, ["completed", "completed", "failed"], "{waited}");
    let status = stage.run_json(&["local", "status", &group]);
    assert_eq!(status["data"]["groups"][0]["group_id"], group.as_str(), "{status}");
    assert_eq!(status["data"]["recently_completed"].as_array().unwrap().len(), 3, "{status}");

    let results = stage.run_json(&["local", "results", &group]);
    let data = &results["data"];
    assert_eq!(data["recommended_attempt"], 2, "{results}");
    assert_eq!(data["recommendation_reason"], "only attempt 2 passed verify");
    let column = |key: &str| -> Vec<Value> {
        data["attempts"].as_array().unwrap().iter().map(|attempt| attempt[key].clone()).collect()
    };
    assert_eq!(column("agent"), ["wrong", "right", "failing"]);
    assert_eq!(column("verification"), ["verify_failed", "verified", "not_run"]);
    assert_eq!(column("file_count"), [1, 3, 1]);
    assert_eq!(column("lines_added"), [1, 3, 1]);
    let shown = stage.world.run(["local", "results", &group, "--format", "markdown"]).stdout;
    assert!(shown.contains("Recommended: attempt 2"), "{shown}");

    let compare = || stage.world.run(["diff", &group, "--attempt", "2", "--against", &ids[0]]).stdout;
    let compared = compare();
    assert!(compared.contains("\n-wrong\n+right\n") && compared.contains("+more"), "{compared}");
    assert!(compared.contains(" not committed\n+own"), "both have the carried line: {compared}");
    let data = stage.run_json(&["diff", &ids[1], "--against", &ids[0], "--format", "json"])["data"].clone();
    assert_eq!((&data["file_count"], &data["source"]), (&json!(3), &json!("other_task")), "{data}");

    let applied = stage.run_json(&["apply", &group]);
    let refused = stage.world.run(["diff", &group, "--attempt", "2", "--against", &ids[0]]);
    assert!(refused.stderr.contains("not stored any more"), "what was carried is gone: {refused:?}");
    assert_eq!(applied["data"]["task_id"], ids[1].as_str(), "{applied}");
    assert_eq!(applied["data"]["discarded_task_ids"], json!([ids[0], ids[2]]), "{applied}");
    assert_eq!(read_text(&stage.world.project().join("answer.txt")), "right\n");
    assert_eq!(read_text(&stage.world.project().join("more.txt")), "more\n");
    assert_eq!(git(&stage, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&stage, &["branch", "--list", "delegator/*"]), "");
    assert_eq!(left_on_disk(&stage), Vec::<PathBuf>::new());
    let diff = stage.world.run(["diff", &group, "--attempt", "1"]).stdout;
    assert!(diff.contains("+wrong"), "the diff of a discarded attempt is stored: {diff}");
}

/// The task that was submitted last is the attempt that fails its check.
#[test]
fn last_is_the_whole_group_and_a_failed_check_needs_force() {
    let agents = [("right", "echo right > answer.txt"), ("wrong", "echo wrong > answer.txt")];
    let stage = stage_with_agents(&agents).variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let verify = ["--verify", "grep -q right answer.txt"];
    let args = [&["--attempts", "2", "--agents", "right,wrong"], &verify[..]].concat();
    let (group, ids) = exec_group(&stage, &args);
    let waited = stage.run_json(&["wait", "--last"]);
    assert_eq!(waited["data"]["tasks"].as_array().map(Vec::len), Some(2), "{waited}");
    assert_eq!(stage.run_json(&["results", "--last"])["data"]["group_id"], group.as_str());
    for args in [&[group.as_str(), "--attempt", "2"][..], &[&ids[1]]] {
        let refused = stage.world.run([&["apply"], args].concat());
        assert_eq!(
            (refused.exit, &refused.json()["error"]["code"]),
            (Some(2), &json!("CONFIRMATION_REQUIRED")),
            "{refused:?}"
        );
        assert!(refused.json()["error"]["suggestion"].as_str().unwrap().contains("--force"), "{refused:?}");
        assert_eq!(stage.run_json(&[&["apply", "--check"], args].concat())["ok"], true);
    }
    let early = stage.world.run(["undo", "--last", "-y"]);
    assert_eq!(early.json()["error"]["code"], "WRONG_STATE", "no attempt was applied: {early:?}");
    let applied = stage.run_json(&["apply", "--last"]);
    assert_eq!(applied["data"]["task_id"], ids[0].as_str(), "{applied}");
    assert_eq!(read_text(&stage.world.project().join("answer.txt")), "right\n");
    let undone = stage.run_json(&["undo", "--last", "-y"]);
    assert_eq!(undone["data"]["task_id"], ids[0].as_str(), "{undone}");
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
    let (_, ids) = exec_group(&stage, &[&["--attempts", "2", "--agents", "wrong"], &verify[..]].concat());
    stage.run_json(&["wait", "--last"]);
    let refused = stage.world.run(["apply", "--last"]);
    assert_eq!(refused.exit, Some(2), "no attempt passed its check: {refused:?}");
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("verify"), "{refused:?}");
    let forced = stage.run_json(&["apply", "--last", "--force"]);
    assert_eq!(forced["data"]["task_id"], ids[0].as_str(), "{forced}");
}

#[test]
fn last_is_the_whole_chain() {
    let stage = stage_with_agents(&[("quick", "echo 1 > answer.txt"), ("slow", "exec sleep 600")]);
    let follower = |agent: &str| json!({"task": "go on", "agent": agent}).to_string();
    let exec = |agent: &str, follower: &str| {
        let args = ["exec", "x", "--agent", agent, "--on-success", follower, "--mode", "workspace-write"];
        let data = stage.run_json(&args)["data"].clone();
        [&data["task_id"], &data["followers"][0]["task_id"]].map(|id| id.as_str().unwrap().to_owned())
    };
    let in_place = exec("quick", &follower("quick"));
    stage.run_json(&["wait", "--last"]);
    let refused = stage.world.run(["diff", &in_place[1], "--against", &in_place[0]]);
    assert!(refused.stderr.contains("one of them had no worktree"), "{refused:?}");
    let [first, second] = exec("slow", &follower("quick"));
    let cancelled = stage.run_json(&["cancel", "--last"]);
    assert_eq!(cancelled["data"]["count"], 2, "{cancelled}");
    let tasks = cancelled["data"]["tasks"].as_array().unwrap();
    let ends: Vec<_> = tasks.iter().map(|task| (&task["task_id"], &task["state"])).collect();
    let state = json!("cancelled");
    assert_eq!(ends, [(&json!(first), &state), (&json!(second), &state)], "{cancelled}");
    let [first, second] = exec("quick", &follower("quick"));
    let waited = stage.run_json(&["wait", "--last"]);
    assert_eq!(waited["data"]["tasks"].as_array().map(Vec::len), Some(2), "{waited}");
    assert_eq!(stage.run_json(&["results", "--last"])["data"]["task_id"], first.as_str());
    let logs = stage.world.run(["logs", "--last", "--json"]).document();
    assert_eq!(logs["data"]["task_id"], second.as_str(), "the one that ran last: {logs}");
}

#[test]
fn a_group_is_cancelled_as_one_and_not_applied_while_an_attempt_runs() {
    let stage = stage_with_agents(&[("slow", "exec sleep 600")]);
    let (group, ids) = exec_group(&stage, &["--attempts", "2", "--agents", "slow"]);
    let early = stage.world.run(["apply", &group]);
    assert_ne!(early.exit, Some(0), "{early:?}");
    assert!(early.stdout.contains("has not ended") && early.stdout.contains(&ids[0]), "{early:?}");
    let one = stage.world.run(["logs", &group]);
    assert!(one.stdout.contains("INVALID_ID") && one.stdout.contains(&ids[1]), "{one:?}");

    let cancelled = stage.run_json(&["cancel", &group]);
    assert_eq!(cancelled["data"]["count"], 2, "{cancelled}");
    let results = stage.run_json(&["local", "results", &group]);
    assert_eq!(results["data"]["recommended_attempt"], Value::Null, "{results}");
    assert_eq!(results["data"]["recommendation_reason"], "no attempt completed");
    let none = stage.world.run(["apply", &group]);
    assert!(none.stdout.contains("WRONG_STATE") && none.stdout.contains("no attempt completed"), "{none:?}");
    let discarded = stage.run_json(&["discard", &group, "--confirm-destructive"]);
    assert_eq!(discarded["data"]["worktrees"].as_array().unwrap().len(), 2, "{discarded}");
    assert_eq!(left_on_disk(&stage), Vec::<PathBuf>::new());

    // Attempts that never started have no worktree, but the changes that they were to start from.
    stage.run_json(&["queue", "pause"]);
    stage.world.write("project/carried.txt", "not committed\n");
    let (group, _) = exec_group(&stage, &["--attempts", "2", "--agents", "slow", "--carry-dirty"]);
    assert_eq!(left_on_disk(&stage).len(), 2);
    stage.run_json(&["local", "cancel", &group]);
    stage.run_json(&["discard", &group, "--confirm-destructive"]);
    assert_eq!(left_on_disk(&stage), Vec::<PathBuf>::new());
}

#[test]
fn an_attempt_is_committed_and_another_one_becomes_a_branch() {
    let stage = stage_with_agents(&[("one", "echo 1 > answer.txt"), ("two", "echo 2 > answer.txt")]);
    let wrong = stage.world.run(["exec", "x", "--attempts", "3", "--agents", "one,tow,too"]).json();
    let problems = wrong["meta"]["error_context"]["problems"].as_array().unwrap_or_else(|| panic!("{wrong}"));
    let named: Vec<[&Value; 2]> = problems.iter().map(|found| [&found["field"], &found["value"]]).collect();
    assert_eq!(json!(named), json!([["agents.1", "tow"], ["agents.2", "too"]]), "{wrong}");

    let find = ["run", "find it", "--mode", "workspace-write", "--attempts", "3", "--agents", "one,two"];
    let run = stage.run_json(&find);
    let group = run["data"]["group_id"].as_str().unwrap_or_else(|| panic!("{run}"));
    assert_eq!(run["data"]["recommended_attempt"], 1, "{run}");
    let first = run["data"]["attempts"][0]["task_id"].as_str().unwrap();
    let status = stage.run_json(&["status", first]);
    assert!(status["data"]["worktree"].as_str().unwrap().ends_with(first), "{status}");

    git(&stage, &["config", "user.name", "a"]);
    git(&stage, &["config", "user.email", "a@b"]);
    let applied = stage.run_json(&["apply", group, "--commit", "--message", "take one", "--keep"]);
    assert_eq!(applied["data"]["discarded_task_ids"], json!([]), "{applied}");
    assert_eq!(git(&stage, &["show", "--format=%s", "--stat=40", "HEAD"]).lines().next(), Some("take one"));
    assert_eq!(git(&stage, &["show", "HEAD:answer.txt"]), "1\n");
    assert_eq!(left_on_disk(&stage).len(), 3);
    let branched = stage.run_json(&["apply", group, "--attempt", "2", "--branch", "second", "--force"]);
    assert_eq!(branched["data"]["discarded_task_ids"].as_array().map(Vec::len), Some(2), "{branched}");
    assert_eq!(git(&stage, &["show", "second:answer.txt"]), "2\n");
    assert_eq!(read_text(&stage.world.project().join("answer.txt")), "1\n");
    assert_eq!(left_on_disk(&stage), Vec::<PathBuf>::new());
    let compared = stage.world.run(["diff", group, "--attempt", "2", "--against", first]).stdout;
    assert!(compared.contains("\n-1\n+2\n"), "the diffs of removed worktrees are stored: {compared}");
}

#[test]
fn each_attempt_has_followers_that_work_in_its_worktree() {
    let stage = stage_with_agents(&[
        ("one", "echo 1 > answer.txt"),
        ("two", "echo 2 > answer.txt"),
        ("reader", "cat > ../prompt-$(cat answer.txt); echo read >> answer.txt"),
        ("slow", "exec sleep 600"),
    ]);
    let follower = json!({"task": "read it", "agent": "reader"}).to_string();
    let args = ["--attempts", "2", "--agents", "one,two", "--on-success", &follower];
    let (group, ids) = exec_group(&stage, &args);
    let waited = stage.run_json(&["wait", &group, "--chain"]);
    assert_eq!(waited["data"]["tasks"].as_array().map(Vec::len), Some(4), "{waited}");
    let compare = |one: &str, other: &str| stage.world.run(["diff", one, "--against", other]);
    let follower_id = waited["data"]["tasks"].as_array().unwrap().iter().find_map(|task| {
        let id = task["task_id"].as_str().unwrap();
        (!ids.iter().any(|attempt| attempt == id)).then_some(id)
    });
    let compared: Vec<_> = ids.iter().map(|id| compare(follower_id.unwrap(), id)).collect();
    assert!(
        compared.iter().any(|run| run.stdout.ends_with("@@ -1 +1,2 @@\n 1\n+read\n")
            || run.stdout.ends_with("@@ -1 +1,2 @@\n 2\n+read\n")),
        "only what the follower changed: {compared:?}"
    );
    // A conflict with a change of the user needs a person, although the other attempt needs none.
    stage.world.write("project/answer.txt", "mine\n");
    assert_eq!(stage.world.run(["apply", &group, "--attempt", "2", "--force"]).exit, Some(4));
    let screen = stage.world.run(["status", "--format", "human"]).stdout;
    assert!(screen.contains("\nNeeds you\n") && screen.contains("not applied: conflicts"), "{screen}");
    git(&stage, &["checkout", "--quiet", "answer.txt"]);
    let applied = stage.run_json(&["apply", &group, "--attempt", "2", "--force"]);
    assert_eq!(applied["data"]["task_id"], ids[1].as_str(), "{applied}");
    assert!(!stage.world.run(["status", "--format", "human"]).stdout.contains("Needs you"));
    assert_eq!(read_text(&stage.world.project().join("answer.txt")), "2\nread\n");
    assert_eq!(left_on_disk(&stage), Vec::<PathBuf>::new());

    // The attempts have ended; only what follows them is cancelled.
    let follower = json!({"task": "wait", "agent": "slow"}).to_string();
    let (group, ids) = exec_group(&stage, &["--attempts", "2", "--agents", "one", "--on-success", &follower]);
    ids.iter().for_each(|id| drop(stage.wait(id)));
    wait_until("their results are stored before what follows them works there", || {
        stage.world.run(["diff", &ids[0], "--against", &ids[1]]).exit == Some(0)
    });
    let cancelled = stage.run_json(&["cancel", &group]);
    assert_eq!(cancelled["data"]["count"], 2, "{cancelled}");
}
