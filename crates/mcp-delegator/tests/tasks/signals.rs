//! SIGINT and SIGTERM during a blocking command: one envelope, and the exit code a shell expects. A command that waits
//! for a task ends alone and prints how to wait for the task again.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use delegator_testkit::program::{RunOutput, World, wait_for_output};
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use delegator_testkit::terminal::TerminalSession;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Starts a command that reads its input. Its debug log shows when it is ready.
fn start_waiting_call(world: &World, args: &[&str]) -> Child {
    let mut command = world.command(args);
    command.env("MCP_DELEGATOR_LOG", "debug");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_until_reading(child: &mut Child) {
    wait_for_stderr(child, "reading");
}

fn wait_for_stderr(child: &mut Child, text: &str) {
    let stderr = child.stderr.as_mut().unwrap();
    let mut output = String::new();
    let mut byte = [0];
    while !output.contains(text) {
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "ended early: {output}");
        output.push(char::from(byte[0]));
    }
}

fn end_by_signal(signal: Signal, args: &[&str]) -> RunOutput {
    let world = World::new(PROGRAM);
    let mut child = start_waiting_call(&world, args);
    wait_until_reading(&mut child);
    kill_process(Pid::from_child(&child), signal).unwrap();
    // Stdin stays open: the signal must end the command, not the end of input.
    let stdin = child.stdin.take();
    let run = wait_for_output(child);
    drop(stdin);
    run
}

#[test]
fn an_interrupt_is_reported_and_exits_130() {
    let run = end_by_signal(Signal::INT, &["version", "--input-json", "-"]);
    assert_eq!(run.exit, Some(130));
    let envelope = run.json();
    assert_eq!(envelope["error"]["code"], "CANCELLED");
    assert_eq!(envelope["meta"]["exit_code"], 130);
}

#[test]
fn a_termination_is_reported_and_exits_143() {
    let run = end_by_signal(Signal::TERM, &["version", "--input-json", "-", "--envelope", "standard"]);
    assert_eq!(run.exit, Some(143));
    assert_eq!(run.document()["error"]["code"], "E_INTERNAL_003");
}

#[test]
fn an_interrupt_leaves_the_output_file_unchanged() {
    let world = World::new(PROGRAM);
    world.write("project/existing.json", "existing");
    let target = world.project().join("existing.json");
    let run =
        end_by_signal(Signal::INT, &["version", "--input-json", "-", "--output", target.to_str().unwrap()]);
    assert_eq!(run.exit, Some(130));
    assert_eq!(std::fs::read_to_string(target).unwrap(), "existing");
}

/// A stage whose agent waits for the file `go`.
fn busy_stage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[json!({"wait_for_file": "go"})]))
}

/// Sends a signal to a command once it waits for its task; returns its output.
fn interrupt_blocking_call(signal: Signal, mut command: Command) -> RunOutput {
    command.env("MCP_DELEGATOR_LOG", "mcp_delegator=debug");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    wait_for_stderr(&mut child, "waiting for a task");
    kill_process(Pid::from_child(&child), signal).unwrap();
    wait_for_output(child)
}

/// Checks that the task of an envelope is still running and that the envelope names the wait command; returns its id.
fn assert_detached(stage: &Stage, envelope: &Value) -> String {
    let id = envelope["meta"]["error_context"]["task_id"].as_str().unwrap_or_else(|| panic!("{envelope}"));
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"]["tasks"][0]["task_id"], json!(id), "{status}");
    assert_eq!(status["data"]["summary"]["running"], 1, "{status}");
    assert!(envelope["error"]["message"].as_str().unwrap().contains("continues"), "{envelope}");
    let hint = envelope["error"]["suggestion"].as_str().unwrap();
    assert!(hint.ends_with(&format!("mcp-delegator wait {id}")), "{envelope}");
    id.to_owned()
}

