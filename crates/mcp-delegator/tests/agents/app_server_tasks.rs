//! The real app server of Codex: messages, approvals, threads.

use std::path::PathBuf;

use delegator_testkit::scripted_model::Action;
use delegator_testkit::stage::{Stage, wait_until};
use serde_json::json;

use crate::agent_kinds::AgentKind;
use crate::client::{Client, V2025_11};
use crate::live_world::{LiveWorld, input_tokens, thread_of};

fn live_world() -> LiveWorld {
    let steered = vec![vec![Action::Say("Steered.")]];
    LiveWorld::new(AgentKind::CodexAppServer, |_| vec![("steered", steered)])
}

#[test]
fn a_message_is_steered_into_the_running_turn() {
    let live = live_world();
    let id = live.exec("gate", &["--mode", "workspace-write"]);
    live.wait_for_command();
    let sent = live.world.run(["send", &id, "Please do [script steered].", "--now"]).json();
    assert_eq!(sent["ok"], true, "{sent}");
    wait_until("the message is accepted", || {
        let status = live.world.run(["local", "status", &id]).json();
        status["data"]["tasks"][0]["messages"]["accepted_count"] == 1
    });
    live.world.write("project/go", "");
    let data = live.wait(&id);
    assert_eq!(
        (&data["state"], &data["final_message"]),
        (&json!("completed"), &json!("Steered.")),
        "{data:#}"
    );
    assert_eq!(data["messages"]["items"][0]["state"], "accepted", "{data:#}");
}

#[test]
fn a_message_begins_the_next_turn() {
    let live = live_world();
    let id = live.exec("gate", &["--mode", "workspace-write"]);
    live.wait_for_command();
    live.world.run(["send", &id, "Please do [script second]."]).json();
    live.world.write("project/go", "");
    let data = live.wait(&id);
    assert_eq!(
        (&data["state"], &data["final_message"]),
        (&json!("completed"), &json!("Second.")),
        "{data:#}"
    );
    assert_eq!(data["messages"]["items"][0]["state"], "accepted", "{data:#}");
}

/// A world in which the script `escalate` asks for permission to create a file outside of the sandbox, and the file.
fn world_with_escalation() -> (LiveWorld, PathBuf) {
    let live = LiveWorld::new(AgentKind::Codex, |world| {
        let touch = format!("touch {}", world.home().join("outside").display());
        let steps = vec![vec![Action::RunUnsandboxed(touch)], vec![Action::Say("Tried.")]];
        vec![("escalate", steps)]
    });
    let path = live.world.home().join("outside");
    (live, path)
}

#[test]
fn an_approval_travels_to_the_user_of_a_client_and_back() {
    for (option, is_written) in [("allow_once", true), ("reject_once", false)] {
        let (live, path) = world_with_escalation();
        let id = live.exec("escalate", &["--mode", "workspace-write", "--live", "--ask"]);
        let stage = Stage { world: live.world };
        let forms = json!({"elicitation": {"form": {}}});
        let mut client = Client::connect_with(&stage, V2025_11, &[], forms);
        let call = client.start_call("_codex_local_wait", json!({"task_id": id, "format": "json"}));
        let form = client.wait_for("the form", |message| message["method"] == "elicitation/create");
        assert!(form["params"]["message"].as_str().unwrap().contains("touch "), "{form}");
        let accepted = json!({"action": "accept", "content": {"answer": option}});
        client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": accepted}));
        let data = client.response(call)["result"]["structuredContent"]["data"].clone();
        assert_eq!(
            (&data["state"], &data["final_message"]),
            (&json!("completed"), &json!("Tried.")),
            "{data:#}"
        );
        assert_eq!(path.exists(), is_written, "{option}: {data:#}");
    }
}

#[test]
fn an_approval_is_answered_from_the_command_line() {
    for (option, is_written) in [("allow_once", true), ("reject_once", false)] {
        let (live, path) = world_with_escalation();
        let id = live.exec("escalate", &["--mode", "workspace-write", "--live", "--ask"]);
        let question = live.open_question();
        assert_eq!(question["kind"], "permission", "{question}");
        let detail = question["detail"].as_str().unwrap();
        assert!(detail.contains("touch ") && detail.contains("because: the test needs it"), "{question}");
        live.answer(&id, option);
        let data = live.wait(&id);
        assert_eq!(
            (&data["state"], &data["final_message"]),
            (&json!("completed"), &json!("Tried.")),
            "{data:#}"
        );
        assert_eq!(path.exists(), is_written, "{option}: {data:#}");
    }
}

#[test]
fn a_thread_is_resumed_by_the_app_server() {
    let live = live_world();
    let first = live.wait(&live.exec("write", &["--mode", "workspace-write"]));
    let thread = thread_of(&first);
    let id = first["task_id"].as_str().unwrap();
    for _ in ["once", "and again"] {
        let args = ["local", "resume", "Please do [script second].", "--task-id", id];
        let resumed = live.world.run(args).json();
        let resumed = resumed["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{resumed}")).to_owned();
        let data = live.wait(&resumed);
        assert_eq!(
            (&data["state"], &data["final_message"]),
            (&json!("completed"), &json!("Second.")),
            "{data:#}"
        );
        assert_eq!(thread_of(&data), thread);
        assert_eq!(
            input_tokens(&data),
            input_tokens(&first) / 2,
            "one call of the model instead of two: {data:#}"
        );
    }
    let unknown = "01900000-0000-7000-8000-000000000000";
    let refused = live
        .world
        .run(["local", "resume", "x", "--thread-id", unknown, "--agent", "codex-app-server"])
        .json();
    assert_eq!(refused["error"]["code"], "THREAD_NOT_FOUND", "{refused}");
}

/// The model reports 120 tokens for each call, and Codex counts a call when its command has ended: 1080 tokens while the last
/// command runs, 1320 at the end.
#[test]
fn an_agent_is_asked_to_report_when_a_budget_is_nearly_used() {
    let quick = || vec![Action::Run("true".to_owned())];
    let gate = "while [ ! -e go ]; do python3 -c 'import time; time.sleep(0.05)'; done";
    let gate = vec![Action::Run(gate.to_owned())];
    let end = [gate, vec![Action::Say("Half done.")]];
    let script = std::iter::repeat_with(quick).take(9).chain(end).collect();
    let live = LiveWorld::new(AgentKind::CodexAppServer, |_| vec![("long", script)]);
    let id = live.exec("long", &["--mode", "workspace-write", "--budget", "1340", "--salvage"]);
    wait_until("the agent is asked", || {
        live.world.run(["logs", &id, "--raw"]).stdout.contains("Reply with a short report")
    });
    live.world.write("project/go", "");
    let data = live.wait(&id);
    assert_eq!(
        (&data["state"], &data["final_message"]),
        (&json!("failed"), &json!("Half done.")),
        "{data:#}"
    );
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "budget_exhausted", "{data:#}");
    let results = live.world.run(["local", "results", &id]).json();
    assert!(results["warnings"].to_string().contains("W_SALVAGE_001"), "{results}");
}
