//! Tasks that were stopped: by a time limit, and by a cancel.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Session, task_id};

/// Tasks that reached a limit of one second.
pub(crate) static TIMED_OUT: LazyLock<TimedOut> = LazyLock::new(record_timed_out);
/// A running task that was cancelled.
pub(crate) static CANCELLED: LazyLock<Cancelled> = LazyLock::new(record_cancelled);

pub(crate) struct TimedOut {
    /// `run`, `wait` and `results` of a task without activity.
    pub(crate) idle_run: Value,
    pub(crate) idle_wait: Value,
    pub(crate) idle_results: Value,
    /// `run` of a task that is active, and takes too long.
    pub(crate) hard_run: Value,
    /// `run` of a task that filled both streams, and its `results` on the command line.
    pub(crate) long_run: Value,
    pub(crate) long_cli_results: Value,
}

fn record_timed_out() -> TimedOut {
    let mut session = Session::with_agent(&[
        json!({"stderr_line": "the agent's own words"}),
        json!({"message": "Working on it."}),
        json!("silent"),
    ]);
    let idle_run = session.json("_codex_local_run", json!({"task": "x", "idle_timeout_sec": 1}));
    let id = json!({"task_id": task_id(&idle_run)});
    let idle_wait = session.json("_codex_local_wait", id.clone());
    let idle_results = session.json("_codex_local_results", id);
    session.set_agent(&[json!({"events": {"per_second": 10}})]);
    let hard_run = session.json("_codex_local_run", json!({"task": "x", "hard_timeout_sec": 1}));
    let flood = |stream: &str| json!({"flood": {"stream": stream, "bytes": 100_000}});
    session.set_agent(&[
        flood("stdout"),
        json!({"message": "The end of stdout."}),
        flood("stderr"),
        json!({"stderr_line": "the end of stderr"}),
        json!("silent"),
    ]);
    let long_run = session.json("_codex_local_run", json!({"task": "x", "idle_timeout_sec": 1}));
    let long_cli_results = session.stage.run_json(&["local", "results", &task_id(&long_run)]);
    TimedOut { idle_run, idle_wait, idle_results, hard_run, long_run, long_cli_results }
}

pub(crate) struct Cancelled {
    pub(crate) wait: Value,
}

fn record_cancelled() -> Cancelled {
    let mut session = Session::with_agent(&[json!("silent")]);
    let ack = session.json("_codex_local_exec", json!({"task": "x"}));
    let id = json!({"task_id": task_id(&ack)});
    session.json("_codex_local_cancel", id.clone());
    Cancelled { wait: session.json("_codex_local_wait", id) }
}
