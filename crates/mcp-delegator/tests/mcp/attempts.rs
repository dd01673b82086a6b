//! Tasks in worktrees through MCP tools: several attempts as one group, and what only the user may delete.

use delegator_testkit::stage::Stage;
use serde_json::json;

use crate::PROGRAM;
use crate::client::{Client, V2025_11, text};

fn stage(agents: &str) -> Stage {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99").variable("MCP_DELEGATOR_AGENTS", agents);
    for args in [&["init", "--quiet"][..], &["commit", "--quiet", "--allow-empty", "-m", "start"]] {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let run = stage.world.run_as("/usr/bin/git".as_ref(), [&identity, args].concat());
        assert_eq!(run.exit, Some(0), "{run:?}");
    }
    stage
}

#[test]
fn only_the_user_deletes_what_exists_nowhere_else() {
    let command = "head -c 22020096 /dev/zero > large.bin";
    let agents = json!({"large": {"protocol": "plain", "command": ["/bin/sh", "-c", command]}});
    let stage = stage(&agents.to_string());
    let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "local,extra"], json!({}));
    let task = json!({"task": "t", "mode": "workspace-write", "isolation": "worktree", "agents": ["large"]});
    let accepted = client.envelope("_codex_local_exec", task);
    let (id, worktree) = (&accepted["data"]["task_id"], accepted["data"]["worktree"].as_str());
    let worktree = std::path::PathBuf::from(worktree.unwrap_or_else(|| panic!("{accepted}")));
    client.envelope("_codex_local_wait", json!({"task_id": id}));
    for (arguments, expected) in [
        (json!({"task_id": id}), "confirm_destructive"),
        (json!({"task_id": id, "confirm_destructive": true}), "large.bin (21 MiB)"),
        (json!({"task_id": id, "confirm_destructive": true}), "--include-only-copies' in a terminal"),
        (json!({"task_id": id, "confirm_destructive": true, "include_only_copies": true}), "command line"),
    ] {
        let refused = client.call("_codex_discard", arguments);
        assert!(refused["isError"] == true && refused.to_string().contains(expected), "{refused}");
        assert!(worktree.join("large.bin").exists(), "{expected}");
    }
}

#[test]
fn tools_take_the_id_of_a_group() {
    let agents = r#"{"one": {"protocol": "plain", "command": ["/bin/sh", "-c", "echo 1 > answer"]},
        "slow": {"protocol": "plain", "command": ["/bin/sleep", "600"]}}"#;
    let stage = stage(agents);
    let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "local,extra"], json!({}));
    let exec = |client: &mut Client, agent: &str| {
        let arguments =
            json!({"task": "find it", "mode": "workspace-write", "attempts": 2, "agents": [agent]});
        let accepted = client.envelope("_codex_local_exec", arguments);
        json!({"task_id": accepted["data"]["group_id"].as_str().unwrap_or_else(|| panic!("{accepted}"))})
    };
    let group = exec(&mut client, "one");
    let waited = client.envelope("_codex_local_wait", group.clone());
    assert_eq!(waited["data"]["tasks"].as_array().map(Vec::len), Some(2), "{waited}");
    let results = client.envelope("_codex_local_results", group.clone());
    assert_eq!(results["data"]["recommended_attempt"], 1, "{results}");
    let applied = client.envelope("_codex_apply", group);
    assert_eq!(applied["data"]["discarded_task_ids"].as_array().map(Vec::len), Some(1), "{applied}");
    assert!(stage.world.project().join("answer").exists());

    let group = exec(&mut client, "slow");
    let cancelled = client.envelope("_codex_local_cancel", group.clone());
    assert_eq!(cancelled["data"]["count"], 2, "{cancelled}");
    let refused = client.call("_codex_apply", group);
    assert!(refused["isError"] == true && text(&refused).contains("no attempt completed"), "{refused}");
}
