//! Size limits of responses for MCP clients and pipes: what is truncated first, and how it is reported.

use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, V2025_06, text};

/// The limit for MCP responses, in characters.
const MAX_CHARACTERS: usize = 48_000;

fn message_step(length: usize) -> Value {
    json!({"message": "m".repeat(length)})
}

fn output_step(stream: &str, text: &str, times: usize) -> Value {
    let to = if stream == "stderr" { ">&2" } else { "" };
    json!({"command": {"run": format!("yes '{text}' | head -n {times} {to}")}})
}

/// A finished task with these steps, and a client.
fn finished_task(steps: &[Value]) -> (Stage, Client, String) {
    let stage = Stage::with_script(PROGRAM, successful_turn(steps));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let client = Client::connect(&stage, V2025_06);
    (stage, client, id)
}

/// The JSON envelope of a call and its length in characters; the Markdown response must fit the limit too.
fn call_in_both_formats(client: &mut Client, tool: &str, arguments: &Value) -> (Value, usize) {
    let as_format = |format: &str| {
        let mut arguments = arguments.clone();
        arguments["format"] = format.into();
        arguments
    };
    let markdown = client.call(tool, as_format("markdown"));
    assert!(
        text(&markdown).chars().count() <= MAX_CHARACTERS,
        "{} characters",
        text(&markdown).chars().count()
    );
    let result = client.call(tool, as_format("json"));
    assert_ne!(result["isError"], true, "{result}");
    let length = text(&result).chars().count();
    (result["structuredContent"].clone(), length)
}

fn first_warning(envelope: &Value) -> &str {
    envelope["meta"]["warnings"][0]["message"].as_str().unwrap_or_default()
}

#[test]
fn long_events_are_shortened_and_the_newest_are_retained() {
    let (stage, mut client, id) = finished_task(&vec![message_step(3_000); 30]);
    let all = json!({"task_id": id, "include_events": true, "include_output": true});
    let (envelope, length) = call_in_both_formats(&mut client, "_codex_local_results", &all);
    assert!((MAX_CHARACTERS - 200..=MAX_CHARACTERS).contains(&length), "{length}");
    let items = envelope["data"]["events"]["items"].as_array().unwrap();
    assert_eq!((items.len(), &envelope["data"]["events"]["count"]), (34, &json!(34)));
    let short = items.iter().filter(|item| item["truncated"] == true).collect::<Vec<_>>();
    assert_eq!(short.len(), 30);
    assert_eq!(short[0]["type"], "item.completed");
    assert!(short[0]["size"].as_u64().unwrap() > 3_000 && short[0]["id"].is_string(), "{}", short[0]);
    assert_eq!(items[33]["type"], "turn.completed");
    let output = &envelope["data"]["output"];
    assert_eq!(output["truncated"], true);
    assert!(output["stdout"].as_str().unwrap().len() > 30_000, "the output does not use the remaining size");
    // Long events are shortened even when the response fits as a whole.
    let few = json!({"task_id": id, "include_events": true});
    let (envelope, length) = call_in_both_formats(&mut client, "_codex_local_results", &few);
    assert!(length < 10_000 && envelope["meta"].get("truncated").is_none(), "{}", envelope["meta"]);
    assert_eq!(envelope["data"]["events"]["items"].as_array().unwrap().len(), 34);
    // A pipe gets the unshortened events.
    let piped = stage.run_json(&["local", "results", &id, "--include-events"]);
    let written = piped["data"]["events"]["items"].as_array().unwrap();
    assert_eq!(written[5]["item"]["text"].as_str().unwrap().len(), 3_000);
}

