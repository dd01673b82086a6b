//! Cost of a conversation with an agent of the Agent Client Protocol: memory of its supervisor beside that of a Codex exec task, and
//! the time to the agent's first event beside the agent alone.
//!
//! Run with `cargo bench -p mcp-delegator --bench conversations`. It prints two tables and asserts no times. The agents are
//! stand-ins; Qwen Code is measured in addition if `scripts/install-agents` has installed it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and panics when its setup fails"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use delegator_testkit::generated::workspace;
use delegator_testkit::program::World;
use delegator_testkit::scripted_model::{Action, ScriptedModel};
use delegator_testkit::stage::Stage;
use delegator_transcript::wire::acp::outgoing::{self, ClientInfo};
use delegator_transcript::wire::acp::{AgentMessage, SessionResult, Update};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
const ROUNDS: usize = 30;
const REAL_ROUNDS: usize = 5;
const CONCURRENT_TASKS: usize = 20;
const CLIENT: ClientInfo<'static> = ClientInfo { name: "bench", title: "bench", version: "1" };
/// Begins an update with a part of the agent's message.
const FIRST_EVENT: &str = "agent_message_chunk";

/// A stand-in that answers requests in the order in which every client sends them: their ids count from 1. It reports a part of
/// its message for every prompt, and never ends the turn of a prompt that contains `stay`.
const STAND_IN: &str = r#"#!/bin/sh
id=0
while read -r line; do
    id=$((id + 1))
    case $line in
    *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s"}}' ;;
    *'"method":"session/prompt"'*)
        echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"working"}}}}'
        case $line in
        *stay*) ;;
        *) echo '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn"}}' ;;
        esac ;;
    *) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1}}' ;;
    esac
done
"#;

