//! Removes per-request protocol metadata from requests of protocols that use sessions.
//!
//! Before 2026-07-28 clients use sessions; since then every request describes its client in `_meta`. rmcp
//! treats any request with such a description as one without a session, whatever version it names. A request
//! that names an earlier version must be in a session, where the description has no meaning, so it is
//! removed.

use bytes::Bytes;
use http::HeaderMap;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion, RequestMetaObject};

use crate::mcp::transport::decode::DecodedMessage;

const VERSION: &str = "mcp-protocol-version";

/// The body without the description, if the request names a protocol that uses sessions.
pub(super) fn without_self_description(headers: &HeaderMap, decoded: DecodedMessage) -> Option<Bytes> {
    let DecodedMessage::Message(message) = decoded else { return None };
    let JsonRpcMessage::Request(mut request) = *message else { return None };
    // A client that discovers the versions cannot know the right one yet.
    if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
        return None;
    }
    let meta = request.request.get_meta_mut();
    let named = meta.protocol_version()?;
    let is_earlier = ProtocolVersion::KNOWN_VERSIONS.contains(&named) && named.has_initialize();
    // rmcp refuses a request whose header names another version.
    let is_consistent =
        headers.get(VERSION).is_some_and(|version| version.as_bytes() == named.as_str().as_bytes());
    if !is_earlier || !is_consistent {
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
    use crate::mcp::transport::decode::decode_body;

    /// The `_meta` that remains; `None` if the request is forwarded unchanged.
    fn remaining_meta(method: &str, header: &'static str, version: &str) -> Option<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "a", "_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": 7,
        }}});
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, HeaderValue::from_static(header));
        let body = without_self_description(&headers, decode_body(body.to_string().as_bytes()).unwrap())?;
        let forwarded: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&forwarded["id"], &forwarded["params"]["name"]), (&json!(1), &json!("a")));
        Some(forwarded["params"]["_meta"].clone())
    }

    #[test]
    fn self_description_is_removed_for_session_protocols() {
        let only_the_token = Some(json!({"progressToken": 7}));
        assert_eq!(remaining_meta("tools/call", "2025-11-25", "2025-11-25"), only_the_token);
        assert_eq!(remaining_meta("tools/call", "2025-06-18", "2025-06-18"), only_the_token);
        assert_eq!(remaining_meta("tools/call", "2026-07-28", "2026-07-28"), None);
        assert_eq!(remaining_meta("tools/call", "2026-07-28", "2025-11-25"), None, "rmcp refuses it");
        assert_eq!(remaining_meta("tools/call", "1999-01-01", "1999-01-01"), None, "rmcp refuses it");
        assert_eq!(remaining_meta("server/discover", "2025-11-25", "2025-11-25"), None);
    }
}
