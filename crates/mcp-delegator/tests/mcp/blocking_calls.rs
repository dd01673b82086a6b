//! Calls that wait for a task: progress, cancellation, and many at once.

use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, ERAS, V2025_06, V2026_07, release_agents, text, waiting_stage};

fn wait_with_token(id: &str, token: &str) -> Value {
    json!({
        "name": "_codex_local_wait", "arguments": {"task_id": id}, "_meta": {"progressToken": token},
    })
}

fn is_progress(message: &Value, token: &str) -> bool {
    message["method"] == "notifications/progress" && message["params"]["progressToken"] == token
}

#[test]
fn progress_starts_at_once_and_only_increases() {
    let stage = waiting_stage();
    for era in ERAS {
        let mut client = Client::connect(&stage, era);
        let id = client.exec();
        let call = client.send_request("tools/call", wait_with_token(&id, "t"));
        let mut last = -1.0;
        for _ in 0..if era == V2025_06 { 2 } else { 1 } {
            let notification = client.wait_for("progress", |message| is_progress(message, "t"));
            let progress = notification["params"]["progress"].as_f64().unwrap();
            assert!(progress > last, "{notification}");
            assert!(!notification["params"]["message"].as_str().unwrap().is_empty(), "{notification}");
            last = progress;
        }
        let status = client.envelope("_codex_local_status", json!({"task_id": id}));
        assert_eq!(status["data"]["tasks"][0]["state"], "working", "progress came after the end: {status}");
        release_agents(&stage);
        assert!(client.response(call)["result"].is_object());
        std::fs::remove_file(stage.world.project().join("go")).unwrap();
    }
}

/// The first notifications of a wait, each as progress, total and message.
fn first_notifications(
    client: &mut Client,
    arguments: &Value,
    count: usize,
) -> (u64, Vec<(f64, Value, String)>) {
    let params = json!({
        "name": "_codex_local_wait", "arguments": arguments, "_meta": {"progressToken": "scale"},
    });
    let call = client.send_request("tools/call", params);
    let mut next = || {
        let notification = client.wait_for("progress", |message| is_progress(message, "scale"));
        let params = &notification["params"];
        let message = params["message"].as_str().unwrap().to_owned();
        (params["progress"].as_f64().unwrap(), params["total"].clone(), message)
    };
    (call, (0..count).map(|_| next()).collect())
}

#[test]
fn a_known_percentage_is_progress_of_a_total_of_one_hundred() {
    let plan = json!({"plan": {"steps": ["read", "write"], "done": 1}});
    let stage = Stage::with_script(PROGRAM, successful_turn(&[plan, json!({"wait_for_file": "go"})]));
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    wait_until("the plan is known", || {
        let status = client.envelope("_codex_local_status", json!({"task_id": id}));
        status["data"]["tasks"][0]["progress"]["percent"] == 50
    });
    let (call, notifications) = first_notifications(&mut client, &json!({"task_id": id}), 3);
    assert_eq!((notifications[0].0, &notifications[0].1), (0.0, &Value::Null), "{notifications:?}");
    assert_eq!((notifications[1].0, &notifications[1].1), (50.0, &json!(100.0)), "{notifications:?}");
    assert!(notifications[1].2.starts_with("50% complete: "), "{notifications:?}");
    let (progress, total, _) = &notifications[2];
    assert!((50.0..51.0).contains(progress) && *progress > 50.0 && *total == 100.0, "{notifications:?}");
    release_agents(&stage);
    assert!(client.response(call)["result"].is_object());
}

/// The call begins before the agent has a plan.
#[test]
fn progress_switches_to_percent_when_a_plan_becomes_known() {
    let plan = json!({"plan": {"steps": ["read", "write"], "done": 1}});
    let steps = [json!({"wait_for_file": "plan"}), plan, json!({"wait_for_file": "go"})];
    let stage = Stage::with_script(PROGRAM, successful_turn(&steps));
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    let (call, notifications) = first_notifications(&mut client, &json!({"task_id": id}), 2);
    assert_eq!(notifications[1].1, json!(1200.0), "{notifications:?}");
    let mut last = notifications[1].0;
    stage.world.write("project/plan", "");
    loop {
        let notification = client.wait_for("progress", |message| is_progress(message, "scale"));
        let params = &notification["params"];
        let progress = params["progress"].as_f64().unwrap();
        assert!(progress > last, "{notification} after {last}");
        last = progress;
        if params["message"].as_str().unwrap().starts_with("50% complete: ") {
            // After more than 50 s a multiple of both.
            assert_eq!(progress.floor() / params["total"].as_f64().unwrap(), 0.5, "{notification}");
            break;
        }
        assert_eq!(params["total"], json!(1200.0), "{notification}");
    }
    release_agents(&stage);
    assert!(client.response(call)["result"].is_object());
}

#[test]
fn without_a_percentage_progress_is_seconds_of_the_hard_limit() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let envelope = client.envelope("_codex_local_exec", json!({"task": "x", "hard_timeout_sec": 4321}));
    let id = envelope["data"]["task_id"].as_str().unwrap();
    wait_until("the agent runs", || {
        let status = client.envelope("_codex_local_status", json!({"task_id": id}));
        status["data"]["tasks"][0]["progress"].is_object()
    });
    let (call, notifications) = first_notifications(&mut client, &json!({"task_id": id}), 3);
    for pair in notifications.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{notifications:?}");
        let (progress, total, message) = &pair[1];
        assert!(*total == 4321.0 && *progress < 4321.0, "{notifications:?}");
        assert!(message.starts_with(&format!("{} s of at most 4,321 s: ", progress.floor())), "{message}");
    }
    release_agents(&stage);
    assert!(client.response(call)["result"].is_object());
}

