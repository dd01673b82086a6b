//! The messages that we send.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::wire::json_rpc::{METHOD_NOT_FOUND, RequestId, Writer};

const WRITER: Writer = Writer::WITHOUT_VERSION;

#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    pub name: &'a str,
    pub version: &'a str,
}

/// Notifications about parts of an item that comes whole later, and about things that no task needs.
const UNWANTED_NOTIFICATIONS: [&str; 13] = [
    "item/agentMessage/delta",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "command/exec/outputDelta",
    "process/outputDelta",
    "turn/diff/updated",
    "remoteControl/status/changed",
];

pub fn initialize(id: i64, client: Client<'_>) -> Vec<u8> {
    let Client { name, version } = client;
    // Background terminals can only be ended with the experimental API.
    let params = json!({
        "clientInfo": { "name": name, "title": name, "version": version },
        "capabilities": { "experimentalApi": true, "optOutNotificationMethods": UNWANTED_NOTIFICATIONS },
    });
    WRITER.request(id, "initialize", &params)
}

pub fn initialized() -> Vec<u8> {
    WRITER.notification("initialized", &json!({}))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalPolicy {
    /// The agent asks when a command has to run outside of its sandbox.
    OnRequest,
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadOptions {
    pub cwd: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Absent if the configuration defines the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxMode>,
    pub approval_policy: ApprovalPolicy,
}

/// What the turns of a thread have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub text: &'a str,
    pub images: &'a [PathBuf],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum InputItem<'a> {
    Text {
        text: &'a str,
        #[serde(rename = "text_elements")]
        text_elements: [(); 0],
    },
    LocalImage {
        path: &'a Path,
    },
}

impl<'a> Input<'a> {
    fn items(self) -> Vec<InputItem<'a>> {
        let images = self.images.iter().map(|path| InputItem::LocalImage { path });
        std::iter::once(InputItem::Text { text: self.text, text_elements: [] }).chain(images).collect()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenThread<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<&'a str>,
    #[serde(flatten)]
    options: &'a ThreadOptions,
    approvals_reviewer: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    exclude_turns: bool,
}

impl<'a> OpenThread<'a> {
    /// Approvals are requested of us, not of a reviewing model. The response contains no earlier turns.
    fn new(thread_id: Option<&'a str>, options: &'a ThreadOptions) -> Self {
        Self { thread_id, options, approvals_reviewer: "user", exclude_turns: thread_id.is_some() }
    }
}

pub fn start_thread(id: i64, options: &ThreadOptions) -> Vec<u8> {
    WRITER.request(id, "thread/start", &OpenThread::new(None, options))
}

pub fn resume_thread(id: i64, thread_id: &str, options: &ThreadOptions) -> Vec<u8> {
    WRITER.request(id, "thread/resume", &OpenThread::new(Some(thread_id), options))
}

pub fn start_turn(id: i64, thread_id: &str, input: Input<'_>, options: &TurnOptions) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        thread_id: &'a str,
        input: Vec<InputItem<'a>>,
        #[serde(flatten)]
        options: &'a TurnOptions,
    }
    WRITER.request(id, "turn/start", &Params { thread_id, input: input.items(), options })
}

/// Adds a message to the running turn; it is read after the tool that runs.
pub fn steer_turn(id: i64, thread_id: &str, turn_id: &str, text: &str) -> Vec<u8> {
    let input = Input { text, images: &[] }.items();
    let params = json!({ "threadId": thread_id, "expectedTurnId": turn_id, "input": input });
    WRITER.request(id, "turn/steer", &params)
}

/// Ends the turn, but not its commands.
pub fn interrupt_turn(id: i64, thread_id: &str, turn_id: &str) -> Vec<u8> {
    WRITER.request(id, "turn/interrupt", &json!({ "threadId": thread_id, "turnId": turn_id }))
}

/// Ends commands that run on after their turn.
pub fn clean_background_terminals(id: i64, thread_id: &str) -> Vec<u8> {
    WRITER.request(id, "thread/backgroundTerminals/clean", &json!({ "threadId": thread_id }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    Accept,
    /// The turn goes on without it.
    Decline,
}

pub fn answer_approval(id: &RequestId, decision: Approval) -> Vec<u8> {
    WRITER.result(id, &json!({ "decision": decision }))
}

/// Grants nothing.
pub fn refuse_permissions(id: &RequestId) -> Vec<u8> {
    WRITER.result(id, &json!({ "permissions": {} }))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAnswer {
    pub question_id: String,
    /// Empty without an answer.
    pub texts: Vec<String>,
}

pub fn answer_user_input(id: &RequestId, answers: &[WrittenAnswer]) -> Vec<u8> {
    let answer = |answer: &WrittenAnswer| (answer.question_id.clone(), json!({ "answers": answer.texts }));
    WRITER.result(id, &json!({ "answers": answers.iter().map(answer).collect::<BTreeMap<_, _>>() }))
}

pub fn refuse_request(id: &RequestId) -> Vec<u8> {
    WRITER.error(id, METHOD_NOT_FOUND, "this client does not support the request")
}
