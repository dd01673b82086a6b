//! Calls that are refused or fail: one for each kind of error that needs no task.

use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Session, done, stage_with_agent, task_id};
use crate::PROGRAM;
use crate::client::{Client, V2025_11};

pub(crate) static REFUSALS: LazyLock<Refusals> = LazyLock::new(record);

pub(crate) struct Refusals {
    pub(crate) blank_task: Value,
    pub(crate) invalid_mode: Value,
    /// Several wrong inputs in one call.
    pub(crate) several_problems: Value,
    pub(crate) unknown_task: Value,
    pub(crate) cancel_of_unknown_task: Value,
    pub(crate) unknown_thread: Value,
    /// The status after the refused calls.
    pub(crate) status: Value,
    /// `results` of a running task.
    pub(crate) early_results: Value,
    /// A call of a server without an agent program.
    pub(crate) missing_agent: Value,
    /// Calls of a server that cannot write: one only reads, one starts a task.
    pub(crate) status_without_disk: Value,
    pub(crate) exec_without_disk: Value,
}

const UNKNOWN: &str = "T-local-0000000000";

fn record() -> Refusals {
    let mut session = Session::with_agent(&done());
    let mut exec = |arguments: Value| session.json("_codex_local_exec", arguments);
    let blank_task = exec(json!({"task": "  "}));
    let invalid_mode = exec(json!({"task": "x", "mode": "wild"}));
    let several_problems = exec(json!({"tsk": "x", "mode": "wild", "working_dir": "/nowhere/at/all"}));
    let unknown = json!({"task_id": UNKNOWN});
    let no_thread = json!({"task": "x", "thread_id": "0199a213-81c0-7800-8aa1-bbab2a035a53"});
    let refusals = Refusals {
        blank_task,
        invalid_mode,
        several_problems,
        unknown_task: session.json("_codex_local_results", unknown.clone()),
        cancel_of_unknown_task: session.json("_codex_local_cancel", unknown),
        unknown_thread: session.json("_codex_local_resume", no_thread),
        status: session.json("_codex_local_status", json!({})),
        early_results: results_of_running_task(&mut session),
        missing_agent: exec_without_agent(),
        status_without_disk: call_without_disk("_codex_local_status", json!({})),
        exec_without_disk: call_without_disk("_codex_local_exec", json!({"task": "x"})),
    };
    session.finish();
    refusals
}

fn results_of_running_task(session: &mut Session) -> Value {
    session.set_agent(&[&[json!({"wait_for_file": "go"})], &done()[..]].concat());
    let ack = session.json("_codex_local_exec", json!({"task": "x"}));
    session.json("_codex_local_results", json!({"task_id": task_id(&ack)}))
}

fn exec_without_agent() -> Value {
    let stage = stage_with_agent(&[]).variable("MCP_DELEGATOR_CODEX_BIN", "/nowhere/codex");
    Session::start(stage).json("_codex_local_exec", json!({"task": "x"}))
}

/// A call of a server that may write no file.
fn call_without_disk(tool: &str, arguments: Value) -> Value {
    let stage = stage_with_agent(&done());
    stage.run_json(&["local", "run", "first"]);
    // The signal would end the server; ignored, its writes fail.
    let limited = format!("trap '' XFSZ; ulimit -f 0; exec '{PROGRAM}' serve");
    let mut command = stage.world.command_as(Path::new("/bin/sh"), ["-c", &limited]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut client = Client::wrap(child);
    client.initialize(V2025_11);
    client.envelope(tool, arguments)
}
