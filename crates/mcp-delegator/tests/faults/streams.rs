//! Streams: endless output, a million events, invalid bytes, missing terminal events, unread stdin.

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::scripted_stage;

/// Peak memory of a live process in KiB, without shared file pages.
fn peak_memory(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let size = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    // Pages of the program file are shared, and a debug build has many of them.
    Some(size("VmHWM")? - size("RssFile")?)
}

fn results(stage: &Stage, id: &str) -> Value {
    stage.run_json(&["local", "results", id, "--include-events", "--include-output"])["data"].clone()
}

#[test]
fn f21_endless_output_uses_bounded_disk_and_memory() {
    let limit = 1 << 20;
    for stream in ["stdout", "stderr"] {
        let stage = scripted_stage(successful_turn(&[
            json!({"flood": {"stream": stream, "bytes": 8_000_000}}),
            json!({"touch_file": "ready"}),
            json!({"wait_for_file": "go"}),
        ]))
        .variable("MCP_DELEGATOR_MAX_STREAM_BYTES", &limit.to_string());
        let id = stage.exec(&[]);
        stage.wait_for_project_file("ready");
        let memory = peak_memory(stage.supervisor_pid(&id)).unwrap();
        stage.world.write("project/go", "");
        let data = stage.wait(&id)["data"].clone();
        assert_eq!(data["state"], "completed", "{stream}: {data}");
        let output = results(&stage, &id)["output"].clone();
        assert_eq!(output["truncated"], true, "{stream}");
        assert!(output["original_size"].as_u64().unwrap() >= 8_000_000, "{stream}");
        for file in ["events.jsonl", "stderr.log"] {
            let size = std::fs::metadata(stage.task_dir(&id).join(file)).unwrap().len();
            assert!(size <= limit, "{stream}: {file} has {size}");
        }
        assert!(memory <= 16 << 10, "{stream}: {memory} KiB");
    }
}

#[test]
fn f21_endless_output_does_not_delay_other_tasks() {
    let stage =
        scripted_stage(json!([{"thread_started": {}}, "turn_started", {"flood": {"stream": "stderr"}}]))
            .variable("MCP_DELEGATOR_MAX_STREAM_BYTES", "1048576")
            .variable("MCP_DELEGATOR_MAX_CONCURRENT", "2");
    let flooding = stage.exec(&[]);
    stage.set_script(successful_turn(&[]));
    assert_eq!(stage.world.run(["local", "run", "beside it"]).exit, Some(0));
    let summary = stage.run_json(&["local", "status"])["data"]["summary"].clone();
    assert_eq!(summary["running"], 1, "{summary}");
    assert_eq!(stage.run_json(&["local", "cancel", &flooding])["data"]["survivors"], json!([]));
}

#[test]
fn f22_a_million_events_are_counted_and_stored() {
    let count: u64 = 1_000_000;
    let stage = scripted_stage(successful_turn(&[
        json!({"events": {"count": count}}),
        json!({"touch_file": "ready"}),
        json!({"wait_for_file": "go"}),
    ]))
    .variable("MCP_DELEGATOR_MAX_STREAM_BYTES", "268435456");
    let id = stage.exec(&["--hard-timeout-sec", "300"]);
    stage.wait_for_project_file("ready");
    let supervisor = stage.supervisor_pid(&id);
    // The supervisor has read everything when the agent has exited.
    stage.world.write("project/go", "");
    let mut memory = 0;
    wait_until("the supervisor has ended", || {
        let now = peak_memory(supervisor);
        memory = now.unwrap_or(memory);
        now.is_none()
    });
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    let events = results(&stage, &id)["events"].clone();
    // Four events more: thread start, turn start, last message, turn end.
    assert_eq!(events["count"], count + 4);
    let items = events["items"].as_array().unwrap();
    assert_eq!(items.len(), 50);
    assert!(items[47].to_string().contains(&format!("event {count}")), "{}", items[47]);
    let stored = std::fs::read(stage.task_dir(&id).join("events.jsonl")).unwrap();
    let lines = stored.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert_eq!(lines, count + 4, "not all events are stored");
    assert!(memory <= 16 << 10, "{memory} KiB");
}

/// Invalid lines, and a few valid ones.
const ODD_LINES: [&[u8]; 8] = [
    b"\xff\xfe not UTF-8 \xc3",
    b"a \0 NUL",
    b"\xef\xbb\xbf{\"type\":\"turn.started\"}",
    b"not JSON at all",
    b"{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"f\xc3\xbcnf\"}}\r",
    b"",
    b"{\"type\":",
    b"\"a string\"",
];

