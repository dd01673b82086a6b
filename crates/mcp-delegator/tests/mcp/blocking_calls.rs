//! Calls that stay with a task: progress, cancellation, and many at once (F61).

use delegator_testkit::stage::wait_until;
use serde_json::{Value, json};

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
        let mut host = Client::connect(&stage, era);
        let id = host.exec();
        let call = host.send_request("tools/call", wait_with_token(&id, "t"));
        let mut last = -1.0;
        for _ in 0..if era == V2025_06 { 2 } else { 1 } {
            let told = host.wait_for("progress", |message| is_progress(message, "t"));
            let progress = told["params"]["progress"].as_f64().unwrap();
            assert!(progress > last, "{told}");
            assert!(!told["params"]["message"].as_str().unwrap().is_empty(), "{told}");
            last = progress;
        }
        let status = host.envelope("_codex_local_status", json!({"task_id": id}));
        assert_eq!(status["data"]["tasks"][0]["state"], "working", "it was told before the end: {status}");
        release_agents(&stage);
        assert!(host.response(call)["result"].is_object());
        std::fs::remove_file(stage.world.project().join("go")).unwrap();
    }
}

#[test]
fn every_tool_reports_progress_before_its_response() {
    let stage = waiting_stage();
    let id = stage.exec(&[]);
    for era in ERAS {
        let mut host = Client::connect(&stage, era);
        for (tool, arguments) in [
            ("_codex_local_exec", json!({"task": "x"})),
            ("_codex_local_run", json!({"task": "x", "async": true})),
            // Refused, and told of before that.
            ("_codex_local_run", json!({"task": "x", "mode": "workspace-write"})),
            ("_codex_local_status", json!({})),
            ("_codex_local_results", json!({"task_id": id})),
            ("_codex_cloud_list_environments", json!({})),
            ("_codex_cleanup_registry", json!({"dry_run": true})),
        ] {
            let meta = json!({"progressToken": tool});
            let call =
                host.send_request("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}));
            let first =
                host.wait_for("a word", |message| is_progress(message, tool) || message["id"] == call);
            assert!(is_progress(&first, tool), "{first}");
            assert!(!first["params"]["message"].as_str().unwrap().is_empty(), "{first}");
            host.response(call);
        }
    }
    release_agents(&stage);
    wait_until("they have ended", || stage.run_json(&["local", "status"])["data"]["summary"]["running"] == 0);
}

#[test]
fn no_progress_is_sent_without_a_token() {
    let stage = waiting_stage();
    let mut host = Client::connect(&stage, V2025_06);
    let id = host.exec();
    let call = host.start_call("_codex_local_wait", json!({"task_id": id}));
    host.call("_codex_local_status", json!({"task_id": id}));
    release_agents(&stage);
    host.response(call);
    assert!(host.pending().is_empty(), "{:?}", host.pending());
}

#[test]
fn cancelling_a_request_ends_the_call_and_not_the_task() {
    let stage = waiting_stage();
    for era in ERAS {
        let mut host = Client::connect(&stage, era);
        for tool in ["_codex_local_wait", "_codex_local_run"] {
            let (call, id) = match tool {
                "_codex_local_wait" => {
                    let id = host.exec();
                    (host.send_request("tools/call", wait_with_token(&id, "w")), Some(id))
                }
                _ => {
                    let params =
                        json!({"name": tool, "arguments": {"task": "x"}, "_meta": {"progressToken": "r"}});
                    (host.send_request("tools/call", params), None)
                }
            };
            let token = if id.is_some() { "w" } else { "r" };
            host.wait_for("progress", |message| is_progress(message, token));
            wait_until("the task runs", || {
                host.envelope("_codex_local_status", json!({}))["data"]["summary"]["running"] == 1
            });
            let params = json!({"requestId": call, "reason": "the user said so"});
            host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
            let status = host.envelope("_codex_local_status", json!({}));
            assert_eq!(status["data"]["summary"]["running"], 1, "the task goes on: {status}");
            let id = id.unwrap_or_else(|| status["data"]["tasks"][0]["task_id"].as_str().unwrap().to_owned());
            release_agents(&stage);
            // A call that still stayed would have read the result.
            wait_until("the task has ended", || {
                host.envelope("_codex_local_status", json!({}))["data"]["summary"]["running"] == 0
            });
            let status = host.envelope("_codex_local_status", json!({}));
            assert_eq!(status["data"]["unread"]["task_ids"], json!([id]), "{status}");
            let waited = host.envelope("_codex_local_wait", json!({"task_id": id}));
            assert_eq!(waited["data"]["state"], "completed", "{waited}");
            let answered = host.pending().iter().any(|message| message["id"] == call);
            assert!(!answered, "a cancelled request is not answered: {:?}", host.pending());
            std::fs::remove_file(stage.world.project().join("go")).unwrap();
        }
    }
}

#[test]
fn two_hundred_waits_share_one_server() {
    let stage = waiting_stage();
    let mut host = Client::connect(&stage, V2026_07);
    let ids: Vec<String> = (0..4).map(|_| host.exec()).collect();
    let calls: Vec<u64> = (0..200)
        .map(|number| {
            let arguments = json!({"task_id": ids[number % 4], "timeout_sec": 600});
            host.start_call("_codex_local_wait", arguments)
        })
        .collect();
    let status = host.envelope("_codex_local_status", json!({}));
    assert_eq!(status["data"]["summary"]["running"], 4, "others are answered meanwhile: {status}");
    for call in &calls[..50] {
        let params = json!({"requestId": call});
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
    release_agents(&stage);
    for call in &calls[50..] {
        let reply = host.response(*call);
        assert!(text(&reply["result"]).contains("completed"), "{reply}");
    }
    assert!(
        !host
            .pending()
            .iter()
            .any(|message| message["id"].as_u64().is_some_and(|id| calls[..50].contains(&id)))
    );
}
