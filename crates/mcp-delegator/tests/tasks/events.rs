//! `events normalize`, `summarize` and `follow` through the CLI: every dialect, every format, and invalid input.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use delegator_testkit::generated::workspace;
use delegator_testkit::program::{World, read_text, wait_for_output};
use delegator_testkit::terminal::run_on_terminal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;

fn world() -> World {
    World::new(PROGRAM)
}

/// A transcript recorded from the real Codex.
fn recording(name: &str) -> PathBuf {
    workspace().join("crates/delegator-transcript/tests/transcripts").join(format!("{name}.jsonl"))
}

/// The example of the idle dialect.
const IDLE: &str = concat!(
    r#"{"type":"agent_message","content":"Working on it","role":"assistant"}"#,
    "\n",
    r#"{"type":"tool_call","name":"write_file","call_id":"c1","arguments":{"path":"a.txt"}}"#,
    "\n",
    r#"{"type":"tool_result","call_id":"c1","output":"ok"}"#,
    "\n",
    r#"{"type":"file_change","path":"a.txt","action":"write"}"#,
    "\n",
    r#"{"type":"idle"}"#,
    "\n",
    r#"{"type":"done"}"#,
    "\n",
);

#[test]
fn normalizing_codex_events_drops_second_ids_and_marks_what_is_not_documented() {
    let marks = ["unknown_item", "patch_in_progress", "declined"]
        .map(|reason| format!(r#","mcp_delegator_nonstandard":"{reason}""#));
    for (name, marked_lines) in [
        ("patch", 3),
        ("web", 0),
        ("mcp", 0),
        ("spawn_agent", 6),
        ("big_message_300k", 0),
        ("drop_noterm", 0),
        ("sigint_plan", 0),
    ] {
        let run = world().run(["events", "normalize", recording(name).to_str().unwrap()]);
        assert_eq!(run.exit, Some(0));
        let second_ids = [r#","id":"ws_0103""#, r#","id":"ws_0104""#];
        let expected = second_ids.iter().fold(read_text(&recording(name)), |text, id| text.replace(id, ""));
        let without_marks = marks.iter().fold(run.stdout.clone(), |text, mark| text.replace(mark, ""));
        assert_eq!(without_marks, expected, "{name}");
        assert_eq!(run.stdout.matches("mcp_delegator_nonstandard").count(), marked_lines, "{name}");
        assert_eq!(run.stderr, "", "{name}");
    }
}

#[test]
fn every_dialect_becomes_codex_events() {
    let run = world().run_with_input(["events", "normalize", "-"], IDLE.as_bytes());
    let types: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        types
            .iter()
            .any(|event| event["item"]["type"] == "mcp_tool_call" && event["item"]["server"] == "agent")
    );
    assert_eq!(types.last().unwrap()["type"], "turn.completed");
    let run = world().run(["events", "normalize", recording("versions/0.40.0.plain").to_str().unwrap()]);
    assert!(run.stdout.starts_with("{\"type\":\"turn.started\"}\n"), "{}", run.stdout);
    assert!(run.stderr.contains("3 of 7 lines could not be converted"), "{}", run.stderr);
}

#[test]
fn strict_counts_what_it_leaves_out() {
    for (name, reasons) in [("spawn_agent", "unknown item"), ("patch", "patch in progress")] {
        let run = world().run(["events", "normalize", "--strict", recording(name).to_str().unwrap()]);
        assert!(run.stderr.contains(&format!(" {reasons}.")), "{name}: {}", run.stderr);
        let lines = read_text(&recording(name)).lines().count();
        let left_out = lines - run.stdout.lines().count();
        let counted = format!("{left_out} of {lines} lines could not be converted: {left_out} {reasons}.");
        assert!(left_out > 0 && run.stderr.contains(&counted), "{name}: {}", run.stderr);
    }
}

#[test]
fn a_stream_of_the_idle_dialect_begins_with_one_thread_everywhere() {
    let world = world();
    let file = world.project().join("idle.jsonl");
    std::fs::write(&file, IDLE).unwrap();
    let path = file.to_str().unwrap();
    let first = |args: &[&str]| -> Value {
        let run = world.run([&["events"], args, &[path]].concat());
        serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap()
    };
    let event = first(&["normalize"]);
    let thread = event["thread_id"].as_str().unwrap();
    assert!(event["type"] == "thread.started" && thread.starts_with("derived-"), "{event}");
    assert_eq!(first(&["normalize", "--strict"]), event);
    assert_eq!(first(&["follow", "--format", "jsonl"]), event);
    assert_eq!(first(&["normalize", "--format", "json"])["data"]["events"][0], event);
    let summary = first(&["summarize", "--format", "json"]);
    assert_eq!(summary["data"]["thread_info"]["thread_id"], thread, "{summary}");
}

#[test]
fn strict_drops_fields_outside_the_contract() {
    let line = r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress","extra":1}}"#;
    let run = world().run_with_input(["events", "normalize", "--strict"], line.as_bytes());
    let event: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        event["item"],
        json!({"id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": "", "status": "in_progress"})
    );
}

#[test]
fn unknown_lines_are_counted_and_printed_only_on_request() {
    let input = "{\"type\":\"turn.started\"}\nplain words\n{\"no\":\"type\"}\n";
    let run = world().run_with_input(["events", "normalize"], input.as_bytes());
    assert_eq!(run.stdout, "{\"type\":\"turn.started\"}\n");
    assert!(
        run.stderr.contains("2 of 3 lines could not be converted: 1 not json, 1 unknown."),
        "{}",
        run.stderr
    );
    let run = world().run_with_input(["events", "normalize", "--keep-unknown", "--quiet"], input.as_bytes());
    assert_eq!(run.stdout, input);
    assert_eq!(run.stderr, "");
}

#[test]
fn an_envelope_counts_the_lines_it_contains_and_those_it_cannot() {
    let input = "not json\n{\"type\":\"turn.started\"}\n{\"type\":\"galaxy\"}\n";
    let arguments = ["events", "normalize", "--keep-unknown", "--format", "json"];
    let envelope = world().run_with_input(arguments, input.as_bytes()).json();
    assert_eq!(envelope["data"]["events"], json!([{"type": "turn.started"}, {"type": "galaxy"}]));
    assert_eq!(envelope["data"]["written_line_count"], 2);
    assert!(envelope["warnings"].to_string().contains("1 lines are not in `events`"), "{envelope}");
}

#[test]
fn normalize_can_write_an_envelope_or_a_file() {
    let world = world();
    let path = recording("plain");
    let run = world.run(["events", "normalize", path.to_str().unwrap(), "--format", "json"]);
    let data = &run.json()["data"];
    assert_eq!((&data["dialect"], &data["written_line_count"]), (&json!("thread"), &json!(5)));
    assert_eq!(data["events"].as_array().unwrap().len(), 5);
    let run = world.run(["events", "normalize", path.to_str().unwrap(), "--format", "jsonl"]);
    assert_eq!(run.stdout.lines().count(), 6);
    assert_eq!(serde_json::from_str::<Value>(run.stdout.lines().last().unwrap()).unwrap()["ok"], true);
    let run = world.run(["events", "normalize", path.to_str().unwrap(), "--output", "out.jsonl"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), ""));
    assert_eq!(read_text(&world.project().join("out.jsonl")), read_text(&path));
}

