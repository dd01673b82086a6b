//! Every error code is provoked by a real call, or by the test named here. The answer must have the code's exit code, and
//! the manifest must declare it for the command with the same `retryable`.

use delegator_testkit::declared_errors::undeclared_error;
use delegator_testkit::program::{RunOutput, World};
use delegator_testkit::stage::{Stage, successful_turn};
use mcp_delegator::error::ErrorCode;
use serde_json::{Value, json};

use crate::PROGRAM;
const UNKNOWN_TASK: &str = "T-local-0000000000";

enum Provocation {
    Call(RunOutput),
    /// The test that provokes it: file and name.
    Test(&'static str, &'static str),
}

use Provocation::{Call, Test};

fn call(args: &[&str]) -> Provocation {
    Call(World::new(PROGRAM).run(args))
}

/// `local run` with an agent that prints this recording and exits with a code.
fn run_recorded(stdout: &str, exit: u8) -> Provocation {
    let stage = Stage::with_shell_agent(PROGRAM, &format!("cat > /dev/null; cat ../stdout; exit {exit}"));
    stage.world.write("stdout", stdout);
    Call(stage.world.run(["local", "run", "x"]))
}

fn failed_turn(message: &str) -> String {
    let failure = json!({"type": "turn.failed", "error": {"message": message}});
    format!(
        "{}\n{}\n{failure}\n",
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "turn.started"})
    )
}

/// `local run` with an agent that never ends.
fn run_silent(limit: &str) -> Provocation {
    let stage = Stage::with_script(PROGRAM, json!([{"read_stdin": "all"}, "silent"]));
    Call(stage.world.run(["local", "run", "x", limit, "1"]))
}

fn with_stage(act: impl FnOnce(&Stage) -> RunOutput) -> Provocation {
    Call(act(&Stage::with_script(PROGRAM, successful_turn(&[]))))
}

fn provoke(code: ErrorCode) -> Provocation {
    let kinds = [invalid_call, task_call, failed_run, other_test];
    let found = kinds.into_iter().find_map(|provoke| provoke(code));
    found.unwrap_or_else(|| panic!("nothing provokes {code:?}"))
}

/// Calls without a task.
fn invalid_call(code: ErrorCode) -> Option<Provocation> {
    Some(match code {
        ErrorCode::ArgError => call(&["frobnicate"]),
        ErrorCode::UnknownFlag => call(&["local", "status", "--frobnicate"]),
        ErrorCode::InvalidValue => call(&["local", "status", "--limit", "x"]),
        ErrorCode::MissingArgument => call(&["local", "results"]),
        ErrorCode::InvalidJson => {
            Call(World::new(PROGRAM).run_with_input(["local", "status", "--input-json", "-"], b"{"))
        }
        ErrorCode::StdinTooLarge => {
            let text = vec![b'x'; 9 << 20];
            Call(World::new(PROGRAM).run_with_input(["local", "run", "-"], &text))
        }
        ErrorCode::InvalidCursor => call(&["manifest", "--cursor", "x"]),
        ErrorCode::InvalidId => call(&["local", "results", "a b"]),
        ErrorCode::ConfigInvalid => {
            let world = World::new(PROGRAM).variable("MCP_DELEGATOR_MAX_MODE", "nonsense");
            Call(world.run(["local", "exec", "x"]))
        }
        ErrorCode::NotFound => call(&["config", "show", "no-such-key"]),
        ErrorCode::TaskNotFound => call(&["local", "results", UNKNOWN_TASK]),
        ErrorCode::PolicyBlocked => call(&["local", "exec", "x", "--mode", "danger-full-access"]),
        ErrorCode::CommandRenamed => call(&["schemas"]),
        ErrorCode::TypoCorrected => call(&["manifst"]),
        ErrorCode::IoError => call(&["version", "--output", "/proc/version.json"]),
        ErrorCode::WarningsAsErrors => {
            let world = World::new(PROGRAM).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8");
            world.write("project/.mcp-delegator.toml", "max_concurrent = 5000\n");
            Call(world.run(["config", "show", "max_concurrent", "--strict-warnings"]))
        }
        ErrorCode::AlreadyExists => {
            let world = World::new(PROGRAM);
            let add = [
                "env",
                "add",
                "e1",
                "--name",
                "One",
                "--repo-url",
                "https://github.com/me/one",
                "--stack",
                "rust",
            ];
            world.run(add);
            Call(world.run(add))
        }
        _ => return None,
    })
}

