//! JSON-RPC 2.0 messages, one per line, for the Agent Client Protocol and Codex's app server.
//!
//! Both sides send requests, so there are two id spaces: an id says which request it belongs to only together
//! with who sent it. Agents use numbers and strings as ids. Codex's app server omits the member `jsonrpc`: it
//! is written if the protocol has it, and never required.
//!
//! Parameters and results are passed on as borrowed JSON, because most of them are never used and some are
//! long.

use serde::Serialize;

use crate::json::{Ending, Object, Text, Value, write};

/// The request makes no sense now, or its parameters are wrong.
pub const INVALID_REQUEST: i64 = -32600;
pub const INVALID_PARAMS: i64 = -32602;
/// The method is not known: what a request that we do not serve is answered with.
pub const METHOD_NOT_FOUND: i64 = -32601;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

/// One message. `params` and `result` are JSON: empty if absent, and of an over-long line the beginning.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// The other side waits for an answer.
    Request { id: RequestId, method: Text<'a>, params: &'a str },
    /// It has no answer.
    Notification { method: Text<'a>, params: &'a str },
    /// The answer to a request.
    Result { id: RequestId, result: &'a str },
    /// The answer to a request that failed. Without an id, the request could not be read.
    Error { id: Option<RequestId>, error: RpcError<'a> },
}

#[derive(Clone, Debug, Default)]
pub struct RpcError<'a> {
    pub code: i64,
    pub message: Text<'a>,
    /// JSON; empty if absent.
    pub data: &'a str,
}

impl<'a> Message<'a> {
    /// Reads a line. `None` if it is not JSON, or JSON that is no message.
    pub fn read(line: &'a str) -> Option<Self> {
        let members = Object::read(line);
        Self::from_members(&members).filter(|_| members.ending == Ending::Complete)
    }

    /// Reads the members of a line, or what is available of an over-long one.
    pub(crate) fn from_members(members: &Object<'a>) -> Option<Self> {
        let id = members.first(&["id"], request_id);
        let json = |key: &str| members.first(&[key], |value| Some(value.available()));
        if let Some(method) = members.text("method") {
            let params = json("params").unwrap_or_default();
            return Some(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            });
        }
        match members.first(&["error"], rpc_error) {
            Some(error) => Some(Self::Error { id, error }),
            None => Some(Self::Result { id: id?, result: json("result")? }),
        }
    }
}

pub(super) fn request_id(id: Value<'_>) -> Option<RequestId> {
    let text = || Some(RequestId::Text(id.text()?.resolve().into_owned()));
    id.integer().map(RequestId::Number).or_else(text)
}

/// An object with a `code`. Other lines may have an `error`, too.
fn rpc_error(error: Value<'_>) -> Option<RpcError<'_>> {
    let error = error.object()?;
    Some(RpcError {
        code: error.integer("code")?,
        message: error.text("message").unwrap_or_default(),
        data: error.first(&["data"], |data| Some(data.available())).unwrap_or_default(),
    })
}

/// Writes messages, without a line end.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    has_version: bool,
}

impl Writer {
    /// With the member `jsonrpc`, as the standard requires.
    pub const STANDARD: Self = Self { has_version: true };
    /// Without it, as Codex's app server writes and reads messages.
    pub const WITHOUT_VERSION: Self = Self { has_version: false };

    pub fn request(self, id: i64, method: &str, params: &impl Serialize) -> Vec<u8> {
        self.write(|message| {
            message.value("id", &id);
            message.plain("method", method);
            message.value("params", params);
        })
    }

    pub fn notification(self, method: &str, params: &impl Serialize) -> Vec<u8> {
        self.write(|message| {
            message.plain("method", method);
            message.value("params", params);
        })
    }

    pub fn result(self, id: &RequestId, result: &impl Serialize) -> Vec<u8> {
        self.write(|message| {
            message.value("id", id);
            message.value("result", result);
        })
    }

    pub fn error(self, id: &RequestId, code: i64, reason: &str) -> Vec<u8> {
        self.write(|message| {
            message.value("id", id);
            message.object("error", |error| {
                error.value("code", &code);
                error.plain("message", reason);
            });
        })
    }

    fn write(self, members: impl FnOnce(&mut write::Object<'_>)) -> Vec<u8> {
        let mut line = Vec::new();
        write::object(&mut line, |message| {
            if self.has_version {
                message.plain("jsonrpc", "2.0");
            }
            members(message);
        });
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_of_a_message_show_its_kind() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":0,"method":"m","params":{"a":1}}"#, r#"request 0 m {"a":1}"#),
            (r#"{"params":[],"method":"m","id":"u-1"}"#, r#"request "u-1" m []"#),
            (r#"{"method":"m"}"#, "notification m "),
            (r#"{"method":"m","id":null}"#, "notification m "),
            (r#" {"id":7,"result":null} "#, "result 7 null"),
            (r#"{"id":7,"result":{},"error":null}"#, "result 7 {}"),
            (
                r#"{"id":7,"error":{"code":-32000,"message":"no","data":{"k":1}}}"#,
                r#"error 7 -32000 no {"k":1}"#,
            ),
            (r#"{"error":{"code":-32700,"message":"parse"},"id":null}"#, "error none -32700 parse "),
            (r#"{"type":"error","error":{"message":"m"}}"#, "no message"),
            (r#"{"type":"turn.started"}"#, "no message"),
            (r#"{"id":1,"method":"m""#, "no message"),
            (r#"{"id":1,"method":"m"}x"#, "no message"),
            ("text", "no message"),
            ("[]", "no message"),
        ] {
            assert_eq!(describe(Message::read(line)), expected, "{line}");
        }
    }

    #[test]
    fn of_an_over_long_line_the_available_parameters_are_read() {
        let head = r#"{"id":1,"method":"m","params":{"text":"aaa"#;
        let message = Message::from_members(&Object::read(head));
        assert_eq!(describe(message), r#"request 1 m {"text":"aaa"#);
    }

    #[test]
    fn written_messages_are_read_back() {
        let id = RequestId::Text("u-1".to_owned());
        for (writer, with_version) in [(Writer::STANDARD, true), (Writer::WITHOUT_VERSION, false)] {
            for (line, expected) in [
                (writer.request(3, "m", &["p"]), r#"request 3 m ["p"]"#),
                (writer.notification("m", &["p"]), r#"notification m ["p"]"#),
                (writer.result(&id, &["p"]), r#"result "u-1" ["p"]"#),
                (writer.error(&id, METHOD_NOT_FOUND, "no"), r#"error "u-1" -32601 no "#),
            ] {
                let line = String::from_utf8(line).expect("text");
                assert_eq!(describe(Message::read(&line)), expected);
                assert_eq!(line.starts_with(r#"{"jsonrpc":"2.0","#), with_version, "{line}");
            }
        }
    }

    fn describe(message: Option<Message<'_>>) -> String {
        let json = |id: &RequestId| serde_json::to_string(id).expect("an id");
        match message {
            None => "no message".to_owned(),
            Some(Message::Request { id, method, params }) => {
                format!("request {} {} {params}", json(&id), method.resolve())
            }
            Some(Message::Notification { method, params }) => {
                format!("notification {} {params}", method.resolve())
            }
            Some(Message::Result { id, result }) => format!("result {} {result}", json(&id)),
            Some(Message::Error { id, error: RpcError { code, message, data } }) => {
                let id = id.as_ref().map_or("none".to_owned(), json);
                format!("error {id} {code} {} {data}", message.resolve())
            }
        }
    }
}
