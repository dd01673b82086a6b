//! Cost of a task: from submit to the agent's start, from its end to the waiting caller, and supervisor memory.
//!
//! Run with `cargo bench -p mcp-delegator --bench tasks`. It prints a table and asserts no times.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and panics when its setup fails"
)]

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use delegator_testkit::program::World;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

const ROUNDS: usize = 60;
const CONCURRENT_TASKS: usize = 100;

fn world_with_script(steps: Value) -> World {
    Stage::with_script(env!("CARGO_BIN_EXE_mcp-delegator"), steps)
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", &CONCURRENT_TASKS.to_string())
        .world
}

fn wait_for_file(path: &Path) -> Instant {
    while !path.exists() {
        std::hint::spin_loop();
    }
    Instant::now()
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times[(times.len() - 1) * percent / 100].as_secs_f64() * 1000.0
}

fn submit_to_start() -> (f64, f64) {
    let world = world_with_script(
        json!([{"touch_file": "started"}, {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"turn_completed": {}}]),
    );
    world.run(["local", "run", "warm up"]);
    let started = world.project().join("started");
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            std::fs::remove_file(&started).unwrap();
            let before = Instant::now();
            let mut child = world
                .command(["local", "exec", "x"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let elapsed = wait_for_file(&started) - before;
            child.wait().unwrap();
            elapsed
        })
        .collect();
    (percentile(&mut times, 50), percentile(&mut times, 99))
}

fn end_to_waiter() -> (f64, f64) {
    let world = world_with_script(json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"touch_file": "ready"}, {"delay_ms": 300},
        {"turn_completed": {}}, {"touch_file": "over"}
    ]));
    world.run(["local", "run", "warm up"]);
    let mut times: Vec<Duration> = (0..ROUNDS / 2)
        .map(|_| {
            for name in ["ready", "over"] {
                let _ = std::fs::remove_file(world.project().join(name));
            }
            let id = world.run(["local", "exec", "x"]).json()["data"]["task_id"].as_str().unwrap().to_owned();
            let mut waiter = world
                .command(["local", "wait", &id])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let ended_at = wait_for_file(&world.project().join("over"));
            waiter.wait().unwrap();
            ended_at.elapsed()
        })
        .collect();
    (percentile(&mut times, 50), percentile(&mut times, 99))
}

/// Mean proportional memory (PSS) of the supervisors of `CONCURRENT_TASKS` running tasks, in KiB.
fn mean_supervisor_memory() -> u64 {
    let world = world_with_script(
        json!([{"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": "x"}, "silent"]),
    );
    let ids: Vec<String> = (0..CONCURRENT_TASKS)
        .map(|_| world.run(["local", "exec", "x"]).json()["data"]["task_id"].as_str().unwrap().to_owned())
        .collect();
    let mut sizes = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if ids.iter().any(|id| line.contains(&format!("supervise\0{id}"))) {
            let rollup = std::fs::read_to_string(entry.path().join("smaps_rollup")).unwrap_or_default();
            let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
            sizes.push(pss.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0));
        }
    }
    for id in &ids {
        world.run(["local", "cancel", id]);
    }
    assert_eq!(sizes.len(), CONCURRENT_TASKS, "a supervisor is missing");
    sizes.iter().sum::<u64>() / sizes.len() as u64
}

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let (start_50, start_99) = submit_to_start();
    let (end_50, end_99) = end_to_waiter();
    println!("load {}", load.split(' ').next().unwrap_or_default());
    println!("| what | p50 | p99 |\n|---|---|---|");
    println!("| CLI started → agent started | {start_50:.1} ms | {start_99:.1} ms |");
    println!("| last event of the agent → `wait` has exited | {end_50:.1} ms | {end_99:.1} ms |");
    println!(
        "| memory of a supervisor (PSS, {CONCURRENT_TASKS} at once) | {} KiB | |",
        mean_supervisor_memory()
    );
}
