//! What a model is told when a task it stays with does not complete: in Markdown no less than in JSON.

use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, ERAS, V2025_06, V2026_07, text};

/// An agent that gets as far as these steps say.
fn stage_with_steps(steps: &[Value]) -> Stage {
    let begun = [json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    Stage::with_script(PROGRAM, json!([&begun, steps].concat())).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

/// The word behind `- name: `.
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
        let mut host = Client::connect(&stage, era);
        let error = host.envelope("_codex_local_run", json!({"task": "x"}))["error"].clone();
        let answer = host.call("_codex_local_run", json!({"task": "x"}));
        assert_eq!(answer["isError"], true, "{answer}");
        let told = text(&answer);
        assert!(told.starts_with("# Error: TOOL_ERROR (AGENT_FAILED)\n"), "{told}");
        assert!(told.contains(error["message"].as_str().unwrap()), "{told}");
        for (name, key) in
            [("failure", "failure_kind"), ("exit code", "exit_code"), ("timeout type", "timeout_type")]
        {
            let expected = error["details"].get(key).map(|value| value.to_string().replace('"', ""));
            assert_eq!(list_value(told, name).map(str::to_owned), expected, "{name}: {told}");
        }
        assert_eq!(
            (list_value(told, "retryable"), list_value(told, "location")),
            (Some("no"), Some("x.c:3:7")),
            "{told}"
        );
        let id = list_value(told, "task").unwrap_or_else(|| panic!("{told}"));
        assert!(list_value(told, "thread").is_some(), "{told}");
        for words in ["I give up.", "the last straw"] {
            assert!(told.contains(words), "{words} is missing: {told}");
        }
        assert!(told.contains(&format!(r#"`_codex_local_results {{"task_id":"{id}"}}`"#)), "{told}");
        assert!(told.contains("_codex_local_resume"), "its thread can be gone on with: {told}");
        assert!(told.len() <= 1_500, "{} bytes: {told}", told.len());
    }
}

#[test]
fn a_timed_out_run_shows_its_partial_output() {
    let stage = stage_with_steps(&[json!({"message": "halfway there"}), json!("silent")]);
    let mut host = Client::connect(&stage, V2025_06);
    let answer = host.call("_codex_local_run", json!({"task": "x", "idle_timeout_sec": 1}));
    let told = text(&answer);
    assert!(told.starts_with("# Error: TIMEOUT\n"), "{told}");
    assert_eq!(
        (list_value(told, "timeout type"), list_value(told, "limit seconds")),
        (Some("idle"), Some("1")),
        "{told}"
    );
    for name in ["task", "thread", "elapsed seconds", "idle seconds"] {
        assert!(list_value(told, name).is_some(), "{name} is missing: {told}");
    }
    assert!(told.contains("halfway there"), "{told}");
    assert!(told.contains("_codex_local_results") && told.contains("_codex_local_resume"), "{told}");
    // The handle of a run ends with the same words.
    let able = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut host = Client::connect_with(&stage, V2026_07, &[], able);
    let id = list_value(told, "task").unwrap();
    let handle = crate::client::result(host.request("tasks/get", json!({"taskId": id})));
    assert!(text(&handle["result"]).contains("halfway there"), "{handle}");
}

#[test]
fn long_output_of_a_timed_out_run_is_shown_from_its_end() {
    let stage = stage_with_steps(&[
        json!({"events": {"count": 60, "bytes": 900}}),
        json!({"message": "the last word"}),
        json!("silent"),
    ]);
    let mut host = Client::connect(&stage, V2025_06);
    let answer = host.call("_codex_local_run", json!({"task": "x", "idle_timeout_sec": 1}));
    let told = text(&answer);
    assert!(told.contains("the last word") && told.len() <= 4_000, "{} bytes: {told}", told.len());
}

#[test]
fn a_refused_call_shows_both_error_codes() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let mut host = Client::connect(&stage, V2026_07);
    let answer = host.call("_codex_local_exec", json!({"task": "x", "mode": "wild"}));
    let told = text(&answer);
    assert!(told.starts_with("# Error: VALIDATION (INVALID_VALUE)\n"), "{told}");
    assert_eq!(list_value(told, "retryable"), Some("no"), "{told}");
    let stage = crate::client::waiting_stage();
    let mut host = Client::connect(&stage, V2026_07);
    let id = host.exec();
    let early = host.call("_codex_local_results", json!({"task_id": id}));
    assert!(text(&early).starts_with("# Error: VALIDATION (WRONG_STATE)\n"), "{early}");
    assert_eq!(
        (list_value(text(&early), "retryable"), list_value(text(&early), "task")),
        (Some("yes"), Some(id.as_str()))
    );
    host.call("_codex_local_cancel", json!({"task_id": id}));
}

#[test]
fn a_cancelled_run_returns_its_partial_results() {
    let stage =
        stage_with_steps(&[json!({"message": "so far"}), json!({"touch_file": "ready"}), json!("silent")]);
    for format in ["json", "markdown"] {
        let mut host = Client::connect(&stage, V2025_06);
        let run = host.start_call("_codex_local_run", json!({"task": "x", "format": format}));
        stage.wait_for_project_file("ready");
        let status = host.envelope("_codex_local_status", json!({}));
        let id =
            status["data"]["tasks"][0]["task_id"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned();
        host.call("_codex_local_cancel", json!({"task_id": id}));
        let answer = crate::client::result(host.response(run));
        assert_ne!(answer["isError"], true, "{answer}");
        match format {
            "json" => {
                let envelope = &answer["structuredContent"];
                assert_eq!(
                    (&envelope["status"], &envelope["data"]["state"], &envelope["data"]["final_message"]),
                    (&json!("ok"), &json!("cancelled"), &json!("so far")),
                    "{envelope}"
                );
            }
            _ => {
                assert!(text(&answer).starts_with(&format!("# Task {id} cancelled\n")), "{answer}");
                assert!(text(&answer).contains("so far"), "{answer}");
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
    let ended = running.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.status.code(), &answer["error"]["code"]), (Some(130), &json!("CANCELLED")), "{answer}");
    assert_eq!(answer["meta"]["failure_data"]["final_message"], "so far", "{answer}");
    // Who waits and wants the task's own fate as an error is still given one.
    let waited = stage.world.run(["local", "wait", &id, "--exit-status", "--envelope", "tool"]);
    assert_eq!((waited.exit, &waited.json()["status"]), (Some(130), &json!("error")), "{waited:?}");
}