/// Calls about a task.
fn task_call(code: ErrorCode) -> Option<Provocation> {
    Some(match code {
        ErrorCode::WrongState => with_stage(|stage| {
            let id = stage.exec(&[]);
            stage.wait(&id);
            stage.world.run(["local", "cancel", &id])
        }),
        ErrorCode::Unsupported => with_stage(|stage| {
            let id = stage.exec(&[]);
            stage.wait(&id);
            stage.world.run(["discard", &id, "--confirm-destructive"])
        }),
        ErrorCode::NotReady => {
            let stage = Stage::with_script(PROGRAM, json!([{"read_stdin": "all"}, "silent"]));
            let id = stage.exec(&[]);
            let run = stage.world.run(["local", "results", &id]);
            stage.run_json(&["local", "cancel", &id]);
            Call(run)
        }
        ErrorCode::DependencyMissing => {
            let world = World::new(PROGRAM).variable("MCP_DELEGATOR_CODEX_BIN", "/nonexistent/codex");
            Call(world.run(["local", "exec", "x"]))
        }
        ErrorCode::DependencyVersion => with_stage(|stage| {
            stage.write_program("bin/codex", "#!/bin/sh\necho codex-cli 0.40.0\n");
            stage.world.run(["local", "exec", "x", "--output-schema", "{}"])
        }),
        ErrorCode::ThreadNotFound => {
            with_stage(|stage| stage.world.run(["local", "resume", "x", "--thread-id", "t"]))
        }
        ErrorCode::IdempotencyMismatch => with_stage(|stage| {
            stage.exec(&["--idempotency-key", "k"]);
            stage.world.run(["local", "exec", "another", "--idempotency-key", "k"])
        }),
        ErrorCode::Incomplete => {
            let stage = Stage::with_script(PROGRAM, json!([{"read_stdin": "all"}, "silent"]));
            let id = stage.exec(&[]);
            let run = stage.world.run(["local", "wait", &id, "--timeout-sec", "1"]);
            stage.run_json(&["local", "cancel", &id]);
            Call(run)
        }
        ErrorCode::PartialFailure => with_stage(|stage| {
            let id = stage.exec(&[]);
            stage.wait(&id);
            stage.world.run(["local", "wait", "--task-ids", &id, "--task-ids", UNKNOWN_TASK])
        }),
        ErrorCode::AllItemsFailed => with_stage(|stage| {
            let id = stage.exec(&[]);
            stage.wait(&id);
            stage.world.run(["cancel", &id, UNKNOWN_TASK])
        }),
        _ => return None,
    })
}

/// Runs that fail.
fn failed_run(code: ErrorCode) -> Option<Provocation> {
    Some(match code {
        ErrorCode::Unauthenticated => run_recorded(
            &failed_turn(
                "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1/v1/responses",
            ),
            1,
        ),
        ErrorCode::QuotaExhausted => {
            run_recorded(&failed_turn("You've hit your usage limit. Try again later."), 1)
        }
        ErrorCode::RateLimited => {
            run_recorded(&failed_turn("exceeded retry limit, last status: 429 Too Many Requests"), 1)
        }
        ErrorCode::NetworkError => run_recorded(
            &failed_turn(
                "stream disconnected before completion: error sending request for url (http://127.0.0.1/v1/responses)",
            ),
            1,
        ),
        ErrorCode::TimeoutIdle => run_silent("--idle-timeout-sec"),
        ErrorCode::TimeoutHard => run_silent("--hard-timeout-sec"),
        ErrorCode::AgentFailed => run_recorded(&failed_turn("The model is on holiday."), 1),
        ErrorCode::AgentExited => run_recorded("", 3),
        ErrorCode::AgentProtocolError => run_recorded("", 0),
        _ => return None,
    })
}

/// What needs more than a call.
fn other_test(code: ErrorCode) -> Option<Provocation> {
    Some(match code {
        ErrorCode::ConfirmationRequired => {
            Test("git_safety/main.rs", "a_restore_needs_confirmation_and_no_running_writer")
        }
        ErrorCode::LockHeld => {
            Test("store_faults/database_locks.rs", "f36_a_busy_registry_is_a_retryable_error")
        }
        ErrorCode::PermissionDenied => {
            Test("faults/inputs.rs", "files_of_another_user_are_permission_denied")
        }
        ErrorCode::TimeoutWall => {
            Test("faults/cancellation.rs", "a_cancel_that_exceeds_its_time_limit_is_a_timeout")
        }
        ErrorCode::ResourceShortage => {
            Test("faults/resource_limits.rs", "f15_too_few_file_descriptors_are_a_retryable_error")
        }
        ErrorCode::SupervisorUnavailable => {
            Test("faults/resource_limits.rs", "f15_a_run_without_a_supervisor_is_retryable")
        }
        ErrorCode::Interrupted => Test("tasks/signals.rs", "an_interrupt_is_reported_and_exits_130"),
        ErrorCode::Terminated => Test("tasks/signals.rs", "a_termination_is_reported_and_exits_143"),
        ErrorCode::SubmissionUnconfirmed => {
            Test("cloud/fleet.rs", "a_submission_without_an_answer_may_be_repeated_only_with_a_key")
        }
        ErrorCode::Internal => Test(
            "mcp/conformance_suite.rs",
            "a_panicking_handler_is_an_error_response_and_the_server_continues",
        ),
        _ => return None,
    })
}

#[test]
fn every_error_code_is_reachable_and_declared() {
    let manifest = World::new(PROGRAM).run(["manifest"]).json()["data"].clone();
    for code in ErrorCode::ALL {
        match provoke(*code) {
            Call(run) => assert_answer(*code, &run, &manifest),
            Test(file, name) => assert!(has_test(file, name), "{code:?}: there is no test {name} in {file}"),
        }
    }
}

fn assert_answer(code: ErrorCode, run: &RunOutput, manifest: &Value) {
    let (facts, answer) = (code.facts(), run.json());
    assert_eq!(answer["error"]["code"], facts.agent, "{code:?}: {run:?}");
    assert_eq!(run.exit, Some(facts.exit.number().into()), "{code:?}: {run:?}");
    assert_eq!(undeclared_error(&answer, manifest), None, "{code:?}");
}

fn has_test(file: &str, name: &str) -> bool {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    std::fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("fn {name}(")))
}
