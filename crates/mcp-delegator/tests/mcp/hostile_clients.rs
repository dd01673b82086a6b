//! Stdio clients that send invalid or huge messages, or do not read responses.

use std::process::Stdio;

use delegator_testkit::program::wait_for_output;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::client::{Client, V2025_06, V2026_07, quick_stage, result, waiting_stage};

/// JSON-RPC error codes: not JSON, and JSON that is not a message.
const PARSE_ERROR: Option<i64> = Some(-32700);
const INVALID_REQUEST: Option<i64> = Some(-32600);

/// Invalid lines with their newline, and the error code of the response, if there is one.
fn invalid_lines() -> Vec<(&'static str, Vec<u8>, Option<i64>)> {
    let deep = |depth: usize| {
        let open = "[".repeat(depth) + &"]".repeat(depth);
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7001,\"method\":\"tools/call\",\"params\":{{\"name\":\"_codex_local_status\",\"arguments\":{{\"x\":{open}}}}}}}\n"
        )
    };
    let ping = |id: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").into_bytes();
    vec![
        ("64 MiB without a newline", [vec![b'x'; 64 << 20], b"\n".to_vec()].concat(), PARSE_ERROR),
        ("a long string in a request", [b"{\"jsonrpc\":\"2.0\",\"id\":7002,\"method\":\"".to_vec(), vec![b'y'; 17 << 20], b"\"}\n".to_vec()].concat(), PARSE_ERROR),
        ("no JSON", b"hello\n".to_vec(), PARSE_ERROR),
        ("half a message", b"{\"jsonrpc\":\"2.0\",\"id\":\n".to_vec(), PARSE_ERROR),
        ("an empty line", b"\n\r\n".to_vec(), None),
        ("bad UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":7003,\"method\":\"ping\xff\xfe\"}\n".to_vec(), PARSE_ERROR),
        ("only bad UTF-8", b"\xc3\x28\x00\xff\n".to_vec(), PARSE_ERROR),
        ("a batch", b"[{\"jsonrpc\":\"2.0\",\"id\":7004,\"method\":\"ping\"}]\n".to_vec(), INVALID_REQUEST),
        ("an empty batch", b"[]\n".to_vec(), INVALID_REQUEST),
        ("an id that is null", ping("null"), INVALID_REQUEST),
        ("an id that is an object", ping("{\"a\":1}"), INVALID_REQUEST),
        ("an id that is a fraction", ping("1.5"), INVALID_REQUEST),
        ("another version", b"{\"jsonrpc\":\"1.0\",\"id\":7005,\"method\":\"ping\"}\n".to_vec(), INVALID_REQUEST),
        ("no method", b"{\"jsonrpc\":\"2.0\",\"id\":7006}\n".to_vec(), INVALID_REQUEST),
        ("a response without a request", b"{\"jsonrpc\":\"2.0\",\"id\":7007,\"result\":{}}\n".to_vec(), None),
        ("an unknown notification", b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nonsense\"}\n".to_vec(), None),
        ("a cancellation of nothing", b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":99999}}\n".to_vec(), None),
        ("JSON 100 deep", deep(100).into_bytes(), None),
        ("JSON 100,000 deep", deep(100_000).into_bytes(), INVALID_REQUEST),
    ]
}

#[test]
fn the_next_request_is_answered_after_any_invalid_line() {
    let stage = quick_stage();
    for era in [V2025_06, V2026_07] {
        let mut client = Client::connect(&stage, era);
        for (what, line, code) in invalid_lines() {
            client.send_bytes(&line);
            if let Some(code) = code {
                client.wait_for(what, |message| message["error"]["code"] == code);
            }
            let status = client.envelope("_codex_local_status", json!({}));
            assert_eq!(status["status"], "ok", "after {what}: {status}");
            let is_more =
                |message: &Value| [PARSE_ERROR, INVALID_REQUEST].contains(&message["error"]["code"].as_i64());
            assert!(!client.pending().iter().any(is_more), "after {what}: {:?}", client.pending());
        }
        assert_eq!(client.close().0, Some(0));
    }
}

#[test]
fn initialize_is_answered_after_any_invalid_line() {
    let stage = quick_stage();
    for (what, line, _) in invalid_lines() {
        for era in [V2025_06, V2026_07] {
            let mut client = Client::start(&stage, &[]);
            client.send_bytes(&line);
            let response = client.initialize(era);
            assert!(response["result"]["capabilities"].is_object(), "after {what}: {response}");
        }
    }
}

#[test]
fn a_line_of_a_gigabyte_is_not_buffered() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let piece = vec![b'x'; 1 << 20];
    client.send_bytes(br#"{"jsonrpc":"2.0","id":7008,"method":""#);
    for _ in 0..1 << 10 {
        client.send_bytes(&piece);
    }
    client.send_bytes(b"\"}\n");
    client.wait_for("the refusal", |message| message["error"]["code"] == -32700);
    assert_eq!(result(client.request("ping", json!({}))), json!({}));
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kilobytes < 96 << 10, "{kilobytes} KiB at the peak");
}

