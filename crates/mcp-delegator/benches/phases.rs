//! What a task costs besides its agent, phase by phase: an MCP client over stdio and an agent that ends at once.
//!
//! Run with `cargo bench -p mcp-delegator --bench phases --profile phases`: that profile optimizes like the release build
//! but has crash points, between which the phases lie. In a build without them only the totals are printed. It asserts no
//! times. `-- ROUNDS PROGRAM…` changes the number of rounds, and measures other builds of the program one after the other.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, starts processes, and panics when its setup fails"
)]

mod connection;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use delegator_testkit::stage::Stage;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use connection::Connection;

const DEFAULT_ROUNDS: usize = 40;
const TASKS_AT_ONCE: usize = 20;

const AGENT: &str = r#"cat > /dev/null
echo '{"type":"thread.started","thread_id":"t"}'; echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"0","type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'"#;

/// A phase lies between two marks: crash points, the start of the launcher, and what the client observes.
const PHASES: [(&str, &str, &str); 15] = [
    ("submit", "client: called", "submit: entry removed"),
    ("start the launcher", "submit: entry removed", "claim: supervisor spawned"),
    ("execute the launcher", "claim: supervisor spawned", "process: started"),
    ("fork the supervisor, open the registry", "process: started", "start: lock adopted"),
    ("begin", "start: lock adopted", "start: launch read"),
    ("examine files before", "start: launch read", "start: baseline taken"),
    ("start the agent", "start: baseline taken", "start: agent spawned"),
    ("agent", "start: agent spawned", "end: agent reaped"),
    ("sweep", "end: agent reaped", "end: swept"),
    ("examine files after", "end: swept", "end: changes observed"),
    ("write the report", "end: changes observed", "end: report written"),
    ("record the end", "end: report written", "end: committed"),
    ("start successors", "end: committed", "end: successors started"),
    ("end committed → answer", "end: committed", "client: answered"),
    ("in total", "client: called", "client: answered"),
];

/// Nanoseconds of CLOCK_MONOTONIC, like the marks of the program.
fn now_ns() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

struct Client {
    connection: Connection,
    next_id: u64,
}

impl Client {
    fn start(stage: &Stage) -> Client {
        let mut connection = Connection::initialized(stage.world.command(["serve"]));
        connection.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        Client { connection, next_id: 0 }
    }

    /// The next response, with its id. Notifications are skipped.
    fn next_response(&mut self) -> (u64, Value) {
        loop {
            let message: Value = serde_json::from_str(&self.connection.read_line()).unwrap();
            if let Some(id) = message["id"].as_u64() {
                return (id, message["result"].clone());
            }
        }
    }

    fn start_call(&mut self, tool: &str, mut arguments: Value) -> u64 {
        self.next_id += 1;
        arguments["format"] = json!("json");
        let params = json!({"name": tool, "arguments": arguments});
        self.connection
            .send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": "tools/call", "params": params}));
        self.next_id
    }

    /// Calls a tool while no other call is open.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.start_call(tool, arguments);
        let (answered, result) = self.next_response();
        assert_eq!(answered, id);
        assert!(!result["isError"].as_bool().unwrap_or(false), "{result}");
        result["structuredContent"]["data"].clone()
    }
}

/// How a client delegates one task.
#[derive(Clone, Copy)]
enum Calls {
    ExecAndWait,
    Run,
}

/// The measurements of one directory.
struct Bench {
    stage: Stage,
    directory: PathBuf,
    log: PathBuf,
}

impl Bench {
    fn new(program: &str, is_git: bool) -> Bench {
        let stage = Stage::with_shell_agent(program, AGENT);
        let log = stage.root().join("phases.log");
        let stage = stage
            .variable("MCP_DELEGATOR_PHASE_LOG", &log.display().to_string())
            .variable("MCP_DELEGATOR_MAX_CONCURRENT", &TASKS_AT_ONCE.to_string());
        let directory = stage.world.project();
        if is_git {
            create_repository(&directory);
        }
        Bench { stage, directory, log }
    }

    fn arguments(&self) -> Value {
        json!({"task": "x", "working_dir": self.directory, "skip_git_repo_check": true})
    }

    /// The marks of one task, and the time that the client needed.
    fn round(&self, client: &mut Client, calls: Calls) -> HashMap<String, i128> {
        std::fs::write(&self.log, "").unwrap();
        let called = now_ns();
        match calls {
            Calls::ExecAndWait => {
                let id = client.call("_codex_local_exec", self.arguments())["task_id"].clone();
                client.call("_codex_local_wait", json!({"task_id": id}));
            }
            Calls::Run => drop(client.call("_codex_local_run", self.arguments())),
        }
        let answered = now_ns();
        let mut marks = first_marks(&self.log);
        marks.insert("client: called".to_owned(), called);
        marks.insert("client: answered".to_owned(), answered);
        marks
    }

