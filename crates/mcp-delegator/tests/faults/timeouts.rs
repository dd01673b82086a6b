//! Timeouts and clocks: idle and hard limits, a paused supervisor, and wall clock jumps.

use delegator_testkit::program::faketime_library;
use delegator_testkit::stage::{Stage, successful_turn, task_processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{scripted_stage, terminal_states};

fn context_of_timeout(stage: &Stage, more: &[&str]) -> Value {
    let run = stage.world.run([&["local", "run", "x"], more].concat());
    assert_eq!(run.exit, Some(10), "{run:?}");
    run.json()["meta"]["error_context"].clone()
}

#[test]
fn f07_an_idle_timeout_returns_partial_results() {
    let stage = scripted_stage(json!([
        {"thread_started": {}}, "turn_started", {"events": {"count": 100, "bytes": 2000}},
        {"raw": {"text": "no event\n"}}, {"message": "the last word"}, "silent"
    ]));
    let context = context_of_timeout(&stage, &["--idle-timeout-sec", "1"]);
    assert_eq!(context["timeout_type"], "idle");
    assert!(context["elapsed_seconds"].as_u64().unwrap() >= 1, "{context}");
    let partial = &context["partial_results"];
    let events = partial["last_events"].as_array().unwrap();
    assert_eq!(events.len(), 50);
    // Events are passed as the agent wrote them; lines that are not events, or were shortened, are text.
    assert_eq!(events[49].pointer("/item/text"), Some(&json!("the last word")), "{}", events[49]);
    assert!(events.iter().all(|event| event["type"].is_string() || event["text"].is_string()), "{context}");
    let output = partial["last_output"].as_str().unwrap();
    assert!(output.len() <= 64 << 10 && output.contains("the last word"), "{}", output.len());
    assert!(output.len() > 32 << 10, "the output is much shorter than the limit: {}", output.len());
}

#[test]
fn f07_wait_and_results_of_a_timed_out_task_carry_its_partial_results() {
    let stage = scripted_stage(json!([
        {"thread_started": {}}, "turn_started", {"message": "the last word"}, {"stderr_line": "a warning"}, "silent"
    ]));
    let run = stage.run_json(&["local", "run", "x", "--idle-timeout-sec", "1"]);
    let context = &run["meta"]["error_context"];
    let partial = &context["partial_results"];
    let output = partial["last_output"].as_str().unwrap();
    let (stdout, stderr) = output.split_once("\n--- stderr ---\n").unwrap_or_else(|| panic!("{context}"));
    assert!(stdout.contains("the last word"), "{context}");
    assert_eq!(stderr, "a warning\n", "{context}");
    assert!(partial["last_events"].to_string().contains("the last word"), "{context}");
    let again = &run["meta"]["failure_data"]["metadata"]["error_context"];
    assert_eq!((again["failure_kind"].as_str(), again.get("partial_results")), (Some("idle"), None));
    let id = context["task_id"].as_str().unwrap();
    for command in ["wait", "results"] {
        let data = stage.run_json(&["local", command, id])["data"].clone();
        assert_eq!(&data["metadata"]["error_context"]["partial_results"], partial, "{command}: {data}");
    }
}

#[test]
fn f09_the_hard_timeout_fires_under_constant_output() {
    let stage = scripted_stage(json!([{"thread_started": {}}, "turn_started", {"flood": {}}]))
        .variable("MCP_DELEGATOR_MAX_STREAM_BYTES", "1048576");
    let context = context_of_timeout(&stage, &["--hard-timeout-sec", "2", "--idle-timeout-sec", "60"]);
    assert_eq!(context["timeout_type"], "hard", "{context}");
    let id = context["task_id"].as_str().unwrap();
    assert_eq!(task_processes(id), Vec::<i32>::new());
    assert!(std::fs::metadata(stage.task_dir(id).join("events.jsonl")).unwrap().len() <= 1 << 20);
}

#[test]
fn f11_a_paused_supervisor_causes_no_false_timeout() {
    let stage = scripted_stage(successful_turn(&[
        json!({"touch_file": "ready"}),
        json!({"events": {"count": 25, "per_second": 10}}),
        json!({"touch_file": "printed"}),
        json!({"wait_for_file": "go"}),
    ]));
    let id = stage.exec(&["--idle-timeout-sec", "1", "--hard-timeout-sec", "60"]);
    stage.wait_for_project_file("ready");
    let supervisor = Pid::from_raw(stage.supervisor_pid(&id)).unwrap();
    kill_process(supervisor, Signal::STOP).unwrap();
    // For 2.5 s the agent prints while the supervisor is stopped.
    stage.wait_for_project_file("printed");
    stage.world.write("project/go", "");
    kill_process(supervisor, Signal::CONT).unwrap();
    let data = stage.wait(&id)["data"].clone();
    assert_eq!(data["state"], "completed", "{data}");
    assert_eq!(terminal_states(&stage, &id), ["completed"]);
}

/// A stage whose wall clock is set by a file; the monotonic clock is not changed.
fn stage_with_fake_clock(steps: Value) -> Stage {
    let library = faketime_library();
    let stage = scripted_stage(steps);
    stage.world.write("clock", "+0");
    let clock = stage.root().join("clock");
    let variables = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    // Supervisors inherit only listed variables; this test needs the fake clock in the supervisor as well.
    let inherited = variables.map(|(name, _)| name).join(",");
    let stage = stage.variable("MCP_DELEGATOR_TEST_INHERIT", &inherited);
    variables.into_iter().fold(stage, |stage, (name, value)| stage.variable(name, value))
}

/// The data of a finished task, and the duration it reports.
fn end_and_duration(stage: &Stage, id: &str) -> (Value, u64) {
    let response = stage.run_json(&["local", "wait", id, "--envelope", "tool"]);
    let duration = response["meta"]["duration_ms"].as_u64().unwrap_or_else(|| panic!("{response}"));
    (response["data"].clone(), duration)
}

#[test]
fn f12_a_wall_clock_jump_changes_no_timeout() {
    for jump in ["+2h", "-2h"] {
        // The clock jumps during a run that completes …
        let stage = stage_with_fake_clock(successful_turn(&[
            json!({"touch_file": "ready"}),
            json!({"wait_for_file": "go"}),
        ]));
        let before = stage.run_json(&["version"])["meta"]["timestamp"].as_str().unwrap().to_owned();
        let id = stage.exec(&[]);
        stage.wait_for_project_file("ready");
        stage.world.write("clock", jump);
        let after = stage.run_json(&["version"])["meta"]["timestamp"].as_str().unwrap().to_owned();
        assert_eq!(before < after, jump == "+2h", "the clock did not jump: {before} {after}");
        stage.world.write("project/go", "");
        let (data, duration) = end_and_duration(&stage, &id);
        assert_eq!(data["state"], "completed", "{jump}: {data}");
        assert!(duration < 3_600_000, "{jump}: measured by the wrong clock: {duration}");
        // … and jumps back during a silent run.
        stage.set_script(json!([
            {"thread_started": {}}, "turn_started", {"touch_file": "quiet"}, "silent"
        ]));
        let id = stage.exec(&["--idle-timeout-sec", "2"]);
        stage.wait_for_project_file("quiet");
        stage.world.write("clock", "+0");
        let (data, duration) = end_and_duration(&stage, &id);
        assert_eq!(data["metadata"]["error_context"]["failure_kind"], "idle", "{jump}: {data}");
        assert!((2000..3_600_000).contains(&duration), "{jump}: {duration}");
    }
}

#[test]
fn f12_the_queue_order_does_not_depend_on_the_clock() {
    let stage = stage_with_fake_clock(successful_turn(&[json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let running = stage.exec(&[]);
    let mut expected = Vec::new();
    for clock in ["+2h", "+0", "-2h"] {
        stage.world.write("clock", clock);
        expected.push(stage.exec(&[]));
    }
    let queue = stage.run_json(&["local", "status"])["data"]["queue"].clone();
    let queued: Vec<&str> =
        queue.as_array().unwrap().iter().map(|task| task["task_id"].as_str().unwrap()).collect();
    assert_eq!(queued, expected);
    stage.world.write("project/go", "");
    for id in [&running].into_iter().chain(&expected) {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
}
