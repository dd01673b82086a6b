//! Paths in tool calls come from a model: they must be regular files beneath `allowed_roots`, and never the server's own
//! standard input.

use delegator_testkit::program::output_of;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::client::{Client, V2025_06, V2025_11, quick_stage};

const NORMALIZE: &str = "_codex_events_normalize";
const SUMMARIZE: &str = "_codex_events_summarize";
const IMPORT: &str = "_codex_import";

const TRANSCRIPT: &str = concat!(
    r#"{"type":"thread.started","thread_id":"0199"}"#,
    "\n",
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"words of a file"}}"#,
    "\n"
);

/// A stage whose configuration allows only the project.
fn stage_with_allowed_root() -> Stage {
    let stage = quick_stage();
    let project = stage.world.project().display().to_string();
    stage.variable("MCP_DELEGATOR_ALLOWED_ROOTS", &project)
}

/// Code and text of the problem of one refused input.
fn refused_problem(response: &Value, field: &str) -> (String, String) {
    assert_eq!(response["status"], "error", "{response}");
    let problems =
        response["error"]["details"]["problems"].as_array().unwrap_or_else(|| panic!("{response}"));
    let problem = problems.iter().find(|problem| problem["field"] == field);
    let problem = problem.unwrap_or_else(|| panic!("nothing about {field}: {response}"));
    let word = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    (word("code"), word("problem"))
}

#[test]
fn no_tool_reads_the_servers_standard_input() {
    let stage = quick_stage();
    let link = stage.world.project().join("link");
    std::os::unix::fs::symlink("/dev/stdin", &link).unwrap();
    for args in [&["--toolsets", "extra"][..], &["--toolsets", "extra", "--read-only"]] {
        let mut client = Client::connect_with(&stage, V2025_06, args, json!({}));
        for tool in [NORMALIZE, SUMMARIZE] {
            for source in [
                None,
                Some("-"),
                Some("/dev/stdin"),
                Some("/proc/self/fd/0"),
                Some("/dev/fd/0"),
                Some("/proc/thread-self/fd/0"),
                link.to_str(),
            ] {
                let mut input = json!({});
                if let Some(source) = source {
                    input["source"] = source.into();
                }
                let response = client.envelope(tool, input);
                let (code, _) = refused_problem(&response, "source");
                let expected = if source.is_none() { "MISSING_ARGUMENT" } else { "INVALID_VALUE" };
                assert_eq!(code, expected, "{source:?}: {response}");
                assert_eq!(response["error"]["code"], "VALIDATION", "{source:?}: {response}");
            }
        }
        // The connection still works.
        let tools = client.request("tools/list", json!({}));
        assert!(!tools.to_string().contains("standard input"), "{tools}");
        let tools = tools["result"]["tools"].as_array().unwrap();
        for name in [NORMALIZE, SUMMARIZE] {
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            assert_eq!(tool["inputSchema"]["required"], json!(["source"]), "{tool}");
        }
    }
}

#[test]
fn files_of_the_kernel_that_may_block_are_read_only_as_far_as_their_size() {
    let stage = quick_stage();
    let mut client = Client::connect_with(&stage, V2025_06, &["--toolsets", "extra"], json!({}));
    // Like /proc/kmsg and trace_pipe, which block for ever, a regular file of size 0 with content.
    let input = json!({"source": "/proc/self/environ", "keep_unknown": true});
    let response = client.envelope(NORMALIZE, input);
    assert_eq!(response["status"], "ok", "{response}");
    assert!(response.to_string().contains("The transcript is empty."), "{response}");
    let response = client.envelope(IMPORT, json!({"rollout": "/proc/self/environ"}));
    assert_eq!(response["status"], "error", "{response}");
}

#[test]
fn a_standard_input_that_is_a_file_is_not_a_source() {
    let stage = quick_stage();
    let script = stage.root().join("messages");
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": NORMALIZE, "arguments": {"source": "/dev/stdin", "keep_unknown": true, "format": "json"}}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    std::fs::write(&script, format!("{initialize}\n{ready}\n{call}\n")).unwrap();
    let mut command = stage.world.command(["serve", "--toolsets", "extra"]);
    let stdout = output_of(command.stdin(std::fs::File::open(&script).unwrap())).stdout;
    let response =
        stdout.lines().find(|line| line.contains(r#""id":2"#)).unwrap_or_else(|| panic!("{stdout}"));
    assert!(response.contains("standard input") && !response.contains("clientInfo"), "{response}");
}

#[test]
fn a_source_is_a_task_or_a_regular_file_beneath_the_allowed_roots() {
    let stage = stage_with_allowed_root();
    let (inside, outside) = (stage.world.project().join("in.jsonl"), stage.root().join("out.jsonl"));
    std::fs::write(&inside, TRANSCRIPT).unwrap();
    std::fs::write(&outside, TRANSCRIPT).unwrap();
    let link = stage.world.project().join("link.jsonl");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let fifo = stage.world.project().join("fifo");
    let mkfifo = stage.world.run_as(std::path::Path::new("mkfifo"), [&fifo]);
    assert_eq!(mkfifo.exit, Some(0), "{mkfifo:?}");
    let task = stage.exec(&[]);
    stage.wait(&task);
    let mut client =
        Client::connect_with(&stage, V2025_11, &["--toolsets", "extra", "--read-only"], json!({}));
    for tool in [NORMALIZE, SUMMARIZE] {
        for source in [inside.to_str().unwrap(), &task] {
            let response = client.envelope(tool, json!({"source": source}));
            assert_eq!(response["status"], "ok", "{response}");
        }
        for (source, code) in [
            (outside.to_str().unwrap(), "POLICY_BLOCKED"),
            (link.to_str().unwrap(), "POLICY_BLOCKED"),
            ("/etc/passwd", "POLICY_BLOCKED"),
            (fifo.to_str().unwrap(), "INVALID_VALUE"),
            ("/dev/zero", "INVALID_VALUE"),
            ("in.jsonl", "INVALID_VALUE"),
        ] {
            let response = client.envelope(tool, json!({"source": source, "options": {}}));
            assert_eq!(refused_problem(&response, "source").0, code, "{source}: {response}");
            assert!(!response.to_string().contains("words of a file"), "{response}");
        }
    }
}

#[test]
fn the_state_directory_is_not_a_source() {
    let stage = quick_stage();
    let task = stage.exec(&[]);
    stage.wait(&task);
    let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "extra"], json!({}));
    let events = stage.task_dir(&task).join("events.jsonl");
    for file in [events.clone(), stage.world.home().join("state/registry.db")] {
        let response = client.envelope(NORMALIZE, json!({"source": file, "keep_unknown": true}));
        assert_eq!(refused_problem(&response, "source").0, "POLICY_BLOCKED", "{response}");
        let response = client.envelope(IMPORT, json!({"rollout": file}));
        assert_eq!(refused_problem(&response, "rollout").0, "POLICY_BLOCKED", "{response}");
    }
}

