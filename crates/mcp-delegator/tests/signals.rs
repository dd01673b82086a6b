//! SIGINT and SIGTERM while a call waits: one envelope, and the exit code a shell expects.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

use std::io::Read;
use std::process::{Child, Stdio};

use delegator_testkit::program::{World, finished};
use rustix::process::{Pid, Signal, kill_process};

/// A call that waits for its input. It logs once it is up, so a test need not guess when.
fn waiting(world: &World, args: &[&str]) -> Child {
    let mut command = world.command(args);
    command.env("MCP_DELEGATOR_LOG", "debug");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn until_it_reads(child: &mut Child) {
    let stderr = child.stderr.as_mut().unwrap();
    let mut seen = String::new();
    let mut byte = [0];
    while !seen.contains("reading") {
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "ended early: {seen}");
        seen.push(char::from(byte[0]));
    }
}

fn end_by(signal: Signal, args: &[&str]) -> delegator_testkit::program::Run {
    let world = World::new(env!("CARGO_BIN_EXE_mcp-delegator"));
    let mut child = waiting(&world, args);
    until_it_reads(&mut child);
    kill_process(Pid::from_child(&child), signal).unwrap();
    // Kept open until the end: the signal must end it, not the end of input.
    let stdin = child.stdin.take();
    let run = finished(child);
    drop(stdin);
    run
}

#[test]
fn an_interrupt_is_told_and_exits_130() {
    let run = end_by(Signal::INT, &["version", "--input-json", "-"]);
    assert_eq!(run.exit, Some(130));
    let envelope = run.json();
    assert_eq!(envelope["error"]["code"], "CANCELLED");
    assert_eq!(envelope["meta"]["exit_code"], 130);
}

#[test]
fn a_termination_is_told_and_exits_143() {
    let run = end_by(Signal::TERM, &["version", "--input-json", "-", "--envelope", "standard"]);
    assert_eq!(run.exit, Some(143));
    assert_eq!(run.document()["error"]["code"], "E_INTERNAL_003");
}

#[test]
fn an_interrupted_file_is_left_as_it_was() {
    let world = World::new(env!("CARGO_BIN_EXE_mcp-delegator"));
    world.write("project/kept.json", "kept");
    let target = world.project().join("kept.json");
    let run = end_by(Signal::INT, &["version", "--input-json", "-", "--output", target.to_str().unwrap()]);
    assert_eq!(run.exit, Some(130));
    assert_eq!(std::fs::read_to_string(target).unwrap(), "kept");
}
