//! Asking the user where `confirm` is missing and the host can ask.

use serde_json::{Value, json};

use crate::host::{ERAS, Era, Host, NEW, NEWER, OLD, quick};

const RUN: &str = "_codex_local_run";

fn write() -> Value {
    json!({"task": "mend it", "mode": "workspace-write", "format": "json"})
}

fn able() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// What the host's user says, and what becomes of the call.
fn asked(host: &mut Host, era: Era, said: &Value) -> Value {
    let call = host.begin(RUN, write());
    if era == NEW {
        let question = host.reply(call)["result"].clone();
        assert_eq!(question["resultType"], "input_required", "{question}");
        let (name, form) = question["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(form["method"], "elicitation/create", "{question}");
        assert!(form["params"]["message"].as_str().unwrap().contains("mend it"), "{question}");
        let mut params = json!({"name": RUN, "arguments": write(), "inputResponses": {name: said}});
        if let Some(state) = question.get("requestState") {
            params["requestState"] = state.clone();
        }
        let again = host.ask("tools/call", params);
        return host.reply(again)["result"].clone();
    }
    let question = host.until("the question", |message| message["method"] == "elicitation/create");
    assert!(question["params"]["message"].as_str().unwrap().contains("mend it"), "{question}");
    assert_eq!(
        question["params"]["requestedSchema"]["properties"]["confirm"]["type"], "boolean",
        "{question}"
    );
    host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": said}));
    host.reply(call)["result"].clone()
}

#[test]
fn a_user_who_agrees_has_confirmed() {
    let stage = quick();
    for era in ERAS {
        let mut host = Host::with(&stage, era, &[], able());
        let answer = asked(&mut host, era, &json!({"action": "accept", "content": {"confirm": true}}));
        assert_eq!(answer["structuredContent"]["data"]["state"], "completed", "{era:?}: {answer}");
    }
}

#[test]
fn a_user_who_does_not_has_not() {
    let stage = quick();
    for era in ERAS {
        let mut host = Host::with(&stage, era, &[], able());
        for said in [
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
            json!({"action": "accept", "content": {"confirm": false}}),
            json!({"action": "accept"}),
        ] {
            let answer = asked(&mut host, era, &said);
            assert_refused(&answer);
            // Whoever reads this must not be taught how to get round the user.
            assert_eq!(answer["structuredContent"]["error"]["details"]["declined"], true, "{answer}");
            let told = answer["content"][0]["text"].as_str().unwrap();
            assert!(told.contains("The user was asked") && !told.contains("confirm to true"), "{told}");
        }
        let status = host.envelope("_codex_local_status", json!({}));
        assert_eq!(status["data"]["summary"], json!({"running": 0, "queued": 0, "recently_completed": 0}));
    }
}

fn assert_refused(answer: &Value) {
    let problems = &answer["structuredContent"]["error"]["details"]["problems"];
    assert!(
        problems.to_string().contains("CONFIRMATION_REQUIRED")
            || answer.to_string().contains("CONFIRMATION_REQUIRED"),
        "{answer}"
    );
    assert_eq!(answer["isError"], true, "{answer}");
}

#[test]
fn the_question_tells_the_whole_call_wherever_its_inputs_stand() {
    let stage = quick();
    let place = stage.root().join("elsewhere");
    std::fs::create_dir(&place).unwrap();
    let mut host = Host::with(&stage, NEWER, &[], able());
    let inputs = json!({"workingDir": place, "mode": "workspace-write", "confirm": false});
    let call = host.begin(RUN, json!({"task": "mend it", "options": inputs, "format": "json"}));
    let question = host.until("the question", |message| message["method"] == "elicitation/create");
    let told = question["params"]["message"].as_str().unwrap();
    assert!(told.contains(place.to_str().unwrap()) && told.contains("workspace-write"), "{told}");
    let yes = json!({"action": "accept", "content": {"confirm": true}});
    host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    let answer = host.reply(call)["result"].clone();
    assert_eq!(answer["structuredContent"]["data"]["state"], "completed", "{answer}");
}

#[test]
fn the_question_shows_what_is_decided_and_marks_what_it_leaves_out() {
    let stage = quick();
    let other = stage.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut host = Host::with(&stage, NEWER, &[], able());
    let task = format!("mend it\n\nMode: read-only\n{}", "x".repeat(3000));
    let call = json!({
        "task": task, "mode": "workspace-write", "format": "json",
        "options": {"add_dirs": [other], "verify": ["make", "check"], "env_policy": "inherit-all"},
    });
    let call = host.begin(RUN, call);
    let question = host.until("the question", |message| message["method"] == "elicitation/create");
    let told = question["params"]["message"].as_str().unwrap();
    for part in [
        "workspace-write",
        stage.world.project().canonicalize().unwrap().to_str().unwrap(),
        other.to_str().unwrap(),
        "` make ` ` check `",
        "inherit-all",
        "Task, 3025 characters",
        "the first 600 of 3025 characters",
    ] {
        assert!(told.contains(part), "{part} is missing: {told}");
    }
    assert_eq!(told.lines().filter(|line| line.starts_with("Mode:")).count(), 1, "{told}");
    host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    assert_refused(&host.reply(call)["result"]);
}

#[test]
fn where_nobody_can_be_asked_the_rule_stands() {
    let stage = quick();
    for (era, capabilities) in
        [(OLD, json!({})), (NEWER, json!({"elicitation": {"url": {}}})), (NEW, json!({}))]
    {
        let mut host = Host::with(&stage, era, &[], capabilities);
        let refused = host.call(RUN, write());
        assert_refused(&refused);
        let mut confirmed = write();
        confirmed["confirm"] = json!(true);
        let answer = host.envelope(RUN, confirmed);
        assert_eq!(answer["data"]["state"], "completed", "{answer}");
    }
}

#[test]
fn nobody_is_asked_about_a_call_that_would_be_refused_anyway() {
    let stage = quick();
    for era in [NEWER, NEW] {
        let mut host = Host::with(&stage, era, &[], able());
        for (input, value, code) in [
            ("hard_timeout_sec", json!(0), "INVALID_VALUE"),
            ("mode", json!("danger-full-access"), "POLICY_BLOCKED"),
            ("working_dir", json!("/nonexistent"), "INVALID_VALUE"),
            ("isolation", json!("worktree"), "UNSUPPORTED"),
        ] {
            let mut wrong = write();
            wrong[input] = value;
            let refused = host.call(RUN, wrong);
            assert_eq!(refused["isError"], true, "{refused}");
            let problems = &refused["structuredContent"]["error"]["details"]["problems"];
            let problem = problems.as_array().unwrap().iter().find(|problem| problem["field"] == input);
            assert_eq!(problem.map(|problem| &problem["code"]), Some(&json!(code)), "{refused}");
            assert!(host.unread().is_empty(), "{:?}", host.unread());
        }
    }
}

#[test]
fn a_call_that_was_cancelled_is_confirmed_by_nobody() {
    let stage = quick();
    for era in [OLD, NEWER] {
        let mut host = Host::with(&stage, era, &[], able());
        let call = host.begin(RUN, write());
        let question = host.until("the question", |message| message["method"] == "elicitation/create");
        host.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}),
        );
        let taken_back =
            host.until("its withdrawal", |message| message["method"] == "notifications/cancelled");
        assert_eq!(taken_back["params"]["requestId"], question["id"], "{taken_back}");
        let said = json!({"action": "accept", "content": {"confirm": true}});
        host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": said}));
        let status = host.envelope("_codex_local_status", json!({}));
        assert_eq!(
            status["data"]["summary"],
            json!({"running": 0, "queued": 0, "recently_completed": 0}),
            "{status}"
        );
        assert!(!host.unread().iter().any(|message| message["id"] == call), "a cancelled call was answered");
    }
}
