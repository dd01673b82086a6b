//! The HTTP API: tasks are looked at and acted on as with the commands, with the same checks.

use delegator_testkit::asking_agent;
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::http_client::{HttpResponse, HttpServer};

fn call(server: &HttpServer, method: &str, path: &str, body: &Value) -> HttpResponse {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.request(method, &format!("/api/v1{path}"), &server.default_headers(), &body)
}

/// The envelope of a success.
fn get(server: &HttpServer, path: &str) -> Value {
    answered(&call(server, "GET", path, &Value::Null))
}

fn post(server: &HttpServer, path: &str, body: &Value) -> Value {
    answered(&call(server, "POST", path, body))
}

fn answered(response: &HttpResponse) -> Value {
    assert_eq!(response.status, 200, "{response:?}");
    let envelope: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!((&envelope["ok"], &envelope["error"]), (&json!(true), &Value::Null), "{envelope}");
    envelope
}

/// The problem document of a failure with this status.
fn refused(response: &HttpResponse, status: u16) -> Value {
    assert_eq!(response.status, status, "{response:?}");
    assert_eq!(response.header("Content-Type"), Some("application/problem+json"), "{response:?}");
    let problem: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!(problem["status"], status, "{problem}");
    problem
}

fn audit(stage: &Stage) -> Vec<Value> {
    let text = read_text(&stage.world.home().join("state/audit.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn start_with(stage: &Stage, args: &[&str]) -> HttpServer {
    let args = [&["serve", "--http", "127.0.0.1:0"], args].concat();
    HttpServer::start_with(stage.world.command(args).stderr(std::process::Stdio::piped()), stage)
}

#[test]
fn a_task_is_submitted_looked_at_and_read() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let server = HttpServer::start(&stage);
    let work = stage.world.home().display().to_string();
    let submitted = post(
        &server,
        "/tasks",
        &json!({"task": "look around", "working_dir": work, "labels": {"team": "a b"}, "skip_git_repo_check": true}),
    );
    let id = submitted["data"]["task_id"].as_str().unwrap().to_owned();
    stage.run_json(&["local", "wait", &id]);
    let listed =
        |query: &str| get(&server, &format!("/tasks{query}"))["data"]["tasks"].as_array().unwrap().clone();
    let [task] = listed("?label=team%3Da+b&q=LOOK").try_into().unwrap();
    assert_eq!((&task["task_id"], &task["state"]), (&json!(id), &json!("completed")));
    assert_eq!(listed("?label=team=other"), Vec::<Value>::new());
    assert_eq!(listed("?section=needs_you"), Vec::<Value>::new());
    assert_eq!(listed(&format!("?repo={work}")).len(), 1);
    assert_eq!(get(&server, &format!("/tasks/{id}"))["data"]["ask"], "look around");
    let events = get(&server, &format!("/tasks/{id}/events?limit=1"))["data"].clone();
    assert_eq!((&events["events"][0]["number"], &events["has_more"]), (&json!(1), &json!(true)), "{events}");
    assert!(events["events"][0]["event"]["type"].is_string(), "{events}");
    let rest = get(&server, &format!("/tasks/{id}/events?from={}", events["next_from"]))["data"].clone();
    assert_eq!((&rest["events"][0]["number"], &rest["has_more"]), (&json!(2), &json!(false)), "{rest}");
    let log = get(&server, &format!("/tasks/{id}/log"))["data"]["entries"].clone();
    let first = log[0]["text"].as_str().unwrap().to_owned();
    let found = get(&server, &format!("/tasks/{id}/log?q={}", first[..3].to_uppercase()));
    assert_eq!(found["data"]["entries"][0]["text"], first, "{found}");
    let timeline = get(&server, &format!("/tasks/{id}/timeline"))["data"]["entries"].clone();
    let kinds: Vec<&Value> = timeline.as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert!(kinds.contains(&&json!("message")) && kinds.contains(&&json!("turn")), "{timeline}");
    let failed = get(&server, &format!("/tasks/{id}/timeline?failed=true"));
    assert_eq!(failed["data"]["entries"], json!([]), "{failed}");
    for path in ["/history?query=look", "/worktrees", "/usage", "/agents", &format!("/tasks/{id}/messages")] {
        get(&server, path);
    }
    let [line] = audit(&stage).try_into().unwrap();
    assert_eq!(
        (&line["command"], &line["scope"], &line["outcome"], &line["request_id"]),
        (&json!("local.exec"), &json!("write"), &json!("ok"), &submitted["meta"]["request_id"]),
        "{line}"
    );
}

#[test]
fn a_question_is_answered_and_the_first_answer_counts() {
    let stage = asking_agent::stage(PROGRAM, &asking_agent::permission_request());
    let server = HttpServer::start(&stage);
    let id = asking_agent::exec(&stage);
    let mut question = Value::Null;
    wait_until("the question is listed", || {
        let listed = get(&server, "/tasks?section=needs_you")["data"]["tasks"][0].clone();
        question = listed["waiting_for_answer"][0].clone();
        question.is_object()
    });
    assert_eq!(question["detail"], "make all", "{question}");
    let path = format!("/tasks/{id}/answer");
    let answered = post(&server, &path, &json!({"option": "allow_once"}));
    assert_eq!(answered["data"]["answer"]["option"], "allow_once", "{answered}");
    stage.wait(&id);
    assert_eq!(asking_agent::response(&stage)["behavior"], "allow");
    let late = call(&server, "POST", &path, &json!({"option": "reject_once"}));
    assert_eq!(refused(&late, 409)["type"], "urn:mcp-delegator:problem:WRONG_STATE", "{late:?}");
    let outcomes: Vec<Value> = audit(&stage).iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["ok", "WRONG_STATE"]);
    assert_eq!(audit(&stage)[0]["task"], id);
}

