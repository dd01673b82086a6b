//! Budgets of a task, of the day and of a label: warned about at 80 %, enforced at 100 %.

use delegator_testkit::stage::{Stage, successful_turn, task_processes, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;

fn warnings(response: &Value) -> String {
    response["warnings"].to_string()
}

/// Codex reports its tokens when the turn has ended: 120 here.
fn stage_with_usage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[json!({"message": "done"})]))
}

#[test]
fn a_budget_that_is_exceeded_at_the_end_of_a_turn_is_a_warning() {
    let stage = stage_with_usage();
    let used = stage.wait(&stage.exec(&[]))["data"]["metadata"]["thread_info"]["token_usage"].clone();
    let tokens = used["input_tokens"].as_u64().unwrap() + used["output_tokens"].as_u64().unwrap();
    for (budget, expected) in
        [(tokens * 2, None), (tokens + 1, Some("are used")), (tokens / 2, Some("are used"))]
    {
        let waited = stage.wait(&stage.exec(&["--budget", &budget.to_string()]));
        assert_eq!(waited["data"]["state"], "completed", "{waited}");
        let text = warnings(&waited);
        assert_eq!(text.contains("budget:"), expected.is_some(), "{budget}: {waited}");
        assert!(text.contains(expected.unwrap_or_default()), "{waited}");
    }
}

#[test]
fn the_budget_of_a_day_ends_a_running_task_and_refuses_the_next() {
    let stage =
        Stage::with_shell_agent(PROGRAM, "cat >/dev/null; echo '{\"type\":\"turn.started\"}'; sleep 600")
            .variable("MCP_DELEGATOR_BUDGET_DAY_RUNNING_SEC", "1");
    let id = stage.exec(&[]);
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "failed", "{waited}");
    assert_eq!(waited["data"]["metadata"]["error_context"]["failure_kind"], "budget_exhausted", "{waited}");
    assert_eq!(task_processes(&id), Vec::<i32>::new());
    let refused = stage.world.run(["local", "exec", "x", "--skip-git-repo-check"]).json();
    assert_eq!(refused["error"]["code"], "POLICY_BLOCKED", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("running time of the day"), "{refused}");
}

#[test]
fn tasks_with_another_value_of_the_label_have_their_own_budget() {
    let stage = stage_with_usage()
        .variable("MCP_DELEGATOR_BUDGET_LABEL", "team")
        .variable("MCP_DELEGATOR_BUDGET_LABEL_TOKENS", "1");
    let exec = |label: &str| {
        stage.world.run(["local", "exec", "x", "--skip-git-repo-check", "--labels", label]).json()
    };
    let first = exec("team=web");
    stage.wait(first["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{first}")));
    let refused = exec("team=web");
    assert_eq!(refused["error"]["code"], "POLICY_BLOCKED", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("the label team=web"), "{refused}");
    assert_eq!(exec("team=data")["ok"], true);
}

/// With an agent that answers each message and stays.
fn stage_with_chat() -> Stage {
    let echo = "while read -r line; do echo '{\"type\":\"agent_message\",\"content\":\"ok\"}'; echo '{\"type\":\"idle\"}'; done";
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let agents =
        json!({"chat": {"protocol": "idle-jsonl", "command": ["/bin/sh", "-c", echo], "linger_sec": 600}});
    stage.variable("MCP_DELEGATOR_AGENTS", &agents.to_string())
}

#[test]
fn an_agent_that_has_used_its_turns_gets_no_further_message() {
    let stage = stage_with_chat();
    let waited = stage.wait(&stage.exec(&["--agent", "chat", "--max-turns", "1"]));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    assert!(warnings(&waited).contains("1 of 1 turns of the task are used"), "{waited}");
}

#[test]
fn status_warns_of_a_budget_that_is_nearly_used() {
    let stage = stage_with_chat();
    let id = stage.exec(&["--agent", "chat", "--max-turns", "5"]);
    for text in ["two", "three", "four"] {
        stage.run_json(&["send", &id, text]);
    }
    wait_until("status warns", || {
        let status = stage.run_json(&["local", "status", &id]);
        assert_eq!(status["data"]["tasks"][0]["state"], "working", "{status}");
        warnings(&status).contains("4 of 5 turns of the task are used")
    });
    stage.run_json(&["local", "cancel", &id, "--confirm-destructive"]);
}