#[test]
fn omitted_events_are_reached_with_the_cursor() {
    let (_stage, mut client, id) = finished_task(&vec![message_step(1_900); 46]);
    let (mut arguments, mut found) = (json!({"task_id": id, "include_events": true}), Vec::new());
    let mut responses = 0;
    loop {
        let (envelope, length) = call_in_both_formats(&mut client, "_codex_local_results", &arguments);
        assert!(length <= MAX_CHARACTERS);
        let events = &envelope["data"]["events"];
        let items = events["items"].as_array().unwrap().clone();
        assert!(!items.is_empty(), "{events}");
        found.splice(0..0, items);
        responses += 1;
        match events.get("next_cursor") {
            Some(cursor) => arguments["events_cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert!(responses > 1);
    let types: Vec<&str> = found.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((types.len(), types[0], types[49]), (50, "thread.started", "turn.completed"));
}

#[test]
fn the_reported_limits_are_the_applied_ones() {
    let (stage, mut client, id) = finished_task(&[output_step("stdout", "0123456789", 20_000)]);
    let with_output = json!({"task_id": id, "include_output": true});
    for tool in ["_codex_local_results", "_codex_local_wait"] {
        let (envelope, length) = call_in_both_formats(&mut client, tool, &with_output);
        assert!((MAX_CHARACTERS - 200..=MAX_CHARACTERS).contains(&length), "{tool}: {length}");
        let output = &envelope["data"]["output"];
        let given = output["stdout"].as_str().unwrap().len() as u64;
        let budget = output["max_bytes"].as_u64().unwrap();
        assert!(given <= budget && given + 8 >= budget && budget > 30_000, "{given} of {budget}");
        assert!(output["original_size"].as_u64().unwrap() > 200_000 && output["truncated"] == true);
        assert!(first_warning(&envelope).contains("max_output_bytes"), "{}", envelope["meta"]);
        assert!(
            !first_warning(&envelope).contains("--"),
            "a tool response names a flag: {}",
            envelope["meta"]
        );
        assert_eq!(envelope["meta"]["max_characters"], MAX_CHARACTERS);
    }
    let more = json!({"task_id": id, "include_output": true, "max_output_bytes": 150_000, "format": "json"});
    let result = client.call("_codex_local_results", more);
    let output = &result["structuredContent"]["data"]["output"];
    assert_eq!((&output["max_bytes"], &output["truncated"]), (&json!(150_000), &json!(true)));
    assert!(output["stdout"].as_str().unwrap().len() > 149_000);
    let piped = stage.run_json(&[
        "local",
        "results",
        &id,
        "--include-output",
        "--max-output-bytes",
        "200000",
        "--max-bytes",
        "20000",
    ]);
    let budget = piped["data"]["output"]["max_bytes"].as_u64().unwrap();
    assert!((10_000..20_000).contains(&budget), "{budget}");
    assert_eq!(piped["meta"]["max_bytes"], 20_000);
    assert!(piped["warnings"][0].as_str().unwrap().contains("--max-bytes"), "{}", piped["warnings"]);
}

#[test]
fn stdout_and_stderr_share_the_limit_equally() {
    let loud = json!({"flood": {"stream": "stderr", "bytes": 100_000}});
    let (_stage, mut client, id) = finished_task(&[output_step("stdout", "x", 50_000), loud]);
    let (envelope, length) = call_in_both_formats(
        &mut client,
        "_codex_local_results",
        &json!({"task_id": id, "include_output": true}),
    );
    assert!((MAX_CHARACTERS - 200..=MAX_CHARACTERS).contains(&length), "{length}");
    let output = &envelope["data"]["output"];
    let half = output["max_bytes"].as_u64().unwrap() / 2;
    for stream in ["stdout", "stderr"] {
        let length = output[stream].as_str().unwrap().len() as u64;
        assert!(length <= half + 1 && length + 8 >= half, "{stream}: {length} of {half}");
    }
}

#[test]
fn the_limit_counts_characters_not_bytes() {
    let (_stage, mut client, id) = finished_task(&[json!({"message": "é".repeat(100_000)})]);
    let (envelope, length) = call_in_both_formats(
        &mut client,
        "_codex_local_results",
        &json!({"task_id": id, "include_output": true}),
    );
    let output = &envelope["data"]["output"];
    assert_eq!((&output["max_bytes"], &output["truncated"]), (&json!(65_536), &json!(true)));
    assert!(
        (32_000..MAX_CHARACTERS).contains(&length) && envelope["meta"].get("truncated").is_none(),
        "{length}"
    );
}

#[test]
fn the_final_message_is_truncated_last() {
    let steps = json!([{"thread_started": {}}, "turn_started", {"message": "é".repeat(60_000)}, {"turn_completed": {}}]);
    let stage = Stage::with_script(PROGRAM, steps);
    let id = stage.exec(&[]);
    stage.wait(&id);
    let mut client = Client::connect(&stage, V2025_06);
    let (envelope, length) = call_in_both_formats(
        &mut client,
        "_codex_local_wait",
        &json!({"task_id": id, "include_output": true}),
    );
    assert!((MAX_CHARACTERS - 200..=MAX_CHARACTERS).contains(&length), "{length} characters");
    let message = envelope["data"]["final_message"].as_str().unwrap();
    assert!(message.chars().count() > 40_000 && message.contains(" [truncated] "));
    let output = &envelope["data"]["output"];
    assert_eq!(
        (&output["stdout"], &output["truncated"], &output["max_bytes"]),
        (&json!(""), &json!(true), &json!(0))
    );
    assert!(output["original_size"].as_u64().unwrap() > 120_000, "{output}");
}

#[test]
fn a_timeout_with_long_output_fits_the_limit() {
    let steps = json!([
        {"thread_started": {}}, "turn_started", {"message": "字".repeat(30_000)}, {"message": "the end"},
        {"stderr_line": "also stderr"}, "silent"
    ]);
    let stage = Stage::with_script(PROGRAM, steps);
    let mut client = Client::connect(&stage, V2025_06);
    let arguments = json!({"task": "x", "idle_timeout_sec": 1, "format": "json"});
    let result = client.call("_codex_local_run", arguments);
    assert!(text(&result).chars().count() <= MAX_CHARACTERS, "{} characters", text(&result).chars().count());
    let details = &result["structuredContent"]["error"]["details"];
    let partial = &details["partial_results"];
    assert!(partial["last_output"].as_str().unwrap().contains("the end"), "{details}");
    assert!(partial["last_events"].to_string().contains("the end"), "{details}");
    let id = details["task_id"].clone();
    for tool in ["_codex_local_wait", "_codex_local_results"] {
        let (envelope, _) = call_in_both_formats(&mut client, tool, &json!({"task_id": id}));
        let partial = &envelope["data"]["metadata"]["error_context"]["partial_results"];
        let output = partial["last_output"].as_str().unwrap_or_else(|| panic!("{envelope}"));
        assert!(output.contains("the end") && output.ends_with("also stderr\n"), "{partial}");
        assert!(partial["last_events"].to_string().contains("the end"), "{partial}");
    }
}

/// A task that failed after a long message.
fn failed_task(length: usize) -> (Stage, Client, String) {
    let steps = [
        json!({"read_stdin": "all"}),
        json!({"thread_started": {}}),
        json!("turn_started"),
        message_step(length),
        json!({"stderr_line": "what went wrong"}),
        json!({"turn_failed": "no more"}),
    ];
    let stage = Stage::with_script(PROGRAM, json!(steps));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let client = Client::connect(&stage, V2025_06);
    (stage, client, id)
}

#[test]
fn a_long_message_does_not_push_out_stderr() {
    let (_stage, mut client, id) = failed_task(60_000);
    for tool in ["_codex_local_wait", "_codex_local_results"] {
        let (envelope, _) = call_in_both_formats(&mut client, tool, &json!({"task_id": id}));
        let data = &envelope["data"];
        assert_eq!(data["final_message"].as_str().unwrap().chars().count(), 8_000, "{tool}");
        assert!(data["output"]["stderr"].as_str().unwrap().contains("what went wrong"), "{data}");
    }
}

#[test]
fn the_events_cursor_advances_with_a_long_message() {
    let (_stage, mut client, id) =
        finished_task(&[json!({"events": {"count": 8, "bytes": 100}}), message_step(200_000)]);
    let mut arguments = json!({"task_id": id, "include_output": true, "include_events": true});
    let mut count = 0;
    loop {
        let (envelope, _) = call_in_both_formats(&mut client, "_codex_local_results", &arguments);
        let events = envelope["data"]["events"].clone();
        let shown = events["items"].as_array().unwrap().len();
        assert!(shown > 0, "{events}");
        count += shown;
        match events["next_cursor"].as_str() {
            Some(cursor) => arguments["events_cursor"] = cursor.into(),
            None => break,
        }
    }
    assert!(count >= 8, "{count} events");
}

#[test]
fn truncated_status_pages_list_every_task_once() {
    let stage =
        Stage::with_script(PROGRAM, successful_turn(&[])).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8");
    let labels: Vec<String> =
        (0..8).flat_map(|n| ["--labels".to_owned(), format!("l{n}={}", "x".repeat(300))]).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let ids: Vec<String> = (0..40).map(|_| stage.exec(&labels)).collect();
    for id in &ids {
        stage.wait(id);
    }
    let mut client = Client::connect(&stage, V2025_06);
    let (mut listed, mut arguments, mut pages) = (Vec::new(), json!({"limit": 1000}), 0);
    loop {
        let (envelope, _) = call_in_both_formats(&mut client, "_codex_local_status", &arguments);
        let ended = envelope["data"]["recently_completed"].as_array().unwrap().clone();
        listed.extend(ended.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()));
        pages += 1;
        match envelope["meta"]["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = cursor.into(),
            None => break,
        }
    }
    assert!(pages > 1, "nothing was truncated");
    assert_eq!(listed.len(), ids.len());
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), ids.len(), "some tasks are listed twice");
}
