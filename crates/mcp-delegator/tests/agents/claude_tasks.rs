//! The real Claude Code: messages, permissions, cancelling, sessions.

use delegator_testkit::generated::workspace;
use delegator_testkit::program::World;
use delegator_testkit::scripted_model::{Action, ScriptedModel};
use serde_json::json;

use crate::live_world::{LiveWorld, input_tokens, thread_of};

/// A PATH that begins with the programs of a folder of npm packages.
fn path_with(folder: &str) -> String {
    let programs = workspace().join(folder).join("node_modules/.bin");
    assert!(programs.exists(), "{} is missing: run scripts/test, which installs it", programs.display());
    format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display())
}

/// The world with Claude Code, which uses this model.
pub(crate) fn with_claude(world: World, model: &ScriptedModel) -> World {
    world
        .variable("PATH", &path_with(".tools/claude-code-2.1.325"))
        .variable("ANTHROPIC_BASE_URL", &model.url())
        .variable("ANTHROPIC_API_KEY", "fake-key")
}

fn live_world() -> LiveWorld {
    let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}});
    let limit = vec![vec![Action::Fail { status: 429, body }]];
    LiveWorld::new("claude", vec![("limit", limit)], with_claude)
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
fn a_read_only_task_changes_no_files() {
    let live = live_world();
    let data = live.wait(&live.exec("write", &["--mode", "read-only"]));
    assert_eq!((&data["state"], &data["sandbox"]), (&json!("completed"), &json!("enforced")), "{data:#}");
    assert!(!live.world.project().join("notes.txt").exists(), "{data:#}");
}

#[test]
fn cancelling_ends_the_command_of_the_turn() {
    let live = live_world();
    let id = live.exec("wait", &["--mode", "workspace-write"]);
    live.wait_for_command();
    live.world.run(["local", "cancel", &id]).json();
    let data = live.wait(&id);
    assert_eq!(data["state"], "cancelled", "{data:#}");
    let output = live.world.run(["logs", &id, "--raw"]).stdout;
    assert!(output.contains(r#""subtype":"interrupt""#), "{output}");
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
    assert_eq!((&data["state"], &data["failure_kind"]), (&json!("failed"), &json!("rate_limit")), "{data:#}");
}
