//! Start and exit of agents: missing programs, exit codes, signals, unkillable processes.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use delegator_testkit::program::{output_of, wait_for_output};
use delegator_testkit::stage::{Stage, is_alive, successful_turn, task_processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{PROGRAM, scripted_stage, terminal_states};

fn run_with_variables(stage: &Stage, variables: &[(&str, &str)]) -> (Option<i32>, Value) {
    let mut command = stage.world.command(["local", "run", "x", "--envelope", "tool"]);
    command.envs(variables.iter().copied());
    let run = output_of(&mut command);
    (run.exit, run.json())
}

#[test]
fn f01_a_missing_program_is_refused_without_a_task() {
    let stage = scripted_stage(successful_turn(&[]));
    std::fs::create_dir(stage.root().join("empty")).unwrap();
    let plain = stage.write_program("plain", "x");
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o600)).unwrap();
    let (empty, plain) = (stage.root().join("empty").display().to_string(), plain.display().to_string());
    for (variables, expected) in [
        (vec![("MCP_DELEGATOR_CODEX_BIN", "codex"), ("PATH", empty.as_str())], "\"codex\""),
        (vec![("MCP_DELEGATOR_CODEX_BIN", "/nowhere/codex")], "/nowhere/codex"),
        (vec![("MCP_DELEGATOR_CODEX_BIN", plain.as_str())], plain.as_str()),
    ] {
        let (exit, response) = run_with_variables(&stage, &variables);
        let code = &response["error"]["details"]["code"];
        assert_eq!((exit, code), (Some(4), &json!("DEPENDENCY_MISSING")), "{response}");
        assert!(response["error"]["message"].as_str().unwrap().contains(expected), "{response}");
    }
    let summary = stage.run_json(&["local", "status"])["data"]["summary"].clone();
    assert_eq!(summary, json!({"running": 0, "queued": 0, "recently_completed": 0}));
    assert_eq!(stage.world.run(["local", "run", "next"]).exit, Some(0));
}

#[test]
fn f01_a_program_that_cannot_start_is_a_failed_task() {
    let stage = scripted_stage(successful_turn(&[])).variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let foreign = stage.root().join("foreign");
    std::fs::write(&foreign, [0x7f, b'E', b'L', b'F', 2, 1, 1, 0]).unwrap();
    std::fs::set_permissions(&foreign, PermissionsExt::from_mode(0o755)).unwrap();
    let not_a_program = stage.write_program("scrap", "x");
    let busy = stage.write_program("busy", "#!/bin/sh\n");
    let writer = std::fs::OpenOptions::new().write(true).open(&busy).unwrap();
    for program in [&foreign, &not_a_program, &busy] {
        let (exit, response) =
            run_with_variables(&stage, &[("MCP_DELEGATOR_CODEX_BIN", program.to_str().unwrap())]);
        assert_eq!((exit, &response["error"]["code"]), (Some(80), &json!("TOOL_ERROR")), "{response}");
        assert_eq!(response["error"]["details"]["failure_kind"], "spawn_failed", "{response}");
        assert_eq!(stage.world.run(["local", "run", "next"]).exit, Some(0), "the slot was not freed");
    }
    drop(writer);
}

/// Runs one task; the agent exits or kills itself as the task text says.
fn run_task(stage: &Stage, task: &str) -> Value {
    stage.run_json(&["local", "run", task])
}

#[test]
fn f02_every_exit_code_and_signal_is_reported() {
    let agent = "read -r how what\nulimit -c 0\ncase $how in exit) exit $what;; kill) kill -$what $$; sleep 60;; esac";
    let stage = Stage::with_shell_agent(PROGRAM, agent).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8");
    // Without signals that stop, continue or are ignored; with some real-time signals, which have no names.
    let signals = (1..=31).filter(|signal| ![17, 18, 19, 20, 21, 22, 23, 28].contains(signal)).chain(34..=40);
    let mut tasks: Vec<(String, i32)> = (0..=255).map(|code| (format!("exit {code}"), code)).collect();
    tasks.extend(signals.map(|signal| (format!("kill {signal}"), 128 + signal)));
    assert_eq!(tasks.len(), 286);
    // Run once before the threads start, so that the agent's version is cached.
    run_task(&stage, "exit 0");
    std::thread::scope(|scope| {
        for part in tasks.chunks(tasks.len().div_ceil(4)) {
            let stage = &stage;
            scope
                .spawn(move || part.iter().for_each(|(task, code)| assert_exit_reported(stage, task, *code)));
        }
    });
}

fn assert_exit_reported(stage: &Stage, task: &str, code: i32) {
    let response = run_task(stage, task);
    let context = &response["meta"]["error_context"];
    assert_eq!(context["exit_code"], code, "{task}: {response}");
    let message = response["error"]["message"].as_str().unwrap();
    let kind = context["failure_kind"].as_str().unwrap();
    match task {
        "exit 0" => assert_eq!(kind, "no_terminal_event", "{response}"),
        "kill 9" => {
            assert_eq!(kind, "killed", "{response}");
            assert!(message.contains("SIGKILL") && message.contains("memory"), "{response}");
        }
        "kill 11" => assert!(kind == "killed" && message.contains("SIGSEGV"), "{response}"),
        _ if task.starts_with("kill") => assert_eq!(kind, "killed", "{task}: {response}"),
        _ => assert_eq!(kind, "agent_exit", "{task}: {response}"),
    }
}

