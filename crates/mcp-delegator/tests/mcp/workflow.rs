//! The workflow exec → wait → results through MCP tools.

use serde_json::{Value, json};

use crate::client::{
    Client, ERAS, V2025_06, V2025_11, V2026_07, quick_stage, release_agents, result, text, waiting_stage,
};

#[test]
fn a_task_is_delegated_awaited_and_read_in_four_kilobytes() {
    let stage = quick_stage();
    for era in ERAS {
        let mut client = Client::connect(&stage, era);
        let accepted = client.call("_codex_local_exec", json!({"task": "mend it"}));
        let id = text(&accepted)
            .split(|c: char| !(c.is_alphanumeric() || c == '-'))
            .find(|word| word.starts_with("T-local-"));
        let id = id.unwrap_or_else(|| panic!("{accepted}")).to_owned();
        let waited = client.call("_codex_local_wait", json!({"task_id": id}));
        let results = client.call("_codex_local_results", json!({"task_id": id}));
        let mut size = 0;
        for response in [&accepted, &waited, &results] {
            assert_ne!(response["isError"], true, "{response}");
            assert!(response.get("structuredContent").is_none(), "{response}");
            assert_eq!(response["content"].as_array().unwrap().len(), 1, "{response}");
            size += text(response).replace("All done.", "").len();
        }
        assert!(size <= 4_096, "{size} bytes");
        assert!(text(&accepted).contains("_codex_local_wait"), "the next call is missing: {accepted}");
        assert!(text(&waited).contains("completed") && text(&results).contains("All done."), "{results}");
    }
}

#[test]
fn json_format_returns_the_envelope_as_text_and_structured_content() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let id = client.exec();
    for tool in ["_codex_local_wait", "_codex_local_results"] {
        let response = client.call(tool, json!({"task_id": id, "format": "json"}));
        let envelope: Value = serde_json::from_str(text(&response)).unwrap();
        assert_eq!(response["structuredContent"], envelope);
        assert_eq!((&envelope["tool"], &envelope["data"]["state"]), (&json!(tool), &json!("completed")));
        assert_eq!(envelope["data"]["final_message"], "All done.", "{envelope}");
    }
}

#[test]
fn the_status_of_one_task_is_short() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    let running = client.call("_codex_local_status", json!({"task_id": id}));
    assert!(text(&running).len() <= 600 && text(&running).contains(&id), "{running}");
    crate::client::release_agents(&stage);
    client.call("_codex_local_wait", json!({"task_id": id}));
    let ended = client.call("_codex_local_status", json!({"task_id": id}));
    assert!(text(&ended).len() <= 600 && text(&ended).contains("completed"), "{ended}");
}

#[test]
fn unread_results_are_listed_until_read() {
    let stage = quick_stage();
    let id = stage.exec(&[]);
    let mut client = Client::connect(&stage, V2025_06);
    delegator_testkit::stage::wait_until("the task has ended", || {
        let status = client.envelope("_codex_local_status", json!({}));
        status["data"]["summary"]["recently_completed"] == 1
    });
    let status = client.envelope("_codex_local_status", json!({}));
    assert_eq!(status["data"]["unread"], json!({"count": 1, "task_ids": [id]}), "{status}");
    client.call("_codex_local_results", json!({"task_id": id}));
    let status = client.envelope("_codex_local_status", json!({}));
    assert!(status["data"].get("unread").is_none(), "{status}");
}

#[test]
fn run_submits_waits_and_returns_the_result() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_11);
    let response = client.envelope("_codex_local_run", json!({"task": "look", "mode": "preview"}));
    assert_eq!(
        (&response["data"]["state"], &response["data"]["final_message"]),
        (&json!("completed"), &json!("All done."))
    );
    assert_eq!(response["data"]["capability"], "foreground", "{response}");
}

#[test]
fn all_problems_are_reported_together_in_both_formats() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let wrong =
        json!({"tsk": "x", "mode": "wild", "working_dir": "/nowhere/at/all", "options": {"images": 5}});
    let response = client.envelope("_codex_local_exec", wrong.clone());
    assert_eq!(
        (&response["status"], &response["error"]["code"]),
        (&json!("error"), &json!("VALIDATION")),
        "{response}"
    );
    let problems = response["error"]["details"]["problems"].as_array().unwrap();
    let fields: Vec<&str> = problems.iter().filter_map(|problem| problem["field"].as_str()).collect();
    for field in ["tsk", "task", "mode", "images"] {
        assert!(fields.iter().any(|found| found.contains(field)), "{field}: {response}");
    }
    let markdown = client.call("_codex_local_exec", wrong);
    assert_eq!(markdown["isError"], true, "{markdown}");
    assert!(text(&markdown).contains("mode") && text(&markdown).contains("task"), "{markdown}");
    assert!(markdown.get("structuredContent").is_none(), "{markdown}");
    assert_eq!(stage.run_json(&["local", "status"])["data"]["summary"]["running"], 0);
}

#[test]
fn camel_case_and_options_are_accepted() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_11);
    let project = stage.world.project().display().to_string();
    let first = client.envelope(
        "_codex_local_exec",
        json!({"task": "x", "workingDir": project, "idleTimeoutSec": 60, "options": {"idempotencyKey": "k"}}),
    );
    assert_eq!(first["status"], "ok", "{first}");
    let again = client.envelope(
        "_codex_local_exec",
        json!({"task": "x", "working_dir": project, "idle_timeout_sec": 60, "idempotency_key": "k"}),
    );
    assert_eq!(again["meta"]["replayed"], true, "{again}");
    let waited = client.envelope("_codex_local_wait", json!({"taskId": first["data"]["task_id"]}));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
}

