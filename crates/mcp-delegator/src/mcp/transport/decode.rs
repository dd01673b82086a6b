//! Decodes a line of standard input, or the body of an HTTP request, into a message or an error response.
//!
//! Every request gets a response, even if it is invalid, or the client would wait for ever. Two kinds of
//! invalid messages get none: notifications, because no client waits for a response, and responses, because
//! two programs that reject each other's error responses would never stop.

use std::borrow::Cow;

use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;
use serde_json::error::Category;

use crate::mcp::transport::recover;

/// Far more values than any valid input has. Parsed JSON is larger than its text: a one-digit number takes a
/// hundred bytes.
const MAX_VALUES: usize = 50_000;

#[derive(Debug)]
pub enum DecodedMessage {
    Message(Box<ClientJsonRpcMessage>),
    /// Not a valid message; the error response to send.
    Invalid(Box<ServerJsonRpcMessage>),
}

/// The error response to a message of which only head and tail were retained.
pub fn refuse_too_long(length: u64, head: &[u8], tail: &[u8]) -> DecodedMessage {
    let problem = format!("Parse error: the message of {length} bytes is too long.");
    let id = recover::find_id(head).or_else(|| recover::find_id_at_end(tail));
    error_response(ErrorData::parse_error(problem, None), id)
}

/// Decodes a whole line without its line break. `None`: an empty line, or an invalid message that gets no
/// response.
pub fn decode_text(text: &[u8]) -> Option<DecodedMessage> {
    if has_too_many_values(text) {
        let problem = format!("Invalid request: the message has more than {MAX_VALUES} JSON values.");
        return Some(error_response(ErrorData::invalid_request(problem, None), recover::find_id(text)));
    }
    if text.is_empty() { None } else { decode_body(text) }
}

/// Decodes a body whose values have been counted already.
pub fn decode_body(text: &[u8]) -> Option<DecodedMessage> {
    match serde_json::from_slice(text) {
        Ok(message) => Some(DecodedMessage::Message(Box::new(message))),
        Err(error) if error.classify() == Category::Data => reject_invalid_message(text),
        Err(error) => match recover::replace_lone_surrogates(text) {
            Some(repaired) => decode_body(&repaired),
            None => {
                let error = ErrorData::parse_error(format!("Parse error: {error}."), None);
                Some(error_response(error, recover::find_id(text)))
            }
        },
    }
}

/// The error response to valid JSON that is not a message.
fn reject_invalid_message(text: &[u8]) -> Option<DecodedMessage> {
    // JSON nested too deeply for the parser becomes null here, which has neither id nor method.
    let value: Value = serde_json::from_slice(text).unwrap_or_default();
    let id = value.get("id").cloned().and_then(|id| serde_json::from_value::<RequestId>(id).ok());
    let is_response = value.get("result").is_some() || value.get("error").is_some();
    let is_notification = value.get("method").is_some() && value.get("id").is_none();
    if is_response || is_notification {
        return None;
    }
    let why: Cow<'static, str> = match &value {
        Value::Array(_) => "Invalid request: this protocol has no batches.".into(),
        Value::Object(object) if object.get("jsonrpc").is_none_or(|version| version != "2.0") => {
            "Invalid request: jsonrpc must be \"2.0\".".into()
        }
        Value::Object(object) if object.get("method").is_none_or(|method| !method.is_string()) => {
            "Invalid request: method must be a string.".into()
        }
        Value::Object(_) if id.is_none() => "Invalid request: id must be a string or an integer.".into(),
        _ => "Invalid request.".into(),
    };
    Some(error_response(ErrorData::invalid_request(why, None), id))
}

