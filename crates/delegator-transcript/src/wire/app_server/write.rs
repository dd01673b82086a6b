//! The messages that we send.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::wire::json_rpc::{METHOD_NOT_FOUND, RequestId, Writer};

const WRITER: Writer = Writer::WITHOUT_VERSION;

/// Who we are.
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
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        client_info: ClientInfo<'a>,
        capabilities: Capabilities,
    }
    #[derive(Serialize)]
    struct ClientInfo<'a> {
        name: &'a str,
        title: &'a str,
        version: &'a str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Capabilities {
        experimental_api: bool,
        opt_out_notification_methods: &'static [&'static str],
    }
    let Client { name, version } = client;
    let client_info = ClientInfo { name, title: name, version };
    // Background terminals can only be ended with the experimental API.
    let capabilities =
        Capabilities { experimental_api: true, opt_out_notification_methods: &UNWANTED_NOTIFICATIONS };
    WRITER.request(id, "initialize", &Params { client_info, capabilities })
}

pub fn initialized() -> Vec<u8> {
    #[derive(Serialize)]
    struct Params {}
    WRITER.notification("initialized", &Params {})
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

/// How a thread runs.
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

/// Input of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub text: &'a str,
    pub images: &'a [PathBuf],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum InputItem<'a> {
    #[serde(rename_all = "snake_case")]
    Text {
        text: &'a str,
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

/// Approvals are requested of us, not of a reviewing model.
const REVIEWER: &str = "user";

pub fn start_thread(id: i64, options: &ThreadOptions) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(flatten)]
        options: &'a ThreadOptions,
        approvals_reviewer: &'static str,
    }
    WRITER.request(id, "thread/start", &Params { options, approvals_reviewer: REVIEWER })
}

/// The response contains no earlier turns.
pub fn resume_thread(id: i64, thread_id: &str, options: &ThreadOptions) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        thread_id: &'a str,
        #[serde(flatten)]
        options: &'a ThreadOptions,
        approvals_reviewer: &'static str,
        exclude_turns: bool,
    }
    let params = Params { thread_id, options, approvals_reviewer: REVIEWER, exclude_turns: true };
    WRITER.request(id, "thread/resume", &params)
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
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        thread_id: &'a str,
        expected_turn_id: &'a str,
        input: Vec<InputItem<'a>>,
    }
    let input = Input { text, images: &[] }.items();
    WRITER.request(id, "turn/steer", &Params { thread_id, expected_turn_id: turn_id, input })
}

/// Ends the turn, but not its commands.
pub fn interrupt_turn(id: i64, thread_id: &str, turn_id: &str) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        thread_id: &'a str,
        turn_id: &'a str,
    }
    WRITER.request(id, "turn/interrupt", &Params { thread_id, turn_id })
}

/// Ends commands that run on after their turn.
pub fn clean_background_terminals(id: i64, thread_id: &str) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        thread_id: &'a str,
    }
    WRITER.request(id, "thread/backgroundTerminals/clean", &Params { thread_id })
}

/// A decision about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    Accept,
    /// The turn goes on without it.
    Decline,
}

pub fn answer_approval(id: &RequestId, decision: Approval) -> Vec<u8> {
    #[derive(Serialize)]
    struct Decided {
        decision: Approval,
    }
    WRITER.result(id, &Decided { decision })
}

/// Grants nothing.
pub fn refuse_permissions(id: &RequestId) -> Vec<u8> {
    #[derive(Serialize)]
    struct Granted {
        permissions: BTreeMap<String, Value>,
    }
    WRITER.result(id, &Granted { permissions: BTreeMap::new() })
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAnswer {
    pub question_id: String,
    /// Empty without an answer.
    pub texts: Vec<String>,
}

pub fn answer_user_input(id: &RequestId, answers: &[WrittenAnswer]) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answers<'a> {
        answers: BTreeMap<&'a str, Texts<'a>>,
    }
    #[derive(Serialize)]
    struct Texts<'a> {
        answers: &'a [String],
    }
    let answers = answers
        .iter()
        .map(|answer| (answer.question_id.as_str(), Texts { answers: &answer.texts }))
        .collect();
    WRITER.result(id, &Answers { answers })
}

pub fn refuse_request(id: &RequestId) -> Vec<u8> {
    WRITER.error(id, METHOD_NOT_FOUND, "this client does not support the request")
}
