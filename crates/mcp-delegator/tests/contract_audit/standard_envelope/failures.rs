//! Types and codes of errors that need a task, a limit or another machine state.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use delegator_testkit::program::RunOutput;
use delegator_testkit::stage::{Stage, successful_turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::PROGRAM;
use crate::assertions::equals;
use crate::row::{Section, works};

const EXEC: [&str; 5] = ["local", "exec", "x", "--envelope", "standard"];

fn quick_stage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[]))
}

fn silent_stage() -> Stage {
    Stage::with_script(PROGRAM, json!([{"read_stdin": "all"}, {"thread_started": {}}, "silent"]))
}

#[track_caller]
fn is_error(run: &RunOutput, kind: &str, code: &str) {
    let answer = run.document();
    equals(&answer, "/error/type", kind);
    equals(&answer, "/error/code", code);
}

/// A task when no agent is installed.
fn without_agent() -> RunOutput {
    quick_stage().variable("MCP_DELEGATOR_CODEX_BIN", "/nowhere/codex").world.run(EXEC)
}

/// A cancel while the supervisor is stopped: it holds its lock and ends nothing.
fn slow_cancel() -> RunOutput {
    let stage = silent_stage()
        .variable("MCP_DELEGATOR_INTERRUPT_GRACE_SEC", "0")
        .variable("MCP_DELEGATOR_TERMINATE_GRACE_SEC", "0");
    let id = stage.exec(&[]);
    let supervisor = Pid::from_raw(stage.supervisor_pid(&id)).unwrap();
    kill_process(supervisor, Signal::STOP).unwrap();
    let run = stage.world.run(["local", "cancel", &id, "--envelope", "standard"]);
    kill_process(supervisor, Signal::CONT).unwrap();
    stage.wait(&id);
    run
}

/// The superuser needs a capability to read a file without permissions, so the program runs without any.
fn unreadable_file() -> RunOutput {
    let stage = quick_stage();
    stage.world.write("private", "{}");
    let private = stage.root().join("private");
    set_permissions(&private, Permissions::from_mode(0o000)).unwrap();
    let without = "setpriv --bounding-set=-all --inh-caps=-all";
    let program = stage.write_program(
        "bin/without-capabilities",
        &format!(
            "#!/bin/sh\n[ \"$(id -u)\" != 0 ] || exec {without} '{PROGRAM}' \"$@\"\nexec '{PROGRAM}' \"$@\"\n"
        ),
    );
    let args = ["events", "summarize", private.to_str().unwrap(), "--envelope", "standard"];
    stage.world.run_as(&program, args)
}

pub(crate) const SECTIONS: &[Section] = &[Section {
    heading: "5. Errors",
    rows: &[
        works(48, "TimeoutError", "A task that reached its idle limit", || {
            let limit = ["local", "run", "x", "--idle-timeout-sec", "1", "--envelope", "standard"];
            is_error(&silent_stage().world.run(limit), "TimeoutError", "E_TIMEOUT_002");
        }),
        works(49, "PermissionError", "A mode that the configuration does not permit", || {
            let stage = quick_stage().variable("MCP_DELEGATOR_MAX_MODE", "read-only");
            let run = stage.world.run([&EXEC[..], &["--mode", "workspace-write"]].concat());
            is_error(&run, "PermissionError", "E_PERMISSION_002");
        }),
        works(51, "DependencyError", "A task when no agent is installed", || {
            equals(&without_agent().document(), "/error/type", "DependencyError");
        }),
        works(52, "InternalError", "A process that can write no file", || {
            let stage = quick_stage();
            stage.run_json(&["local", "run", "first"]);
            // The signal would end the process; ignored, its writes fail.
            let limited = format!("trap '' XFSZ; ulimit -f 0; exec '{PROGRAM}' {}", EXEC.join(" "));
            let run = stage.world.run_as(Path::new("/bin/sh"), ["-c", &limited]);
            is_error(&run, "InternalError", "E_INTERNAL_002");
        }),
        works(56, "E_TIMEOUT_001", "A cancel that does not end the task in time", || {
            is_error(&slow_cancel(), "TimeoutError", "E_TIMEOUT_001");
        }),
        works(57, "E_PERMISSION_001", "A file that this user may not read", || {
            is_error(&unreadable_file(), "PermissionError", "E_PERMISSION_001");
        }),
        works(59, "E_DEPENDENCY_001", "A task when no agent is installed", || {
            is_error(&without_agent(), "DependencyError", "E_DEPENDENCY_001");
        }),
    ],
}];
