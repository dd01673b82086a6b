//! Which era a request belongs to: before 2026-07-28 there are sessions, since then every request says all about itself.
//!
//! The library takes a request that says all about itself for one of the later era, whatever version it names. One that
//! names an earlier version has to be in a session; what it says about itself means nothing there, and is left out.

use bytes::Bytes;
use http::HeaderMap;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion, RequestMetaObject};

use crate::mcp::decode::DecodedMessage;

const VERSION: &str = "mcp-protocol-version";

/// The body the library shall see instead, if it would take the request for one of the later era.
pub(super) fn without_self_description(headers: &HeaderMap, heard: DecodedMessage) -> Option<Bytes> {
    let DecodedMessage::Message(message) = heard else { return None };
    let JsonRpcMessage::Request(mut request) = *message else { return None };
    // Whoever asks what is spoken here cannot know it yet.
    if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
        return None;
    }
    let meta = request.request.get_meta_mut();
    let named = meta.protocol_version()?;
    let is_earlier = ProtocolVersion::KNOWN_VERSIONS.contains(&named) && named.has_initialize();
    // Two versions that differ are refused by the library.
    let is_meant =
        headers.get(VERSION).is_some_and(|version| version.as_bytes() == named.as_str().as_bytes());
    if !is_earlier || !is_meant {
        return None;
    }
    meta.retain(|key, _| !RequestMetaObject::DRAFT_REQUIRED_KEYS.contains(&key.as_str()));
    serde_json::to_vec(&request).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::{Value, json};

    use super::*;
    use crate::mcp::decode::decode_body;

    /// What is left of what a request says about itself; `None` if the library sees it as it is.
    fn remaining_meta(method: &str, header: &'static str, version: &str) -> Option<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "a", "_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": 7,
        }}});
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, HeaderValue::from_static(header));
        let body = without_self_description(&headers, decode_body(body.to_string().as_bytes()).unwrap())?;
        let seen: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&seen["id"], &seen["params"]["name"]), (&json!(1), &json!("a")));
        Some(seen["params"]["_meta"].clone())
    }

    #[test]
    fn self_description_is_removed_for_session_protocols() {
        let only_the_token = Some(json!({"progressToken": 7}));
        assert_eq!(remaining_meta("tools/call", "2025-11-25", "2025-11-25"), only_the_token);
        assert_eq!(remaining_meta("tools/call", "2025-06-18", "2025-06-18"), only_the_token);
        assert_eq!(remaining_meta("tools/call", "2026-07-28", "2026-07-28"), None);
        assert_eq!(remaining_meta("tools/call", "2026-07-28", "2025-11-25"), None, "the library refuses it");
        assert_eq!(remaining_meta("tools/call", "1999-01-01", "1999-01-01"), None, "the library refuses it");
        assert_eq!(remaining_meta("server/discover", "2025-11-25", "2025-11-25"), None);
    }
}
