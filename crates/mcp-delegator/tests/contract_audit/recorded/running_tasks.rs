//! Tasks that run, tasks in the queue, and the status of both.

use std::sync::LazyLock;

use delegator_domain::task::TaskEnd;
use delegator_registry::{Finish, ImportedSession, NewTask, OpenOptions, Registry, StateDir};
use serde_json::{Value, json};

use super::{Session, done, stage_with_agent, task_id};
use crate::old_tasks::{HOUR_MS, fresh_id, new_task, now_ms};

/// Two running and two queued tasks, after seven that completed.
pub(crate) static STATUS: LazyLock<Status> = LazyLock::new(record_status);
/// More running and queued tasks than any page has items.
pub(crate) static MANY_TASKS: LazyLock<ManyTasks> = LazyLock::new(record_many);

pub(crate) struct Status {
    /// Before the first task.
    pub(crate) empty: Value,
    /// With completed tasks only.
    pub(crate) idle: Value,
    pub(crate) full: Value,
    pub(crate) verbose: Value,
    pub(crate) limited: Value,
    /// The acknowledgements of a running task, and of the queued tasks.
    pub(crate) running_ack: Value,
    pub(crate) queued_acks: [Value; 2],
    /// The wait for a queued task, for one second.
    pub(crate) queued_wait: Value,
}

pub(crate) const COMPLETED_COUNT: usize = 7;

fn record_status() -> Status {
    let mut session = Session::start(stage_with_agent(&done()).variable("MCP_DELEGATOR_MAX_CONCURRENT", "2"));
    let empty = session.json("_codex_local_status", json!({}));
    import_long_task(&session);
    for _ in 1..COMPLETED_COUNT {
        session.json("_codex_local_run", json!({"task": "x"}));
    }
    let idle = session.json("_codex_local_status", json!({}));
    // An agent that has started and not written anything yet.
    session.stage.set_script(json!([{"wait_for_file": "go"}, {"thread_started": {}}, "turn_started",
        {"message": "All done."}, {"turn_completed": {}}]));
    // Another model than before: from similar tasks the progress would be estimated.
    session.json("_codex_local_exec", json!({"task": "x", "model": "other"}));
    session.set_agent(&[
        json!({"message": "One."}),
        json!({"message": "Two."}),
        json!({"plan": {"steps": ["Read", "Test"], "done": 1}}),
        json!({"event": {"type": "item.started", "item": {"id": "item_9", "type": "command_execution",
            "command": "cargo test", "aggregated_output": "", "exit_code": null, "status": "in_progress"}}}),
        json!({"wait_for_file": "go"}),
        json!({"message": "All done."}),
        json!({"turn_completed": {}}),
    ]);
    let running_ack = session.json("_codex_local_exec", json!({"task": "x", "model": "other"}));
    let mut exec = || session.json("_codex_local_exec", json!({"task": "x"}));
    let queued_acks = [exec(), exec()];
    let full = session.status_when("the plan is known", |data| {
        data["tasks"].as_array().into_iter().flatten().any(|task| task["progress"]["percent"] == 50)
    });
    let verbose = session.json("_codex_local_status", json!({"verbose": true}));
    let limited = session.json("_codex_local_status", json!({"limit": 6}));
    let short = json!({"task_id": task_id(&queued_acks[0]), "timeout_sec": 1});
    let queued_wait = session.json("_codex_local_wait", short);
    session.finish();
    Status { empty, idle, full, verbose, limited, running_ack, queued_acks, queued_wait }
}

/// A task that took ten minutes. Without it no estimate exists for a queue behind tasks that run for longer than others.
fn import_long_task(session: &Session) {
    let mut registry = open_registry(session);
    let project = session.stage.world.project().display().to_string();
    let long_ago = now_ms() - HOUR_MS;
    let past = ImportedSession {
        thread_id: "a thread".to_owned(),
        started_at_ms: long_ago,
        ended_at_ms: long_ago,
        imported_at_ms: long_ago,
    };
    let finish = Finish { ran_ms: Some(600_000), ..Finish::bare(TaskEnd::Completed) };
    registry.import(&NewTask::reading(fresh_id(), &project, "x"), &past, &finish, &[]).unwrap();
}

fn open_registry(session: &Session) -> Registry {
    let state = session.stage.world.home().join("state");
    Registry::open(&StateDir::open(&state, &OpenOptions::default()).unwrap()).unwrap()
}

pub(crate) struct ManyTasks {
    pub(crate) status: Value,
    /// The same in 8,192 bytes.
    pub(crate) truncated: Value,
    /// The pages of the status with [`OVERFULL`] more queued tasks.
    pub(crate) pages: Vec<Value>,
}

/// More than 50, the number of items that other lists show on a page.
pub(crate) const MANY: usize = 52;
/// More queued tasks than fit into an answer.
pub(crate) const OVERFULL: usize = 400;

fn record_many() -> ManyTasks {
    let stage = stage_with_agent(&[json!("silent")]);
    let mut session = Session::start(stage.variable("MCP_DELEGATOR_MAX_CONCURRENT", &MANY.to_string()));
    for _ in 0..2 * MANY {
        session.json("_codex_local_exec", json!({"task": "x"}));
    }
    let status = session.json("_codex_local_status", json!({}));
    let limited = ["local", "status", "--envelope", "tool", "--max-bytes", "8192"];
    let truncated = session.stage.run_json(&limited);
    let mut registry = open_registry(&session);
    for _ in 0..OVERFULL {
        registry.submit(&new_task(), b"{}", now_ms()).unwrap();
    }
    let mut pages = vec![session.json("_codex_local_status", json!({}))];
    while let Some(cursor) = pages.last().and_then(|page| page["meta"].get("next_cursor")).cloned() {
        pages.push(session.json("_codex_local_status", json!({"cursor": cursor})));
    }
    session.stage.run_json(&["cancel", "--all"]);
    session.finish();
    ManyTasks { status, truncated, pages }
}
