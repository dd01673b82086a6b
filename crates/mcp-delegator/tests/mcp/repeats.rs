//! The same key with the same call: what is the same, and that it is said.

use std::os::unix::fs::symlink;

use delegator_domain::task::{Place, TaskId};
use delegator_registry::{Idempotency, NewTask, OpenOptions, Registry, StateDir};
use serde_json::{Value, json};

use crate::host::{Host, NEW, OLD, quick};

const EXEC: &str = "_codex_local_exec";
const RUN: &str = "_codex_local_run";

fn repeated(host: &mut Host, tool: &str, more: &Value) -> Value {
    let mut arguments = json!({"task": "do it", "idempotency_key": "k"});
    for (key, value) in more.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    host.envelope(tool, arguments)
}

#[test]
fn saying_what_holds_anyway_is_the_same_call() {
    let stage = quick();
    let mut host = Host::of(&stage, OLD);
    let project = stage.world.project();
    let link = stage.root().join("link");
    symlink(&project, &link).unwrap();
    let first = repeated(&mut host, EXEC, &json!({}));
    assert_eq!((&first["status"], &first["meta"]["replayed"]), (&json!("ok"), &Value::Null), "{first}");
    for same in [
        json!({"hard_timeout_sec": 1200}),
        json!({"idle_timeout_sec": 300, "mode": "read-only", "labels": {}}),
        json!({"working_dir": project}),
        json!({"working_dir": link, "hardTimeoutSec": 1200.0}),
    ] {
        let again = repeated(&mut host, EXEC, &same);
        assert_eq!(again["data"]["task_id"], first["data"]["task_id"], "{same}: {again}");
        assert_eq!(again["meta"]["replayed"], true, "{same}: {again}");
    }
    for other in [json!({"hard_timeout_sec": 1201}), json!({"working_dir": stage.root()})] {
        let refused = repeated(&mut host, EXEC, &other);
        assert_eq!(refused["error"]["details"]["code"], "IDEMPOTENCY_MISMATCH", "{other}: {refused}");
    }
}

#[test]
fn the_order_of_keys_is_not_part_of_a_call() {
    let stage = quick();
    let mut host = Host::of(&stage, OLD);
    let schema = |text: &str| json!({"output_schema": serde_json::from_str::<Value>(text).unwrap()});
    let first = repeated(&mut host, EXEC, &schema(r#"{"type": "object", "properties": {"a": {}, "b": {}}}"#));
    let again = repeated(&mut host, EXEC, &schema(r#"{"properties": {"b": {}, "a": {}}, "type": "object"}"#));
    assert_eq!(again["meta"]["replayed"], true, "{again}");
    assert_eq!(again["data"]["task_id"], first["data"]["task_id"], "{again}");
}

#[test]
fn a_run_that_is_stayed_with_says_that_it_was_made_before() {
    let stage = quick();
    for (era, key) in [(OLD, "old"), (NEW, "new")] {
        let mut host = Host::of(&stage, era);
        let first = repeated(&mut host, RUN, &json!({"idempotency_key": key}));
        assert_eq!(first["data"]["state"], "completed", "{first}");
        assert_eq!(first["meta"].get("replayed"), None, "{first}");
        let again = repeated(&mut host, RUN, &json!({"idempotency_key": key, "call_budget_sec": 50}));
        assert_eq!(again["data"]["task_id"], first["data"]["task_id"], "{again}");
        assert_eq!(again["meta"]["replayed"], true, "{again}");
    }
    let by_words = ["local", "run", "do it", "--idempotency-key", "w"];
    assert_eq!(stage.answer(&by_words)["meta"]["replayed"], Value::Null);
    assert_eq!(stage.answer(&by_words)["meta"]["replayed"], true);
}

#[test]
fn a_task_an_earlier_version_took_on_is_still_found_by_its_key() {
    let stage = quick();
    let state = StateDir::open(&stage.world.home().join("state"), &OpenOptions::default()).unwrap();
    let old = NewTask {
        // What 3.6.0 wrote down before it knew that saying a default changes nothing.
        idempotency: Some(Idempotency::new("k1", "cc1aed117408b90cc177110b")),
        ..NewTask::reading(
            TaskId::from_random(Place::Local, [7; 16]),
            stage.world.project().display().to_string(),
            "do it",
        )
    };
    Registry::open(&state).unwrap().submit(&old, b"{}", 1).unwrap();
    let again = stage.answer(&["local", "exec", "do it", "--idempotency-key", "k1"]);
    assert_eq!(
        (&again["data"]["task_id"], &again["meta"]["replayed"]),
        (&json!(old.id.as_str()), &json!(true))
    );
}

#[test]
fn a_task_that_has_ended_says_what_came_of_it() {
    let stage = quick();
    let mut host = Host::of(&stage, NEW);
    let first = repeated(&mut host, EXEC, &json!({}));
    stage.wait(first["data"]["task_id"].as_str().unwrap());
    let again = repeated(&mut host, EXEC, &json!({}));
    assert_eq!((&again["data"]["state"], &again["meta"]["replayed"]), (&json!("completed"), &json!(true)));
    assert!(again["data"]["summary"].is_string() && again["meta"].get("queue_position").is_none(), "{again}");
}
