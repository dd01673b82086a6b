//! Tasks that ended: completed.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Session, task_id};

/// A task in a git repository that changes files, runs tests and completes.
pub(crate) static COMPLETED: LazyLock<Completed> = LazyLock::new(record_completed);

pub(crate) struct Completed {
    pub(crate) ack: Value,
    pub(crate) wait: Value,
    pub(crate) wait_with_output: Value,
    pub(crate) wait_markdown: String,
    pub(crate) results: Value,
    pub(crate) results_with_output: Value,
    pub(crate) results_with_events: Value,
    /// The acknowledgement of a second task, when the first one is known.
    pub(crate) later_ack: Value,
    /// A foreground run of the same task.
    pub(crate) run: Value,
}

const TEST_OUTPUT: &str = "===== 47 passed in 0.12s =====\n";

fn record_completed() -> Completed {
    let mut session = Session::with_agent(&[
        json!({"stderr_line": "a warning of the agent"}),
        json!({"write_file": {"path": "src/api.ts", "text": "one\n2\nthree\n"}}),
        json!({"write_file": {"path": "tests/api.test.ts", "text": "hello\n"}}),
        json!({"delete_file": "gone.txt"}),
        json!({"command": {"run": "PATH=bin:$PATH pytest tests"}}),
        json!({"message": "All done."}),
        json!({"turn_completed":
            {"input_tokens": 12_000, "cached_input_tokens": 11_160, "output_tokens": 3_500}}),
    ]);
    for (path, text) in
        [("src/api.ts", "one\ntwo\n"), ("gone.txt", "a\n"), ("out.txt", TEST_OUTPUT), ("tests/a.txt", "")]
    {
        session.stage.world.write(&format!("project/{path}"), text);
    }
    session.stage.write_program("project/bin/pytest", "#!/bin/sh\ncat out.txt\n");
    session.shell(
        "git init -q -b main && git add . \
         && git -c user.name=Tester -c user.email=tester@localhost commit -q -m First",
    );
    let task = json!({"task": "Implement user authentication", "mode": "workspace-write"});
    let ack = session.json("_codex_local_exec", task.clone());
    let id = json!({"task_id": task_id(&ack)});
    let with = |key: &str| json!({"task_id": id["task_id"], key: true});
    let wait = session.json("_codex_local_wait", id.clone());
    let results = session.json("_codex_local_results", id.clone());
    session.shell("git checkout -q . && git clean -qfd");
    Completed {
        wait_with_output: session.json("_codex_local_wait", with("include_output")),
        wait_markdown: session.markdown("_codex_local_wait", id.clone()),
        results_with_output: session.json("_codex_local_results", with("include_output")),
        results_with_events: session.json("_codex_local_results", with("include_events")),
        later_ack: session.json("_codex_local_exec", task.clone()),
        run: session.json("_codex_local_run", json!({"task": "x", "mode": "read-only"})),
        ack,
        wait,
        results,
    }
}
