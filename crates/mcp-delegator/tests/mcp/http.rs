//! The HTTP transport: host, origin and token checks, sessions, and requests without a session.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::client::{STATELESS_VERSION, quick_stage};
use crate::http_client::{HttpServer, initialize_message};

#[test]
fn only_requests_with_our_host_and_token_reach_a_handler() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let with = |changes: &[(&str, Option<&str>)]| {
        let mut headers = server.default_headers();
        for (name, value) in changes {
            headers.retain(|(known, _)| known != name);
            headers.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
        }
        headers
    };
    let token = server.token.clone();
    let swapped: String = token.chars().rev().collect();
    let (our_target, foreign_target) =
        (format!("http://127.0.0.1:{}/mcp", server.port), "http://evil.com/mcp");
    let twice = |token: &str| {
        let mut headers = server.default_headers();
        headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        headers
    };
    let in_url = format!("/mcp?token={token}&access_token={token}");
    let cases = [
        ("a valid request", "/mcp", with(&[]), 200),
        ("another host", "/mcp", with(&[("Host", Some("evil.com"))]), 403),
        ("a name that resolves to loopback", "/mcp", with(&[("Host", Some("127.0.0.1.nip.io"))]), 403),
        ("a foreign origin", "/mcp", with(&[("Origin", Some("https://evil.com"))]), 403),
        ("the origin of a file", "/mcp", with(&[("Origin", Some("null"))]), 403),
        ("our host in the request target", our_target.as_str(), with(&[]), 200),
        ("another host in the request target", foreign_target, with(&[]), 403),
        ("two tokens", "/mcp", twice(&swapped), 401),
        ("the same token twice", "/mcp", twice(&token), 401),
        ("a content type in other case", "/mcp", with(&[("Content-Type", Some("Application/Json"))]), 200),
        ("another content type", "/mcp", with(&[("Content-Type", Some("application/json-rpc"))]), 415),
        ("any accepted type", "/mcp", with(&[("Accept", Some("*/*"))]), 200),
        ("no event stream accepted", "/mcp", with(&[("Accept", Some("application/json"))]), 406),
        ("no token", "/mcp", with(&[("Authorization", None)]), 401),
        ("a wrong token", "/mcp", with(&[("Authorization", Some(&format!("Bearer {swapped}")))]), 401),
        ("half a token", "/mcp", with(&[("Authorization", Some(&format!("Bearer {}", &token[..10])))]), 401),
        ("another scheme", "/mcp", with(&[("Authorization", Some(&format!("Basic {token}")))]), 401),
        ("the token in the URL", in_url.as_str(), with(&[("Authorization", None)]), 401),
        ("a token and another host", "/healthz", with(&[("Host", Some("evil.com"))]), 403),
        ("another path", "/other", with(&[]), 404),
        ("an action on a page", "/", with(&[]), 405),
        ("health without a token", "/healthz", with(&[("Authorization", None)]), 404),
    ];
    for (what, path, headers, status) in cases {
        let reply = server.request("POST", path, &headers, &initialize_message());
        assert_eq!(reply.status, status, "{what}: {reply:?}");
        assert!(reply.header("Access-Control-Allow-Origin").is_none(), "{what}: {reply:?}");
        let reached_handler = reply.body.contains("serverInfo");
        assert_eq!(reached_handler, status == 200, "{what}: {reply:?}");
        assert!(!reply.body.contains(&token), "{what}: {reply:?}");
    }
    let without_token = with(&[("Authorization", None)]);
    let preflight = server.request("OPTIONS", "/mcp", &without_token, "");
    assert_eq!(preflight.status, 401, "a preflight request must be refused: {preflight:?}");
    let healthy = server.request("GET", "/healthz", &without_token, "");
    assert_eq!((healthy.status, healthy.body.as_str()), (200, "ok\n"));
    let head = server.request("HEAD", "/healthz", &without_token, "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn another_loopback_address_is_accepted_as_host() {
    let stage = quick_stage();
    let mut command = stage.world.command(["serve", "--http", "127.0.0.5:0"]);
    let server = HttpServer::start_with(command.stderr(Stdio::piped()), &stage);
    let mut headers = server.default_headers();
    headers[0].1 = format!("127.0.0.5:{}", server.port);
    let reply = server.request("POST", "/mcp", &headers, &initialize_message());
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[test]
fn the_token_is_created_once_with_mode_0600() {
    let stage = quick_stage();
    let first = HttpServer::start(&stage).token.clone();
    let path = stage.world.home().join("state/http-token");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(first.len() >= 32, "{first}");
    let server = HttpServer::start(&stage);
    assert_eq!(server.token, first);
    drop(server);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = stage.world.run(["serve", "--http", "127.0.0.1:0"]);
    assert!(run.exit != Some(0) && run.stderr.contains("http-token"), "{run:?}");
}

#[test]
fn a_dangling_token_file_is_a_configuration_error() {
    let stage = quick_stage();
    let link = stage.world.home().join("link");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    std::fs::create_dir_all(stage.world.home().join("state")).unwrap();
    std::os::unix::fs::symlink("/nowhere", stage.world.home().join("state/http-token")).unwrap();
    let named = ["--token-file", link.to_str().unwrap()];
    for more in [named.as_slice(), &[]] {
        let run = stage.world.run([&["serve", "--http", "127.0.0.1:0"], more].concat());
        assert_eq!((run.exit, run.stdout.as_str()), (Some(4), ""), "{run:?}");
        let envelope: Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
        assert_eq!(envelope["error"]["code"], "CONFIG_INVALID", "{envelope}");
    }
}

#[test]
fn a_token_file_without_http_is_refused() {
    let stage = quick_stage();
    let run = stage.world.run(["serve", "--token-file", "token"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    let envelope: Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    let problem = &envelope["meta"]["error_context"]["problems"][0];
    assert_eq!(problem["field"], "token_file", "{envelope}");
    assert!(problem["problem"].as_str().unwrap().contains("requires http"), "{envelope}");
}

/// With `--log-format json`, every line on stderr is a JSON log entry. The path of the token is printed also with
/// `--quiet`.
#[test]
fn startup_messages_use_the_log_format() {
    let stage = quick_stage();
    let args = ["serve", "--http", "127.0.0.1:0", "--log-format", "json", "--quiet"];
    let mut command = stage.world.command(args);
    command.env("MCP_DELEGATOR_LOG", "debug");
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut keys: Vec<Vec<String>> = Vec::new();
    let mut messages = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
        let entry: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        keys.push(entry.as_object().unwrap().keys().cloned().collect());
        messages.push_str(entry["fields"]["message"].as_str().unwrap());
        if messages.contains("Serving on http://127.0.0.1:") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(messages.contains("The bearer token is in") && messages.contains("/mcp"), "{messages}");
    assert!(messages.contains("configuration loaded"), "the debug log line is missing: {messages}");
    assert!(keys.iter().all(|entry_keys| *entry_keys == keys[0]), "{keys:?}");
}

#[test]
fn a_non_loopback_address_needs_a_token_file() {
    let stage = quick_stage();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let run = stage.world.run(["serve", "--http", address]);
        assert_eq!(run.stdout, "", "{run:?}");
        assert!(run.exit != Some(0) && run.stderr.contains("--token-file"), "{run:?}");
    }
    assert!(
        !stage.world.home().join("state/http-token").exists(),
        "a token was created although no server started"
    );
    let run = stage.world.run(["serve", "--http", "nonsense"]);
    assert_eq!(run.exit, Some(2), "{run:?}");
    let file = stage.world.home().join("state/http-token").display().to_string();
    let args = ["serve", "--http", "0.0.0.0:0", "--token-file", &file];
    let server = HttpServer::start_with(stage.world.command(args).stderr(Stdio::piped()), &stage);
    assert_eq!(server.call("_codex_local_status", json!({}))["status"], "ok");
    // Any IP address is accepted as host; a DNS name is not.
    for (host, status) in
        [("192.0.2.7:7777", 200), ("[2001:db8::7]:7777", 200), ("192.0.2.7.nip.io:7777", 403)]
    {
        let mut headers = server.default_headers();
        headers[0].1 = host.to_owned();
        let reply = server.request("POST", "/mcp", &headers, &initialize_message());
        assert_eq!(reply.status, status, "{host}: {reply:?}");
    }
}

#[test]
fn the_workflow_works_without_a_session() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let discovered = server.request_stateless("server/discover", json!({}));
    assert!(
        discovered["result"]["supportedVersions"].to_string().contains(STATELESS_VERSION),
        "{discovered}"
    );
    let tools = server.request_stateless("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(15), "{tools}");
    let accepted = server.call("_codex_local_exec", json!({"task": "mend it"}));
    let id = accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}"));
    let waited = server.call("_codex_local_wait", json!({"task_id": id}));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    let results = server.call("_codex_local_results", json!({"task_id": id}));
    assert_eq!(results["data"]["final_message"], "All done.", "{results}");
}

#[test]
fn the_workflow_works_in_a_session() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let session = server.session();
    let accepted = session.call(2, "_codex_local_exec", json!({"task": "mend it"}));
    let waited = session.call(3, "_codex_local_wait", json!({"task_id": accepted["data"]["task_id"]}));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    assert_eq!(server.request("DELETE", "/mcp", &session.headers, "").status / 100, 2);
    let late = server.request("POST", "/mcp", &session.headers, &initialize_message());
    assert_eq!(late.status, 404, "{late:?}");
    assert_eq!(server.request("DELETE", "/mcp", &session.headers, "").status, 404);
}

#[test]
fn a_request_of_the_older_protocol_needs_a_session() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    let session = server.session();
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2025-11-25",
        "io.modelcontextprotocol/clientInfo": {"name": "a-test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let post = |headers: &[(String, String)]| server.request("POST", "/mcp", headers, &body.to_string());
    let in_session = post(&session.headers);
    assert!(in_session.rpc_response()["result"]["tools"].is_array(), "{in_session:?}");
    let mut headers = session.headers.clone();
    let id = headers.iter().position(|(name, _)| name == "Mcp-Session-Id").unwrap();
    headers[id].1 = "unknown".to_owned();
    assert_eq!(post(&headers).status, 404);
    headers.remove(id);
    assert_eq!(post(&headers).status, 400);
}

#[test]
fn an_invalid_body_gets_a_json_rpc_error() {
    let stage = quick_stage();
    let server = HttpServer::start(&stage);
    for (body, code) in [
        ("hello", -32700),
        ("", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
    ] {
        let reply = server.request("POST", "/mcp", &server.default_headers(), body);
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
        let error: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(error["error"]["code"], code, "{body}: {reply:?}");
    }
}
