//! The real Claude Code: messages, permissions, sessions.

use delegator_testkit::scripted_model::Action;
use serde_json::json;

use crate::agent_kinds::AgentKind;
use crate::live_world::{LiveWorld, input_tokens, thread_of};

fn live_world() -> LiveWorld {
    let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}});
    let limit = vec![vec![Action::Fail { status: 429, body }]];
    LiveWorld::new(AgentKind::Claude, |_| vec![("limit", limit)])
}

#[test]
fn a_message_begins_the_next_turn() {
    let live = live_world();
    let id = live.exec("gate", &["--mode", "workspace-write"]);
    live.wait_for_command();
    let refused = live.world.run(["send", &id, "x", "--now"]).json();
    assert_eq!(refused["error"]["code"], "UNSUPPORTED", "{refused}");
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

#[test]
fn a_permission_request_travels_to_the_user_and_back() {
    for (option, is_written) in [("allow_once", true), ("reject_once", false)] {
        let live = live_world();
        let id = live.exec("write", &["--mode", "workspace-write", "--ask"]);
        let question = live.open_question();
        assert_eq!((&question["kind"], &question["title"]), (&json!("permission"), &json!("Change a file")));
        live.answer(&id, option);
        let data = live.wait(&id);
        assert_eq!(
            (&data["state"], &data["final_message"]),
            (&json!("completed"), &json!("Wrote it.")),
            "{data:#}"
        );
        assert_eq!(live.world.project().join("notes.txt").exists(), is_written, "{option}: {data:#}");
    }
}

#[test]
fn a_session_is_resumed_and_counts_its_own_tokens() {
    let live = live_world();
    let first = live.wait(&live.exec("write", &["--mode", "workspace-write"]));
    let id = first["task_id"].as_str().unwrap();
    let resumed = live.world.run(["local", "resume", "Please do [script second].", "--task-id", id]).json();
    let resumed = resumed["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{resumed}")).to_owned();
    let data = live.wait(&resumed);
    assert_eq!(
        (&data["state"], &data["final_message"]),
        (&json!("completed"), &json!("Second.")),
        "{data:#}"
    );
    assert_eq!(thread_of(&data), thread_of(&first));
    assert_eq!(
        input_tokens(&data),
        input_tokens(&first) / 2,
        "one call of the model instead of two: {data:#}"
    );
    let unknown = "00000000-0000-4000-8000-000000000000";
    let refused =
        live.world.run(["local", "resume", "x", "--thread-id", unknown, "--agent", "claude"]).json();
    assert_eq!(refused["error"]["code"], "THREAD_NOT_FOUND", "{refused}");
}

#[test]
fn an_error_of_the_model_fails_the_task_with_its_kind() {
    let live = live_world();
    let data = live.wait(&live.exec("limit", &[]));
    let kind = &data["metadata"]["error_context"]["failure_kind"];
    assert_eq!((&data["state"], kind), (&json!("failed"), &json!("rate_limit")), "{data:#}");
}
