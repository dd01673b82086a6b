//! What a server costs a host: from its start to its first answer, and its memory while nothing happens; beside Node, which
//! most servers of this kind need.
//!
//! `cargo bench -p mcp-delegator --bench serve`; prints a table, asserts nothing about time.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, starts what it measures, and stops where its world is broken"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

const ROUNDS: usize = 40;

/// A program with pipes to talk through.
struct Connection {
    child: Child,
    responses: BufReader<ChildStdout>,
}

impl Connection {
    fn start(mut command: Command) -> Connection {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Connection { child, responses: answers }
    }

    fn send(&mut self, message: &Value) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.responses.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended before it answered");
        line
    }

    /// Proportional memory, in KiB.
    fn memory(&self) -> u64 {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id())).unwrap();
        let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
        pss.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Its input ends, and so does it.
    fn close(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

fn initialize() -> Value {
    let client = json!({"name": "bench", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// A server that was greeted.
fn initialized_server(stage: &Stage) -> (Connection, Duration) {
    let before = Instant::now();
    let mut talk = Connection::start(stage.world.command(["serve"]));
    talk.send(&initialize());
    talk.read_line();
    (talk, before.elapsed())
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times[(times.len() - 1) * percent / 100].as_secs_f64() * 1000.0
}

fn server_memory(stage: &Stage) -> (u64, usize) {
    let (mut talk, _) = initialized_server(stage);
    talk.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    talk.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let tools = talk.read_line().len();
    let memory = talk.memory();
    talk.close();
    (memory, tools)
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.args(["-e", script]);
    command
}

fn node_memory() -> u64 {
    let mut talk = Connection::start(node("console.log('up'); process.stdin.resume()"));
    talk.read_line();
    let memory = talk.memory();
    talk.close();
    memory
}

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let stage = Stage::with_script(env!("CARGO_BIN_EXE_mcp-delegator"), successful_turn(&[]));
    // The first one makes the registry.
    initialized_server(&stage).0.close();
    let mut ours: Vec<Duration> = Vec::new();
    let mut nodes: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS {
        let (talk, took) = initialized_server(&stage);
        talk.close();
        ours.push(took);
        let before = Instant::now();
        assert!(node("0").status().unwrap().success());
        nodes.push(before.elapsed());
    }
    let (memory, tools) = server_memory(&stage);
    println!("load {}", load.split(' ').next().unwrap_or_default());
    println!("| what | p50 | p99 |\n|---|---|---|");
    println!(
        "| serve started → its first answer | {:.1} ms | {:.1} ms |",
        percentile(&mut ours, 50),
        percentile(&mut ours, 99)
    );
    println!(
        "| `node -e 0`, start to end | {:.1} ms | {:.1} ms |",
        percentile(&mut nodes, 50),
        percentile(&mut nodes, 99)
    );
    println!("| idle serve, tools listed ({tools} bytes) (PSS) | {memory} KiB | |");
    println!("| idle node (PSS) | {} KiB | |", node_memory());
}