#[test]
fn a_client_that_does_not_read_blocks_only_itself() {
    let stage = waiting_stage();
    let mut command = stage.world.command(["serve"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // Far more responses than a pipe holds, and none of them is read.
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
        }});
        let mut written = writeln!(input, "{initialize}");
        for id in 1..200 {
            written = written.and_then(|()| {
                writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}))
            });
        }
        written.unwrap();
        let call = json!({"jsonrpc": "2.0", "id": 999, "method": "tools/call", "params": {
            "name": "_codex_local_exec", "arguments": {"task": "x"},
        }});
        writeln!(input, "{call}").unwrap();
        input
    });
    wait_until("the task runs", || stage.run_json(&["local", "status"])["data"]["summary"]["running"] == 1);
    let input = writer.join().unwrap();
    let mut other = Client::connect(&stage, V2026_07);
    let status = other.envelope("_codex_local_status", json!({}));
    assert_eq!(status["data"]["summary"]["running"], 1, "{status}");
    // When the client reads again, all responses arrive.
    drop(input);
    let run = wait_for_output(child);
    let replies: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(run.exit == Some(0) && !replies.is_empty());
    crate::client::release_agents(&stage);
    let id = status["data"]["tasks"][0]["task_id"].as_str().unwrap();
    assert_eq!(stage.wait(id)["data"]["state"], "completed");
}

#[test]
fn a_server_exits_when_its_client_is_gone() {
    use std::io::Write;
    let stage = quick_stage();
    let mut command = stage.world.command(["serve"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    for id in 0..10 {
        // The server may have exited already.
        let _ = writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    }
    drop(input);
    assert!(child.wait().unwrap().code().is_some(), "the server was killed by a signal");
}

/// A value of `/proc/PID/status` in KiB.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

/// Waits until the process has used no CPU time in 100 consecutive samples.
fn wait_until_idle(pid: u32) {
    let (mut last, mut idle_samples) = (String::new(), 0);
    wait_until("the server is idle", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let used: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let used = used[11..13].join(" ");
        idle_samples = if used == last { idle_samples + 1 } else { 0 };
        last = used;
        idle_samples > 100
    });
}

const UNREAD_REQUESTS: u64 = 1_500;

/// The client sends requests with large responses and reads none of them for a while.
#[test]
fn f27_responses_a_client_does_not_read_cost_bounded_memory_and_none_is_lost() {
    use std::io::{BufRead, BufReader, Write};
    let stage =
        Stage::with_script(crate::PROGRAM, successful_turn(&[json!({"message": "long ".repeat(8_000)})]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let mut command = stage.world.command(["serve"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }});
    writeln!(input, "{initialize}").unwrap();
    output.next().unwrap().unwrap();
    let call = |number: u64| {
        json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "_codex_local_results", "arguments": {"task_id": id, "include_output": true, "format": "json"},
        }})
    };
    writeln!(input, "{}", call(1)).unwrap();
    let length = output.next().unwrap().unwrap().len() as u64;
    assert!(length * UNREAD_REQUESTS > 64 << 20, "{length} bytes are not large");
    let before = memory(child.id(), "VmRSS");
    let requests: Vec<String> = (2..2 + UNREAD_REQUESTS).map(|number| call(number).to_string()).collect();
    let sending = std::thread::spawn(move || {
        requests.iter().for_each(|request| writeln!(input, "{request}").unwrap());
        input
    });
    wait_until_idle(child.id());
    let mut ids: Vec<u64> = Vec::new();
    for _ in 0..UNREAD_REQUESTS {
        let response: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        assert!(response["result"]["structuredContent"]["status"] == "ok", "{response}");
        ids.push(response["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (2..2 + UNREAD_REQUESTS).collect::<Vec<_>>());
    let growth = memory(child.id(), "VmHWM").saturating_sub(before);
    assert!(growth < 32 << 10, "the server grew by {growth} KiB");
    drop(sending.join().unwrap());
    assert!(child.wait().unwrap().success());
}

/// Waiting calls do not prevent other requests from being dispatched.
#[test]
fn many_waits_do_not_block_other_requests() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let id = client.exec();
    let waits: Vec<u64> = (0..100)
        .map(|_| {
            client
                .start_call("_codex_local_wait", json!({"task_id": id, "timeout_sec": 600, "format": "json"}))
        })
        .collect();
    let status = client.envelope("_codex_local_status", json!({}));
    assert_eq!(status["data"]["summary"]["running"], 1, "{status}");
    crate::client::release_agents(&stage);
    for wait in waits {
        let ended = result(client.response(wait));
        assert_eq!(ended["structuredContent"]["data"]["state"], "completed", "{ended}");
    }
}