#[test]
fn an_interrupt_detaches_and_prints_the_wait_command() {
    let stage = busy_stage();
    let run = interrupt_blocking_call(Signal::INT, stage.world.command(["local", "run", "x"]));
    assert_eq!(run.exit, Some(14), "{run:?}");
    let id = assert_detached(&stage, &run.json());
    assert!(run.json()["error"]["message"].as_str().unwrap().starts_with("Detached from"), "{run:?}");
    let run = interrupt_blocking_call(Signal::INT, stage.world.command(["local", "wait", &id]));
    assert_eq!((run.exit, assert_detached(&stage, &run.json())), (Some(14), id.clone()), "{run:?}");
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn an_interrupted_wait_for_several_tasks_names_all_of_them() {
    let stage = busy_stage();
    let (one, two) = (stage.exec(&[]), stage.exec(&[]));
    let wait = format!("mcp-delegator wait {one} {two}");
    for (signal, exit) in [(Signal::INT, 14), (Signal::TERM, 143)] {
        for until in ["all", "any"] {
            let args = ["local", "wait", "--until", until, "--task-ids", &one, "--task-ids", &two];
            let run = interrupt_blocking_call(signal, stage.world.command(args));
            assert_eq!(run.exit, Some(exit), "{run:?}");
            let envelope = run.json();
            let message = envelope["error"]["message"].as_str().unwrap();
            assert!(message.contains(&format!("tasks {one}, {two}")), "{envelope}");
            assert!(envelope["error"]["suggestion"].as_str().unwrap().ends_with(&wait), "{envelope}");
            assert_eq!(envelope["meta"]["error_context"]["task_ids"], json!([one, two]), "{envelope}");
        }
    }
    stage.world.write("project/go", "");
    for id in [&one, &two] {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
}

#[test]
fn a_terminated_call_reports_that_the_task_continues() {
    let stage = busy_stage();
    let run = interrupt_blocking_call(Signal::TERM, stage.world.command(["local", "run", "x"]));
    assert_eq!(run.exit, Some(143), "{run:?}");
    let id = assert_detached(&stage, &run.json());
    assert!(run.json()["error"]["message"].as_str().unwrap().contains("SIGTERM"), "{run:?}");
    let run = interrupt_blocking_call(Signal::TERM, stage.world.command(["local", "wait", &id]));
    assert_eq!((run.exit, assert_detached(&stage, &run.json())), (Some(143), id.clone()), "{run:?}");
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

/// Repeating the same call would start another task.
#[test]
fn a_run_over_its_budget_prints_the_wait_command() {
    let stage = busy_stage();
    let run = stage.world.run(["local", "run", "x", "--call-budget-sec", "1"]);
    assert_eq!(run.exit, Some(14), "{run:?}");
    let id = assert_detached(&stage, &run.json());
    let run = stage.world.run(["local", "wait", &id, "--timeout-sec", "1"]);
    assert_eq!((run.exit, assert_detached(&stage, &run.json())), (Some(14), id.clone()), "{run:?}");
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

/// The visible text of each terminal line; text before an erase sequence is gone.
fn visible_lines(output: &str) -> Vec<&str> {
    let rest = |line| str::rsplit(line, "\u{1b}[2K").next().unwrap().rsplit('\r').next().unwrap();
    output.lines().map(rest).collect()
}

#[test]
fn the_progress_bar_is_erased_before_other_output() {
    let stage = busy_stage();
    let id = stage.exec(&[]);
    for (signal, exit) in [(Signal::INT, 14), (Signal::TERM, 143)] {
        for args in [["local", "run", "x"], ["local", "wait", &id]] {
            let mut command = stage.world.command(args);
            command.env("TERM", "xterm");
            let mut watched = TerminalSession::start(command);
            watched.wait_for_text("s  ");
            kill_process(Pid::from_child(&watched.child), signal).unwrap();
            let run = watched.wait();
            assert_eq!(run.exit, Some(exit), "{run:?}");
            let lines = visible_lines(&run.stdout);
            assert!(lines.iter().any(|line| line.contains("mcp-delegator wait T-local-")), "{run:?}");
            let is_spinner = |first: char| ('\u{2800}'..='\u{28ff}').contains(&first);
            assert!(!lines.iter().any(|line| line.starts_with(is_spinner)), "{lines:?} in {run:?}");
        }
    }
    stage.world.write("project/go", "");
    wait_until("every task has ended", || {
        let summary = stage.run_json(&["local", "status"])["data"]["summary"].clone();
        (&summary["running"], &summary["queued"]) == (&json!(0), &json!(0))
    });
}

/// The task of the demo is in the state directory of the demo.
#[test]
fn a_detached_demo_prints_a_wait_command_that_works() {
    let stage = busy_stage();
    let (go, folder) = (stage.root().join("go"), stage.root().join("a folder"));
    std::fs::create_dir(&folder).unwrap();
    // The git of the demo's agent waits for the file `go`.
    let wait = format!("[ \"$1\" = ls-files ] && while [ ! -e {} ]; do sleep 0.01; done", go.display());
    stage.write_program(
        "held/git",
        &format!("#!/bin/sh\n{wait}\nexec /usr/bin/env PATH=/usr/bin:/bin git \"$@\"\n"),
    );
    let mut command = stage.world.command(["demo"]);
    let path = format!("{}:/usr/bin:/bin", stage.root().join("held").display());
    command.env("PATH", path).env("TMPDIR", &folder);
    let run = interrupt_blocking_call(Signal::INT, command);
    assert_eq!(run.exit, Some(14), "{run:?}");
    let envelope = run.json();
    std::fs::write(&go, "").unwrap();
    let hint = envelope["error"]["suggestion"].as_str().unwrap();
    let wait_command = hint.split_once(": ").unwrap().1;
    assert!(run.stderr.contains(wait_command), "{run:?}");
    let wait_command = wait_command.replace("mcp-delegator wait", &format!("'{PROGRAM}' wait"));
    let waited = stage.world.run_as(Path::new("/bin/sh"), ["-c", &wait_command]);
    assert_eq!(waited.json()["data"]["state"], "completed", "{waited:?}");
}
