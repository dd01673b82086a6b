//! Questions of an agent reach the user of the client while a call waits for the task.

use std::io::{BufRead, BufReader};

use delegator_testkit::asking_agent;
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, V2025_06, V2025_11, V2026_07};
use crate::http_client::HttpServer;

const WAIT: &str = "_codex_local_wait";

fn stage() -> Stage {
    asking_agent::stage(PROGRAM, &asking_agent::permission_request())
}

fn capabilities() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn is_form(message: &Value) -> bool {
    message["method"] == "elicitation/create"
}

fn respond(client: &mut Client, form: &Value, result: Value) {
    client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": result}));
}

/// What the agent received: `allow` or `deny`.
fn decision(stage: &Stage) -> Value {
    asking_agent::response(stage)["behavior"].clone()
}

#[test]
fn an_accepted_form_answers_the_question() {
    for era in [V2025_06, V2025_11] {
        let stage = stage();
        let id = asking_agent::exec(&stage);
        let mut client = Client::connect_with(&stage, era, &[], capabilities());
        let call = client.start_call(WAIT, json!({"task_id": id, "format": "json"}));
        let form = client.wait_for("the form", is_form);
        let message = form["params"]["message"].as_str().unwrap();
        assert!(message.contains(&id) && message.contains("make all"), "{form}");
        let answer = &form["params"]["requestedSchema"]["properties"]["answer"];
        assert!(answer.to_string().contains("allow_once"), "{form}");
        respond(&mut client, &form, json!({"action": "accept", "content": {"answer": "allow_once"}}));
        let result = client.response(call)["result"].clone();
        assert_eq!(result["structuredContent"]["data"]["state"], "completed", "{result}");
        assert_eq!(decision(&stage), "allow");
    }
}

#[test]
fn a_run_in_the_foreground_passes_questions_on() {
    let stage = stage();
    let mut client = Client::connect_with(&stage, V2025_11, &[], capabilities());
    let input = json!({
        "task": "x", "mode": "workspace-write", "confirm": true, "format": "json",
        "options": {"agent": "asker", "ask": true, "skip_git_repo_check": true},
    });
    let call = client.start_call("_codex_local_run", input);
    let form = client.wait_for("the form", is_form);
    respond(&mut client, &form, json!({"action": "accept", "content": {"answer": "reject_once"}}));
    let result = client.response(call)["result"].clone();
    assert_eq!(result["structuredContent"]["data"]["state"], "completed", "{result}");
    assert_eq!(decision(&stage), "deny");
}

#[test]
fn a_user_who_declines_leaves_the_question_to_others() {
    let stage = stage();
    let id = asking_agent::exec(&stage);
    let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "local,extra"], capabilities());
    let call = client.start_call(WAIT, json!({"task_id": id, "timeout_sec": 2, "format": "json"}));
    let form = client.wait_for("the form", is_form);
    respond(&mut client, &form, json!({"action": "decline"}));
    let result = client.response(call)["result"]["structuredContent"].clone();
    assert_eq!(
        (&result["meta"]["wait_expired"], &result["data"]["waiting_for_answer"][0]["question_number"]),
        (&json!(true), &json!(1)),
        "{result}"
    );
    assert!(!client.pending().iter().any(is_form), "the question is asked once per call");
    let answered = client.envelope("_codex_answer", json!({"task_id": id, "option": "allow_once"}));
    assert_eq!(answered["data"]["answer"]["option"], "allow_once", "{answered}");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    assert_eq!(decision(&stage), "allow");
}

#[test]
fn a_form_is_withdrawn_when_the_question_is_answered_elsewhere() {
    let stage = stage();
    let id = asking_agent::exec(&stage);
    let mut client = Client::connect_with(&stage, V2025_11, &[], capabilities());
    let call = client.start_call(WAIT, json!({"task_id": id, "format": "json"}));
    let form = client.wait_for("the form", is_form);
    stage.run_json(&["answer", &id, "allow_once"]);
    client.wait_for("the withdrawal", |message| {
        message["method"] == "notifications/cancelled" && message["params"]["requestId"] == form["id"]
    });
    let result = client.response(call)["result"].clone();
    assert_eq!(result["structuredContent"]["data"]["state"], "completed", "{result}");
    assert_eq!(decision(&stage), "allow");
}

#[test]
fn a_form_gives_the_result_of_a_tool_call() {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let script = r#"read -r task
echo '{"type":"tool_call","name":"look_up","call_id":"c1","arguments":{"key":"colour"}}'
read -r result
printf '%s\n' "$result" > result.json
echo '{"type":"done"}'"#;
    let agents = json!({"caller": {"protocol": "idle-jsonl", "command": ["/bin/sh", "-c", script], "unsandboxed": true}});
    let stage = stage.variable("MCP_DELEGATOR_AGENTS", &agents.to_string());
    let id = stage.exec(&["--agent", "caller", "--skip-git-repo-check"]);
    let mut client = Client::connect_with(&stage, V2025_11, &[], capabilities());
    let call = client.start_call(WAIT, json!({"task_id": id, "format": "json"}));
    let form = client.wait_for("the form", is_form);
    let message = form["params"]["message"].as_str().unwrap();
    assert!(message.contains("look_up") && message.contains("colour"), "{form}");
    respond(&mut client, &form, json!({"action": "accept", "content": {"text": "blue"}}));
    let result = client.response(call)["result"].clone();
    assert_eq!(result["structuredContent"]["data"]["state"], "completed", "{result}");
    let read = read_text(&stage.world.project().join("result.json"));
    assert_eq!(read, "{\"type\":\"tool_result\",\"call_id\":\"c1\",\"output\":\"blue\"}\n");
}

