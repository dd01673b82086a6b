//! What a model receives when a task it waits for does not complete: the same facts in Markdown and JSON.

use delegator_testkit::program::wait_for_output;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, ERAS, V2025_06, V2026_07, text};

/// A stage whose agent runs these steps after the start of its turn.
fn stage_with_steps(steps: &[Value]) -> Stage {
    let start = [json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    Stage::with_script(PROGRAM, json!([&start, steps].concat())).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

/// The value of the list item `- name: value`.
fn list_value<'a>(markdown: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("- {name}: ");
    markdown.lines().find_map(|line| line.strip_prefix(begin.as_str()))
}

#[test]
fn a_failed_run_has_the_same_facts_in_markdown_and_json() {
    let complaint = json!({"command": {"run": "echo 'x.c:3:7: error: no such thing'; exit 1"}});
    let stage = stage_with_steps(&[
        complaint,
        json!({"stderr_line": "the last straw"}),
        json!({"turn_failed": "I give up."}),
    ]);
    for era in ERAS {
        let mut client = Client::connect(&stage, era);
        let error = client.envelope("_codex_local_run", json!({"task": "x"}))["error"].clone();
        let result = client.call("_codex_local_run", json!({"task": "x"}));
        assert_eq!(result["isError"], true, "{result}");
        let markdown = text(&result);
        assert!(markdown.starts_with("# Error: TOOL_ERROR (AGENT_FAILED)\n"), "{markdown}");
        assert!(markdown.contains(error["message"].as_str().unwrap()), "{markdown}");
        for (name, key) in
            [("failure", "failure_kind"), ("exit code", "exit_code"), ("timeout type", "timeout_type")]
        {
            let expected = error["details"].get(key).map(|value| value.to_string().replace('"', ""));
            assert_eq!(list_value(markdown, name).map(str::to_owned), expected, "{name}: {markdown}");
        }
        assert_eq!(
            (list_value(markdown, "retryable"), list_value(markdown, "location")),
            (Some("no"), Some("x.c:3:7")),
            "{markdown}"
        );
        let id = list_value(markdown, "task").unwrap_or_else(|| panic!("{markdown}"));
        assert!(list_value(markdown, "thread").is_some(), "{markdown}");
        for part in ["I give up.", "the last straw"] {
            assert!(markdown.contains(part), "{part} is missing: {markdown}");
        }
        assert!(markdown.contains(&format!(r#"`_codex_local_results {{"task_id":"{id}"}}`"#)), "{markdown}");
        assert!(markdown.contains("_codex_local_resume"), "the resume call is missing: {markdown}");
        assert!(markdown.len() <= 1_500, "{} bytes: {markdown}", markdown.len());
    }
}

#[test]
fn only_a_failure_of_a_known_kind_is_retryable() {
    let stage = stage_with_steps(&[]);
    let start = [json!({"read_stdin": "all"}), json!({"thread_started": {}})];
    let logged = "2026-11-15T18:07:43.429123Z ERROR codex_core: failed to parse config";
    let limit = "Rate limit reached for gpt-5.5. Please try again in 1.898s.";
    let cases = [
        (json!({"stderr_line": logged}), json!({"exit": 1}), "agent_exit", false),
        (json!("turn_started"), json!({"turn_failed": limit}), "rate_limit", true),
    ];
    for (step, end, kind, retryable) in cases {
        stage.set_script(json!([&start[..], &[step, end]].concat()));
        let mut client = Client::connect(&stage, V2026_07);
        let error = client.envelope("_codex_local_run", json!({"task": "x"}))["error"].clone();
        let details = &error["details"];
        assert_eq!(
            (&details["failure_kind"], &error["retryable"]),
            (&json!(kind), &json!(retryable)),
            "{error}"
        );
        let wait = details["retry_after_ms"].as_u64();
        assert_eq!((wait.is_some(), details["retry_at"].is_string()), (retryable, retryable), "{error}");
        assert!(wait.is_none_or(|wait| wait <= 1_898), "{error}");
    }
}

#[test]
fn a_timed_out_run_shows_its_partial_output() {
    let stage = stage_with_steps(&[json!({"message": "halfway there"}), json!("silent")]);
    let mut client = Client::connect(&stage, V2025_06);
    let result = client.call("_codex_local_run", json!({"task": "x", "idle_timeout_sec": 1}));
    let markdown = text(&result);
    assert!(markdown.starts_with("# Error: TIMEOUT\n"), "{markdown}");
    assert_eq!(
        (list_value(markdown, "timeout type"), list_value(markdown, "limit seconds")),
        (Some("idle"), Some("1")),
        "{markdown}"
    );
    for name in ["task", "thread", "elapsed seconds", "idle seconds"] {
        assert!(list_value(markdown, name).is_some(), "{name} is missing: {markdown}");
    }
    assert!(markdown.contains("halfway there"), "{markdown}");
    assert!(
        markdown.contains("_codex_local_results") && markdown.contains("_codex_local_resume"),
        "{markdown}"
    );
    // The handle of a run has the same text.
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = Client::connect_with(&stage, V2026_07, &[], capabilities);
    let id = list_value(markdown, "task").unwrap();
    let handle = crate::client::result(client.request("tasks/get", json!({"taskId": id})));
    assert!(text(&handle["result"]).contains("halfway there"), "{handle}");
}

#[test]
fn long_output_of_a_timed_out_run_is_shown_from_its_end() {
    let stage = stage_with_steps(&[
        json!({"events": {"count": 60, "bytes": 900}}),
        json!({"message": "the last word"}),
        json!("silent"),
    ]);
    let mut client = Client::connect(&stage, V2025_06);
    let result = client.call("_codex_local_run", json!({"task": "x", "idle_timeout_sec": 1}));
    let markdown = text(&result);
    assert!(
        markdown.contains("the last word") && markdown.len() <= 4_000,
        "{} bytes: {markdown}",
        markdown.len()
    );
}

#[test]
fn a_refused_call_shows_both_error_codes() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let mut client = Client::connect(&stage, V2026_07);
    let result = client.call("_codex_local_exec", json!({"task": "x", "mode": "wild"}));
    let markdown = text(&result);
    assert!(markdown.starts_with("# Error: VALIDATION (INVALID_VALUE)\n"), "{markdown}");
    assert_eq!(list_value(markdown, "retryable"), Some("no"), "{markdown}");
    let stage = crate::client::waiting_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let id = client.exec();
    let early = client.call("_codex_local_results", json!({"task_id": id}));
    assert!(text(&early).starts_with("# Error: VALIDATION (WRONG_STATE)\n"), "{early}");
    assert_eq!(
        (list_value(text(&early), "retryable"), list_value(text(&early), "task")),
        (Some("yes"), Some(id.as_str()))
    );
    client.call("_codex_local_cancel", json!({"task_id": id}));
}

#[test]
fn a_cancelled_run_returns_its_partial_results() {
    let stage =
        stage_with_steps(&[json!({"message": "so far"}), json!({"touch_file": "ready"}), json!("silent")]);
    for format in ["json", "markdown"] {
        let mut client = Client::connect(&stage, V2025_06);
        let run = client.start_call("_codex_local_run", json!({"task": "x", "format": format}));
        stage.wait_for_project_file("ready");
        let status = client.envelope("_codex_local_status", json!({}));
        let id =
            status["data"]["tasks"][0]["task_id"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned();
        client.call("_codex_local_cancel", json!({"task_id": id}));
        let result = crate::client::result(client.response(run));
        assert_ne!(result["isError"], true, "{result}");
        match format {
            "json" => {
                let envelope = &result["structuredContent"];
                assert_eq!(
                    (&envelope["status"], &envelope["data"]["state"], &envelope["data"]["final_message"]),
                    (&json!("ok"), &json!("cancelled"), &json!("so far")),
                    "{envelope}"
                );
            }
            _ => {
                assert!(text(&result).starts_with(&format!("# Task {id} cancelled\n")), "{result}");
                assert!(text(&result).contains("so far"), "{result}");
            }
        }
        std::fs::remove_file(stage.world.project().join("ready")).unwrap();
    }
}

#[test]
fn a_cancelled_cli_run_exits_130_with_partial_results() {
    let stage =
        stage_with_steps(&[json!({"message": "so far"}), json!({"touch_file": "ready"}), json!("silent")]);
    let running =
        stage.world.command(["local", "run", "x"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    stage.wait_for_project_file("ready");
    let status = stage.run_json(&["local", "status"]);
    let id = status["data"]["tasks"][0]["task_id"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned();
    stage.run_json(&["local", "cancel", &id]);
    let ended = wait_for_output(running);
    let result = ended.json();
    assert_eq!((ended.exit, &result["error"]["code"]), (Some(130), &json!("CANCELLED")), "{result}");
    assert_eq!(result["meta"]["failure_data"]["final_message"], "so far", "{result}");
    // With --exit-status the state of the task is the error of the wait.
    let waited = stage.world.run(["local", "wait", &id, "--exit-status", "--envelope", "tool"]);
    assert_eq!((waited.exit, &waited.json()["status"]), (Some(130), &json!("error")), "{waited:?}");
}
