//! Messages that we sent, read back from a stored stream. The dialect needs them to know what an answer of
//! the agent is the answer to, when a turn began, and which calls were refused.

use crate::json::{Object, Text};
use crate::wire::json_rpc::{Message, RequestId};

#[derive(Clone, Debug)]
pub enum ClientMessage<'a> {
    /// Its answer has the same id.
    Request { id: RequestId, request: ClientRequest },
    /// The id of the chosen option, or `None` if the permission request was cancelled.
    PermissionAnswer { id: RequestId, option: Option<Text<'a>> },
    /// We ended the turn.
    Cancel,
    /// Another notification or answer.
    Other,
}

/// `session/load`, which replays the history of the session, and `session/resume` open a session. A prompt
/// begins a turn, which its answer ends.
#[derive(Clone, Debug)]
pub enum ClientRequest {
    Initialize,
    NewSession,
    OpenSession { session_id: String, is_replayed: bool },
    Setting,
    Model,
    Prompt,
    Other,
}

impl<'a> ClientMessage<'a> {
    pub(crate) fn from_message(message: Message<'a>) -> Self {
        match message {
            Message::Request { id, method, params } => {
                Self::Request { id, request: ClientRequest::read(&method, params) }
            }
            Message::Result { id, result } => match Object::read(result).object("outcome") {
                Some(outcome) => Self::PermissionAnswer { id, option: outcome.text("optionId") },
                None => Self::Other,
            },
            Message::Notification { method, .. } if method == *"session/cancel" => Self::Cancel,
            Message::Notification { .. } | Message::Error { .. } => Self::Other,
        }
    }
}

impl ClientRequest {
    fn read(method: &Text<'_>, params: &str) -> Self {
        let params = Object::read(params);
        let open_session = |is_replayed| {
            let session_id = params.text("sessionId").unwrap_or_default().resolve().into_owned();
            Self::OpenSession { session_id, is_replayed }
        };
        match method.simple().unwrap_or_default() {
            "initialize" => Self::Initialize,
            "session/new" => Self::NewSession,
            "session/load" => open_session(true),
            "session/resume" => open_session(false),
            "session/set_config_option" if params.has_text("configId", "model") => Self::Model,
            "session/set_mode" | "session/set_config_option" => Self::Setting,
            "session/set_model" => Self::Model,
            "session/prompt" => Self::Prompt,
            _ => Self::Other,
        }
    }
}
