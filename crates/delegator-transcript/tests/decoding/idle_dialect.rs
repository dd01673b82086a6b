//! The idle dialect: translation into Codex exec events, and the report.

use crate::recorded::{normalize, normalized as normalized_stream, summarize, summarize_with};
use delegator_transcript::{
    AssumedThread, Dialect, FoldOptions, LineLimits, NormalizeOptions, Normalizer, StreamOutcome, TurnState,
};
use serde_json::{Value, json};

const CALL: &str = r#"{"type":"tool_call","name":"write_file","call_id":"c1","arguments":{"path":"a"}}"#;

fn lines(lines: &[&str]) -> String {
    lines.join("\n") + "\n"
}

/// The events after `thread.started`, with which every stream begins.
fn normalized(stream: &str) -> Vec<Value> {
    let mut events = normalized_stream(stream);
    assert_eq!(events.remove(0)["type"], "thread.started");
    events
}

fn first_thread(stream: &str, thread: AssumedThread) -> Value {
    let mut out = Vec::new();
    let mut normalizer =
        Normalizer::new(NormalizeOptions::default(), LineLimits::STANDARD).with_thread(thread);
    normalizer.push(stream.as_bytes(), &mut out);
    normalizer.finish(&mut out);
    let first = out.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first: Value = serde_json::from_slice(first).unwrap_or_default();
    assert_eq!(first["type"], "thread.started", "{first}");
    first["thread_id"].clone()
}