#[test]
fn a_scope_limits_the_token_everywhere() {
    let stage = asking_agent::stage(PROGRAM, &asking_agent::permission_request());
    let server = start_with(&stage, &["--scope", "answer"]);
    let id = asking_agent::exec(&stage);
    wait_until("the question is open", || {
        get(&server, "/tasks?section=needs_you")["data"]["tasks"]
            .as_array()
            .is_some_and(|found| !found.is_empty())
    });
    for (path, body) in [
        ("/tasks".to_owned(), json!({"task": "x"})),
        (format!("/tasks/{id}/cancel"), json!({})),
        (format!("/tasks/{id}/apply?check=true"), json!({})),
    ] {
        let problem = refused(&call(&server, "POST", &path, &body), 403);
        assert!(problem["detail"].as_str().unwrap().contains("needs the scope write"), "{problem}");
    }
    let tools = server.request_stateless("tools/list", json!({})).to_string();
    assert!(tools.contains("_codex_local_status") && !tools.contains("_codex_local_exec"), "{tools}");
    post(&server, &format!("/tasks/{id}/answer"), &json!({"answer": "allow_once"}));
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    let refusals = audit(&stage).iter().filter(|line| line["outcome"] == "POLICY_BLOCKED").count();
    assert_eq!(refusals, 3);
    let unknown = stage.world.run(["serve", "--scope", "read"]);
    assert_eq!(unknown.exit, Some(2), "a scope without --http: {unknown:?}");
}

#[test]
fn a_problem_document_names_what_is_wrong_with_a_request() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]))
        .variable("MCP_DELEGATOR_MAX_MODE", "danger-full-access");
    let server = HttpServer::start(&stage);
    for (method, path, body, status, expected) in [
        ("GET", "/nothing", Value::Null, 404, "There is no path /api/v1/nothing"),
        ("GET", "", Value::Null, 404, "There is no path /api/v1"),
        ("DELETE", "/tasks", Value::Null, 405, "GET, POST"),
        ("GET", "/tasks?colour=red", Value::Null, 400, "colour: is not a parameter"),
        ("GET", "/tasks?section=nowhere", Value::Null, 400, "section"),
        ("GET", "/tasks?limit=0", Value::Null, 400, "limit"),
        ("GET", "/tasks?q=%zz", Value::Null, 400, "query"),
        ("GET", "/tasks/T-local-nothing1", Value::Null, 404, "T-local-nothing1"),
        ("GET", "/tasks/x%2Fy", Value::Null, 400, "task_id"),
        ("GET", "/stream?task=T-local-nothing1", Value::Null, 404, "T-local-nothing1"),
        ("GET", "/stream?from=none", Value::Null, 400, "from"),
        ("HEAD", "/tasks", Value::Null, 405, ""),
        ("POST", "/tasks", json!({"task": "x", "mode": "danger-full-access"}), 428, "confirm"),
        ("POST", "/tasks", json!({"task": "x", "confirm": 1}), 400, "confirm: must be true or false"),
        ("POST", "/tasks", json!([]), 400, "body: is not a JSON object"),
        ("POST", "/tasks", json!({}), 400, "task"),
        ("POST", "/tasks", json!({"task": "x", "surprise": 1}), 400, "surprise"),
        ("POST", "/tasks/T-1/cancel", json!({"task_id": "T-2"}), 400, "is in the path already"),
    ] {
        let response = call(&server, method, path, &body);
        if method == "HEAD" {
            assert_eq!(response.status, status, "{response:?}");
            continue;
        }
        let problem = refused(&response, status);
        assert!(problem.to_string().contains(expected), "{method} {path}: {problem}");
    }
    let headers = |name: &str, value: &str| {
        let mut headers = server.default_headers();
        headers.retain(|(known, _)| known != name);
        if !value.is_empty() {
            headers.push((name.to_owned(), value.to_owned()));
        }
        headers
    };
    for (headers, status) in [
        (headers("Authorization", ""), 401),
        (headers("Host", "evil.example"), 403),
        (headers("Origin", "http://evil.example"), 403),
        (headers("Content-Type", "text/plain"), 415),
    ] {
        let response = server.request("POST", "/api/v1/tasks", &headers, r#"{"task":"x"}"#);
        assert_eq!(response.status, status, "{response:?}");
    }
    assert_eq!(get(&server, "/tasks")["data"]["tasks"], json!([]), "a refused request started a task");
}
