//! Cost of a server for its client: time from start to the first response, and idle memory, compared with Node, which
//! most MCP servers need.
//!
//! Run with `cargo bench -p mcp-delegator --bench serve`. It prints a table and asserts no times.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, starts processes, and panics when its setup fails"
)]

mod connection;

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::json;

use connection::Connection;

const ROUNDS: usize = 40;

/// Proportional memory of a process, in KiB.
fn memory(process: &Child) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.id())).unwrap();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    pss.split_whitespace().next().unwrap().parse().unwrap()
}

/// Starts a server, initializes it, and returns the time to its first response.
fn initialized_server(stage: &Stage) -> (Connection, Duration) {
    let before = Instant::now();
    let connection = Connection::initialized(stage.world.command(["serve"]));
    (connection, before.elapsed())
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times[(times.len() - 1) * percent / 100].as_secs_f64() * 1000.0
}

fn server_memory(stage: &Stage) -> (u64, usize) {
    let (mut connection, _) = initialized_server(stage);
    connection.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    connection.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let tools = connection.read_line().len();
    let memory = memory(&connection.child);
    connection.close();
    (memory, tools)
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.args(["-e", script]);
    command
}

fn node_memory() -> u64 {
    let mut connection = Connection::start(node("console.log('up'); process.stdin.resume()"));
    connection.read_line();
    let memory = memory(&connection.child);
    connection.close();
    memory
}

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let stage = Stage::with_script(env!("CARGO_BIN_EXE_mcp-delegator"), successful_turn(&[]));
    // The first server creates the registry.
    initialized_server(&stage).0.close();
    let mut server_times: Vec<Duration> = Vec::new();
    let mut node_times: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS {
        let (connection, elapsed) = initialized_server(&stage);
        connection.close();
        server_times.push(elapsed);
        let before = Instant::now();
        assert!(node("0").status().unwrap().success());
        node_times.push(before.elapsed());
    }
    let (memory, tools) = server_memory(&stage);
    println!("load {}", load.split(' ').next().unwrap_or_default());
    println!("| what | p50 | p99 |\n|---|---|---|");
    println!(
        "| serve started → first response | {:.1} ms | {:.1} ms |",
        percentile(&mut server_times, 50),
        percentile(&mut server_times, 99)
    );
    println!(
        "| `node -e 0`, start to end | {:.1} ms | {:.1} ms |",
        percentile(&mut node_times, 50),
        percentile(&mut node_times, 99)
    );
    println!("| idle serve, tools listed ({tools} bytes) (PSS) | {memory} KiB | |");
    println!("| idle node (PSS) | {} KiB | |", node_memory());
}
