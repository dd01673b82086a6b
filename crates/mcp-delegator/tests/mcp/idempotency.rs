//! Idempotency keys: which calls count as the same call, and that a repeat is reported as `replayed`.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::client::{Client, V2025_06, V2026_07, quick_stage};

const EXEC: &str = "_codex_local_exec";
const RUN: &str = "_codex_local_run";

fn call_with_key(client: &mut Client, tool: &str, more: &Value) -> Value {
    let mut arguments = json!({"task": "do it", "idempotency_key": "k"});
    for (key, value) in more.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    client.envelope(tool, arguments)
}

#[test]
fn explicit_defaults_are_the_same_call() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let project = stage.world.project();
    let link = stage.root().join("link");
    symlink(&project, &link).unwrap();
    let first = call_with_key(&mut client, EXEC, &json!({}));
    assert_eq!((&first["status"], &first["meta"]["replayed"]), (&json!("ok"), &Value::Null), "{first}");
    for same in [
        json!({"hard_timeout_sec": 1200}),
        json!({"idle_timeout_sec": 300, "mode": "read-only", "labels": {}}),
        json!({"working_dir": project}),
        json!({"working_dir": link, "hardTimeoutSec": 1200.0}),
    ] {
        let again = call_with_key(&mut client, EXEC, &same);
        assert_eq!(again["data"]["task_id"], first["data"]["task_id"], "{same}: {again}");
        assert_eq!(again["meta"]["replayed"], true, "{same}: {again}");
    }
    for other in [json!({"hard_timeout_sec": 1201}), json!({"working_dir": stage.root()})] {
        let refused = call_with_key(&mut client, EXEC, &other);
        assert_eq!(refused["error"]["details"]["code"], "IDEMPOTENCY_MISMATCH", "{other}: {refused}");
    }
}

#[test]
fn the_order_of_keys_is_not_part_of_a_call() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let schema = |text: &str| json!({"output_schema": serde_json::from_str::<Value>(text).unwrap()});
    let first =
        call_with_key(&mut client, EXEC, &schema(r#"{"type": "object", "properties": {"a": {}, "b": {}}}"#));
    let again =
        call_with_key(&mut client, EXEC, &schema(r#"{"properties": {"b": {}, "a": {}}, "type": "object"}"#));
    assert_eq!(again["meta"]["replayed"], true, "{again}");
    assert_eq!(again["data"]["task_id"], first["data"]["task_id"], "{again}");
}

#[test]
fn a_repeated_run_reports_replayed() {
    let stage = quick_stage();
    for (era, key) in [(V2025_06, "old"), (V2026_07, "new")] {
        let mut client = Client::connect(&stage, era);
        let first = call_with_key(&mut client, RUN, &json!({"idempotency_key": key}));
        assert_eq!(first["data"]["state"], "completed", "{first}");
        assert_eq!(first["meta"].get("replayed"), None, "{first}");
        let again = call_with_key(&mut client, RUN, &json!({"idempotency_key": key, "call_budget_sec": 50}));
        assert_eq!(again["data"]["task_id"], first["data"]["task_id"], "{again}");
        assert_eq!(again["meta"]["replayed"], true, "{again}");
    }
    let args = ["local", "run", "do it", "--idempotency-key", "w"];
    assert_eq!(stage.run_json(&args)["meta"]["replayed"], Value::Null);
    assert_eq!(stage.run_json(&args)["meta"]["replayed"], true);
}

#[test]
fn a_repeated_call_for_a_finished_task_returns_its_outcome() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let first = call_with_key(&mut client, EXEC, &json!({}));
    stage.wait(first["data"]["task_id"].as_str().unwrap());
    let again = call_with_key(&mut client, EXEC, &json!({}));
    assert_eq!((&again["data"]["state"], &again["meta"]["replayed"]), (&json!("completed"), &json!(true)));
    assert!(again["data"]["summary"].is_string() && again["meta"].get("queue_position").is_none(), "{again}");
}
