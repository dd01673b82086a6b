//! Runs the `events` commands over a transcript, for the rows about the events of agents.

use delegator_testkit::program::{RunOutput, World};
use serde_json::Value;

use crate::PROGRAM;

/// The example transcript of the document.
pub(crate) const EXAMPLE: &str = r#"{"type":"thread.started","thread_id":"67e55044-10b1-426f-9247-bb680e5fe0c8"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"echo hello","aggregated_output":"","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"echo hello","aggregated_output":"hello\n","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":123,"cached_input_tokens":0,"output_tokens":45}}
"#;

/// Runs `events` with these arguments; the transcript is its standard input.
pub(crate) fn run_events(args: &[&str], transcript: &str) -> RunOutput {
    World::new(PROGRAM).run_with_input([&["events"], args].concat(), transcript.as_bytes())
}

/// The events into which a transcript is converted, in the documented form.
#[track_caller]
pub(crate) fn converted(transcript: &str) -> Vec<Value> {
    events(&run_events(&["normalize", "--strict"], transcript))
}

/// The events of an output, one for each line.
#[track_caller]
pub(crate) fn events(run: &RunOutput) -> Vec<Value> {
    let event = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    run.stdout.lines().map(event).collect()
}

/// Converts messages of Codex's internal protocol.
#[track_caller]
pub(crate) fn mapped(messages: &[&str]) -> Vec<Value> {
    converted(&protocol(messages))
}

pub(crate) fn protocol(messages: &[&str]) -> String {
    messages.iter().map(|message| format!("{{\"id\":\"0\",\"msg\":{message}}}\n")).collect()
}

/// Asserts that a line is copied byte for byte, also with `--strict`, and that nothing is reported about it.
#[track_caller]
pub(crate) fn is_copied(line: &str) {
    let transcript = format!("{line}\n");
    for args in [&["normalize"][..], &["normalize", "--strict"]] {
        let run = run_events(args, &transcript);
        assert_eq!((run.exit, run.stdout, run.stderr), (Some(0), transcript.clone(), String::new()));
    }
}

/// Asserts that an item is copied byte for byte in an event.
#[track_caller]
pub(crate) fn item_is_copied(event: &str, item: &str) {
    is_copied(&format!(r#"{{"type":"{event}","item":{{"id":"item_0",{item}}}}}"#));
}

/// Asserts that `--strict` leaves a line out and counts it with this reason.
#[track_caller]
pub(crate) fn is_left_out(line: &str, reason: &str) {
    let run = run_events(&["normalize", "--strict"], &format!("{line}\n"));
    assert_eq!(run.stdout, "");
    let expected = format!("1 of 1 lines could not be converted: 1 {reason}.");
    assert!(run.stderr.contains(&expected), "{}", run.stderr);
}

/// The summary of a transcript.
#[track_caller]
pub(crate) fn summary(transcript: &str) -> Value {
    run_events(&["summarize", "--format", "json"], transcript).json()["data"].clone()
}