/// Counts separators outside of strings: each of them precedes one value. The count is meaningless for
/// invalid JSON, which the parser refuses later.
pub fn has_too_many_values(json: &[u8]) -> bool {
    let (mut values, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

fn error_response(error: ErrorData, id: Option<RequestId>) -> DecodedMessage {
    DecodedMessage::Invalid(Box::new(ServerJsonRpcMessage::error(error, id)))
}

#[cfg(test)]
mod tests {
    use delegator_transcript::{Framer, LineBody, LineLimits};
    use serde_json::json;

    use super::*;

    fn decode_all(bytes: &[u8]) -> Vec<Option<Value>> {
        let mut messages = Vec::new();
        let limits = LineLimits { whole: 1 << 20, head: 64, tail: 64 };
        Framer::new(limits).push(bytes, |line| {
            let decoded = match line.body {
                LineBody::Whole(text) => decode_text(text.trim_ascii()),
                LineBody::Truncated { head, tail, .. } => Some(refuse_too_long(line.length, head, tail)),
            };
            messages.push(decoded.map(|decoded| match decoded {
                DecodedMessage::Message(message) => json!(message),
                DecodedMessage::Invalid(response) => json!(response),
            }));
        });
        messages
    }

    fn decode_one(bytes: &str) -> Option<Value> {
        decode_all(format!("{bytes}\n").as_bytes()).remove(0)
    }

    fn error_of(bytes: &str) -> (i64, Value) {
        let response = decode_one(bytes).unwrap_or_else(|| panic!("{bytes} got no response"));
        (response["error"]["code"].as_i64().unwrap(), response["id"].clone())
    }

    #[test]
    fn surrounding_whitespace_is_ignored() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for line in [ping.to_owned(), format!("\u{feff}{ping}"), format!("  {ping}\t\r")] {
            assert_eq!(decode_one(&line).unwrap()["method"], "ping", "{line:?}");
        }
    }

    #[test]
    fn invalid_requests_get_an_error_response() {
        for (line, code, id) in [
            ("hello", -32700, json!(null)),
            (r#"{"jsonrpc":"2.0","id":"#, -32700, json!(null)),
            ("[]", -32600, json!(null)),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, json!(null)),
            ("7", -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":7}"#, -32600, json!(7)),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600, json!("a")),
            (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, -32600, json!(7)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, json!(null)),
        ] {
            assert_eq!(error_of(line), (code, id), "{line}");
        }
        assert_eq!(error_of(&"x".repeat(2 << 20)), (-32700, json!(null)));
        assert_eq!(error_of(&format!("[{}]", vec!["1"; 60_000].join(","))), (-32600, json!(null)));
        let bad = decode_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xff\"}\n");
        let response = bad[0].as_ref().unwrap();
        assert_eq!((&response["error"]["code"], &response["id"]), (&json!(-32700), &json!(1)));
        let long =
            format!(r#"{{"method":"ping","params":"{}","jsonrpc":"2.0","id":8}}"#, "x".repeat(2 << 20));
        assert_eq!(error_of(&long), (-32700, json!(8)));
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        let decoded =
            decode_one(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a\ud83d"}}"#)
                .unwrap();
        assert_eq!(decoded["params"]["name"], "a\u{fffd}");
    }

    #[test]
    fn notifications_and_responses_get_no_reply() {
        for line in [
            "",
            "  \r",
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}"#,
            r#"{"jsonrpc":"1.0","method":"notifications/nonsense"}"#,
        ] {
            let decoded = decode_one(line);
            assert!(
                decoded.as_ref().is_none_or(|decoded| decoded["error"]["message"] == "x"),
                "{line}: {decoded:?}"
            );
        }
    }

    #[test]
    fn value_count_ignores_text() {
        let many = |inner: &str, times: usize| format!("[{}]", vec![inner; times].join(","));
        assert!(has_too_many_values(many("1", MAX_VALUES + 1).as_bytes()));
        assert!(!has_too_many_values(many("1", MAX_VALUES - 1).as_bytes()));
        assert!(has_too_many_values(many("{}", MAX_VALUES / 2 + 1).as_bytes()));
        assert!(has_too_many_values("[".repeat(MAX_VALUES + 1).as_bytes()));
        let text = "[{,:".repeat(MAX_VALUES);
        assert!(!has_too_many_values(serde_json::json!({"task": text}).to_string().as_bytes()));
        let escaped = "\\\" [,".repeat(MAX_VALUES);
        assert!(!has_too_many_values(serde_json::json!({"task": escaped}).to_string().as_bytes()));
        assert!(!has_too_many_values(b""));
    }
}
