//! Repeated items count once, and only if they are identical.

use crate::recorded::summarize;
use delegator_transcript::Report;

const RECONNECT: &str = r#"{"type":"error","message":"Reconnecting... 1/5"}"#;

fn completed(id: &str, item: &str) -> String {
    format!(r#"{{"type":"item.completed","item":{{"id":"{id}",{item}}}}}"#)
}

fn report(lines: &[&str]) -> Report {
    summarize(format!("{{\"type\":\"turn.started\"}}\n{}\n", lines.join("\n")).as_bytes())
}

/// Number of repeats when `second` follows `first` after a reconnect.
fn repeats(first: &str, second: &str) -> u64 {
    report(&[&completed("item_0", first), RECONNECT, &completed("item_1", second)]).repeated_items
}

#[test]
fn only_the_very_same_item_is_a_repeat() {
    let long = "x".repeat(100);
    let message = |middle: &str| format!(r#""type":"agent_message","text":"{long}{middle}{long}""#);
    assert_eq!(repeats(&message("a"), &message("a")), 1);
    assert_eq!(repeats(&message("a"), &message("b")), 0, "the same length and the same ends");
    let command = |output: &str, code: i32, status: &str| {
        format!(
            r#""type":"command_execution","command":"c","aggregated_output":"{output}","exit_code":{code},"status":"{status}""#
        )
    };
    let ran = command("o", 0, "completed");
    assert_eq!(repeats(&ran, &ran), 1);
    for other in [command("p", 0, "completed"), command("o", 1, "completed"), command("o", 0, "failed")] {
        assert_eq!(repeats(&ran, &other), 0, "{other}");
    }
    let call = |server: &str, tool: &str, result: &str, status: &str| {
        format!(
            r#""type":"mcp_tool_call","server":"{server}","tool":"{tool}","arguments":{{}},"result":{result},"status":"{status}""#
        )
    };
    let called = call("s", "t", "1", "completed");
    assert_eq!(repeats(&called, &called), 1);
    for (server, tool, result, status) in [
        ("z", "t", "1", "completed"),
        ("s", "z", "1", "completed"),
        ("s", "t", "2", "completed"),
        ("s", "t", "1", "failed"),
    ] {
        assert_eq!(repeats(&called, &call(server, tool, result, status)), 0);
    }
}

#[test]
fn a_repeated_message_is_still_the_last_one() {
    let message = |id: &str, text: &str| completed(id, &format!(r#""type":"agent_message","text":"{text}""#));
    let report =
        report(&[&message("item_0", "one"), &message("item_1", "two"), RECONNECT, &message("item_2", "one")]);
    assert_eq!(report.repeated_items, 1);
    assert_eq!(report.final_message.map(|message| message.text).as_deref(), Some("one"));
}

#[test]
fn an_id_that_completes_twice_counts_once() {
    let ran = r#""type":"command_execution","command":"c","aggregated_output":"o","exit_code":0,"status":"completed""#;
    let line = completed("item_0", ran);
    let started = line.replace("completed", "started");
    for lines in [vec![line.as_str(); 2], vec![&started, &line, &started, &line]] {
        let report = report(&lines);
        assert_eq!((report.commands.finished, report.repeated_items), (1, 1));
        assert_eq!(report.counts.items.get("command_execution"), Some(&1));
        assert!(report.open_items.is_empty());
    }
    let nameless = line.replace(r#""id":"item_0","#, "");
    assert_eq!(report(&[&nameless, &nameless]).commands.finished, 2, "no id is not an id");
    let next_turn = [line.as_str(), r#"{"type":"turn.started"}"#, &line];
    assert_eq!(report(&next_turn).commands.finished, 2, "some agents begin to count anew");
}

#[test]
fn a_declined_command_did_not_run() {
    let declined = r#""type":"command_execution","command":"c","aggregated_output":"","exit_code":null,"status":"declined""#;
    let report = report(&[&completed("item_0", declined)]);
    assert_eq!((report.commands.finished, report.commands.declined), (0, 1));
    assert_eq!(report.commands.list.len(), 1);
}
