//! Past tasks: found by their words and their outcome, shown on one screen, and summed up.

use delegator_testkit::stage::{Stage, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;

/// An agent that runs the first line of its prompt in a shell, and repeats the rest as its message.
const AGENT: &str = r#"if [ "$1" = sandbox ]; then echo 'bwrap: No permissions'; exit 1; fi
echo '{"type":"thread.started","thread_id":"thread"}'
echo '{"type":"turn.started"}'
read -r line
eval "$line"
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"'"$(cat)"'"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1200,"cached_input_tokens":200,"output_tokens":30}}'"#;

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn run(stage: &Stage, task: &str, args: &[&str]) -> (String, Value) {
    let response = stage.run_json(&[&["local", "exec", task], args].concat());
    let id = response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
    let waited = stage.wait(&id);
    (id, waited)
}

fn found(stage: &Stage, args: &[&str]) -> Vec<String> {
    let response = stage.run_json(&[&["history"], args].concat());
    let tasks = response["data"]["tasks"].as_array().unwrap_or_else(|| panic!("{response}"));
    tasks.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn past_tasks_are_found_shown_and_summed_up() {
    let stage = Stage::with_shell_agent(PROGRAM, AGENT);
    let none = stage.run_json(&["history"]);
    assert_eq!(none["data"]["tasks"], json!([]), "{none}");
    let config = "verify_unsandboxed = true\n";
    stage.world.write("home/.config/mcp-delegator/config.toml", config);
    let write = ["--mode", "workspace-write", "--skip-git-repo-check"];
    let (verified, waited) = run(
        &stage,
        "echo 1 > made\nFebruary is repaired",
        &[&write[..], &["--verify", "test -e made"]].concat(),
    );
    assert_eq!(waited["data"]["verification"]["status"], "verified", "{waited}");
    let (refuted, _) =
        run(&stage, "true\nleap year", &[&write[..], &["--verify", "test -e absent"]].concat());
    let (failed, _) = run(&stage, "exit 3\nnever said", &[]);
    let secret = format!("true\nthe key is {SECRET}");
    let (redacted, _) = run(&stage, &secret, &[]);
    assert_eq!(found(&stage, &[]), [&redacted, &failed, &refuted, &verified].map(Clone::clone));
    assert_eq!(found(&stage, &["FEBR repaired"]), [&*verified]);
    assert_eq!(found(&stage, &["--verified"]), [&*verified]);
    assert_eq!(found(&stage, &["--failed"]), [failed.clone(), refuted.clone()]);
    assert_eq!(found(&stage, &["--agent", "claude"]), Vec::<String>::new());
    assert_eq!(found(&stage, &["--since", "1h 30m", "--repo", "."]).len(), 4);
    assert_eq!(found(&stage, &["--repo", "elsewhere"]), Vec::<String>::new());
    for hostile in ["\"", "a OR", "NEAR(", "title:*", "'; DROP TABLE tasks"] {
        found(&stage, &[hostile]);
    }
    assert_eq!(found(&stage, &["the key"]), [redacted]);
    assert_eq!(found(&stage, &[SECRET]), Vec::<String>::new(), "no secret is stored");
    let first = stage.run_json(&["history", "--limit", "3"]);
    let cursor = first["meta"]["cursor"].as_str().or(first["cursor"].as_str());
    let cursor = cursor.unwrap_or_else(|| panic!("{first}")).to_owned();
    assert_eq!(found(&stage, &["--cursor", &cursor]), [&*verified]);
    let invalid = stage.run_json(&["history", "--since", "yesterday"]);
    assert_eq!(invalid["error"]["code"], "INVALID_VALUE", "{invalid}");
    shows_everything(&stage, &verified, &failed);
    sums_up(&stage);
}

fn shows_everything(stage: &Stage, verified: &str, failed: &str) {
    let shown = stage.run_json(&["show", verified]);
    let data = &shown["data"];
    assert_eq!(data["ask"], "echo 1 > made\nFebruary is repaired", "{shown}");
    assert_eq!(data["result"]["verification"]["status"], "verified", "{shown}");
    let text = stage.world.run(["show", verified, "--format", "text"]).stdout;
    for part in [
        "completed, verified",
        "February is repaired",
        "made",
        "codex, workspace-write",
        "mcp-delegator logs",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let text = stage.world.run(["show", failed, "--format", "text"]).stdout;
    assert!(text.contains(&format!("mcp-delegator retry {failed}")), "{text}");
}

fn sums_up(stage: &Stage) {
    for by in ["agent", "repo", "day"] {
        let usage = stage.run_json(&["usage", "--by", by, "--since", "12h"]);
        let total = &usage["data"]["total"];
        assert_eq!((&total["task_count"], &total["input_tokens"]), (&json!(4), &json!(3_600)), "{usage}");
        assert_eq!((&total["verified_count"], &total["verified_share"]), (&json!(1), &json!(0.5)), "{usage}");
        assert_eq!(total["cost_source"], "not_reported", "{usage}");
        assert_eq!(usage["data"]["groups"][0]["task_count"], 4, "{usage}");
    }
    let text = stage.world.run(["usage", "--format", "text"]).stdout;
    assert!(
        text.contains("1 of 2") && text.contains("3,600") && text.contains("No agent reported a cost"),
        "{text}"
    );
}

#[test]
fn a_running_task_is_shown_with_what_can_be_done() {
    let stage = Stage::with_shell_agent(PROGRAM, AGENT);
    let task = "touch \"$HOME/../begun\"; while [ -e \"$HOME/../begun\" ]; do sleep 0.02; done";
    let id = stage.run_json(&["local", "exec", task])["data"]["task_id"].as_str().unwrap().to_owned();
    wait_until("the agent runs", || stage.root().join("begun").exists());
    let shown = stage.run_json(&["show", &id]);
    assert_eq!(
        (&shown["data"]["state"], &shown["data"]["result"]),
        (&json!("working"), &Value::Null),
        "{shown}"
    );
    let text = stage.world.run(["show", &id, "--format", "text"]).stdout;
    assert!(text.contains(&format!("mcp-delegator wait {id}")), "{text}");
    assert_eq!(found(&stage, &["begun"]), [&*id], "also before its end");
    std::fs::remove_file(stage.root().join("begun")).unwrap();
    stage.wait(&id);
}
