//! Any sequence of protocol, session file and idle events: ids are unique and increasing, items start before they end,
//! and the output normalises to itself.
#![no_main]

use std::collections::HashSet;

use delegator_transcript::{LineLimits, NormalizeOptions, Normalizer};
use libfuzzer_sys::fuzz_target;

/// Events to choose from, one per byte. The second byte is the call id, so that starts and ends match.
const EVENTS: &[&str] = &[
    r#"{"id":"0","msg":{"type":"session_configured","session_id":"t@"}}"#,
    r#"{"id":"0","msg":{"type":"task_started"}}"#,
    r#"{"id":"0","msg":{"type":"task_complete"}}"#,
    r#"{"id":"0","msg":{"type":"turn_aborted","reason":"interrupted"}}"#,
    r#"{"id":"0","msg":{"type":"agent_message","message":"m@"}}"#,
    r#"{"id":"0","msg":{"type":"agent_reasoning","text":"r@"}}"#,
    r#"{"id":"0","msg":{"type":"exec_command_begin","call_id":"c@","command":["bash","-lc","it's @"]}}"#,
    r#"{"id":"0","msg":{"type":"exec_command_end","call_id":"c@","stdout":"o","stderr":"\n","exit_code":@}}"#,
    r#"{"id":"0","msg":{"type":"mcp_tool_call_begin","call_id":"c@","invocation":{"server":"s","tool":"t","arguments":[@]}}}"#,
    r#"{"id":"0","msg":{"type":"mcp_tool_call_end","call_id":"c@","result":{"Ok":{"content":[],"isError":true}}}}"#,
    r#"{"id":"0","msg":{"type":"mcp_tool_call_end","call_id":"c@","result":{"Err":"e@"}}}"#,
    r#"{"id":"0","msg":{"type":"patch_apply_begin","call_id":"c@","changes":{"a@":{"add":{"content":""}}}}}"#,
    r#"{"id":"0","msg":{"type":"patch_apply_end","call_id":"c@","success":true}}"#,
    r#"{"id":"0","msg":{"type":"web_search_end","call_id":"c@","query":"q"}}"#,
    r#"{"id":"0","msg":{"type":"plan_update","plan":[{"step":"s@","status":"completed"}]}}"#,
    r#"{"id":"0","msg":{"type":"token_count","info":{"total_token_usage":{"input_tokens":@}}}}"#,
    r#"{"id":"0","msg":{"type":"error","message":"e@"}}"#,
    r#"{"id":"0","msg":{"type":"stream_error","message":"e@"}}"#,
    r#"{"id":"0","msg":{"type":"exec_command_output_delta","call_id":"c@"}}"#,
    r#"{"timestamp":"t","type":"session_meta","payload":{"id":"t@"}}"#,
    r#"{"timestamp":"t","type":"event_msg","payload":{"type":"user_message","message":"u@"}}"#,
    r#"{"timestamp":"t","type":"event_msg","payload":{"type":"item_started","item":{"type":"CommandExecution","id":"c@","command":["a"]}}}"#,
    r#"{"timestamp":"t","type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"c@","command":["a"],"exit_code":0,"status":"completed"}}}"#,
    r#"{"timestamp":"t","type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"c@","content":[{"text":"x"}]}}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","call_id":"c@","name":"shell","arguments":"{\"command\":[\"ls\"]}"}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c@","output":"Exit code: @\nOutput:\nx"}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","call_id":"c@","name":"update_plan","arguments":"{\"plan\":[]}"}}"#,
    r#"{"type":"agent_message","content":"m@"}"#,
    r#"{"type":"tool_call","name":"n@","call_id":"c@","arguments":{}}"#,
    r#"{"type":"tool_result","call_id":"c@","output":"o","error":null}"#,
    r#"{"type":"file_change","path":"p@","action":"write"}"#,
    r#"{"type":"file_change","path":"p@","action":"delete"}"#,
    r#"{"type":"idle"}"#,
    r#"{"type":"done"}"#,
];

fn normalize(stream: &[u8]) -> Vec<u8> {
    let mut normalizer = Normalizer::new(NormalizeOptions::default(), LineLimits::STANDARD);
    let mut out = Vec::new();
    normalizer.push(stream, &mut out);
    normalizer.finish(&mut out);
    out
}

fuzz_target!(|choices: &[u8]| {
    let mut stream = String::new();
    for pair in choices.chunks_exact(2) {
        let event = EVENTS[usize::from(pair[0]) % EVENTS.len()];
        stream.push_str(&event.replace('@', &(pair[1] % 8).to_string()));
        stream.push('\n');
    }
    let out = normalize(stream.as_bytes());
    assert_eq!(normalize(&out), out, "the output normalises to itself");

    let (mut next, mut open) = (0, HashSet::new());
    for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        let Some(id) = event["item"]["id"].as_str() else { continue };
        let number: u64 = id.strip_prefix("item_").and_then(|n| n.parse().ok()).expect("item_N");
        let is_new = number == next;
        next += u64::from(is_new);
        match event["type"].as_str() {
            Some("item.started") => assert!(is_new && open.insert(number), "{id} starts once, in order"),
            Some("item.updated") => assert!(open.contains(&number), "{id} is open"),
            _ => assert!(is_new || open.remove(&number), "{id} completes once"),
        }
    }
});