#[test]
fn only_unknown_tools_and_malformed_requests_are_protocol_errors() {
    let stage = quick_stage();
    for era in ERAS {
        let mut client = Client::connect(&stage, era);
        let unknown = client.request("tools/call", json!({"name": "_codex_local_stats", "arguments": {}}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        assert!(unknown["error"]["message"].as_str().unwrap().contains("_codex_local_status"), "{unknown}");
        let malformed = client.request("tools/call", json!({"arguments": {}}));
        assert!(malformed["error"].is_object(), "{malformed}");
        let nowhere = client.request("no/such/method", json!({}));
        assert_eq!(nowhere["error"]["code"], -32601, "{nowhere}");
        let missing = client.envelope("_codex_local_results", json!({"task_id": "T-local-0000000000"}));
        assert_eq!(missing["status"], "error", "{missing}");
        let cloud = client.envelope("_codex_cloud_submit", json!({"task": "x", "env_id": "e"}));
        assert_eq!(cloud["error"]["code"], "NOT_FOUND", "{cloud}");
    }
}

#[test]
fn an_expired_wait_reports_it_and_names_the_next_call() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let id = client.exec();
    let expired = client.envelope("_codex_local_wait", json!({"task_id": id, "timeout_sec": 1}));
    assert_eq!(
        (&expired["status"], &expired["meta"]["wait_expired"]),
        (&json!("ok"), &json!(true)),
        "{expired}"
    );
    assert_eq!(expired["data"]["state"], "working", "{expired}");
    let result = client.call("_codex_local_wait", json!({"task_id": id, "timeout_sec": 1}));
    assert!(text(&result).contains("_codex_local_wait") && result["isError"] != true, "{result}");
    let early = client.envelope("_codex_local_results", json!({"task_id": id}));
    assert_eq!(
        (&early["error"]["code"], &early["error"]["details"]["kind"]),
        (&json!("VALIDATION"), &json!("wrong_state")),
        "{early}"
    );
    let cancelled = client.envelope("_codex_local_cancel", json!({"task_id": id}));
    assert_eq!(cancelled["data"]["state"], "cancelled", "{cancelled}");
}

#[test]
fn a_run_over_its_budget_returns_while_the_task_continues() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let response =
        client.envelope("_codex_local_run", json!({"task": "x", "options": {"call_budget_sec": 1}}));
    assert_eq!(
        (&response["status"], &response["data"]["state"]),
        (&json!("ok"), &json!("working")),
        "{response}"
    );
    crate::client::release_agents(&stage);
    let id = response["data"]["task_id"].as_str().unwrap();
    assert_eq!(client.envelope("_codex_local_wait", json!({"task_id": id}))["data"]["state"], "completed");
}

#[test]
fn output_is_truncated_to_the_client_limit() {
    let long = json!({"command": {"run": "head -c 200000 /dev/zero | tr '\\0' x"}});
    let stage = delegator_testkit::stage::Stage::with_script(
        crate::PROGRAM,
        delegator_testkit::stage::successful_turn(&[long]),
    );
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    client.call("_codex_local_wait", json!({"task_id": id}));
    for format in ["markdown", "json"] {
        let all = json!({"task_id": id, "include_output": true, "include_events": true, "format": format});
        let response = client.call("_codex_local_results", all);
        assert!(text(&response).chars().count() <= 48_000, "{} characters", text(&response).chars().count());
        assert_ne!(response["isError"], true);
    }
    let response = result(client.request("ping", json!({})));
    assert_eq!(response, json!({}));
}

#[test]
fn suggestions_name_tools() {
    let stage = waiting_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &["--tool-prefix", "c_"], json!({}));
    let id =
        client.envelope("c_local_exec", json!({"task": "x"}))["data"]["task_id"].as_str().unwrap().to_owned();
    let early = client.envelope("c_local_results", json!({"task_id": id}));
    let advice = format!("Wait for the task first: c_local_wait {}", json!({"task_id": id}));
    assert_eq!(early["error"]["details"]["suggestion"], advice, "{early}");
    let unknown = client.call("c_local_results", json!({"task_id": "T-local-0000000000"}));
    assert!(text(&unknown).contains("c_local_status to list the tasks"), "{unknown}");
    release_agents(&stage);
    stage.wait(&id);
}

/// A server keeps its database connections open; the state directory may be replaced meanwhile.
#[test]
fn a_replaced_state_directory_is_noticed() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let ended = |client: &mut Client| {
        let status = client.envelope("_codex_local_status", json!({}));
        status["data"]["summary"]["recently_completed"].as_u64().unwrap()
    };
    let first = client.exec();
    stage.wait(&first);
    assert_eq!(ended(&mut client), 1);
    let state = stage.world.home().join("state");
    std::fs::rename(&state, state.with_extension("old")).unwrap();
    assert_eq!(ended(&mut client), 0);
    let second = client.exec();
    stage.wait(&second);
    assert_eq!(ended(&mut client), 1);
    let gone = client.envelope("_codex_local_results", json!({"task_id": first}));
    assert_eq!(gone["error"]["code"], "NOT_FOUND", "{gone}");
}
