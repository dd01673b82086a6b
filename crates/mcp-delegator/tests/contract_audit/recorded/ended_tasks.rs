//! Tasks whose agent ended: with a completed turn, and in several ways without.

use std::sync::LazyLock;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Session, done, task_id};

/// A task in a git repository that changes files, runs tests and completes.
pub(crate) static COMPLETED: LazyLock<Completed> = LazyLock::new(record_completed);
/// Tasks outside of git that change nothing and fail.
pub(crate) static FAILED: LazyLock<Failed> = LazyLock::new(record_failed);

pub(crate) struct Completed {
    pub(crate) ack: Value,
    pub(crate) wait: Value,
    pub(crate) wait_with_output: Value,
    /// `wait` until any of two tasks has ended.
    pub(crate) wait_any: Value,
    /// Refused: `wait` has no events.
    pub(crate) wait_with_events: Value,
    pub(crate) wait_markdown: String,
    pub(crate) results: Value,
    pub(crate) results_with_output: Value,
    pub(crate) results_with_events: Value,
    /// The acknowledgement of a second task, when the duration of the first one is known.
    pub(crate) later_ack: Value,
    /// `run` with `async`.
    pub(crate) background_run: Value,
    /// `run` until the task has ended. Its agent writes a file although it may only read.
    pub(crate) run: Value,
    /// The acknowledgement of a task in the same thread.
    pub(crate) resume: Value,
    /// `wait` for a task that renames a file and adds [`ADDED_COUNT`] others, over MCP and on the command line.
    pub(crate) many_files: Value,
    pub(crate) many_files_cli: Value,
}

pub(crate) const ADDED_COUNT: usize = 2_100;

/// Codex writes two ids for a search.
const SEARCH: &str =
    r#"{"type":"item.completed","item":{"id":"item_4","type":"web_search","id":"ws_1","query":"x"}}"#;
const TEST_OUTPUT: &str = "===== 47 passed in 0.12s =====\n";
const ADD_FILES: &str =
    "git mv tests/a.txt tests/b.txt; mkdir to; cd to; seq -f a-file-with-a-long-name-%.0f 2100 | xargs touch";

/// A session in a repository with an agent that changes files and runs tests.
fn repository_session() -> Session {
    let session = Session::with_agent(&[
        json!({"stderr_line": "a warning of the agent"}),
        json!({"write_file": {"path": "src/api.ts", "text": "one\n2\nthree\n"}}),
        json!({"write_file": {"path": "tests/api.test.ts", "text": "hello\n"}}),
        json!({"delete_file": "gone.txt"}),
        json!({"command": {"run": "PATH=bin:$PATH pytest tests"}}),
        json!({"line": SEARCH}),
        json!({"message": "All done."}),
        json!({"turn_completed":
            {"input_tokens": 12_000, "cached_input_tokens": 11_160, "output_tokens": 3_500}}),
    ]);
    for (path, text) in [
        ("src/api.ts", "one\ntwo\n"),
        ("gone.txt", "a\n"),
        ("out.txt", TEST_OUTPUT),
        ("tests/a.txt", "moved\n"),
    ] {
        session.stage.world.write(&format!("project/{path}"), text);
    }
    session.stage.write_program("project/bin/pytest", "#!/bin/sh\ncat out.txt\n");
    session.shell(
        "git init -q -b main && git add . \
         && git -c user.name=Tester -c user.email=tester@localhost commit -q -m First",
    );
    session
}

fn record_completed() -> Completed {
    let mut session = repository_session();
    let task = json!({"task": "Implement user authentication", "mode": "workspace-write"});
    let ack = session.json("_codex_local_exec", task);
    let id = json!({"task_id": task_id(&ack)});
    let with = |key: &str| json!({"task_id": id["task_id"], key: true});
    let wait = session.json("_codex_local_wait", id.clone());
    let results = session.json("_codex_local_results", id.clone());
    let wait_with_output = session.json("_codex_local_wait", with("include_output"));
    let wait_markdown = session.markdown("_codex_local_wait", id.clone());
    let results_with_output = session.json("_codex_local_results", with("include_output"));
    let results_with_events = session.json("_codex_local_results", with("include_events"));
    let wait_with_events = session.json("_codex_local_wait", with("include_events"));
    session.set_agent(&[&[json!({"write_file": {"path": "notes.txt", "text": "x"}})], &done()[..]].concat());
    let resumed = json!({"task": "Go on", "task_id": id["task_id"]});
    let mut completed = Completed {
        wait_any: Value::Null,
        many_files: Value::Null,
        many_files_cli: Value::Null,
        later_ack: session.json("_codex_local_exec", json!({"task": "x"})),
        background_run: session.json("_codex_local_run", json!({"task": "x", "async": true})),
        run: session.json("_codex_local_run", json!({"task": "x"})),
        resume: session.json("_codex_local_resume", resumed),
        ack,
        wait,
        wait_with_output,
        wait_with_events,
        wait_markdown,
        results,
        results_with_output,
        results_with_events,
    };
    session.set_agent(&[&[json!({"command": {"run": ADD_FILES}})], &done()[..]].concat());
    let task = json!({"task": "x", "mode": "workspace-write"});
    let id = task_id(&session.json("_codex_local_exec", task));
    completed.many_files = session.json("_codex_local_wait", json!({ "task_id": id }));
    completed.many_files_cli = session.stage.wait(&id);
    let both = json!({"task_ids": [id, task_id(&completed.ack)], "until": "any"});
    completed.wait_any = session.json("_codex_local_wait", both);
    session.finish();
    completed
}

