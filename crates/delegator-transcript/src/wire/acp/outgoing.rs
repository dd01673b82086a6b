//! The messages that we send, without a line end.
//!
//! We offer the agent neither file access nor terminals: Gemini CLI cannot create files then, opencode
//! ignores the answers, and edits and commands inside the agent are enclosed by our sandbox anyway.

use serde::Serialize;
use serde_json::json;

use crate::wire::json_rpc::{METHOD_NOT_FOUND, RequestId, Writer};

const PROTOCOL_VERSION: u16 = 1;
const WRITER: Writer = Writer::STANDARD;

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClientInfo<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub version: &'a str,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum ConfigValue<'a> {
    Choice(&'a str),
    Switch(bool),
}

pub fn initialize(id: i64, client: ClientInfo<'_>) -> Vec<u8> {
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
        "clientInfo": client,
    });
    WRITER.request(id, "initialize", &params)
}

/// `cwd` and `directories` are absolute paths. Agents that know only one directory ignore the others.
pub fn new_session(id: i64, cwd: &str, directories: &[String]) -> Vec<u8> {
    WRITER.request(id, "session/new", &OpenSession::new(None, cwd, directories))
}

pub fn load_session(id: i64, session_id: &str, cwd: &str, directories: &[String]) -> Vec<u8> {
    WRITER.request(id, "session/load", &OpenSession::new(Some(session_id), cwd, directories))
}

pub fn resume_session(id: i64, session_id: &str, cwd: &str, directories: &[String]) -> Vec<u8> {
    WRITER.request(id, "session/resume", &OpenSession::new(Some(session_id), cwd, directories))
}

pub fn set_mode(id: i64, session_id: &str, mode_id: &str) -> Vec<u8> {
    WRITER.request(id, "session/set_mode", &json!({ "sessionId": session_id, "modeId": mode_id }))
}

pub fn set_model(id: i64, session_id: &str, model_id: &str) -> Vec<u8> {
    WRITER.request(id, "session/set_model", &json!({ "sessionId": session_id, "modelId": model_id }))
}

pub fn set_config_option(id: i64, session_id: &str, config_id: &str, value: ConfigValue<'_>) -> Vec<u8> {
    let mut params = json!({ "sessionId": session_id, "configId": config_id });
    if let ConfigValue::Switch(_) = value {
        params["type"] = json!("boolean");
    }
    params["value"] = json!(value);
    WRITER.request(id, "session/set_config_option", &params)
}

pub fn prompt(id: i64, session_id: &str, text: &str) -> Vec<u8> {
    write_prompt(id, "session/prompt", session_id, text)
}

/// A message into the running turn: an extension that the agent announces in `initialize`.
pub fn steer(id: i64, session_id: &str, text: &str) -> Vec<u8> {
    write_prompt(id, "_session/steering", session_id, text)
}

fn write_prompt(id: i64, method: &str, session_id: &str, text: &str) -> Vec<u8> {
    let params = json!({ "sessionId": session_id, "prompt": [{ "type": "text", "text": text }] });
    WRITER.request(id, method, &params)
}

/// Ends the running turn. Open permission requests have to be answered as cancelled.
pub fn cancel(session_id: &str) -> Vec<u8> {
    WRITER.notification("session/cancel", &json!({ "sessionId": session_id }))
}

/// Answers a permission request with one of its options.
pub fn select_option(request: &RequestId, option_id: &str) -> Vec<u8> {
    WRITER.result(request, &json!({ "outcome": { "outcome": "selected", "optionId": option_id } }))
}

/// Answers a permission request of a turn that was cancelled.
pub fn cancel_request(request: &RequestId) -> Vec<u8> {
    WRITER.result(request, &json!({ "outcome": { "outcome": "cancelled" } }))
}

pub fn refuse(request: &RequestId, method: &str) -> Vec<u8> {
    WRITER.error(request, METHOD_NOT_FOUND, &format!("Method not found: {method}"))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenSession<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    cwd: &'a str,
    mcp_servers: [(); 0],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    additional_directories: &'a [String],
}

impl<'a> OpenSession<'a> {
    fn new(session_id: Option<&'a str>, cwd: &'a str, directories: &'a [String]) -> Self {
        Self { session_id, cwd, mcp_servers: [], additional_directories: directories }
    }
}
