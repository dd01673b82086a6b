//! Limits of a run: 1 s idle, 3 s in total.

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::world::{World, exists, wait_until};

fn run_limited(world: &World, script: &str) -> Value {
    let mut case = world.case(script);
    (case.idle_ms, case.hard_ms) = (1000, 3000);
    world.run(&case)
}

/// Without processor time as activity: on a slow machine, even starting `sleep` in a loop takes enough of it
/// to count.
fn run_limited_by_output(world: &World, script: &str) -> Value {
    let mut case = world.case(script);
    (case.idle_ms, case.hard_ms, case.output_only) = (1000, 3000, true);
    world.run(&case)
}

fn assert_limit(end: &Value, kind: &str, min_ms: u64) {
    assert_eq!((end["state"].as_str(), end["kind"].as_str()), (Some("timeout"), Some(kind)), "{end}");
    let elapsed = end["elapsed_ms"].as_u64().unwrap();
    assert!((min_ms..min_ms + 6000).contains(&elapsed), "{elapsed}");
}

#[test]
fn silence_hits_the_idle_limit() {
    let world = World::new();
    let end = run_limited(&world, "begin; item 0 before; sleep 300");
    assert_limit(&end, "idle", 1000);
    assert!(end["quiet_ms"].as_u64().unwrap() >= 1000, "{end}");
    assert_eq!(end["report"]["recent_lines"].as_array().unwrap().len(), 3);
    assert!(end["partial"]["last_output"].as_str().unwrap().contains("before"));
    world.assert_no_processes_left();
}

#[test]
fn reconnect_messages_do_not_count_as_activity() {
    let world = World::new();
    let retry = r#"{"type":"error","message":"Reconnecting... waiting for network"}"#;
    let script = format!("begin; while :; do echo '{retry}'; sleep 0.2; done");
    let end = run_limited_by_output(&world, &script);
    assert_limit(&end, "idle", 1000);
}

#[test]
fn log_lines_are_not_activity_but_other_stderr_is() {
    let world = World::new();
    let log = "2026-11-15T00:36:35.833423Z ERROR codex_api::endpoint: failed to connect";
    let script = format!("begin; while :; do echo '{log}' >&2; sleep 0.2; done");
    let end = run_limited_by_output(&world, &script);
    assert_limit(&end, "idle", 1000);
    let end = run_limited_by_output(&world, "begin; while :; do echo 'compiling' >&2; sleep 0.2; done");
    assert_limit(&end, "hard", 3000);
}

#[test]
fn constant_output_hits_only_the_hard_limit() {
    let world = World::new();
    let end = run_limited(&world, "begin; while :; do item 0 on; sleep 0.2; done");
    assert_limit(&end, "hard", 3000);
}

#[test]
fn busy_child_counts_as_activity() {
    let world = World::new();
    assert_limit(&run_limited(&world, "begin; sh -c 'while :; do :; done' & wait"), "hard", 3000);
    // Detached, and one after the other: processor time of reaped children counts too.
    let script =
        "begin; setsid sh -c 'while :; do timeout 0.1 sh -c \"while :; do :; done\"; done' & sleep 300";
    assert_limit(&run_limited(&world, script), "hard", 3000);
    world.assert_no_processes_left();
}

#[test]
fn busy_agent_without_output_is_idle() {
    let world = World::new();
    assert_limit(&run_limited(&world, "begin; while :; do :; done"), "idle", 1000);
}

#[test]
fn output_only_mode_ignores_processor_time() {
    let world = World::new();
    assert_limit(&run_limited_by_output(&world, "begin; sh -c 'while :; do :; done' & wait"), "idle", 1000);
}

#[test]
fn hard_limit_applies_during_a_flood() {
    let world = World::new();
    let mut case = world.case("begin; exec yes '{\"type\":\"item.updated\"}'");
    (case.idle_ms, case.hard_ms, case.max_stream_bytes) = (1000, 1500, 1 << 20);
    let end = world.run(&case);
    assert_limit(&end, "hard", 1500);
    assert!(world.read("events.jsonl").len() <= 1 << 20);
    assert_eq!(end["stdout"]["truncated"], true);
}

#[test]
fn supervisor_pauses_do_not_count_as_silence() {
    let world = World::new();
    let script = "begin; touch $FOLDER/ready; for n in 1 2 3 4 5 6 7 8 9; do item $n on; sleep 0.3; done; end; \
                  touch $FOLDER/done";
    let mut case = world.case(script);
    (case.idle_ms, case.hard_ms) = (1000, 30_000);
    let supervisor = world.start(&[case]);
    wait_until("it runs", || exists(&world.path("ready")));
    kill_process(supervisor.pid(), Signal::STOP).unwrap();
    wait_until("the agent is done", || exists(&world.path("done")));
    kill_process(supervisor.pid(), Signal::CONT).unwrap();
    let end = supervisor.wait_for_result();
    assert_eq!(end["state"], "completed", "{end}");
    // A pause longer than the idle limit, without any output.
    let world = World::new();
    let mut case = world.case("begin; touch $FOLDER/ready; sleep 0.7; touch $FOLDER/asleep; sleep 3.4; end");
    (case.idle_ms, case.hard_ms) = (3000, 30_000);
    let supervisor = world.start(&[case]);
    wait_until("it runs", || exists(&world.path("asleep")));
    kill_process(supervisor.pid(), Signal::STOP).unwrap();
    let since = std::time::Instant::now();
    wait_until("time has passed", || since.elapsed().as_millis() > 3500);
    kill_process(supervisor.pid(), Signal::CONT).unwrap();
    assert_eq!(supervisor.wait_for_result()["state"], "completed");
}