pub(crate) struct Failed {
    /// `wait`, `results` and `run` of a task that fails with the stack trace of a program.
    pub(crate) wait: Value,
    pub(crate) results: Value,
    pub(crate) run: Value,
    /// `run` of an agent that exits with 3 and no event.
    pub(crate) run_exit: Value,
    /// `run` of an agent that is killed.
    pub(crate) run_killed: Value,
    /// `run` of an agent that exits after a log line with the number 429 in its time.
    pub(crate) run_after_log_line: Value,
    /// `run` of an agent whose model refuses requests for a while.
    pub(crate) run_rate_limited: Value,
    /// `results` of a task whose error has three lines.
    pub(crate) results_of_long_error: Value,
    /// `results` of tasks that change nothing, and add a file of two lines.
    pub(crate) results_unchanged: Value,
    pub(crate) results_added: Value,
    /// `results` of a task that changes a line of a file, and of one whose tests fail.
    pub(crate) results_modified: Value,
    pub(crate) results_tested: Value,
    /// `results` of a task whose supervisor was killed.
    pub(crate) results_lost: Value,
}

/// What Node.js prints for an error that a program does not catch.
const STACK_TRACE: &str = "\
#!/bin/sh
echo \"$PWD/src/crud/workspace.service.ts:42\"
echo '    return workspace.name;'
echo '                     ^'
echo
echo \"TypeError: Cannot read property 'name' of null\"
echo \"    at load ($PWD/src/crud/workspace.service.ts:42:15)\"
echo
echo 'Node.js v22.11.0'
exit 1
";
const FAILED_TESTS: &str = "\
#!/bin/sh
echo 'FAILED tests/test_api.py::test_name - assert 1 == 2'
echo '===== 1 failed, 2 passed, 3 skipped in 0.12s ====='
exit 1
";
const LOG_LINE: &str = "2026-11-15T18:07:43.429123Z ERROR codex_core: failed to parse config";

fn record_failed() -> Failed {
    let mut session = Session::with_agent(&[
        json!({"command": {"run": "PATH=bin:$PATH node src/main.js"}}),
        json!({"stderr_line": "x".repeat(2_000)}),
        json!({"stderr_line": "the last line on stderr"}),
        json!({"turn_failed": "I could not fix it."}),
    ]);
    session.stage.write_program("project/bin/node", STACK_TRACE);
    session.stage.write_program("project/bin/pytest", FAILED_TESTS);
    session.stage.world.write("project/src/crud/workspace.service.ts", "code\n");
    let ack = session.json("_codex_local_exec", json!({"task": "x"}));
    let id = json!({"task_id": task_id(&ack)});
    let wait = session.json("_codex_local_wait", id.clone());
    let results = session.json("_codex_local_results", id);
    let run = session.json("_codex_local_run", json!({"task": "x"}));
    let mut run_with = |steps: &[Value]| {
        session.set_agent(steps);
        session.json("_codex_local_run", json!({"task": "x"}))
    };
    let refused = "Rate limit reached for gpt-5.5. Please try again in 1.898s.";
    let run_exit = run_with(&[json!({"exit": 3})]);
    let run_killed = run_with(&[json!({"raise": "KILL"})]);
    let run_after_log_line = run_with(&[json!({"stderr_line": LOG_LINE}), json!({"exit": 1})]);
    let run_rate_limited = run_with(&[json!({"turn_failed": refused})]);
    let long_error = run_with(&[json!({"turn_failed": "First line.\nSecond line.\nThird line."})]);
    let unchanged = run_with(&done());
    let added =
        run_with(&[&[json!({"write_file": {"path": "new.txt", "text": "a\nb\n"}})], &done()[..]].concat());
    let write = json!({"write_file": {"path": "src/crud/workspace.service.ts", "text": "changed\n"}});
    let modified = run_with(&[&[write], &done()[..]].concat());
    let tests = json!({"command": {"run": "PATH=bin:$PATH pytest tests"}});
    let tested = run_with(&[&[tests], &done()[..]].concat());
    let lost = run_without_supervisor(&mut session);
    let mut results_of = |run: &Value| session.json("_codex_local_results", json!({"task_id": task_id(run)}));
    Failed {
        results_of_long_error: results_of(&long_error),
        results_unchanged: results_of(&unchanged),
        results_added: results_of(&added),
        results_lost: results_of(&lost),
        results_modified: results_of(&modified),
        results_tested: results_of(&tested),
        wait,
        results,
        run,
        run_exit,
        run_killed,
        run_after_log_line,
        run_rate_limited,
    }
}

/// The `wait` for a task whose supervisor is killed while its agent works.
fn run_without_supervisor(session: &mut Session) -> Value {
    session.set_agent(&[json!("silent")]);
    let ack = session.json("_codex_local_exec", json!({"task": "x"}));
    let supervisor = Pid::from_raw(session.stage.supervisor_pid(&task_id(&ack))).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    session.json("_codex_local_wait", json!({"task_id": task_id(&ack)}))
}
