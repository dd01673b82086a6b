//! What a wait on a terminal shows: why a task is queued, and the last message of its agent.

use delegator_testkit::stage::{Stage, successful_turn};
use delegator_testkit::terminal::TerminalSession;
use serde_json::{Value, json};

use crate::PROGRAM;

/// A stage on whose terminals progress is drawn.
fn stage(steps: &[Value]) -> Stage {
    Stage::with_script(PROGRAM, successful_turn(steps)).variable("TERM", "xterm")
}

#[test]
fn a_wait_shows_why_a_task_is_queued_and_the_last_message() {
    let steps = [json!({"message": "Two files are left."}), json!({"wait_for_file": "go"})];
    let stage = stage(&steps);
    let writer = ["--mode", "workspace-write"];
    let first = stage.exec(&writer);
    let second = stage.exec(&writer);
    let mut of_second = TerminalSession::start(stage.world.command(["local", "wait", &second]));
    of_second.wait_for_text(&format!("waits for {first} in this directory"));
    let mut of_first = TerminalSession::start(stage.world.command(["local", "wait", &first]));
    of_first.wait_for_text("Two files are left.");
    stage.world.write("project/go", "");
    for terminal in [of_first, of_second] {
        let run = terminal.wait();
        assert_eq!(run.exit, Some(0), "{}", run.stdout);
        assert!(!run.stdout.contains("estimate"), "{}", run.stdout);
    }
}

#[test]
fn a_wait_shows_that_the_queue_is_paused() {
    let stage = stage(&[]);
    stage.run_json(&["queue", "pause"]);
    let id = stage.exec(&[]);
    let mut terminal = TerminalSession::start(stage.world.command(["local", "wait", &id]));
    terminal.wait_for_text("  the queue is paused");
    stage.run_json(&["queue", "resume"]);
    assert_eq!(terminal.wait().exit, Some(0));
}
