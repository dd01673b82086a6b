//! One test for every row of the section "Mapping From Internal Protocol Events" of the Codex exec documentation.

use crate::recorded::{normalize, normalized, protocol, summarize};
use delegator_transcript::{MapWarning, NormalizeOptions, StreamOutcome, UnmappedReason};
use serde_json::{Value, json};

/// Translates these messages.
fn map(messages: &[&str]) -> Vec<Value> {
    normalized(&protocol(messages))
}

#[test]
fn session_configured_emits_thread_started() {
    let events = map(&[r#"{"type":"session_configured","session_id":"67e55044","model":"m"}"#]);
    assert_eq!(events, [json!({"type":"thread.started","thread_id":"67e55044"})]);
}

#[test]
fn task_started_emits_turn_started() {
    assert_eq!(
        map(&[r#"{"type":"task_started","model_context_window":1}"#]),
        [json!({"type":"turn.started"})]
    );
}

#[test]
fn agent_message_emits_item_completed() {
    let events = map(&[r#"{"type":"agent_message","message":"Done.\n\"q\""}"#]);
    let item = json!({"id":"item_0","type":"agent_message","text":"Done.\n\"q\""});
    assert_eq!(events, [json!({"type":"item.completed","item":item})]);
}

#[test]
fn agent_reasoning_emits_item_completed() {
    let events = map(&[r#"{"type":"agent_reasoning","text":"hm"}"#]);
    assert_eq!(
        events,
        [json!({"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"hm"}})]
    );
}

const BEGIN: &str =
    r#"{"type":"exec_command_begin","call_id":"c1","command":["bash","-lc","echo hi"],"cwd":"/"}"#;

#[test]
fn exec_command_begin_emits_item_started_in_progress() {
    let item = json!({"id":"item_0","type":"command_execution","command":"bash -lc 'echo hi'",
        "aggregated_output":"","status":"in_progress"});
    assert_eq!(map(&[BEGIN]), [json!({"type":"item.started","item":item})]);
}

#[test]
fn exec_command_end_emits_item_completed_joined_by_call_id() {
    let end = r#"{"type":"exec_command_end","call_id":"c1","stdout":"hi\n","stderr":"","aggregated_output":"hi\n","exit_code":0}"#;
    let item = json!({"id":"item_0","type":"command_execution","command":"bash -lc 'echo hi'",
        "aggregated_output":"hi\n","exit_code":0,"status":"completed"});
    assert_eq!(map(&[BEGIN, end])[1], json!({"type":"item.completed","item":item}));
}

#[test]
fn exec_command_end_with_another_exit_code_is_failed() {
    let end = r#"{"type":"exec_command_end","call_id":"c1","stdout":"o","stderr":"e","exit_code":3}"#;
    let item = &map(&[BEGIN, end])[1]["item"];
    assert_eq!((&item["status"], &item["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!(item["aggregated_output"], "oe");
}

#[test]
fn parallel_commands_are_joined_in_any_order() {
    let events = map(&[
        BEGIN,
        r#"{"type":"exec_command_begin","call_id":"c2","command":["ls"]}"#,
        r#"{"type":"exec_command_end","call_id":"c1","aggregated_output":"1","exit_code":0}"#,
        r#"{"type":"exec_command_end","call_id":"c2","aggregated_output":"2","exit_code":0}"#,
    ]);
    assert_eq!((&events[2]["item"]["id"], &events[3]["item"]["id"]), (&json!("item_0"), &json!("item_1")));
    assert_eq!(events[3]["item"]["command"], "ls");
}

#[test]
fn exec_command_end_without_begin_is_skipped_with_a_warning() {
    let end = protocol(&[r#"{"type":"exec_command_end","call_id":"lost","exit_code":0}"#]);
    let (out, summary) = normalize(end.as_bytes(), NormalizeOptions::default());
    assert_eq!(out, "");
    assert_eq!(summary.warnings, [MapWarning::CommandEndWithoutBegin { call_id: "lost".into() }]);
}

const CALL: &str = r#"{"type":"mcp_tool_call_begin","call_id":"m","invocation":{"server":"s","tool":"t","arguments":{"a":1}}}"#;

#[test]
fn mcp_tool_call_begin_emits_item_started_in_progress() {
    let item = json!({"id":"item_0","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1},
        "status":"in_progress"});
    assert_eq!(map(&[CALL]), [json!({"type":"item.started","item":item})]);
}

#[test]
fn mcp_tool_call_end_emits_item_completed() {
    let end = r#"{"type":"mcp_tool_call_end","call_id":"m","invocation":{"server":"s","tool":"t","arguments":{"a":1}},"duration":{},"result":{"Ok":{"content":[{"type":"text","text":"x"}],"isError":false}}}"#;
    let item = json!({"id":"item_0","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1},
        "result":{"content":[{"type":"text","text":"x"}],"structured_content":null},"status":"completed"});
    assert_eq!(map(&[CALL, end])[1], json!({"type":"item.completed","item":item}));
}

#[test]
fn mcp_tool_call_end_with_an_error_is_failed() {
    for (result, message) in [
        (r#"{"Err":"no such tool"}"#, json!({"message":"no such tool"})),
        (r#"{"Ok":{"content":[],"isError":true}}"#, json!(null)),
    ] {
        let end = format!(r#"{{"type":"mcp_tool_call_end","call_id":"m","result":{result}}}"#);
        let item = &map(&[CALL, &end])[1]["item"];
        assert_eq!((&item["status"], &item["error"]), (&json!("failed"), &message));
        assert_eq!(item["tool"], "t", "the call is the one that began");
    }
}

#[test]
fn mcp_tool_call_end_without_begin_is_synthesised() {
    let events = map(&[
        r#"{"type":"agent_message","message":"x"}"#,
        r#"{"type":"mcp_tool_call_end","call_id":"m","invocation":{"server":"s","tool":"t"},"result":{"Ok":{"content":[]}}}"#,
    ]);
    assert_eq!((&events[1]["type"], &events[1]["item"]["id"]), (&json!("item.completed"), &json!("item_1")));
}

const PATCH: &str = r#"{"type":"patch_apply_begin","call_id":"p","auto_approved":true,"changes":{"a.rs":{"add":{"content":"x"}},"b.rs":{"delete":{"content":""}},"c.rs":{"update":{"unified_diff":"","move_path":null}}}}"#;

#[test]
fn patch_apply_begin_emits_nothing() {
    assert!(map(&[PATCH]).is_empty());
}

#[test]
fn patch_apply_end_emits_item_completed_with_the_changes_of_the_begin() {
    let changes =
        json!([{"path":"a.rs","kind":"add"},{"path":"b.rs","kind":"delete"},{"path":"c.rs","kind":"update"}]);
    for (success, status) in [(true, "completed"), (false, "failed")] {
        let end = format!(
            r#"{{"type":"patch_apply_end","call_id":"p","stdout":"","stderr":"","success":{success}}}"#
        );
        let item = json!({"id":"item_0","type":"file_change","changes":changes,"status":status});
        assert_eq!(map(&[PATCH, &end]), [json!({"type":"item.completed","item":item})]);
    }
}

#[test]
fn web_search_end_emits_item_completed() {
    let events = map(&[
        r#"{"type":"web_search_begin","call_id":"w"}"#,
        r#"{"type":"web_search_end","call_id":"w","query":"rust"}"#,
    ]);
    assert_eq!(
        events,
        [json!({"type":"item.completed","item":{"id":"item_0","type":"web_search","query":"rust"}})]
    );
}

fn plan(done: bool) -> String {
    let status = if done { "completed" } else { "in_progress" };
    format!(r#"{{"type":"plan_update","explanation":null,"plan":[{{"step":"one","status":"{status}"}}]}}"#)
}

#[test]
fn plan_update_starts_updates_and_completes_the_todo_list_at_turn_end() {
    let start = r#"{"type":"task_started"}"#;
    let end = r#"{"type":"task_complete"}"#;
    let events = map(&[start, &plan(false), &plan(true), end, start, &plan(false)]);
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let expected = [
        "turn.started",
        "item.started",
        "item.updated",
        "item.completed",
        "turn.completed",
        "turn.started",
        "item.started",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        events[3]["item"],
        json!({"id":"item_0","type":"todo_list","items":[{"text":"one","completed":true}]})
    );
    assert_eq!(events[6]["item"]["id"], "item_1", "the next turn has a plan of its own");
}

const TOKENS: &str = r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20,"reasoning_output_tokens":5,"total_tokens":120},"last_token_usage":{"input_tokens":1,"cached_input_tokens":1,"output_tokens":1}},"rate_limits":null}"#;

#[test]
fn token_count_is_held_for_turn_completed() {
    assert!(map(&[TOKENS]).is_empty());
    let events = map(&[TOKENS, r#"{"type":"token_count","info":null}"#, r#"{"type":"task_complete"}"#]);
    let usage =
        json!({"input_tokens":100,"cached_input_tokens":40,"output_tokens":20,"reasoning_output_tokens":5});
    assert_eq!(events, [json!({"type":"turn.completed","usage":usage})]);
}

#[test]
fn error_is_emitted_at_once_and_fails_the_turn() {
    let events = map(&[r#"{"type":"error","message":"quota"}"#, r#"{"type":"task_complete"}"#]);
    let failed = json!({"type":"turn.failed","error":{"message":"quota"}});
    assert_eq!(events, [json!({"type":"error","message":"quota"}), failed]);
}

#[test]
fn an_error_of_an_earlier_turn_does_not_fail_a_later_one() {
    let start = r#"{"type":"task_started"}"#;
    let events = map(&[r#"{"type":"error","message":"old"}"#, start, r#"{"type":"task_complete"}"#]);
    assert_eq!(events[2]["type"], "turn.completed");
}

#[test]
fn stream_error_is_emitted_and_does_not_fail_the_turn() {
    let events = map(&[r#"{"type":"stream_error","message":"retrying"}"#, r#"{"type":"task_complete"}"#]);
    assert_eq!(events[0], json!({"type":"error","message":"retrying"}));
    assert_eq!(events[1]["type"], "turn.completed");
}

#[test]
fn task_complete_without_token_count_emits_turn_completed_with_zero_usage() {
    let usage = json!({"input_tokens":0,"cached_input_tokens":0,"output_tokens":0});
    let events = map(&[r#"{"type":"task_complete","last_agent_message":"x"}"#]);
    assert_eq!(events, [json!({"type":"turn.completed","usage":usage})]);
}

#[test]
fn task_complete_with_an_error_of_its_own_fails_the_turn() {
    let events = map(&[r#"{"type":"task_complete","error":{"message":"cut"}}"#]);
    assert_eq!(events, [json!({"type":"turn.failed","error":{"message":"cut"}})]);
}

#[test]
fn deltas_approvals_review_mode_and_lists_are_ignored() {
    let ignored = [
        "exec_command_output_delta",
        "web_search_begin",
        "exec_approval_request",
        "apply_patch_approval_request",
        "entered_review_mode",
        "exited_review_mode",
        "mcp_list_tools_response",
        "list_custom_prompts_response",
        "get_history_entry_response",
        "agent_message_delta",
        "agent_reasoning_delta",
        "turn_diff",
        "agent_reasoning_section_break",
        "background_event",
        "shutdown_complete",
    ];
    let messages: Vec<String> =
        ignored.iter().map(|kind| format!(r#"{{"type":"{kind}","call_id":"x"}}"#)).collect();
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let (out, summary) = normalize(protocol(&messages).as_bytes(), NormalizeOptions::default());
    assert_eq!(out, "");
    assert_eq!(summary.no_place.get(&UnmappedReason::Ignored), Some(&(ignored.len() as u64)));
}

#[test]
fn turn_aborted_completes_the_plan_and_has_no_turn_end() {
    let stream = protocol(&[
        r#"{"type":"task_started"}"#,
        &plan(false),
        r#"{"type":"turn_aborted","reason":"interrupted"}"#,
    ]);
    let events = normalized(&stream);
    assert_eq!(events.len(), 3);
    assert_eq!(
        (&events[2]["type"], &events[2]["item"]["type"]),
        (&json!("item.completed"), &json!("todo_list"))
    );
    assert_eq!(summarize(stream.as_bytes()).outcome, StreamOutcome::Interrupted);
}

#[test]
fn item_ids_are_monotonic_and_unique() {
    let events = map(&[
        r#"{"type":"agent_reasoning","text":"a"}"#,
        BEGIN,
        r#"{"type":"agent_message","message":"b"}"#,
        r#"{"type":"exec_command_end","call_id":"c1","exit_code":0}"#,
        r#"{"type":"web_search_end","call_id":"w","query":"q"}"#,
    ]);
    let ids: Vec<&str> = events.iter().filter_map(|event| event["item"]["id"].as_str()).collect();
    assert_eq!(ids, ["item_0", "item_1", "item_2", "item_1", "item_3"]);
}

#[test]
fn an_item_reported_by_event_and_by_turn_item_is_emitted_once() {
    let item = r#"{"type":"item_completed","item":{"type":"AgentMessage","id":"m","content":[{"type":"Text","text":"x"}]}}"#;
    assert_eq!(map(&[r#"{"type":"agent_message","message":"x"}"#, item]).len(), 1);
    assert_eq!(map(&[item, r#"{"type":"agent_message","message":"x"}"#]).len(), 1);
}

#[test]
fn missing_fields_of_synthesised_events_are_omitted() {
    let bare = r#"{"type":"mcp_tool_call_begin","call_id":"m","invocation":{"server":"s","tool":"t"}}"#;
    let item = json!({"id":"item_0","type":"mcp_tool_call","server":"s","tool":"t","status":"in_progress"});
    assert_eq!(map(&[bare]), [json!({"type":"item.started","item":item})]);
    let passed = r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#;
    let (out, _) = normalize(passed.as_bytes(), NormalizeOptions::default());
    assert_eq!(out.trim_end(), passed, "what is passed through keeps its nulls");
}

#[test]
fn flat_token_counts_are_of_one_request_each_and_add_up() {
    let flat = |n: u64| {
        format!(
            r#"{{"type":"token_count","input_tokens":{n},"input_tokens":9999,"cached_input_tokens":{},"output_tokens":7,"reasoning_output_tokens":2,"total_tokens":1}}"#,
            n / 2
        )
    };
    let (first, second) = (flat(100), flat(50));
    let start = r#"{"type":"task_started"}"#;
    let events = map(&[start, &first, &second, r#"{"type":"task_complete"}"#]);
    let usage =
        json!({"input_tokens":150,"cached_input_tokens":75,"output_tokens":14,"reasoning_output_tokens":4});
    assert_eq!(events[1], json!({"type":"turn.completed","usage":usage}));
    let running = summarize(protocol(&[start, &first, &second]).as_bytes());
    assert_eq!(running.usage.map(|usage| usage.thread_total.input_tokens), Some(150));
}

#[test]
fn a_plan_does_not_leak_into_the_next_turn_without_a_turn_end() {
    let kinds = |stream: &str| -> Vec<(String, Value)> {
        let kind_and_id = |event: Value| {
            (event["type"].as_str().unwrap_or_default().to_owned(), event["item"]["id"].clone())
        };
        normalized(stream).into_iter().map(kind_and_id).collect()
    };
    let expected = [
        ("turn.started", json!(null)),
        ("item.started", json!("item_0")),
        ("item.completed", json!("item_0")),
        ("turn.started", json!(null)),
        ("item.started", json!("item_1")),
    ]
    .map(|(kind, id)| (kind.to_owned(), id));
    let start = r#"{"type":"task_started"}"#;
    assert_eq!(kinds(&protocol(&[start, &plan(false), start, &plan(true)])), expected);
    let user_message = r#"{"type":"user_message","message":"go on"}"#.to_owned();
    let rollout: String = [&user_message, &plan(false), &user_message, &plan(true)]
        .map(|message| format!("{{\"timestamp\":\"t\",\"type\":\"event_msg\",\"payload\":{message}}}\n"))
        .concat();
    assert_eq!(kinds(&rollout), expected);
}

#[test]
fn a_result_that_is_not_wrapped_is_the_result() {
    let content = json!({"content":[{"type":"text","text":"x"}],"structured_content":null});
    for (result, status, expected) in [
        (r#"{"content":[{"type":"text","text":"x"}]}"#, "completed", content.clone()),
        (r#"{"content":[{"type":"text","text":"x"}],"is_error":true}"#, "failed", content.clone()),
        (r#"{"content":[{"type":"text","text":"x"}],"isError":true,"isError":false}"#, "failed", content),
        (r#"{"answer":42}"#, "completed", json!({"answer":42})),
        (r#""just text""#, "completed", json!("just text")),
    ] {
        let end = format!(r#"{{"type":"mcp_tool_call_end","call_id":"m","result":{result}}}"#);
        let item = &map(&[CALL, &end])[1]["item"];
        assert_eq!((&item["status"], &item["result"]), (&json!(status), &expected), "{result}");
        assert_eq!(item.get("error"), None);
    }
    for nothing in ["null", r#"{"Err":null}"#] {
        let end = format!(r#"{{"type":"mcp_tool_call_end","call_id":"m","result":{nothing}}}"#);
        assert_eq!(map(&[CALL, &end])[1]["item"]["status"], "failed");
    }
}

#[test]
fn an_error_object_is_reported_by_its_message_or_whole() {
    for (error, message) in
        [(r#"{"code":1,"message":"why"}"#, "why"), (r#"{"code":1}"#, r#"{"code":1}"#), ("[1]", "[1]")]
    {
        let end = format!(r#"{{"type":"mcp_tool_call_end","call_id":"m","result":{{"Err":{error}}}}}"#);
        let item = &map(&[CALL, &end])[1]["item"];
        assert_eq!((&item["status"], &item["error"]["message"]), (&json!("failed"), &json!(message)));
    }
}

#[test]
fn of_duplicate_keys_of_an_invocation_the_first_counts() {
    let begin = r#"{"type":"mcp_tool_call_begin","call_id":"m","invocation":{"server":"s","server":"S","tool":"t","tool":"T","arguments":1,"arguments":2},"invocation":{"server":"z"}}"#;
    let item = &map(&[begin])[0]["item"];
    let invocation = (&item["server"], &item["tool"], &item["arguments"]);
    assert_eq!(invocation, (&json!("s"), &json!("t"), &json!(1)));
}

#[test]
fn patch_apply_end_without_begin_and_changes_is_only_a_warning() {
    let end = protocol(&[r#"{"type":"patch_apply_end","call_id":"lost","success":true}"#]);
    let (out, summary) = normalize(end.as_bytes(), NormalizeOptions::default());
    assert_eq!(out, "");
    assert_eq!(summary.warnings, [MapWarning::PatchEndWithoutBegin { call_id: "lost".into() }]);
    let named = r#"{"type":"patch_apply_end","call_id":"p","success":true,"changes":{"a":{"type":"add"}}}"#;
    assert_eq!(map(&[named]).len(), 1);
}
