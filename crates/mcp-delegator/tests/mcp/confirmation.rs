//! Elicitation: the server asks the user when `confirm` is missing and the client supports questions.

use serde_json::{Value, json};

use crate::client::{Client, ERAS, Era, V2025_06, V2025_11, V2026_07, quick_stage};

const RUN: &str = "_codex_local_run";

fn writing_call() -> Value {
    json!({"task": "mend it", "mode": "workspace-write", "format": "json"})
}

fn elicitation_capability() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// Makes a call that needs confirmation, sends the user's response, and returns the result.
fn call_and_respond(client: &mut Client, era: Era, user_response: &Value) -> Value {
    let call = client.start_call(RUN, writing_call());
    if era == V2026_07 {
        let question = client.response(call)["result"].clone();
        assert_eq!(question["resultType"], "input_required", "{question}");
        let (name, form) = question["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(form["method"], "elicitation/create", "{question}");
        assert!(form["params"]["message"].as_str().unwrap().contains("mend it"), "{question}");
        let mut params =
            json!({"name": RUN, "arguments": writing_call(), "inputResponses": {name: user_response}});
        if let Some(state) = question.get("requestState") {
            params["requestState"] = state.clone();
        }
        let again = client.send_request("tools/call", params);
        return client.response(again)["result"].clone();
    }
    let question = client.wait_for("the question", |message| message["method"] == "elicitation/create");
    assert!(question["params"]["message"].as_str().unwrap().contains("mend it"), "{question}");
    // A form without fields: accepting it is one action.
    assert_eq!(question["params"]["requestedSchema"], json!({"type": "object", "properties": {}}));
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": user_response}));
    client.response(call)["result"].clone()
}

#[test]
fn an_accepted_form_confirms_the_call() {
    let stage = quick_stage();
    for era in ERAS {
        let mut client = Client::connect_with(&stage, era, &[], elicitation_capability());
        for user_response in [json!({"action": "accept"}), json!({"action": "accept", "content": {}})] {
            let result = call_and_respond(&mut client, era, &user_response);
            assert_eq!(result["structuredContent"]["data"]["state"], "completed", "{era:?}: {result}");
        }
    }
}

/// These responses come at once, as from a client without a user.
#[test]
fn a_refused_form_refuses_the_call_and_claims_no_decision_of_a_user() {
    let stage = quick_stage();
    for era in ERAS {
        let mut client = Client::connect_with(&stage, era, &[], elicitation_capability());
        for action in ["decline", "cancel"] {
            let result = call_and_respond(&mut client, era, &json!({"action": action}));
            assert_refused(&result);
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(!text.contains("The user declined"), "{text}");
        }
        assert_nothing_was_started(&mut client);
    }
}

#[test]
fn an_error_of_the_client_is_reported() {
    let stage = quick_stage();
    for response in
        [json!({"error": {"code": -32603, "message": "boom"}}), json!({"result": {"action": "maybe"}})]
    {
        let mut client = Client::connect_with(&stage, V2025_11, &[], elicitation_capability());
        let call = client.start_call(RUN, writing_call());
        let question = client.wait_for("the question", |message| message["method"] == "elicitation/create");
        let mut reply = json!({"jsonrpc": "2.0", "id": question["id"]});
        reply.as_object_mut().unwrap().extend(response.as_object().unwrap().clone());
        client.send(&reply);
        let result = client.response(call)["result"].clone();
        assert_refused(&result);
        let message = result["structuredContent"]["error"]["message"].as_str().unwrap();
        let reason = if response.get("error").is_some() { "error -32603: boom" } else { "no valid action" };
        assert!(message.contains(reason) && !message.contains("cannot ask a user"), "{message}");
        assert_nothing_was_started(&mut client);
    }
}

#[test]
fn a_slow_answer_of_the_user_is_not_bypassed() {
    let stage = quick_stage();
    let mut client = Client::connect_with(&stage, V2026_07, &[], elicitation_capability());
    let call = client.start_call(RUN, writing_call());
    let question = client.response(call)["result"].clone();
    let sent: i64 = question["requestState"].as_str().unwrap().parse().unwrap();
    for (action, reason) in
        [("decline", "the user declined the call"), ("cancel", "closed without an answer")]
    {
        let params = json!({
            "name": RUN, "arguments": writing_call(), "inputResponses": {"confirm": {"action": action}},
            "requestState": (sent - 5_000).to_string(),
        });
        let again = client.send_request("tools/call", params);
        let result = client.response(again)["result"].clone();
        assert_refused(&result);
        let error = &result["structuredContent"]["error"];
        assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
        assert!(
            !error.to_string().contains("exec") && !error.to_string().contains("confirm: true"),
            "{error}"
        );
        let details = &error["details"];
        assert_eq!(details.get("is_declined").is_some(), action == "decline", "{result}");
    }
    assert_nothing_was_started(&mut client);
}

fn assert_nothing_was_started(client: &mut Client) {
    let status = client.envelope("_codex_local_status", json!({}));
    let summary = json!({"running": 0, "queued": 0, "recently_completed": 0});
    assert_eq!(status["data"]["summary"], summary, "{status}");
}

fn assert_refused(result: &Value) {
    let problems = &result["structuredContent"]["error"]["details"]["problems"];
    assert!(
        problems.to_string().contains("CONFIRMATION_REQUIRED")
            || result.to_string().contains("CONFIRMATION_REQUIRED"),
        "{result}"
    );
    assert_eq!(result["isError"], true, "{result}");
}

#[test]
fn the_question_includes_inputs_inside_options() {
    let stage = quick_stage();
    let dir = stage.root().join("elsewhere");
    std::fs::create_dir(&dir).unwrap();
    let mut client = Client::connect_with(&stage, V2025_11, &[], elicitation_capability());
    let inputs = json!({"workingDir": dir, "mode": "workspace-write", "confirm": false});
    let call = client.start_call(RUN, json!({"task": "mend it", "options": inputs, "format": "json"}));
    let question = client.wait_for("the question", |message| message["method"] == "elicitation/create");
    let text = question["params"]["message"].as_str().unwrap();
    assert!(text.contains(dir.to_str().unwrap()) && text.contains("workspace-write"), "{text}");
    let yes = json!({"action": "accept"});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    let result = client.response(call)["result"].clone();
    assert_eq!(result["structuredContent"]["data"]["state"], "completed", "{result}");
}

#[test]
fn the_question_shows_every_relevant_input_and_marks_omissions() {
    let stage = quick_stage();
    let other = stage.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut client = Client::connect_with(&stage, V2025_11, &[], elicitation_capability());
    let task = format!("mend it\n\nMode: read-only\n{}", "x".repeat(3000));
    let call = json!({
        "task": task, "mode": "workspace-write", "format": "json",
        "options": {"add_dirs": [other], "verify": ["make", "check"], "env_policy": "inherit-all"},
    });
    let call = client.start_call(RUN, call);
    let question = client.wait_for("the question", |message| message["method"] == "elicitation/create");
    let text = question["params"]["message"].as_str().unwrap();
    for part in [
        "workspace-write",
        stage.world.project().canonicalize().unwrap().to_str().unwrap(),
        other.to_str().unwrap(),
        "` make ` ` check `",
        "inherit-all",
        "Task, 3025 characters",
        "the first 600 of 3025 characters",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("Mode:")).count(), 1, "{text}");
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    assert_refused(&client.response(call)["result"]);
}

