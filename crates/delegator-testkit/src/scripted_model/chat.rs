//! Replies of the model as chunks of the Chat Completions API.

use serde_json::{Value, json};

/// The chunks of a reply, its end and its usage. `deltas` are messages and tool calls.
pub(super) fn chat_body(deltas: &[Value]) -> String {
    let has_call = deltas.iter().any(|delta| delta["tool_calls"].is_array());
    let reason = if has_call { "tool_calls" } else { "stop" };
    let usage = json!({
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 5},
    });
    let first =
        chunk(json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]));
    let parts =
        deltas.iter().map(|delta| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])));
    let end = chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]));
    let mut last = chunk(json!([]));
    last["usage"] = usage;
    let mut text =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_owned();
    for event in [first].into_iter().chain(parts).chain([end, last]) {
        text.push_str(&format!("data: {event}\n\n"));
    }
    text.push_str("data: [DONE]\n\n");
    text
}

fn chunk(choices: Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices})
}