#[test]
fn a_stream_begins_with_the_thread_that_is_known_or_a_derived_one() {
    let message = r#"{"type":"agent_message","content":"hi"}"#;
    let idle = r#"{"type":"idle"}"#;
    let stream = lines(&["banner", idle, message, idle]);
    assert_eq!(first_thread(&stream, AssumedThread::Known("thread-1".to_owned())), "thread-1");
    let with_session = lines(&[r#"{"type":"agent_message","content":"hi","session_id":"s-1"}"#, idle]);
    assert_eq!(first_thread(&with_session, AssumedThread::Derived), "s-1");
    let derived = first_thread(&stream, AssumedThread::Derived);
    assert_eq!(derived, "derived-26f138c1b4b6712a", "the id must not change between versions");
    assert_eq!(first_thread(&lines(&["other banner", idle, message]), AssumedThread::Derived), derived);
    assert_ne!(first_thread(&lines(&[message]), AssumedThread::Derived), derived);
    // The summary names the same thread, but only where that is wanted.
    let thread = |thread| {
        summarize_with(stream.as_bytes(), FoldOptions { thread, ..FoldOptions::default() }).thread_id
    };
    assert_eq!(thread(AssumedThread::Derived).as_deref(), derived.as_str());
    assert_eq!(thread(AssumedThread::None), None);
    let count = normalized_stream(&stream).iter().filter(|event| event["type"] == "thread.started").count();
    assert_eq!(count, 1);
}

#[test]
fn a_stream_of_idle_or_done_alone_begins_with_its_thread() {
    for line in [r#"{"type":"done"}"#, r#"{"type":"idle"}"#, r#"{"type":"idle","session_id":"s-1"}"#] {
        let stream = lines(&[line]);
        let events = normalized_stream(&stream);
        assert_eq!((events.len(), &events[0]["type"]), (1, &json!("thread.started")), "{line}");
        let thread = AssumedThread::Derived;
        let report = summarize_with(stream.as_bytes(), FoldOptions { thread, ..FoldOptions::default() });
        assert_eq!(report.thread_id.map(Value::from), Some(events[0]["thread_id"].clone()), "{line}");
    }
    let other =
        normalized_stream(&lines(&[r#"{"type":"idle"}"#, r#"{"type":"thread.started","thread_id":"t"}"#]));
    assert_eq!(other.len(), 1, "`idle` is only a guess of the dialect: {other:?}");
}

#[test]
fn a_thread_id_counts_up_to_the_first_activity_of_the_stream() {
    let message = r#"{"type":"agent_message","content":"hi"}"#;
    let named = r#"{"type":"idle","session_id":"S9"}"#;
    assert_eq!(first_thread(&lines(&[named, message]), AssumedThread::Derived), "S9");
    assert_eq!(
        first_thread(&lines(&[message, named]), AssumedThread::Derived),
        first_thread(&lines(&[message]), AssumedThread::Derived)
    );
}

#[test]
fn streams_of_dialects_with_threads_get_no_thread() {
    for stream in [
        lines(&[r#"{"type":"turn.started"}"#, r#"{"type":"agent_message","content":"mixed"}"#]),
        lines(&[
            r#"{"id":"0","msg":{"type":"task_started"}}"#,
            r#"{"type":"agent_message","content":"mixed"}"#,
        ]),
    ] {
        assert!(normalized_stream(&stream).iter().all(|event| event["type"] != "thread.started"), "{stream}");
    }
}

#[test]
fn a_call_is_an_mcp_tool_call_of_the_server_agent() {
    let events = normalized(&lines(&[CALL, r#"{"type":"tool_result","call_id":"c1","output":"ok"}"#]));
    assert_eq!(events[0], json!({"type":"turn.started"}));
    let begun = json!({"id":"item_0","type":"mcp_tool_call","server":"agent","tool":"write_file",
        "arguments":{"path":"a"},"status":"in_progress"});
    assert_eq!(events[1], json!({"type":"item.started","item":begun}));
    let ended = json!({"id":"item_0","type":"mcp_tool_call","server":"agent","tool":"write_file",
        "arguments":{"path":"a"},"result":{"content":[{"type":"text","text":"ok"}],"structured_content":null},
        "status":"completed"});
    assert_eq!(events[2], json!({"type":"item.completed","item":ended}));
}

#[test]
fn an_error_that_is_not_null_is_a_failed_call() {
    for (error, status) in [(r#""no""#, "failed"), ("null", "completed")] {
        let result = format!(r#"{{"type":"tool_result","call_id":"c1","output":"","error":{error}}}"#);
        assert_eq!(normalized(&lines(&[CALL, &result]))[2]["item"]["status"], status);
    }
}

#[test]
fn file_changes_are_add_update_or_delete_by_whether_the_file_was_known() {
    let change =
        |path: &str, action: &str| format!(r#"{{"type":"file_change","path":"{path}","action":"{action}"}}"#);
    let stream = [
        change("a", "write"),
        change("a", "write"),
        change("b", "edit"),
        change("b", "write"),
        change("a", "delete"),
        change("a", "write"),
    ];
    let kinds: Vec<String> = normalized(&(stream.join("\n") + "\n"))[1..]
        .iter()
        .map(|event| event["item"]["changes"][0]["kind"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(kinds, ["add", "update", "update", "update", "delete", "add"]);
}

#[test]
fn idle_and_done_end_an_open_turn_with_zero_usage() {
    let message = r#"{"type":"agent_message","content":"hi","role":"assistant"}"#;
    let usage = json!({"input_tokens":0,"cached_input_tokens":0,"output_tokens":0});
    for end in [r#"{"type":"idle"}"#, r#"{"type":"done"}"#] {
        let events = normalized(&lines(&[message, end, end]));
        assert_eq!(events.len(), 3, "the second one ends nothing");
        assert_eq!(events[2], json!({"type":"turn.completed","usage":usage}));
    }
    let report = summarize(lines(&[message, r#"{"type":"idle"}"#]).as_bytes());
    assert_eq!(report.usage, None, "no usage is not a usage of zero");
}

#[test]
fn the_end_of_the_stream_is_judged_by_done_and_idle() {
    let message = r#"{"type":"agent_message","content":"hi"}"#;
    let (idle, done, odd) = (r#"{"type":"idle"}"#, r#"{"type":"done"}"#, "not json");
    let outcome = |stream: &[&str]| summarize(lines(stream).as_bytes()).outcome;
    assert_eq!(outcome(&[message, done]), StreamOutcome::Completed);
    assert_eq!(outcome(&[message, idle]), StreamOutcome::Completed);
    assert_eq!(outcome(&[idle]), StreamOutcome::Completed);
    assert_eq!(outcome(&[message]), StreamOutcome::Interrupted);
    assert_eq!(outcome(&[message, idle, message]), StreamOutcome::Interrupted);
    let report = summarize(lines(&[message, idle, odd]).as_bytes());
    assert!(!report.idle, "anything else clears the idle flag, also what is malformed");
    assert_eq!(report.outcome, StreamOutcome::Interrupted);
}

#[test]
fn every_line_of_the_literal_examples_is_known() {
    let stream = lines(&[
        r#"{"type":"agent_message","content":"text","role":"assistant"}"#,
        CALL,
        r#"{"type":"tool_result","call_id":"c1","output":"done","error":"why"}"#,
        r#"{"type":"file_change","path":"/abs/f","action":"edit"}"#,
        r#"{"type":"tool_result","content":"<ATM message text>"}"#,
        r#"{"type":"idle"}"#,
        r#"{"type":"done"}"#,
    ]);
    let report = summarize(stream.as_bytes());
    assert_eq!((report.counts.events, report.counts.unknown, report.counts.not_json), (7, 0, 0));
    assert_eq!(report.dialect, Some(Dialect::Idle));
    assert_eq!((report.turn, report.turns, report.done), (TurnState::Completed, 1, true));
    assert_eq!(report.mcp_calls.failed, 1);
    assert_eq!(report.files.modified, ["/abs/f"]);
    let (_, summary) = normalize(stream.as_bytes(), NormalizeOptions::default());
    assert_eq!(summary.dialect, Some(Dialect::Idle));
}

#[test]
fn an_error_of_any_type_is_a_failure_and_reported_whole() {
    for (error, message) in [
        (r#"{"message":"m","code":1}"#, r#"{"message":"m","code":1}"#),
        ("[1,2]", "[1,2]"),
        ("false", "false"),
        ("0", "0"),
        (r#""no""#, "no"),
    ] {
        let result = format!(r#"{{"type":"tool_result","call_id":"c1","output":"","error":{error}}}"#);
        let item = &normalized(&lines(&[CALL, &result]))[2]["item"];
        assert_eq!((&item["status"], &item["error"]["message"]), (&json!("failed"), &json!(message)));
    }
}

#[test]
fn values_that_are_not_text_become_json_text() {
    for key in ["output", "content"] {
        let result = format!(r#"{{"type":"tool_result","call_id":"c1","{key}":{{"rows":[1, 2]}}}}"#);
        let item = &normalized(&lines(&[CALL, &result]))[2]["item"];
        assert_eq!(item["result"]["content"][0]["text"], r#"{"rows":[1, 2]}"#);
    }
    let message = r#"{"type":"agent_message","content":[{"text":"hi"}]}"#;
    assert_eq!(normalized(&lines(&[message]))[1]["item"]["text"], r#"[{"text":"hi"}]"#);
}

#[test]
fn a_call_id_that_is_a_number_joins() {
    let events = normalized(&lines(&[
        r#"{"type":"tool_call","name":"a","call_id":7}"#,
        r#"{"type":"tool_call","name":"b","call_id":8}"#,
        r#"{"type":"tool_result","call_id":7,"output":"x"}"#,
    ]));
    assert_eq!((&events[3]["item"]["id"], &events[3]["item"]["tool"]), (&json!("item_0"), &json!("a")));
}

#[test]
fn calls_without_an_id_are_not_one_call() {
    let stream = lines(&[
        r#"{"type":"tool_call","name":"a"}"#,
        r#"{"type":"tool_call","name":"b"}"#,
        r#"{"type":"tool_result","call_id":"","output":"x"}"#,
    ]);
    let events = normalized(&stream);
    assert_eq!(events[3]["item"]["tool"], "unknown", "neither of them is known to have answered");
    assert_eq!(summarize(stream.as_bytes()).open_items.len(), 2);
}

#[test]
fn user_messages_are_not_the_final_message() {
    let assistant = r#"{"type":"agent_message","content":"answer","role":"assistant"}"#;
    let user = r#"{"type":"agent_message","role":"user","content":"question"}"#;
    let report = summarize(lines(&[assistant, r#"{"type":"idle"}"#, user]).as_bytes());
    assert_eq!(report.final_message.map(|message| message.text).as_deref(), Some("answer"));
    assert_eq!((report.turns, report.counts.events, report.idle), (1, 3, false));
}