#[test]
fn a_summary_has_the_same_facts_in_every_format() {
    let path = recording("plan");
    let path = path.to_str().unwrap();
    let envelope = world().run(["events", "summarize", path]).json();
    let data = &envelope["data"];
    assert_eq!((&data["state"], &data["final_message"]), (&json!("completed"), &json!("Plan finished.")));
    assert_eq!(data["plan"].as_array().unwrap().len(), 3);
    assert_eq!(data["thread_info"]["token_usage"]["input_tokens"], 400);
    assert_eq!(data["progress"]["percent"], 100);
    let text = run_on_terminal(world().command(["events", "summarize", path])).stdout;
    let markdown = world().run(["events", "summarize", path, "--format", "markdown"]).stdout;
    let thread = "01a1dca0-4ce6-7be2-ab55-53cc28fb546d";
    assert!(markdown.contains(thread) && !text.contains(thread), "only programs need the thread: {text}");
    for fact in ["completed", "Plan finished.", "Look around", "400 input"] {
        assert!(text.contains(fact), "{fact} is missing in {text}");
        assert!(markdown.contains(fact), "{fact} is missing in {markdown}");
    }
}

#[test]
fn summarizing_a_failed_transcript_succeeds() {
    let run = world().run(["events", "summarize", recording("err429").to_str().unwrap()]);
    assert_eq!(run.exit, Some(0));
    let data = run.json()["data"].clone();
    assert_eq!(data["state"], "failed");
    assert!(!data["error_message"].as_str().unwrap().is_empty());
    assert!(!data["transient_errors"].as_array().unwrap().is_empty());
    let data = world().run(["events", "summarize", recording("sigint_cmd").to_str().unwrap()]).json()["data"]
        .clone();
    assert_eq!((&data["state"], data["open_items"].as_array().unwrap().len()), (&json!("interrupted"), 1));
}

