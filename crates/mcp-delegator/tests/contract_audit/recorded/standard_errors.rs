//! Failures in the standard envelope that need a limit, a refusal of the system or a missing program.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::LazyLock;

use delegator_testkit::stage::Stage;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;

pub(crate) static STANDARD_ERRORS: LazyLock<StandardErrors> = LazyLock::new(record);

pub(crate) struct StandardErrors {
    /// A run that reached its idle limit.
    pub(crate) idle_run: Value,
    /// A cancel that its supervisor does not answer in time.
    pub(crate) slow_cancel: Value,
    /// A file that this user may not read.
    pub(crate) unreadable_file: Value,
    /// A task without the program of its agent.
    pub(crate) missing_agent: Value,
    /// An output file that cannot be created.
    pub(crate) unwritable_output: Value,
}

fn record() -> StandardErrors {
    let stage = Stage::with_script(PROGRAM, json!([{"read_stdin": "all"}, {"thread_started": {}}, "silent"]));
    StandardErrors {
        idle_run: answer(&stage, &["local", "run", "x", "--idle-timeout-sec", "1"]),
        slow_cancel: slow_cancel(&stage),
        unreadable_file: unreadable_file(&stage),
        unwritable_output: answer(&stage, &["version", "--output", "/proc/version.json"]),
        missing_agent: answer(
            &stage.variable("MCP_DELEGATOR_CODEX_BIN", "/nonexistent/codex"),
            &["local", "exec", "x"],
        ),
    }
}

fn answer(stage: &Stage, args: &[&str]) -> Value {
    stage.world.run([args, &["--envelope", "standard"]].concat()).document()
}

/// A stopped supervisor holds its lock and ends nothing.
fn slow_cancel(stage: &Stage) -> Value {
    let id = stage.exec(&[]);
    let supervisor = Pid::from_raw(stage.supervisor_pid(&id)).unwrap();
    kill_process(supervisor, Signal::STOP).unwrap();
    let cancel = answer(stage, &["local", "cancel", &id]);
    kill_process(supervisor, Signal::CONT).unwrap();
    stage.wait(&id);
    cancel
}

/// The superuser needs a capability to read a file without permissions, so the program runs without any.
fn unreadable_file(stage: &Stage) -> Value {
    let program = stage.write_program(
        "bin/without-capabilities",
        &format!(
            "#!/bin/sh\n[ \"$(id -u)\" != 0 ] || exec setpriv --bounding-set=-all --inh-caps=-all {PROGRAM} \"$@\"\n\
             exec {PROGRAM} \"$@\"\n"
        ),
    );
    stage.world.write("private", "{}");
    let private = stage.root().join("private");
    set_permissions(&private, Permissions::from_mode(0o000)).unwrap();
    let args = ["events", "summarize", private.to_str().unwrap(), "--envelope", "standard"];
    stage.world.run_as(&program, args).document()
}