#[test]
fn an_imported_session_must_be_beneath_the_allowed_roots() {
    let stage = stage_with_allowed_root();
    let outside = stage.root().join("out.jsonl");
    std::fs::write(&outside, TRANSCRIPT).unwrap();
    let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "extra"], json!({}));
    for (rollout, code) in [
        (outside.to_str().unwrap(), "POLICY_BLOCKED"),
        ("/dev/stdin", "INVALID_VALUE"),
        ("-", "INVALID_VALUE"),
    ] {
        let response = client.envelope(IMPORT, json!({"rollout": rollout}));
        assert_eq!(refused_problem(&response, "rollout").0, code, "{rollout}: {response}");
    }
}

#[test]
fn only_sessions_beneath_the_allowed_roots_are_listed() {
    let name = "rollout-2026-11-15T02-21-37-01a1dd02-99a2-74b2-b01c-f2039fb32a28.jsonl";
    let meta = json!({"id": "01a1dd02-99a2-74b2-b01c-f2039fb32a28", "cwd": "/"});
    let line = json!({"timestamp": "2026-11-15T02:21:37Z", "type": "session_meta", "payload": meta});
    for (root, count) in [("home/.codex", 0), ("project", 1)] {
        let stage = stage_with_allowed_root();
        stage.world.write(&format!("{root}/sessions/{name}"), &format!("{line}\n"));
        let codex_home = stage.root().join(root).display().to_string();
        let stage = stage.variable("CODEX_HOME", &codex_home);
        let mut client = Client::connect_with(&stage, V2025_11, &["--toolsets", "extra"], json!({}));
        let response = client.envelope(IMPORT, json!({}));
        assert_eq!(response["data"]["sessions"].as_array().map(Vec::len), Some(count), "{response}");
    }
}

#[test]
fn images_must_be_beneath_the_allowed_roots() {
    let stage = stage_with_allowed_root();
    let (inside, outside) = (stage.world.project().join("in.png"), stage.root().join("out.png"));
    std::fs::write(&inside, "png").unwrap();
    std::fs::write(&outside, "png").unwrap();
    let link = stage.world.project().join("link.png");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let mut client = Client::connect(&stage, V2025_11);
    for image in [&outside, &link] {
        let response = client.envelope("_codex_local_exec", json!({"task": "look", "images": [image]}));
        assert_eq!(refused_problem(&response, "images.0").0, "POLICY_BLOCKED", "{response}");
        let response = stage.run_json(&["local", "exec", "look", "--images", image.to_str().unwrap()]);
        assert!(response.to_string().contains("POLICY_BLOCKED"), "{response}");
    }
    let response = client.envelope("_codex_local_exec", json!({"task": "look", "images": [inside]}));
    assert_eq!(response["status"], "ok", "{response}");
}

#[test]
fn names_that_read_as_paths_or_options_are_refused() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_11);
    for (input, values) in [
        ("profile", &["../../x", "a/b", "-p", "..", ".hidden", "a..b", "a\nb", ""][..]),
        ("reasoning_effort", &["../../x", "--high", "a b", "a\u{0}b"]),
        ("model", &["../../x", "/etc/passwd", "-m", "a/../b", "./a", "a\u{1b}b"]),
        ("thread_id", &["../../x", "-t", "a/b"]),
    ] {
        for value in values {
            let tool = if input == "thread_id" { "_codex_local_resume" } else { "_codex_local_exec" };
            let response = client.envelope(tool, json!({"task": "x", input: value}));
            let expected = if input == "thread_id" { "INVALID_ID" } else { "INVALID_VALUE" };
            assert_eq!(refused_problem(&response, input).0, expected, "{input} {value:?}: {response}");
        }
    }
    for key in ["", "-x", "a=b", "a\nb", "a\u{1b}[0m"] {
        let response = client.envelope("_codex_local_exec", json!({"task": "x", "labels": {key: "v"}}));
        assert!(response.to_string().contains("labels."), "{key:?}: {response}");
        assert_eq!(response["status"], "error", "{response}");
    }
    for (input, value) in [
        ("profile", "fast-2.mini"),
        ("reasoning_effort", "xhigh"),
        ("model", "openrouter/vendor/gpt-5.5:free"),
    ] {
        let response = client.envelope("_codex_local_exec", json!({"task": "x", input: value}));
        assert_eq!(response["status"], "ok", "{input} {value}: {response}");
    }
}
