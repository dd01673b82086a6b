//! The error context of failed tasks, from command output to every renderer; and final messages with an output schema.

use delegator_testkit::stage::{Stage, successful_turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;

fn scripted_stage(steps: Value) -> Stage {
    Stage::with_script(PROGRAM, steps)
}

/// A turn that fails with a message of the agent, after some steps.
fn failing_turn(steps: &[Value], reason: &str) -> Value {
    let mut all = vec![json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    all.extend_from_slice(steps);
    all.push(json!({"turn_failed": reason}));
    json!(all)
}

/// Writes recorded rustc output into the project.
fn write_compiler_output(stage: &Stage) {
    let printed = include_str!("../../../delegator-transcript/tests/error_locations/rust/build.txt");
    stage.world.write("project/out.txt", printed);
}

const BUILD: &str = "test -f fixed || { cat out.txt; exit 101; }";

fn error_context_of_task(stage: &Stage) -> Value {
    let id = stage.exec(&[]);
    stage.wait(&id)["data"]["metadata"]["error_context"].clone()
}

#[test]
fn the_error_context_describes_the_failed_command() {
    let stage = scripted_stage(failing_turn(&[json!({"command": {"run": BUILD}})], "I could not fix it."));
    write_compiler_output(&stage);
    let context = error_context_of_task(&stage);
    let message = "cannot find value `sidee` in this scope";
    assert_eq!(
        (&context["error_type"], &context["error_message"], &context["agent_message"]),
        (&json!("E0425"), &json!(message), &json!("I could not fix it.")),
        "{context}"
    );
    assert_eq!(context["failure_kind"], "agent_error");
    assert_eq!(context["failed_files"], json!(["src/lib.rs"]));
    assert_eq!(
        context["error_locations"],
        json!([
            {"file": "src/lib.rs", "line": 7, "column": 5, "message": message, "kind": "E0425", "command": BUILD},
            {"file": "src/lib.rs", "line": 3, "column": 5,
                "message": "mismatched types: expected `u32`, found `&str`", "kind": "E0308", "command": BUILD},
        ])
    );
    assert_eq!(context["suggestions"], json!([format!("Look at src/lib.rs:7: \"{message}\"")]));
}

#[test]
fn a_repaired_command_is_not_reported_as_the_cause() {
    let build = json!({"command": {"run": BUILD}});
    let stage = scripted_stage(failing_turn(
        &[build.clone(), json!({"touch_file": "fixed"}), build.clone()],
        "out of words",
    ));
    write_compiler_output(&stage);
    let context = error_context_of_task(&stage);
    assert_eq!(
        (&context["error_type"], &context["error_locations"], &context["suggestions"]),
        (&json!("agent_error"), &json!([]), &json!([])),
        "{context}"
    );
    assert_eq!(context["error_message"], "out of words");
    // The last command succeeded, so the earlier failure is not the cause; its locations are still listed.
    let stage = scripted_stage(failing_turn(&[build, json!({"command": {"run": "true"}})], "out of words"));
    write_compiler_output(&stage);
    let context = error_context_of_task(&stage);
    assert_eq!(
        (&context["error_type"], context["error_locations"].as_array().unwrap().len()),
        (&json!("agent_error"), 2)
    );
    // A completed task has no error context, even if a command failed in between.
    let stage = scripted_stage(successful_turn(&[json!({"command": {"run": BUILD}})]));
    write_compiler_output(&stage);
    assert_eq!(error_context_of_task(&stage), Value::Null);
}

#[test]
fn a_search_without_a_match_is_not_the_cause() {
    let search = json!({"command": {"run": "grep -n nothing out.txt"}});
    let stage = scripted_stage(failing_turn(&[search], "gave up"));
    write_compiler_output(&stage);
    let context = error_context_of_task(&stage);
    assert_eq!(
        (&context["error_type"], &context["suggestions"]),
        (&json!("agent_error"), &json!([])),
        "{context}"
    );
}

#[test]
fn a_foreground_run_reports_file_line_and_column() {
    let stage = scripted_stage(failing_turn(&[json!({"command": {"run": BUILD}})], "no"));
    write_compiler_output(&stage);
    let run = stage.world.run(["local", "run", "x", "--envelope", "tool"]);
    assert_eq!(run.exit, Some(80), "{run:?}");
    let error = run.json()["error"].clone();
    assert_eq!(error["code"], "TOOL_ERROR", "{error}");
    let details = &error["details"];
    assert_eq!(
        (&details["file"], &details["line"], &details["column"]),
        (&json!("src/lib.rs"), &json!(7), &json!(5)),
        "{details}"
    );
    // Without a location the keys are absent.
    stage.set_script(failing_turn(&[], "no"));
    let details =
        stage.world.run(["local", "run", "x", "--envelope", "tool"]).json()["error"]["details"].clone();
    assert!(details.get("file").is_none() && details.get("line").is_none(), "{details}");
}

#[test]
fn markdown_shows_locations_and_suggestions() {
    let many = "for n in 1 2 3 4 5; do echo \"x.c:$n:1: error: number $n\"; done; exit 1";
    let stage = scripted_stage(failing_turn(&[json!({"command": {"run": many}})], "no"));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let text = stage.world.run(["local", "results", &id, "--format", "markdown"]).stdout;
    let shown = text.split("The agent's stdout").next().unwrap();
    for part in ["x.c:1:1: number 1", "x.c:3:1: number 3", "Look at x.c:1: \"number 1\""] {
        assert!(shown.contains(part), "{part} is missing: {text}");
    }
    assert!(!shown.contains("x.c:4:1: number 4"), "more than three locations: {text}");
}

#[test]
fn control_sequences_in_command_output_are_removed() {
    let hostile = r#"printf 'x.c:1:1: error: \033[2Jgone \033]0;title\007here\n'; exit 1"#;
    let stage = scripted_stage(failing_turn(&[json!({"command": {"run": hostile}})], "no"));
    let context = error_context_of_task(&stage);
    assert_eq!(context["error_locations"][0]["message"], "gone here", "{context}");
    assert!(!context.to_string().contains("\\u001b"), "{context}");
}

#[test]
fn a_timeout_suggests_a_larger_limit_and_names_the_activity() {
    for (limit, reason) in [("hard", "it had run for"), ("idle", "nothing happened for")] {
        let stage = scripted_stage(successful_turn(&[json!({"command": {"run": "exec sleep 300"}})]));
        let id = stage.exec(&[&format!("--{limit}-timeout-sec"), "1"]);
        let data = stage.wait(&id)["data"].clone();
        let context = &data["metadata"]["error_context"];
        assert_eq!((&data["state"], &context["failure_kind"]), (&json!("timeout"), &json!(limit)), "{data}");
        let expected =
            format!("Pass --{limit}-timeout-sec 2: {reason} 1 s during \"Running exec sleep 300\".");
        assert_eq!(context["suggestions"], json!([expected]), "{context}");
    }
}

#[test]
fn every_reason_has_its_kind_and_its_suggestion() {
    let cases = [
        ("You've hit your usage limit. Try again at 3:51 PM.", "usage_limit", Some("Try again at 20")),
        ("Rate limit reached. Please try again in 20s.", "rate_limit", Some("Try again at 20")),
        ("unexpected status 401 Unauthorized", "auth", Some("Sign in: codex login")),
        ("stream disconnected before completion", "network", None),
        ("The model `gpt-9` does not exist", "bad_model", Some("The requested model was gpt-9: use a model")),
        ("bwrap: No permissions to create new namespace", "sandbox", Some("Mode read-only needs a sandbox")),
        (
            "no rollout found for thread id 1",
            "thread_not_found",
            Some("Start a new task with 'mcp-delegator"),
        ),
        ("Not inside a trusted directory", "untrusted_directory", Some("Run it in a git repository")),
        ("the dog ate it", "agent_error", None),
    ];
    let stage = scripted_stage(json!([]));
    for (message, kind, suggestion) in cases {
        stage.set_script(failing_turn(&[], message));
        let id = stage.exec(&["--model", "gpt-9"]);
        let context = stage.wait(&id)["data"]["metadata"]["error_context"].clone();
        assert_eq!(
            (&context["failure_kind"], &context["error_type"]),
            (&json!(kind), &json!(kind)),
            "{context}"
        );
        let first = context["suggestions"][0].as_str();
        match suggestion {
            Some(begins) => assert!(first.is_some_and(|text| text.starts_with(begins)), "{kind}: {context}"),
            None => assert_eq!(first, None, "{kind}"),
        }
        assert_eq!(
            context["retry_at"].is_string(),
            matches!(kind, "usage_limit" | "rate_limit"),
            "{context}"
        );
        // A usage limit pauses the agent.
        stage.run_json(&["queue", "resume", "--agent", "codex"]);
    }
}

/// Steps of an agent that prints a line on stderr and exits with 7.
fn exiting_agent(line: &str) -> Value {
    json!([{"read_stdin": "all"}, {"thread_started": {}}, {"stderr_line": line}, {"exit": 7}])
}

#[test]
fn misleading_stderr_is_an_exit_and_not_retryable() {
    let stage = scripted_stage(json!([]));
    for line in [
        "2026-11-15T18:07:43.429123Z ERROR codex_core: failed to parse config",
        "overloaded function",
        "Error: model.py not found",
        "cannot read expired-tokens.json",
        "Error: run row 7429",
    ] {
        stage.set_script(exiting_agent(line));
        let ran = stage.world.run(["local", "run", "x"]);
        let envelope = ran.json();
        let (error, context) = (&envelope["error"], &envelope["meta"]["error_context"]);
        assert_eq!(
            (ran.exit, &error["code"], &error["retryable"], &context["failure_kind"]),
            (Some(80), &json!("AGENT_EXITED"), &json!(false), &json!("agent_exit")),
            "{envelope}"
        );
        // Our words and the agent's are separate.
        assert_eq!(
            (&error["message"], &context["agent_message"]),
            (&json!("The agent exited with code 7."), &json!(line)),
            "{envelope}"
        );
        assert_eq!((&error["retry_after"], &context["retry_at"]), (&Value::Null, &Value::Null), "{envelope}");
    }
    stage.set_script(json!([{"read_stdin": "all"}, {"exit": 7}]));
    let envelope = stage.world.run(["local", "run", "x"]).json();
    assert_eq!(envelope["meta"]["error_context"]["agent_message"], Value::Null, "{envelope}");
}

#[test]
fn a_stated_retry_time_is_in_every_envelope() {
    let message = "Rate limit reached for gpt-5.5. Please try again in 1000.5s. Visit the page on limits.";
    let stage = scripted_stage(failing_turn(&[], message));
    let run = |envelope: &str| {
        let ran = stage.world.run(["local", "run", "x", "--envelope", envelope, "--idempotency-key", "k"]);
        assert_eq!(ran.exit, Some(11), "{ran:?}");
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let answers = [run("agent"), run("standard"), run("tool")];
    let waits = [
        &answers[0]["meta"]["retry_after_ms"],
        &answers[1]["metadata"]["retry_after_ms"],
        &answers[2]["error"]["details"]["retry_after_ms"],
    ]
    .map(|wait| wait.as_u64().unwrap_or_else(|| panic!("{answers:?}")));
    // All are about the same task, so what is left of the time shrinks.
    assert!(waits[0] <= 1_000_500 && waits.is_sorted_by(|earlier, later| earlier >= later), "{waits:?}");
    let error = &answers[0]["error"];
    assert_eq!((&error["retryable"], &error["retry_after"]), (&json!(true), &json!(waits[0].div_ceil(1000))));
    let id = answers[0]["meta"]["error_context"]["task_id"].as_str().unwrap().to_owned();
    let results = stage.run_json(&["local", "results", &id]);
    let retry_at = &results["data"]["metadata"]["error_context"]["retry_at"];
    assert_eq!(retry_at, &answers[0]["meta"]["error_context"]["retry_at"], "{results}");
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let ended = time(&stage.wait(&id)["meta"]["completed_ts"]);
    let left = time(retry_at).duration_since(ended).as_millis();
    assert!((1..=1_000_500).contains(&left), "{left} ms after the end: {results}");
}

#[test]
fn a_retry_time_in_the_past_is_zero_and_a_usage_limit_is_not_retryable() {
    let stage = scripted_stage(failing_turn(&[], "Rate limit reached. Try again at Sep 23rd, 2020 8:13 AM."));
    let envelope = stage.world.run(["local", "run", "x"]).json();
    assert_eq!(
        (&envelope["error"]["retry_after"], &envelope["meta"]["retry_after_ms"]),
        (&json!(0), &json!(0)),
        "{envelope}"
    );
    stage.set_script(failing_turn(&[], "You've hit your usage limit. Try again in 3 days 4 hours."));
    let ran = stage.world.run(["local", "run", "x"]);
    let envelope = ran.json();
    assert_eq!(
        (ran.exit, &envelope["error"]["retryable"], &envelope["error"]["retry_after"]),
        (Some(9), &json!(false), &Value::Null),
        "{envelope}"
    );
    assert!(envelope["meta"]["retry_after_ms"].as_u64().is_some_and(|wait| wait > 270_000_000), "{envelope}");
    // A usage limit pauses the agent.
    stage.run_json(&["queue", "resume", "--agent", "codex"]);
    // After its first action, an agent must not be started again without a look at what it did.
    let steps = [json!({"message": "I have begun."})];
    stage.set_script(failing_turn(&steps, "Rate limit reached. Please try again in 20s."));
    let ran = stage.world.run(["local", "run", "x"]);
    let envelope = ran.json();
    assert_eq!((ran.exit, &envelope["error"]["retryable"]), (Some(80), &json!(false)), "{envelope}");
    assert!(envelope["meta"]["error_context"]["retry_at"].is_string(), "{envelope}");
}

#[test]
fn a_huge_error_message_of_nested_causes_is_judged_and_bounded() {
    let message = "unexpected status 500: ".repeat(100_000);
    let stage = scripted_stage(failing_turn(&[], &message));
    let context = error_context_of_task(&stage);
    assert_eq!(context["failure_kind"], "network");
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-11-16T05:57:41Z", "type": kind, "payload": payload}).to_string()
    };
    let start = line("session_meta", json!({"id": "01a1dca3-fd12-7200-9e8a-f2f52ed5a6c6", "cwd": "/"}));
    let error = line("event_msg", json!({"type": "error", "message": message}));
    stage.world.write("project/session.jsonl", &format!("{start}\n{error}\n"));
    let session = stage.world.project().join("session.jsonl");
    let imported = stage.run_json(&["import", session.to_str().unwrap()]);
    let id = imported["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{imported}"));
    let results = stage.run_json(&["local", "results", id]);
    let context = &results["data"]["metadata"]["error_context"];
    assert_eq!(context["failure_kind"], "network");
}

#[test]
fn a_task_with_a_lost_supervisor_suggests_resume() {
    let stage = scripted_stage(successful_turn(&[json!({"touch_file": "ready"}), json!("silent")]));
    let id = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    kill_process(Pid::from_raw(stage.supervisor_pid(&id)).unwrap(), Signal::KILL).unwrap();
    let context = stage.wait(&id)["data"]["metadata"]["error_context"].clone();
    assert_eq!(context["failure_kind"], "supervisor_lost", "{context}");
    let suggestion = context["suggestions"][0].as_str().unwrap_or_else(|| panic!("{context}"));
    assert!(suggestion.contains(&format!("resume 'go on' --task-id {id}")), "{suggestion}");
}

const SCHEMA: &str =
    r#"{"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}}}"#;

/// The results of a task with an output schema whose final message is `message`.
fn results_for_message(message: &str) -> (Value, Stage) {
    let stage = scripted_stage(json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": message}, {"turn_completed": {}}
    ]));
    let id = stage.exec(&["--output-schema", SCHEMA]);
    stage.wait(&id);
    (stage.run_json(&["local", "results", &id]), stage)
}