#[test]
fn f03_an_agent_that_ignores_signals_is_killed_with_its_children() {
    let child_step = |session: &str, orphan: bool| json!({"child": {"session": session, "orphan": orphan, "seconds": 300, "ignore": ["TERM", "INT"]}});
    let stage = scripted_stage(successful_turn(&[
        json!({"trap": {"signals": ["INT", "TERM"], "log": "signals"}}),
        child_step("same", false),
        child_step("own", true),
        child_step("own_group", true),
        json!({"touch_file": "ready"}),
        json!("silent"),
    ]));
    let id = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    assert!(task_processes(&id).len() >= 4, "{:?}", task_processes(&id));
    let response = stage.run_json(&["local", "cancel", &id, "--reason", "test"]);
    assert_eq!(response["data"]["state"], "cancelled", "{response}");
    assert_eq!(
        (&response["data"]["previous_state"], &response["data"]["survivors"]),
        (&json!("working"), &json!([]))
    );
    assert_eq!(task_processes(&id), Vec::<i32>::new());
    assert_eq!(terminal_states(&stage, &id), ["cancelled"]);
    let signals = std::fs::read_to_string(stage.world.project().join("signals")).unwrap();
    let names: Vec<&str> = signals.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["INT", "TERM"], "SIGINT and SIGTERM before SIGKILL");
}

#[test]
fn f06_an_unkillable_child_is_reported_and_the_slot_is_freed() {
    let stage = Stage::with_shell_agent(
        PROGRAM,
        "[ -e stay ] && { ../root/setpriv --reuid=0 sleep 300 >/dev/null 2>&1 & sleep 0.3; touch ready; wait; }\n\
         echo '{\"type\":\"thread.started\",\"thread_id\":\"t\"}'; echo '{\"type\":\"turn.started\"}'\n\
         echo '{\"type\":\"turn.completed\",\"usage\":{}}'",
    )
    .variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    stage.world.write("project/stay", "");
    let Some(UnprivilegedProgram { wrapper: program, .. }) = program_as_unprivileged_user(&stage) else {
        return;
    };
    // Created after the chown: a setuid program that makes the agent's child run as root.
    std::fs::create_dir(stage.root().join("root")).unwrap();
    std::fs::set_permissions(stage.root().join("root"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::copy("/usr/bin/setpriv", stage.root().join("root/setpriv")).unwrap();
    std::fs::set_permissions(stage.root().join("root/setpriv"), PermissionsExt::from_mode(0o4755)).unwrap();
    let mut foreground = stage.world.command_as(&program, ["local", "run", "x"]);
    let foreground =
        foreground.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    stage.wait_for_project_file("ready");
    let running = stage.world.run_as(&program, ["local", "status"]).json();
    let id =
        running["data"]["tasks"][0]["task_id"].as_str().unwrap_or_else(|| panic!("{running}")).to_owned();
    let response = stage.world.run_as(&program, ["local", "cancel", &id]).json();
    let survivors = response["data"]["survivors"].as_array().unwrap().clone();
    assert_eq!((&response["data"]["state"], survivors.len()), (&json!("cancelled"), 1), "{response}");
    let pid = i32::try_from(survivors[0].as_i64().unwrap()).unwrap();
    assert!(response["warnings"].to_string().contains("kill_incomplete"), "{response}");
    assert!(is_alive(pid));
    let cancelled = wait_for_output(foreground);
    let error = cancelled.json()["error"].clone();
    assert_eq!((cancelled.exit, &error["phase"]), (Some(130), &json!("cleanup")), "{cancelled:?}");
    assert_eq!(cancelled.json()["meta"]["error_context"]["survivors"], json!([pid]), "{cancelled:?}");
    std::fs::remove_file(stage.world.project().join("stay")).unwrap();
    assert_eq!(stage.world.run_as(&program, ["local", "run", "next"]).exit, Some(0));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// The program for user 65534, in a world that belongs to that user.
pub(crate) struct UnprivilegedProgram {
    /// Runs the program as that user.
    pub(crate) wrapper: std::path::PathBuf,
    /// A copy of the program: that user may not reach the build directory, for example below `/root`.
    pub(crate) copy: std::path::PathBuf,
}

/// `None` if this process cannot become that user.
pub(crate) fn program_as_unprivileged_user(stage: &Stage) -> Option<UnprivilegedProgram> {
    let (copy, agent) = (stage.root().join("bin/copy"), stage.root().join("bin/codex"));
    std::fs::copy(PROGRAM, &copy).unwrap();
    let script = std::fs::read_to_string(&agent).unwrap();
    std::fs::write(&agent, script.replace(PROGRAM, &copy.display().to_string())).unwrap();
    let drop_privileges = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let wrapper = stage.write_program(
        "bin/unprivileged",
        &format!("#!/bin/sh\nexec {drop_privileges} '{}' \"$@\"\n", copy.display()),
    );
    chown_to_unprivileged_user(&stage.root());
    // It fails if this process is not root.
    let works = stage.world.run_as(&wrapper, ["version"]).exit == Some(0);
    works.then_some(UnprivilegedProgram { wrapper, copy })
}

fn chown_to_unprivileged_user(path: &std::path::Path) {
    let _ = std::os::unix::fs::chown(path, Some(65534), Some(65534));
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().unwrap().is_dir();
        if is_folder {
            chown_to_unprivileged_user(&entry.path())
        } else {
            let _ = std::os::unix::fs::chown(entry.path(), Some(65534), Some(65534));
        }
    }
}