fn raw_bytes(bytes: &[u8]) -> Value {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"raw": {"hex": digits}})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f23_bytes_that_are_not_events_lose_nothing(cuts in prop::collection::vec(1usize..150, 0..6)) {
        let mut all = ODD_LINES.join(&b'\n');
        all.push(b'\n');
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < all.len()).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut steps = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([all.len()]) {
            steps.extend([raw_bytes(&all[from..cut]), json!({"delay_ms": 2})]);
            from = cut;
        }
        let mut script = successful_turn(&steps);
        script.as_array_mut().unwrap().push(raw_bytes(b"no newline at the end"));
        let stage = scripted_stage(script);
        let id = stage.exec(&[]);
        let data = stage.wait(&id)["data"].clone();
        prop_assert_eq!(&data["state"], "completed", "{}", data);
        let events = results(&stage, &id)["events"].clone();
        // The same for every split: three events before, seven odd lines (the empty line does not count), two after, the last line.
        prop_assert_eq!(&events["count"], 13, "{}", events);
        let shown = events["items"].to_string();
        for text in ["not JSON at all", "fünf", "no newline at the end", "All done."] {
            prop_assert!(shown.contains(text), "{}: {}", text, shown);
        }
    }
}

#[test]
fn f24_json_that_is_too_deep_too_big_or_unknown_is_tolerated() {
    let lines = [
        "[".repeat(100_000),
        format!("{}{}", "{\"a\":".repeat(100_000), "1"),
        r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"x"},"n":1e999}"#
            .to_owned(),
        r#"{"type":"turn.started","type":"turn.started"}"#.to_owned(),
        r#"{"type":"unknown.event","value":1}"#.to_owned(),
        r#"{"type":"item.completed","item":{"id":"2","type":"unknown_item"}}"#.to_owned(),
        r#"{"type":"item.completed","item":null}"#.to_owned(),
        r#"{"type":null}"#.to_owned(),
        r#"{"id":"0","msg":{"type":"agent_message","message":"the other dialect"}}"#.to_owned(),
        "null".to_owned(),
        "-".to_owned(),
    ];
    let steps: Vec<Value> = lines.iter().map(|line| json!({"line": line})).collect();
    let stage = scripted_stage(successful_turn(&steps));
    let run = stage.world.run(["local", "run", "x"]);
    assert_eq!(run.exit, Some(0), "{}", run.stdout);
    let data = run.json()["data"].clone();
    assert_eq!(
        (&data["state"], &data["final_message"]),
        (&json!("completed"), &json!("All done.")),
        "{data}"
    );
}

#[test]
fn f25_only_the_end_of_the_turn_decides_the_state() {
    // An error item during the turn has no effect.
    let stage =
        scripted_stage(successful_turn(&[json!({"warning": "careful"}), json!({"error": "a hiccup"})]));
    assert_eq!(stage.world.run(["local", "run", "x"]).exit, Some(0));
    for (steps, kind) in [
        (json!([{"thread_started": {}}, "turn_started", {"exit": 0}]), "no_terminal_event"),
        (json!([{"thread_started": {}}, "turn_started", "close_stdout", {"exit": 0}]), "no_terminal_event"),
        (json!([{"exit": 7}]), "agent_exit"),
        (json!([{"raise": "KILL"}]), "killed"),
        (json!([{"thread_started": {}}, "turn_started", {"turn_failed": "it broke"}]), "agent_error"),
    ] {
        stage.set_script(steps.clone());
        let run = stage.world.run(["local", "run", "x"]);
        assert_eq!(run.exit, Some(80), "{steps}: {run:?}");
        assert_eq!(run.json()["meta"]["error_context"]["failure_kind"], kind, "{steps}: {}", run.stdout);
    }
    // When we end the task, our reason counts, although the terminal event is missing.
    stage.set_script(json!([{"thread_started": {}}, "turn_started", {"touch_file": "ready"}, "silent"]));
    let id = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    assert_eq!(stage.run_json(&["local", "cancel", &id])["data"]["state"], "cancelled");
}

#[test]
fn f26_the_task_text_arrives_whole_or_is_ignored() {
    let longest = "\u{1F980}".repeat(100_000);
    let run = |stage: &Stage| stage.world.run_with_input(["local", "run", "-"], longest.as_bytes());
    let stage =
        scripted_stage(successful_turn(&[json!({"record": {"file": "record.json", "stdin_file": "stdin"}})]));
    assert_eq!(run(&stage).exit, Some(0));
    assert_eq!(std::fs::metadata(stage.world.project().join("stdin")).unwrap().len(), 400_000);
    assert_eq!(read_text(&stage.world.project().join("stdin")), longest);
    for read in ["never", "one_byte", "close"] {
        stage.set_script(json!([
            {"read_stdin": read}, {"thread_started": {}}, "turn_started", {"message": "done"}, {"turn_completed": {}}
        ]));
        let run = run(&stage);
        assert_eq!(run.exit, Some(0), "{read}: {run:?}");
    }
}
