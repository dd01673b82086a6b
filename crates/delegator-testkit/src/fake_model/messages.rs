//! Replies of the fake model as events of the Messages API.

use serde_json::{Value, json};

use super::event_stream;

/// The event stream of content blocks and the end of the message.
pub(crate) fn messages_body(blocks: &[Value]) -> String {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 1},
    }})];
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = block_start_and_delta(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let has_tool_use = blocks.iter().any(|block| block["type"] == "tool_use");
    let reason = if has_tool_use { "tool_use" } else { "end_turn" };
    events.push(json!({
        "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 20},
    }));
    events.push(json!({"type": "message_stop"}));
    event_stream(&events)
}

/// The empty block of the start event, and its whole content as one delta.
fn block_start_and_delta(block: &Value) -> (Value, Value) {
    if block["type"] == "tool_use" {
        let mut start = block.clone();
        start["input"] = json!({});
        return (start, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}));
    }
    (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]}))
}
