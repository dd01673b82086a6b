//! The messages that we send, without a line end.
//!
//! We offer the agent neither file access nor terminals: Gemini CLI cannot create files then, opencode ignores the
//! answers, and edits and commands inside the agent are enclosed by our sandbox anyway.

use serde::Serialize;

use crate::wire::json_rpc::{METHOD_NOT_FOUND, RequestId, Writer};

const PROTOCOL_VERSION: u16 = 1;
const WRITER: Writer = Writer::STANDARD;

/// Our name in `initialize`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClientInfo<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub version: &'a str,
}

/// A value of a setting of the session.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum ConfigValue<'a> {
    Choice(&'a str),
    Switch(bool),
}

pub fn initialize(id: i64, client: ClientInfo<'_>) -> Vec<u8> {
    let params = Initialize {
        protocol_version: PROTOCOL_VERSION,
        client_capabilities: ClientCapabilities::default(),
        client_info: client,
    };
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
    WRITER.request(id, "session/set_mode", &SetMode { session_id, mode_id })
}

pub fn set_model(id: i64, session_id: &str, model_id: &str) -> Vec<u8> {
    WRITER.request(id, "session/set_model", &SetModel { session_id, model_id })
}

pub fn set_config_option(id: i64, session_id: &str, config_id: &str, value: ConfigValue<'_>) -> Vec<u8> {
    let kind = matches!(value, ConfigValue::Switch(_)).then_some("boolean");
    let params = SetConfigOption { session_id, config_id, kind, value };
    WRITER.request(id, "session/set_config_option", &params)
}

pub fn prompt(id: i64, session_id: &str, text: &str) -> Vec<u8> {
    WRITER.request(id, "session/prompt", &Prompt::new(session_id, text))
}

/// A message into the running turn: an extension that the agent announces in `initialize`.
pub fn steer(id: i64, session_id: &str, text: &str) -> Vec<u8> {
    WRITER.request(id, "_session/steering", &Prompt::new(session_id, text))
}

/// Ends the running turn. Open permission requests have to be answered as cancelled.
pub fn cancel(session_id: &str) -> Vec<u8> {
    WRITER.notification("session/cancel", &Cancel { session_id })
}

/// Answers a permission request with one of its options.
pub fn select_option(request: &RequestId, option_id: &str) -> Vec<u8> {
    let outcome = Outcome { outcome: "selected", option_id: Some(option_id) };
    WRITER.result(request, &PermissionAnswer { outcome })
}

/// Answers a permission request of a turn that was cancelled.
pub fn cancel_request(request: &RequestId) -> Vec<u8> {
    let outcome = Outcome { outcome: "cancelled", option_id: None };
    WRITER.result(request, &PermissionAnswer { outcome })
}

/// Refuses a request that we do not serve.
pub fn refuse(request: &RequestId, method: &str) -> Vec<u8> {
    WRITER.error(request, METHOD_NOT_FOUND, &format!("Method not found: {method}"))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Initialize<'a> {
    protocol_version: u16,
    client_capabilities: ClientCapabilities,
    client_info: ClientInfo<'a>,
}

#[derive(Default, Serialize)]
struct ClientCapabilities {
    fs: FileAccess,
    terminal: bool,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FileAccess {
    read_text_file: bool,
    write_text_file: bool,
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SetMode<'a> {
    session_id: &'a str,
    mode_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SetModel<'a> {
    session_id: &'a str,
    model_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SetConfigOption<'a> {
    session_id: &'a str,
    config_id: &'a str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    value: ConfigValue<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Prompt<'a> {
    session_id: &'a str,
    prompt: [ContentBlock<'a>; 1],
}

impl<'a> Prompt<'a> {
    fn new(session_id: &'a str, text: &'a str) -> Self {
        Self { session_id, prompt: [ContentBlock { kind: "text", text }] }
    }
}

#[derive(Serialize)]
struct ContentBlock<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancel<'a> {
    session_id: &'a str,
}

#[derive(Serialize)]
struct PermissionAnswer<'a> {
    outcome: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    option_id: Option<&'a str>,
}
