//! Tasks that write more than an answer may contain.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Session, done, task_id};

pub(crate) static LONG_OUTPUT: LazyLock<LongOutput> = LazyLock::new(record);

pub(crate) struct LongOutput {
    /// `wait` with output and the default limit of an MCP answer, of a task that fills stdout only.
    pub(crate) default: Value,
    /// The same with `max_output_bytes` 65536.
    pub(crate) stdout_only: Value,
    /// `results` with output and `max_output_bytes` 65536, of a task that fills both streams.
    pub(crate) both_streams: Value,
    /// `results` with events of a task with more than 50 events.
    pub(crate) events: Value,
    /// The same with `max_output_bytes` 4096.
    pub(crate) small: Value,
}

/// Lines of 80 bytes on one stream.
fn flood(stream: &str) -> Value {
    json!({"flood": {"stream": stream, "bytes": 250_000}})
}

fn record() -> LongOutput {
    let run_with = |session: &mut Session, steps: &[Value]| {
        session.set_agent(&[steps, &done()].concat());
        let ack = session.json("_codex_local_exec", json!({"task": "x"}));
        let id = task_id(&ack);
        session.json("_codex_local_wait", json!({"task_id": id}));
        id
    };
    let mut session = Session::with_agent(&[]);
    let stdout = run_with(&mut session, &[flood("stdout")]);
    let both = run_with(&mut session, &[flood("stdout"), flood("stderr")]);
    let events = run_with(&mut session, &[json!({"events": {"count": 60}})]);
    let mut call = |tool: &str, id: &str, more: Value| {
        let mut arguments = json!({"task_id": id, "include_output": true});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        session.json(tool, arguments)
    };
    let (wait, results) = ("_codex_local_wait", "_codex_local_results");
    let limit = json!({"max_output_bytes": 65_536});
    LongOutput {
        default: call(wait, &stdout, json!({})),
        stdout_only: call(wait, &stdout, limit.clone()),
        both_streams: call(results, &both, limit),
        small: call(results, &both, json!({"max_output_bytes": 4_096})),
        events: call(results, &events, json!({"include_events": true, "include_output": false})),
    }
}