#[test]
fn several_tasks_have_a_total_of_one_hundred_together() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let ids = [client.exec(), client.exec()];
    client.call("_codex_local_cancel", json!({"task_id": ids[0]}));
    stage.wait(&ids[0]);
    let (call, notifications) = first_notifications(&mut client, &json!({"task_ids": ids}), 2);
    let (progress, total, message) = &notifications[1];
    assert!((50.0..100.0).contains(progress) && *total == 100.0, "{notifications:?}");
    assert!(message.contains("1 of 2 tasks ended"), "{message}");
    release_agents(&stage);
    assert!(client.response(call)["result"].is_object());
}

#[test]
fn an_ended_task_has_its_hard_limit_as_total_too() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let envelope = client.envelope("_codex_local_exec", json!({"task": "x", "hard_timeout_sec": 4321}));
    let id = envelope["data"]["task_id"].as_str().unwrap();
    release_agents(&stage);
    stage.wait(id);
    let (call, notifications) = first_notifications(&mut client, &json!({"task_id": id}), 2);
    assert_eq!(notifications[1].1, json!(4321.0), "{notifications:?}");
    assert!(client.response(call)["result"].is_object());
}

#[test]
fn every_tool_reports_progress_before_its_response() {
    let stage = waiting_stage();
    let id = stage.exec(&[]);
    for era in ERAS {
        let mut client = Client::connect(&stage, era);
        for (tool, arguments) in [
            ("_codex_local_exec", json!({"task": "x"})),
            ("_codex_local_run", json!({"task": "x", "async": true})),
            // Refused, with progress before that.
            ("_codex_local_run", json!({"task": "x", "mode": "workspace-write"})),
            ("_codex_local_status", json!({})),
            ("_codex_local_results", json!({"task_id": id})),
            ("_codex_cloud_list_environments", json!({})),
            ("_codex_cleanup_registry", json!({"dry_run": true})),
        ] {
            let meta = json!({"progressToken": tool});
            let call = client
                .send_request("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}));
            let first = client
                .wait_for("the first message", |message| is_progress(message, tool) || message["id"] == call);
            assert!(is_progress(&first, tool), "{first}");
            assert!(!first["params"]["message"].as_str().unwrap().is_empty(), "{first}");
            client.response(call);
        }
    }
    release_agents(&stage);
    wait_until("all tasks have ended", || {
        stage.run_json(&["local", "status"])["data"]["summary"]["running"] == 0
    });
}

#[test]
fn no_progress_is_sent_without_a_token() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    let call = client.start_call("_codex_local_wait", json!({"task_id": id}));
    client.call("_codex_local_status", json!({"task_id": id}));
    release_agents(&stage);
    client.response(call);
    assert!(client.pending().is_empty(), "{:?}", client.pending());
}

#[test]
fn cancelling_a_request_ends_the_call_and_not_the_task() {
    let stage = waiting_stage();
    for era in ERAS {
        let mut client = Client::connect(&stage, era);
        for tool in ["_codex_local_wait", "_codex_local_run"] {
            let (call, id) = match tool {
                "_codex_local_wait" => {
                    let id = client.exec();
                    (client.send_request("tools/call", wait_with_token(&id, "w")), Some(id))
                }
                _ => {
                    let params =
                        json!({"name": tool, "arguments": {"task": "x"}, "_meta": {"progressToken": "r"}});
                    (client.send_request("tools/call", params), None)
                }
            };
            let token = if id.is_some() { "w" } else { "r" };
            client.wait_for("progress", |message| is_progress(message, token));
            wait_until("the task runs", || {
                client.envelope("_codex_local_status", json!({}))["data"]["summary"]["running"] == 1
            });
            let params = json!({"requestId": call, "reason": "cancelled by the user"});
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
            let status = client.envelope("_codex_local_status", json!({}));
            assert_eq!(status["data"]["summary"]["running"], 1, "the task was cancelled: {status}");
            let id = id.unwrap_or_else(|| status["data"]["tasks"][0]["task_id"].as_str().unwrap().to_owned());
            release_agents(&stage);
            // A call that is still waiting would mark the result as read.
            wait_until("the task has ended", || {
                client.envelope("_codex_local_status", json!({}))["data"]["summary"]["running"] == 0
            });
            let status = client.envelope("_codex_local_status", json!({}));
            assert_eq!(status["data"]["unread"]["task_ids"], json!([id]), "{status}");
            let waited = client.envelope("_codex_local_wait", json!({"task_id": id}));
            assert_eq!(waited["data"]["state"], "completed", "{waited}");
            let has_response = client.pending().iter().any(|message| message["id"] == call);
            assert!(!has_response, "a cancelled request got a response: {:?}", client.pending());
            std::fs::remove_file(stage.world.project().join("go")).unwrap();
        }
    }
}

#[test]
fn two_hundred_waits_share_one_server() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let ids: Vec<String> = (0..4).map(|_| client.exec()).collect();
    let calls: Vec<u64> = (0..200)
        .map(|number| {
            let arguments = json!({"task_id": ids[number % 4], "timeout_sec": 600});
            client.start_call("_codex_local_wait", arguments)
        })
        .collect();
    let status = client.envelope("_codex_local_status", json!({}));
    assert_eq!(status["data"]["summary"]["running"], 4, "other requests are blocked: {status}");
    for call in &calls[..50] {
        let params = json!({"requestId": call});
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
    release_agents(&stage);
    for call in &calls[50..] {
        let reply = client.response(*call);
        assert!(text(&reply["result"]).contains("completed"), "{reply}");
    }
    assert!(
        !client
            .pending()
            .iter()
            .any(|message| message["id"].as_u64().is_some_and(|id| calls[..50].contains(&id)))
    );
}
