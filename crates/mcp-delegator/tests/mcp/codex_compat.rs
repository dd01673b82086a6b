//! The tools `codex` and `codex-reply`, called as by clients that were configured for Codex's own former MCP server.

use delegator_testkit::codex::world_with_codex;
use delegator_testkit::fake_model::{FakeModel, Reply, message, patch};
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{
    Client, ERAS, V2025_06, V2026_07, quick_stage, release_agents, result, text, waiting_stage,
};

const COMPAT_ARGS: [&str; 2] = ["--toolsets", "codex-compat"];

fn compat_client(stage: &Stage) -> Client {
    Client::connect_with(stage, V2025_06, &COMPAT_ARGS, json!({}))
}

/// Agents that record their arguments and stdin.
fn recording_stage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[json!({"record": {"file": "record.json"}})]))
}

fn agent_record(stage: &Stage) -> Value {
    let record = std::fs::read_to_string(stage.world.project().join("record.json")).unwrap();
    serde_json::from_str(&record).unwrap()
}

#[test]
fn the_two_tools_are_listed_as_codex_listed_them() {
    let stage = quick_stage();
    for era in ERAS {
        let mut client = Client::connect_with(&stage, era, &COMPAT_ARGS, json!({}));
        let tools = result(client.request("tools/list", json!({})))["tools"].clone();
        let [codex, reply] = tools.as_array().unwrap().as_slice() else { panic!("{tools}") };
        assert_eq!((&codex["name"], &reply["name"]), (&json!("codex"), &json!("codex-reply")));
        for tool in [codex, reply] {
            assert_eq!(tool["inputSchema"]["required"], json!(["prompt"]), "{tool}");
            assert_eq!(tool["outputSchema"]["required"], json!(["threadId", "content"]), "{tool}");
        }
        for input in ["prompt", "cwd", "sandbox", "model", "approval-policy", "config"] {
            assert!(codex["inputSchema"]["properties"][input].is_object(), "{input}: {codex}");
        }
    }
    let with_ours = ["--toolsets", "local,codex-compat", "--exclude-tools", "codex-reply"];
    let mut client = Client::connect_with(&stage, V2026_07, &with_ours, json!({}));
    let tools = result(client.request("tools/list", json!({})))["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(
        names.contains(&"codex") && names.contains(&"_codex_local_wait") && names.len() == 8,
        "{names:?}"
    );
}

#[test]
fn a_session_can_be_started_and_continued() {
    let stage = recording_stage();
    let mut client = compat_client(&stage);
    let arguments = json!({"prompt": "look", "sandbox": "workspace-write", "model": "m-1", "developer-instructions": "gently",
        "approval-policy": "on-request", "config": {"model_reasoning_effort": "high"}});
    let first = client.call("codex", arguments);
    assert_eq!(text(&first), "All done.", "{first}");
    assert_eq!(agent_record(&stage)["stdin"], "gently\n\nlook");
    let thread = first["structuredContent"]["threadId"].as_str().unwrap_or_else(|| panic!("{first}"));
    assert_eq!(first["structuredContent"]["content"], "All done.");
    for key in ["threadId", "conversationId"] {
        let next = client.call("codex-reply", json!({key: thread, "prompt": "and then"}));
        assert_eq!(next["structuredContent"]["threadId"], thread, "{next}");
        let record = agent_record(&stage);
        assert_eq!(record["stdin"], "and then");
        for word in [thread, "workspace-write", "m-1"] {
            assert!(record["argv"].to_string().contains(word), "{word}: {record}");
        }
    }
    let unread = stage.run_json(&["local", "status"]);
    assert!(unread["data"].get("unread").is_none(), "a returned result counts as read: {unread}");
}