#[test]
fn earlier_usage_of_a_thread_is_subtracted() {
    let path = recording("resume_2");
    let before = r#"{"input_tokens":100,"cached_input_tokens":0,"output_tokens":0}"#;
    let run = world().run(["events", "summarize", path.to_str().unwrap(), "--usage-before", before]);
    let info = run.json()["data"]["thread_info"].clone();
    let (task_tokens, total) =
        (&info["token_usage"]["input_tokens"], &info["thread_token_usage"]["input_tokens"]);
    assert_eq!(task_tokens.as_i64().unwrap() + 100, total.as_i64().unwrap());
    let run = world().run(["events", "summarize", "--usage-before", r#"{"tokens": 1}"#]);
    assert_eq!(run.exit, Some(2));
}

#[test]
fn any_file_content_is_accepted() {
    let deep = "[".repeat(100_000);
    let cases: [(&[u8], &str); 7] = [
        (b"", "The transcript is empty."),
        (b"\x00\xff\xfe\x80 binary \x1b[2J\n\xc3", "None of the 2 lines"),
        (deep.as_bytes(), "None of the 1 lines"),
        (b"{\"type\":\"turn.started\"}\n{\"type\":\"turn.comp", "1 lines are not JSON"),
        (b"{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":99999999999999999999,\"output_tokens\":1e999}}\n", ""),
        (b"{\"type\":\"turn.started\",\"type\":\"error\"}\n", ""),
        (b"{\"type\":\"turn.started\"}\n{\"type\":\"idle\"}\n", "1 lines have a different dialect"),
    ];
    for (input, remark) in cases {
        let run = world().run_with_input(["events", "summarize", "-"], input);
        assert_eq!(run.exit, Some(0), "{run:?}");
        let warnings = run.json()["warnings"].to_string();
        assert!(warnings.contains(remark), "{remark} is missing in {warnings}");
        let run = world().run_with_input(["events", "normalize", "-"], input);
        assert_eq!(run.exit, Some(0), "{run:?}");
    }
}

#[test]
fn an_unreadable_source_is_refused_with_its_code() {
    let world = world();
    for (source, exit, code) in [
        (".", 2, "INVALID_VALUE"),
        ("missing.jsonl", 5, "NOT_FOUND"),
        ("T-local-0000000000", 5, "TASK_NOT_FOUND"),
    ] {
        for verb in ["summarize", "follow"] {
            let run = world.run(["events", verb, source]);
            assert_eq!(run.exit, Some(exit), "{run:?}");
            assert_eq!(run.json()["error"]["code"], code);
        }
        let run = world.run(["events", "normalize", source]);
        assert_eq!((run.exit, run.stdout.as_str()), (Some(exit), ""), "{run:?}");
    }
}

#[test]
fn a_huge_line_uses_bounded_memory_and_keeps_the_next_line() {
    let world = world();
    let mut child = world
        .command(["events", "normalize"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(br#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":""#)
        .unwrap();
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..96 {
        stdin.write_all(&piece).unwrap();
    }
    stdin.write_all(b"\"}}\n{\"type\":\"turn.started\"}\n").unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 64 * 1024, "{peak}");
    drop(stdin);
    let run = wait_for_output(child);
    assert_eq!(run.exit, Some(0));
    assert!(run.stderr.contains("1 lines were too long"), "{}", run.stderr);
}

#[test]
fn normalize_stops_when_the_reader_closes_the_pipe() {
    let world = world();
    let many = read_text(&recording("shell_ok")).repeat(3000);
    world.write("project/many.jsonl", &many);
    let run = world.run_without_reader(["events", "normalize", "many.jsonl"]);
    assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_secret_in_a_transcript_is_redacted() {
    let world = world().variable("DEPLOY_TOKEN", "correct-horse-battery-staple");
    let line = r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"use correct-horse-battery-staple"}}"#;
    for verb in ["normalize", "summarize", "follow"] {
        let run = world.run_with_input(["events", verb, "-"], format!("{line}\n").as_bytes());
        assert!(
            !run.stdout.contains("correct-horse") && run.stdout.contains("[REDACTED:env]"),
            "{verb}: {run:?}"
        );
    }
}

fn start_follow(world: &World, args: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let args: Vec<&str> = ["events", "follow"].iter().chain(args).copied().collect();
    let mut child = world
        .command(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn next_line(lines: &mut impl BufRead) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn follow_prints_new_events_and_ends_with_the_turn() {
    let world = world();
    world.write("project/live.jsonl", "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n");
    let (child, mut lines) = start_follow(&world, &["live.jsonl"]);
    assert_eq!(next_line(&mut lines)["type"], "thread.started");
    let mut file = std::fs::OpenOptions::new().append(true).open(world.project().join("live.jsonl")).unwrap();
    file.write_all(b"{\"type\":\"turn.started\"}\n{\"type\":\"turn.").unwrap();
    assert_eq!(next_line(&mut lines)["type"], "turn.started");
    file.write_all(
        b"completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}\n",
    )
    .unwrap();
    assert_eq!(next_line(&mut lines)["type"], "turn.completed");
    let last = next_line(&mut lines);
    assert_eq!((&last["ok"], &last["data"]["state"]), (&json!(true), &json!("completed")));
    assert_eq!(wait_for_output(child).exit, Some(0));
}

#[test]
fn an_interrupt_ends_the_stream_with_one_last_line() {
    let world = world();
    world.write("project/live.jsonl", "{\"type\":\"turn.started\"}\n");
    let (child, mut lines) = start_follow(&world, &["live.jsonl"]);
    assert_eq!(next_line(&mut lines)["type"], "turn.started");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let last = next_line(&mut lines);
    assert_eq!(last["error"]["code"], "CANCELLED");
    let mut rest = String::new();
    assert_eq!(lines.read_line(&mut rest).unwrap(), 0, "{rest}");
    assert_eq!(wait_for_output(child).exit, Some(130));
}

#[test]
fn follow_notices_a_truncated_or_removed_file() {
    let world = world();
    world.write("project/live.jsonl", "{\"type\":\"turn.started\"}\n{\"type\":\"turn.started\"}\n");
    let (child, mut lines) = start_follow(&world, &["live.jsonl"]);
    next_line(&mut lines);
    next_line(&mut lines);
    world.write("project/live.jsonl", "{\"type\":\"turn.started\"}\n");
    assert_eq!(next_line(&mut lines)["type"], "turn.started");
    std::fs::remove_file(world.project().join("live.jsonl")).unwrap();
    let warnings = next_line(&mut lines)["warnings"].to_string();
    assert!(warnings.contains("truncated") && warnings.contains("removed"), "{warnings}");
    assert_eq!(wait_for_output(child).exit, Some(0));
}

#[test]
fn follow_stops_at_its_timeout() {
    let world = world();
    world.write("project/live.jsonl", "{\"type\":\"turn.started\"}\n");
    let run = world.run(["events", "follow", "live.jsonl", "--timeout-sec", "1", "--format", "json"]);
    assert_eq!(run.exit, Some(14));
    let data = run.json()["meta"]["failure_data"].clone();
    assert_eq!(
        (&data["state"], &data["progress"]["current_activity"]),
        (&json!("working"), &json!("Waiting for the model"))
    );
}

#[test]
fn follow_prints_text_on_a_terminal() {
    let world = world();
    let path = recording("shell_ok");
    let run = run_on_terminal(world.command(["events", "follow", path.to_str().unwrap()]));
    assert_eq!(run.exit, Some(0));
    assert!(run.stdout.contains("\nRunning echo hello; echo warn >&2: exit 0\n"), "{}", run.stdout);
}

#[test]
fn follow_continues_with_a_replaced_file() {
    let world = world();
    world.write("project/live.jsonl", "{\"type\":\"turn.started\"}\n");
    let (child, mut lines) = start_follow(&world, &["live.jsonl"]);
    next_line(&mut lines);
    world.write("project/new.jsonl", "{\"type\":\"turn.completed\",\"usage\":{}}\n");
    std::fs::rename(world.project().join("new.jsonl"), world.project().join("live.jsonl")).unwrap();
    assert_eq!(next_line(&mut lines)["type"], "turn.completed");
    assert_eq!(next_line(&mut lines)["data"]["state"], "completed");
    assert_eq!(wait_for_output(child).exit, Some(0));
}

#[test]
fn follow_accepts_a_last_line_without_a_newline() {
    let world = world();
    world.write(
        "project/live.jsonl",
        "{\"type\":\"turn.started\"}\n{\"type\":\"turn.completed\",\"usage\":{}}",
    );
    let run = world.run(["events", "follow", "live.jsonl"]);
    assert_eq!(run.exit, Some(0));
    assert!(run.stdout.contains("\"state\":\"completed\""), "{}", run.stdout);
}

#[test]
fn fields_accepts_a_field_that_is_null() {
    let path = recording("plain");
    let run =
        world().run(["events", "summarize", path.to_str().unwrap(), "--fields", "state,structured_output"]);
    assert_eq!(run.json()["data"], json!({"state": "completed", "structured_output": null}));
}