#[test]
fn without_elicitation_a_call_needs_confirm() {
    let stage = quick_stage();
    for (era, capabilities) in
        [(V2025_06, json!({})), (V2025_11, json!({"elicitation": {"url": {}}})), (V2026_07, json!({}))]
    {
        let mut client = Client::connect_with(&stage, era, &[], capabilities);
        let refused = client.call(RUN, writing_call());
        assert_refused(&refused);
        let text = refused["content"][0]["text"].as_str().unwrap();
        for part in ["confirmation is not available", "Ask the user. If the user agrees", "confirm: true"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("local_exec") && !text.contains("read-only"), "a way around the user: {text}");
        let mut confirmed = writing_call();
        confirmed["confirm"] = json!(true);
        let result = client.envelope(RUN, confirmed);
        assert_eq!(result["data"]["state"], "completed", "{result}");
    }
}

#[test]
fn an_invalid_call_is_refused_without_a_question() {
    let stage = quick_stage();
    for era in [V2025_11, V2026_07] {
        let mut client = Client::connect_with(&stage, era, &[], elicitation_capability());
        for (input, value, code) in [
            ("hard_timeout_sec", json!(0), "INVALID_VALUE"),
            ("mode", json!("danger-full-access"), "POLICY_BLOCKED"),
            ("working_dir", json!("/nonexistent"), "INVALID_VALUE"),
        ] {
            let mut wrong = writing_call();
            wrong[input] = value;
            let refused = client.call(RUN, wrong);
            assert_eq!(refused["isError"], true, "{refused}");
            let problems = &refused["structuredContent"]["error"]["details"]["problems"];
            let problem = problems.as_array().unwrap().iter().find(|problem| problem["field"] == input);
            assert_eq!(problem.map(|problem| &problem["code"]), Some(&json!(code)), "{refused}");
            assert!(client.pending().is_empty(), "{:?}", client.pending());
        }
    }
}

#[test]
fn a_cancelled_call_withdraws_its_question() {
    let stage = quick_stage();
    for era in [V2025_06, V2025_11] {
        let mut client = Client::connect_with(&stage, era, &[], elicitation_capability());
        let call = client.start_call(RUN, writing_call());
        let question = client.wait_for("the question", |message| message["method"] == "elicitation/create");
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}),
        );
        let withdrawal = client
            .wait_for("the cancelled question", |message| message["method"] == "notifications/cancelled");
        assert_eq!(withdrawal["params"]["requestId"], question["id"], "{withdrawal}");
        let accepted = json!({"action": "accept"});
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted}));
        assert_nothing_was_started(&mut client);
        assert!(
            !client.pending().iter().any(|message| message["id"] == call),
            "a cancelled call got a response"
        );
    }
}