#[test]
fn a_reply_to_an_unknown_thread_starts_nothing() {
    let stage = recording_stage();
    let mut client = compat_client(&stage);
    let thread = "0199a213-81c0-7800-8aa1-bbab2a035a53";
    let refused = client.call("codex-reply", json!({"threadId": thread, "prompt": "and then"}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains(&format!("There is no thread {thread}.")), "{refused}");
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"]["summary"]["recently_completed"], 0, "{status}");
}

/// The real Codex outside of any repository, as its own server would have run there.
#[test]
fn the_real_codex_works_through_both_tools() {
    let add = "*** Begin Patch\n*** Add File: added.txt\n+hello\n*** End Patch\n";
    let steps = [patch(add), message("Added a file."), message("Nothing more.")];
    let model = FakeModel::start(steps.map(|step| Reply::Output(vec![step])).to_vec());
    let stage = Stage { world: world_with_codex(PROGRAM, &model.codex_config()) };
    let mut client = compat_client(&stage);
    let first =
        client.call("codex", json!({"prompt": "add a file", "sandbox": "workspace-write", "cwd": "."}));
    assert_eq!(text(&first), "Added a file.", "{first}");
    assert_eq!(read_text(&stage.world.project().join("added.txt")), "hello\n");
    let thread = &first["structuredContent"]["threadId"];
    let next = client.call("codex-reply", json!({"threadId": thread, "prompt": "what else?"}));
    assert_eq!((text(&next), &next["structuredContent"]["threadId"]), ("Nothing more.", thread), "{next}");
    let last = model.requests().last().unwrap().to_string();
    assert!(
        last.contains("add a file") && last.contains("what else?"),
        "the request lacks the history of the thread"
    );
}

#[test]
fn a_call_waits_beyond_the_budget_and_reports_progress() {
    let stage = waiting_stage().variable("MCP_DELEGATOR_CALL_BUDGET_SEC", "1");
    let mut client = compat_client(&stage);
    let call = json!({"name": "codex", "arguments": {"prompt": "x"}, "_meta": {"progressToken": "p"}});
    let id = client.send_request("tools/call", call);
    let mut last = -1.0;
    // The third notification comes seconds after the end of the call budget.
    for _ in 0..3 {
        let notification = client.wait_for("progress", |message| message["params"]["progressToken"] == "p");
        let progress = notification["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{notification}");
        last = progress;
    }
    assert!(!client.pending().iter().any(|message| message["id"] == id), "the call returned too early");
    release_agents(&stage);
    let reply = client.response(id);
    assert_eq!(text(&reply["result"]), "All done.", "{reply}");
}

#[test]
fn a_task_that_fails_is_an_error_with_its_thread() {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"turn_failed": "the model went away"},
    ]);
    let stage = Stage::with_script(PROGRAM, steps);
    let failed = compat_client(&stage).call("codex", json!({"prompt": "x"}));
    assert_eq!(failed["isError"], true, "{failed}");
    assert!(text(&failed).contains("the model went away"), "{failed}");
    assert!(failed["structuredContent"]["threadId"].is_string(), "{failed}");
    assert_eq!(failed["structuredContent"]["content"], text(&failed));
}

#[test]
fn an_invalid_call_names_its_own_inputs_and_starts_nothing() {
    let stage = quick_stage();
    let mut client = compat_client(&stage);
    for (tool, arguments, named) in [
        ("codex", json!({}), &["prompt"][..]),
        ("codex", json!({"prompt": " "}), &["prompt"]),
        ("codex", json!({"promt": "x"}), &["promt", "Did you mean prompt?", "prompt"]),
        ("codex", json!({"prompt": "x", "cwd": "nowhere"}), &["cwd"]),
        ("codex", json!({"prompt": "x", "sandbox": "none"}), &["sandbox"]),
        ("codex", json!({"prompt": "x", "sandbox": "danger-full-access"}), &["sandbox"]),
        (
            "codex",
            json!({"prompt": "x", "approval-policy": "untrusted", "config": {"mcp_servers": {}}}),
            &["approval-policy", "config.mcp_servers"],
        ),
        ("codex-reply", json!({"prompt": "x"}), &["threadId"]),
        ("codex-reply", json!({"threadId": "--last", "prompt": "x"}), &["threadId"]),
    ] {
        let refused = client.call(tool, arguments.clone());
        assert_eq!(refused["isError"], true, "{arguments}: {refused}");
        for text_part in named {
            assert!(text(&refused).contains(text_part), "{text_part}: {refused}");
        }
    }
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"]["summary"]["recently_completed"], 0, "{status}");
}

#[test]
fn cancelling_a_call_does_not_cancel_the_task() {
    let stage = waiting_stage();
    let mut client = compat_client(&stage);
    let id = client.start_call("codex", json!({"prompt": "x"}));
    let running = || stage.run_json(&["local", "status"])["data"]["summary"]["running"] == 1;
    wait_until("the task runs", running);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    result(client.request("ping", json!({})));
    assert!(running());
    release_agents(&stage);
    wait_until("the task has ended", || stage.run_json(&["local", "status"])["data"]["unread"]["count"] == 1);
}

#[test]
fn a_read_only_server_has_neither_tool() {
    let stage = quick_stage();
    let mut client = Client::connect_with(
        &stage,
        V2025_06,
        &["--toolsets", "local,codex-compat", "--read-only"],
        json!({}),
    );
    let tools = result(client.request("tools/list", json!({})))["tools"].to_string();
    assert!(!tools.contains("\"codex"), "{tools}");
    let reply = client.request("tools/call", json!({"name": "codex", "arguments": {"prompt": "x"}}));
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
}

#[test]
fn suggestions_name_only_inputs_of_these_tools() {
    let stage = quick_stage();
    let mut client = compat_client(&stage);
    for (tool, arguments) in [
        ("codex", json!({})),
        ("codex", json!({"prompt": "git push --force", "sandbox": "workspace-write"})),
        ("codex-reply", json!({"prompt": "x"})),
    ] {
        let refused = client.call(tool, arguments);
        let message = text(&refused);
        for other in ["task:", "task_id", "allow_destructive_git"] {
            assert!(!message.contains(other), "{other}: {message}");
        }
    }
}