/// The parameters of a repeated call: those of the first one, with the user's answer to the question that was asked.
fn repeated(call: &Value, asked: &Value, result: &Value) -> Value {
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (name, form) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert!(form["params"]["message"].as_str().unwrap().contains("make all"), "{asked}");
    let mut call = call.clone();
    call["inputResponses"] = json!({name: result});
    call["requestState"] = asked["requestState"].clone();
    call
}

fn wait_call(id: &str, timeout_sec: u32) -> Value {
    json!({"name": WAIT, "arguments": {"task_id": id, "timeout_sec": timeout_sec, "format": "json"}})
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {"answer": "allow_once"}})
}

/// The protocol without requests to the client: the response asks, and the call is repeated with the answer.
#[test]
fn an_input_required_response_asks_and_the_repeated_call_answers() {
    for (result, timeout_sec, expected) in
        [(accepted(), 30, "completed"), (json!({"action": "decline"}), 1, "working")]
    {
        let stage = stage();
        let id = asking_agent::exec(&stage);
        let mut client = Client::connect_with(&stage, V2026_07, &[], capabilities());
        let mut request = |params: Value| {
            let call = client.send_request("tools/call", params);
            client.response(call)["result"].clone()
        };
        let asked = request(wait_call(&id, 30));
        let waited = request(repeated(&wait_call(&id, timeout_sec), &asked, &result));
        assert_eq!(waited["structuredContent"]["data"]["state"], expected, "{waited}");
        if expected == "working" {
            stage.run_json(&["answer", &id, "allow_once"]);
        }
        assert_eq!(stage.wait(&id)["data"]["state"], "completed");
        assert_eq!(decision(&stage), "allow");
    }
}

#[test]
fn a_repeated_call_over_http_answers_only_what_was_asked() {
    let stage = stage();
    let id = asking_agent::exec(&stage);
    let server = HttpServer::start(&stage);
    let request = |mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities()});
        server.request_stateless("tools/call", params)["result"].clone()
    };
    let call = wait_call(&id, 30);
    let asked = request(call.clone());
    let mut unasked = repeated(&call, &asked, &accepted());
    unasked["requestState"] = json!("");
    assert_eq!(request(unasked)["resultType"], "input_required", "the question is still open");
    let waited = request(repeated(&call, &asked, &accepted()));
    assert_eq!(waited["structuredContent"]["data"]["state"], "completed", "{waited}");
    assert_eq!(decision(&stage), "allow");
}

/// A client that runs inside the task belongs to the agent: it gets no form for the agent's own question.
#[test]
fn the_client_of_the_asking_agent_is_not_asked() {
    let stage = stage();
    let id = asking_agent::exec(&stage);
    wait_until("the agent asks", || stage.run_json(&["answer", &id])["data"]["state"] == "open");
    let stage = stage.variable("DELEGATOR_TASK", &format!("{id}:0"));
    for era in [V2025_11, V2026_07] {
        let mut client = Client::connect_with(&stage, era, &[], capabilities());
        let waited = client.envelope(WAIT, json!({"task_id": id, "timeout_sec": 1}));
        assert_eq!(waited["data"]["waiting_for_answer"][0]["question_number"], 1, "{waited}");
        assert!(!client.pending().iter().any(is_form));
    }
    stage.run_json(&["local", "cancel", &id]);
}

/// A client that cannot ask gets the question with the response.
#[test]
fn without_elicitation_the_question_is_part_of_the_response() {
    let stage = stage();
    let id = asking_agent::exec(&stage);
    for era in [V2025_11, V2026_07] {
        let mut client = Client::connect_with(&stage, era, &[], json!({}));
        let waited = client.envelope(WAIT, json!({"task_id": id, "timeout_sec": 1}));
        assert_eq!(waited["data"]["waiting_for_answer"][0]["question_number"], 1, "{waited}");
        let text = client.call(WAIT, json!({"task_id": id, "timeout_sec": 1}));
        let text = text["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("make all") && text.contains("allow_once"), "{text}");
        assert!(!client.pending().iter().any(is_form));
    }
    stage.run_json(&["answer", &id, "allow_once"]);
    stage.wait(&id);
}

#[test]
fn a_question_reaches_a_client_over_http() {
    let stage = stage();
    let id = asking_agent::exec(&stage);
    let server = HttpServer::start(&stage);
    let session = server.session_with(capabilities());
    let call = json!({"name": WAIT, "arguments": {"task_id": id, "format": "json"}});
    let stream = BufReader::new(session.send(7, "tools/call", call));
    let (mut has_asked, mut state) = (false, Value::Null);
    for line in stream.lines().map_while(Result::ok) {
        let message = line.strip_prefix("data:").and_then(|data| serde_json::from_str(data.trim()).ok());
        let message: Value = message.unwrap_or_default();
        if is_form(&message) {
            let result = json!({"action": "accept", "content": {"answer": "allow_once"}});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
            let response = server.request("POST", "/mcp", &session.headers, &body);
            assert_eq!(response.status, 202, "{response:?}");
            has_asked = true;
        } else if message["id"] == 7 {
            state = message["result"]["structuredContent"]["data"]["state"].clone();
            break;
        }
    }
    assert_eq!((has_asked, state), (true, json!("completed")));
    assert_eq!(decision(&stage), "allow");
}
