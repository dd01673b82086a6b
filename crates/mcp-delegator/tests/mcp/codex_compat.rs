//! `codex` and `codex-reply`, called as hosts call them that were set up for Codex's own former server.

use delegator_testkit::codex::world_with;
use delegator_testkit::fake_model::{FakeModel, Step, message, patch};
use delegator_testkit::program::text_of;
use delegator_testkit::stage::{Stage, turn, until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::host::{ERAS, Host, NEW, OLD, go, quick, result, text, waiting};

const COMPAT: [&str; 2] = ["--toolsets", "codex-compat"];

fn host(stage: &Stage) -> Host {
    Host::with(stage, OLD, &COMPAT, json!({}))
}

/// Agents that write down what they were started with.
fn recording() -> Stage {
    Stage::playing(PROGRAM, turn(&[json!({"record": {"file": "record.json"}})]))
}

fn recorded(stage: &Stage) -> Value {
    let record = std::fs::read_to_string(stage.world.project().join("record.json")).unwrap();
    serde_json::from_str(&record).unwrap()
}

#[test]
fn the_two_tools_are_listed_as_codex_listed_them() {
    let stage = quick();
    for era in ERAS {
        let mut host = Host::with(&stage, era, &COMPAT, json!({}));
        let tools = result(host.request("tools/list", json!({})))["tools"].clone();
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
    let mut host = Host::with(&stage, NEW, &with_ours, json!({}));
    let tools = result(host.request("tools/list", json!({})))["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(
        names.contains(&"codex") && names.contains(&"_codex_local_wait") && names.len() == 8,
        "{names:?}"
    );
}

#[test]
fn a_session_is_begun_and_gone_on_with() {
    let stage = recording();
    let mut host = host(&stage);
    let arguments = json!({"prompt": "look", "sandbox": "workspace-write", "model": "m-1", "developer-instructions": "gently",
        "approval-policy": "on-request", "config": {"model_reasoning_effort": "high"}});
    let first = host.call("codex", arguments);
    assert_eq!(text(&first), "All done.", "{first}");
    assert_eq!(recorded(&stage)["stdin"], "gently\n\nlook");
    let thread = first["structuredContent"]["threadId"].as_str().unwrap_or_else(|| panic!("{first}"));
    assert_eq!(first["structuredContent"]["content"], "All done.");
    for key in ["threadId", "conversationId"] {
        let next = host.call("codex-reply", json!({key: thread, "prompt": "and then"}));
        assert_eq!(next["structuredContent"]["threadId"], thread, "{next}");
        let record = recorded(&stage);
        assert_eq!(record["stdin"], "and then");
        for word in [thread, "workspace-write", "m-1"] {
            assert!(record["argv"].to_string().contains(word), "{word}: {record}");
        }
    }
    let unread = stage.answer(&["local", "status"]);
    assert!(unread["data"].get("unread").is_none(), "what was answered is read: {unread}");
}

/// The real Codex, outside of any repository, as its own server would have worked there.
#[test]
fn the_real_codex_answers_through_them() {
    let add = "*** Begin Patch\n*** Add File: added.txt\n+hello\n*** End Patch\n";
    let steps = [patch(add), message("Added a file."), message("Nothing more.")];
    let model = FakeModel::start(steps.map(|step| Step::Say(vec![step])).to_vec());
    let stage = Stage { world: world_with(PROGRAM, &model.codex_config()) };
    let mut host = host(&stage);
    let first = host.call("codex", json!({"prompt": "add a file", "sandbox": "workspace-write", "cwd": "."}));
    assert_eq!(text(&first), "Added a file.", "{first}");
    assert_eq!(text_of(&stage.world.project().join("added.txt")), "hello\n");
    let thread = &first["structuredContent"]["threadId"];
    let next = host.call("codex-reply", json!({"threadId": thread, "prompt": "what else?"}));
    assert_eq!((text(&next), &next["structuredContent"]["threadId"]), ("Nothing more.", thread), "{next}");
    let last = model.requests().last().unwrap().to_string();
    assert!(last.contains("add a file") && last.contains("what else?"), "the thread's history is there");
}

#[test]
fn it_stays_however_long_it_takes_and_tells_how_far_it_is() {
    let stage = waiting().variable("MCP_DELEGATOR_CALL_BUDGET_SEC", "1");
    let mut host = host(&stage);
    let call = json!({"name": "codex", "arguments": {"prompt": "x"}, "_meta": {"progressToken": "p"}});
    let id = host.ask("tools/call", call);
    let mut last = -1.0;
    // The third comes seconds after the call budget.
    for _ in 0..3 {
        let told = host.until("progress", |message| message["params"]["progressToken"] == "p");
        let progress = told["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{told}");
        last = progress;
    }
    assert!(!host.unread().iter().any(|message| message["id"] == id), "answered too early");
    go(&stage);
    let reply = host.reply(id);
    assert_eq!(text(&reply["result"]), "All done.", "{reply}");
}

#[test]
fn a_task_that_fails_is_an_error_with_its_thread() {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"turn_failed": "the model went away"},
    ]);
    let stage = Stage::playing(PROGRAM, steps);
    let failed = host(&stage).call("codex", json!({"prompt": "x"}));
    assert_eq!(failed["isError"], true, "{failed}");
    assert!(text(&failed).contains("the model went away"), "{failed}");
    assert!(failed["structuredContent"]["threadId"].is_string(), "{failed}");
    assert_eq!(failed["structuredContent"]["content"], text(&failed));
}

#[test]
fn what_is_wrong_with_a_call_is_told_in_its_own_words_and_starts_nothing() {
    let stage = quick();
    let mut host = host(&stage);
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
        let refused = host.call(tool, arguments.clone());
        assert_eq!(refused["isError"], true, "{arguments}: {refused}");
        for words in named {
            assert!(text(&refused).contains(words), "{words}: {refused}");
        }
    }
    let status = stage.answer(&["local", "status"]);
    assert_eq!(status["data"]["summary"]["recently_completed"], 0, "{status}");
}

#[test]
fn a_cancelled_call_leaves_the_task_alone() {
    let stage = waiting();
    let mut host = host(&stage);
    let id = host.begin("codex", json!({"prompt": "x"}));
    let running = || stage.answer(&["local", "status"])["data"]["summary"]["running"] == 1;
    until("it runs", running);
    host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    result(host.request("ping", json!({})));
    assert!(running());
    go(&stage);
    until("it has ended", || stage.answer(&["local", "status"])["data"]["unread"]["count"] == 1);
}

#[test]
fn a_server_that_only_reads_has_neither() {
    let stage = quick();
    let mut host = Host::with(&stage, OLD, &["--toolsets", "local,codex-compat", "--read-only"], json!({}));
    let tools = result(host.request("tools/list", json!({})))["tools"].to_string();
    assert!(!tools.contains("\"codex"), "{tools}");
    let reply = host.request("tools/call", json!({"name": "codex", "arguments": {"prompt": "x"}}));
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
}

#[test]
fn advice_names_only_inputs_these_tools_have() {
    let stage = quick();
    let mut host = host(&stage);
    for (tool, arguments) in [
        ("codex", json!({})),
        ("codex", json!({"prompt": "git push --force", "sandbox": "workspace-write"})),
        ("codex-reply", json!({"prompt": "x"})),
    ] {
        let refused = host.call(tool, arguments);
        let words = text(&refused);
        for other in ["task:", "task_id", "allow_destructive_git"] {
            assert!(!words.contains(other), "{other}: {words}");
        }
    }
}