/// A stage with the stand-in as agent `stand-in`, and a scripted agent as Codex that works without end.
fn stage() -> Stage {
    let steps =
        json!([{"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": "x"}, "silent"]);
    let stage = Stage::with_script(PROGRAM, steps)
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", &(2 * CONCURRENT_TASKS + 1).to_string());
    let program = stage.write_program("bin/stand-in", STAND_IN);
    let config = format!(
        "[agents.stand-in]\nprotocol = \"acp\"\ncommand = [\"{}\"]\nlinger_sec = 600\n",
        program.display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage
}

fn exec(stage: &Stage, task: &str, agent: &str) -> String {
    let accepted = stage.run_json(&["local", "exec", task, "--agent", agent]);
    accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}

/// The agent alone, at the other end of its pipes.
struct Direct {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
    session: String,
    last_id: i64,
}

impl Direct {
    fn open(world: &World, program: &Path, args: &[OsString]) -> Direct {
        let mut command = world.command_as(program, args);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pipes.spawn().unwrap();
        let (stdin, lines) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut direct = Direct { child, stdin, lines, session: String::new(), last_id: 2 };
        direct.send(outgoing::initialize(1, CLIENT));
        direct.read_until(|message| matches!(message, AgentMessage::Result { .. }).then_some(()));
        direct.send(outgoing::new_session(2, world.project().to_str().unwrap(), &[]));
        direct.session = direct.read_until(|message| match message {
            AgentMessage::Result { result, .. } => {
                Some(SessionResult::read(result).session_id?.resolve().into_owned())
            }
            _ => None,
        });
        direct
    }

    fn send(&mut self, mut line: Vec<u8>) {
        line.push(b'\n');
        self.stdin.write_all(&line).unwrap();
    }

    /// Reads messages until one has what is wanted.
    fn read_until<T>(&mut self, mut find: impl FnMut(&AgentMessage<'_>) -> Option<T>) -> T {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the agent has ended");
            if let Some(found) = AgentMessage::read(&line).as_ref().and_then(&mut find) {
                return found;
            }
        }
    }

    /// Sends a prompt; returns when the first part of the agent's message has arrived.
    fn prompt(&mut self, text: &str) -> Duration {
        self.last_id += 1;
        let prompt = outgoing::prompt(self.last_id, &self.session, text);
        let before = Instant::now();
        self.send(prompt);
        self.read_until(|message| {
            matches!(message, AgentMessage::Update(Update::MessageChunk(chunk)) if !chunk.text.is_empty())
                .then_some(())
        });
        let elapsed = before.elapsed();
        self.read_until(|message| matches!(message, AgentMessage::Result { .. }).then_some(()));
        elapsed
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From the start of the agent, or of our command line, to the agent's first event.
fn start_to_first_event_alone(world: &World, program: &Path, args: &[OsString], task: &str) -> Duration {
    let before = Instant::now();
    let mut direct = Direct::open(world, program, args);
    direct.prompt(task);
    before.elapsed()
}

fn task_folders(stage: &Stage) -> BTreeSet<PathBuf> {
    let folder = stage.task_dir("T-local-x").parent().unwrap().to_owned();
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Waits until the stored stream of a task has this many events of a kind.
fn wait_for_events(folder: &Path, event: &str, count: usize) {
    let stream = folder.join("events.jsonl");
    while std::fs::read_to_string(&stream).unwrap_or_default().matches(event).count() < count {
        std::hint::spin_loop();
    }
}

/// The same through us: until the event is stored, where every reader sees it.
fn start_to_first_event(stage: &Stage, agent: &str, task: &str) -> (Duration, String) {
    let known = task_folders(stage);
    let before = Instant::now();
    let mut command = stage.world.command(["local", "exec", task, "--agent", agent]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let folder = loop {
        if let Some(folder) = task_folders(stage).difference(&known).next() {
            break folder.clone();
        }
    };
    wait_for_events(&folder, FIRST_EVENT, 1);
    let elapsed = before.elapsed();
    child.wait().unwrap();
    (elapsed, folder.file_name().unwrap().to_string_lossy().into_owned())
}

/// From the start of `send` to the first event of the turn that it begins.
fn message_to_first_event(stage: &Stage, id: &str) -> Vec<Duration> {
    let folder = stage.task_dir(id);
    wait_for_events(&folder, FIRST_EVENT, 1);
    (0..ROUNDS)
        .map(|round| {
            let before = Instant::now();
            let mut command = stage.world.command(["send", id, "more"]);
            let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
            wait_for_events(&folder, FIRST_EVENT, round + 2);
            let elapsed = before.elapsed();
            child.wait().unwrap();
            elapsed
        })
        .collect()
}

fn times(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1000.0;
    format!("{:.1} ms | {:.1} ms", at(50), at(90))
}

fn pss_kib(stage: &Stage, id: &str) -> u64 {
    let path = format!("/proc/{}/smaps_rollup", stage.supervisor_pid(id));
    let rollup = std::fs::read_to_string(path).unwrap();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    pss.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Mean memory of the supervisors of tasks that run at once.
fn mean_pss(stage: &Stage, ids: &[String]) -> u64 {
    ids.iter().map(|id| pss_kib(stage, id)).sum::<u64>() / ids.len() as u64
}

/// The folder of npm packages with Qwen Code, and its script.
fn qwen() -> (PathBuf, PathBuf) {
    let modules = workspace().join(".tools/acp-agents-1/node_modules");
    let script = modules.join("@qwen-code/qwen-code/cli.js");
    (modules, script)
}

/// A stage with the stand-ins and with Qwen Code, which uses this model.
fn stage_with_qwen(model: &ScriptedModel) -> Stage {
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}}, "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}, "tools": {"useRipgrep": false},
    });
    let stage = stage();
    stage.world.write("home/.qwen/settings.json", &settings.to_string());
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", qwen().0.join(".bin").display());
    stage
        .variable("PATH", &path)
        .variable("OPENAI_API_KEY", "fake-key")
        .variable("OPENAI_BASE_URL", &format!("{}/v1", model.url()))
        .variable("OPENAI_MODEL", "scripted")
        .variable("QWEN_CODE_NO_RELAUNCH", "true")
}

/// Memory of supervisors while all of them run: they share the pages of the program.
fn print_memory(stage: &Stage, qwen: Option<&str>) {
    let submit = |agent: &str, event: &str| {
        let id = exec(stage, "stay", agent);
        wait_for_events(&stage.task_dir(&id), event, 1);
        id
    };
    let submit_all =
        |agent, event| (0..CONCURRENT_TASKS).map(|_| submit(agent, event)).collect::<Vec<String>>();
    let (codex, acp) = (submit_all("codex", "item.completed"), submit_all("stand-in", FIRST_EVENT));
    let real: Vec<String> = qwen.map(|task| exec(stage, task, "qwen")).into_iter().collect();
    for id in &real {
        wait_for_events(&stage.task_dir(id), "\"session/prompt\"", 1);
    }
    println!("\n| supervisor (PSS, {CONCURRENT_TASKS} of each at once) | mean |\n|---|---|");
    println!("| of a Codex exec task | {} KiB |", mean_pss(stage, &codex));
    println!("| of an ACP task, in a turn | {} KiB |", mean_pss(stage, &acp));
    if !real.is_empty() {
        println!("| of a task of Qwen Code (one), in a turn | {} KiB |", mean_pss(stage, &real));
    }
    for id in codex.iter().chain(&acp).chain(&real) {
        stage.world.run(["local", "cancel", id]);
    }
}

fn main() {
    let model = ScriptedModel::start([
        ("greet", vec![vec![Action::Say("Hello.")]]),
        ("hold", vec![vec![Action::Hold]]),
    ]);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load {}", load.split(' ').next().unwrap_or_default());
    let stage = stage_with_qwen(&model);
    let script = qwen().1;
    println!("| what | alone p50 | p90 | through us p50 | p90 |\n|---|---|---|---|---|");

    let stand_in = stage.root().join("bin/stand-in");
    let alone = (0..ROUNDS).map(|_| start_to_first_event_alone(&stage.world, &stand_in, &[], "go")).collect();
    let (through, ids): (Vec<Duration>, Vec<String>) =
        (0..ROUNDS).map(|_| start_to_first_event(&stage, "stand-in", "go")).unzip();
    println!("| stand-in: start → first event | {} | {} |", times(alone), times(through));

    let mut direct = Direct::open(&stage.world, &stand_in, &[]);
    let alone = (0..ROUNDS).map(|_| direct.prompt("more")).collect();
    let through = message_to_first_event(&stage, &ids[0]);
    println!("| stand-in: message → first event | {} | {} |", times(alone), times(through));
    for id in &ids {
        stage.world.run(["local", "cancel", id]);
    }

    if script.exists() {
        let (node, task) = (Path::new("/usr/bin/node"), "Please do [script greet].");
        let args = [script.clone().into(), "--acp".into()];
        let (mut alone, mut through) = (Vec::new(), Vec::new());
        for _ in 0..REAL_ROUNDS {
            alone.push(start_to_first_event_alone(&stage.world, node, &args, task));
            through.push(start_to_first_event(&stage, "qwen", task).0);
        }
        println!("| Qwen Code: start → first event | {} | {} |", times(alone), times(through));
    }
    print_memory(&stage, script.exists().then_some("Please do [script hold]."));
}
