//! Messages that we sent, read back from a stored stream. The dialect needs them to know what an answer of the agent is the
//! answer to, when a turn began, and which calls were refused.

use crate::json::{Object, Text};
use crate::wire::json_rpc::{Message, RequestId};

/// One message that we sent.
#[derive(Clone, Debug)]
pub enum ClientMessage<'a> {
    Request {
        id: RequestId,
        request: ClientRequest<'a>,
    },
    /// The answer to a permission request: the id of the chosen option, or `None` if the request was cancelled.
    PermissionAnswer {
        id: RequestId,
        option: Option<Text<'a>>,
    },
    /// We ended the turn.
    Cancel,
    /// Another notification or answer.
    Other,
}

/// What we asked for.
#[derive(Clone, Debug)]
pub enum ClientRequest<'a> {
    Initialize,
    NewSession,
    /// The history of the session is replayed.
    LoadSession {
        session_id: Text<'a>,
    },
    ResumeSession {
        session_id: Text<'a>,
    },
    /// A mode, a model or another setting of the session.
    Setting,
    /// The model of the session.
    Model,
    /// Begins a turn; its answer ends it.
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

impl<'a> ClientRequest<'a> {
    fn read(method: &Text<'a>, params: &'a str) -> Self {
        let session_id = || Object::read(params).text("sessionId").unwrap_or_default();
        match method.simple().unwrap_or_default() {
            "initialize" => Self::Initialize,
            "session/new" => Self::NewSession,
            "session/load" => Self::LoadSession { session_id: session_id() },
            "session/resume" => Self::ResumeSession { session_id: session_id() },
            "session/set_mode" => Self::Setting,
            "session/set_config_option" => {
                let is_model = Object::read(params).text("configId").is_some_and(|id| id == *"model");
                if is_model { Self::Model } else { Self::Setting }
            }
            "session/set_model" => Self::Model,
            "session/prompt" => Self::Prompt,
            _ => Self::Other,
        }
    }
}