    /// Median duration of each phase in milliseconds.
    fn phases(&self, calls: Calls, rounds: usize) -> Vec<Option<f64>> {
        let mut client = Client::start(&self.stage);
        self.round(&mut client, calls);
        let rounds: Vec<_> = (0..rounds).map(|_| self.round(&mut client, calls)).collect();
        client.connection.close();
        let phase = |(_, from, to): &(&str, &str, &str)| {
            let times = rounds.iter().filter_map(|marks| Some(marks.get(*to)? - marks.get(*from)?));
            median(times.map(|ns| ns as f64 / 1e6).collect())
        };
        PHASES.iter().map(phase).collect()
    }

    /// Median time in which as many tasks at once have ended.
    fn tasks_at_once(&self, rounds: usize) -> Option<f64> {
        let mut client = Client::start(&self.stage);
        let mut times = Vec::new();
        for _ in 0..rounds {
            let began = Instant::now();
            let mut open: HashSet<u64> =
                (0..TASKS_AT_ONCE).map(|_| client.start_call("_codex_local_run", self.arguments())).collect();
            while !open.is_empty() {
                open.remove(&client.next_response().0);
            }
            times.push(milliseconds(began.elapsed()));
        }
        client.connection.close();
        median(times)
    }

    /// Median duration of `local run` as a command.
    fn command(&self, rounds: usize) -> Option<f64> {
        let run = || {
            let began = Instant::now();
            let args = ["local", "run", "x", "--skip-git-repo-check", "--format", "json"];
            let status = self.stage.world.command(args).stdin(Stdio::null()).stdout(Stdio::null()).status();
            assert!(status.unwrap().success());
            milliseconds(began.elapsed())
        };
        median((0..rounds).map(|_| run()).collect())
    }

    /// Median duration of the agent alone.
    fn agent(&self, rounds: usize) -> Option<f64> {
        let run = || {
            let began = Instant::now();
            let program = self.stage.root().join("bin/codex");
            let status = Command::new(program).stdin(Stdio::null()).stdout(Stdio::null()).status();
            assert!(status.unwrap().success());
            milliseconds(began.elapsed())
        };
        median((0..rounds).map(|_| run()).collect())
    }
}

fn create_repository(directory: &Path) {
    std::fs::write(directory.join("file"), "content\n").unwrap();
    for args in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first"],
    ] {
        assert!(Command::new("git").args(args).current_dir(directory).status().unwrap().success());
    }
}

/// The first time of each mark.
fn first_marks(log: &Path) -> HashMap<String, i128> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut marks = HashMap::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ' ');
        let time: i128 = fields.next().unwrap().parse().unwrap();
        let name = fields.nth(1).unwrap().to_owned();
        marks.entry(name).or_insert(time);
    }
    marks
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.2}"))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let rounds = arguments.first().and_then(|first| first.parse().ok());
    let programs = &arguments[usize::from(rounds.is_some())..];
    let rounds = rounds.unwrap_or(DEFAULT_ROUNDS);
    match programs {
        [] => print_tables(env!("CARGO_BIN_EXE_mcp-delegator"), rounds),
        programs => programs.iter().for_each(|program| print_tables(program, rounds)),
    }
}

fn print_tables(program: &str, rounds: usize) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{program}: load {}; medians of {rounds} rounds in ms",
        load.split(' ').next().unwrap_or_default()
    );
    let benches = [Bench::new(program, true), Bench::new(program, false)];
    let columns: Vec<Vec<Option<f64>>> = benches
        .iter()
        .flat_map(|bench| [Calls::ExecAndWait, Calls::Run].map(|calls| bench.phases(calls, rounds)))
        .collect();
    println!(
        "| phase | git: exec + wait | git: run | not git: exec + wait | not git: run |\n|---|---|---|---|---|"
    );
    for (row, (name, ..)) in PHASES.iter().enumerate() {
        let cells: Vec<String> = columns.iter().map(|column| cell(column[row])).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!("| | git | not git |\n|---|---|---|");
    let row = |name: &str, measure: &dyn Fn(&Bench) -> Option<f64>| {
        println!("| {name} | {} | {} |", cell(measure(&benches[0])), cell(measure(&benches[1])));
    };
    row("the agent alone", &|bench| bench.agent(rounds));
    row(&format!("{TASKS_AT_ONCE} tasks at once"), &|bench| bench.tasks_at_once(rounds.div_ceil(4)));
    row("`local run` from the command line", &|bench| bench.command(rounds));
}