fn output_warnings(results: &Value) -> Vec<String> {
    let all = results["warnings"].as_array().cloned().unwrap_or_default();
    let texts = all.iter().filter_map(|warning| warning.as_str().map(str::to_owned));
    texts.filter(|text| text.starts_with("W_OUTPUT")).collect()
}

#[test]
fn a_valid_final_message_is_returned_as_json() {
    let expected = json!({"name": "x", "age": 3});
    for message in [expected.to_string(), format!("```json\n{expected}\n```")] {
        let (results, _) = results_for_message(&message);
        assert_eq!(results["data"]["structured_output"], expected, "{results}");
        assert!(results["data"].get("structured_output_violations").is_none(), "{results}");
        assert_eq!(output_warnings(&results), [""; 0]);
    }
}

#[test]
fn an_invalid_final_message_is_a_warning_and_the_task_completes() {
    let (results, stage) = results_for_message(r#"{"age": "three"}"#);
    assert_eq!(results["data"]["state"], "completed", "{results}");
    assert_eq!(results["data"]["structured_output"], json!({"age": "three"}));
    let violations = results["data"]["structured_output_violations"].as_array().unwrap();
    let mut paths: Vec<&str> =
        violations.iter().map(|violation| violation["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["", "/age"], "{results}");
    let warnings = output_warnings(&results);
    assert!(warnings.len() == 1 && warnings[0].starts_with("W_OUTPUT_001: "), "{warnings:?}");
    assert!(warnings[0].contains("(2 violations)"), "{warnings:?}");
    let id = results["data"]["task_id"].as_str().unwrap();
    let text = stage.world.run(["local", "results", id, "--format", "markdown"]).stdout;
    assert!(
        text.contains("The final message does not match the output schema") && text.contains("/age: "),
        "{text}"
    );
    // `wait` and a foreground `run` report the same.
    assert_eq!(output_warnings(&stage.wait(id)), warnings);
    let run = stage.run_json(&["local", "run", "x", "--output-schema", SCHEMA]);
    assert_eq!(output_warnings(&run), warnings);
    assert_eq!(run["data"]["structured_output_violations"].as_array().unwrap().len(), 2, "{run}");
}

#[test]
fn a_final_message_that_is_not_json_or_truncated_is_reported_as_such() {
    let (results, _) = results_for_message("All done.");
    assert_eq!(
        (&results["data"]["state"], &results["data"]["structured_output"]),
        (&json!("completed"), &Value::Null)
    );
    assert!(output_warnings(&results)[0].contains("is not JSON"), "{results}");
    assert_eq!(results["data"]["structured_output_violations"][0]["path"], "");
    let long = json!({"name": "x".repeat((1 << 20) + 100)}).to_string();
    let (results, _) = results_for_message(&long);
    let warnings = output_warnings(&results);
    assert!(warnings.len() == 1 && warnings[0].starts_with("W_OUTPUT_002: "), "{warnings:?}");
    assert!(warnings[0].contains("too long") && !warnings[0].contains("not JSON"), "{warnings:?}");
}
