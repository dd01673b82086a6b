//! What the caller can do after an error: a sentence, and the call of a command that it names.
//!
//! The call is structured, because its syntax depends on the reader: a shell command at a terminal, a tool
//! call for an MCP client. `output::call_syntax` renders it.

use serde_json::{Map, Value};

/// Where the call stands in the text of a [`Suggestion`].
pub const CALL: &str = "{call}";

/// Marks the name of an input in a text: a flag on the command line, the input itself in a tool call.
pub fn input_marker(name: &str) -> String {
    format!("{{input:{name}}}")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextCall {
    pub path: &'static [&'static str],
    /// On the command line the first input is positional, unless it is an agent, a list, an object or a flag.
    pub input: Map<String, Value>,
}

impl NextCall {
    pub fn new(path: &'static [&'static str]) -> NextCall {
        NextCall { path, input: Map::new() }
    }

    pub fn for_task(path: &'static [&'static str], task_id: &str) -> NextCall {
        NextCall::new(path).with("task_id", task_id)
    }

    pub fn with(mut self, name: &str, value: impl Into<Value>) -> NextCall {
        self.input.insert(name.to_owned(), value.into());
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// Contains [`CALL`] where the call belongs.
    pub text: String,
    pub call: Option<NextCall>,
}

impl Suggestion {
    pub fn with_call(text: impl Into<String>, call: NextCall) -> Suggestion {
        Suggestion { text: text.into(), call: Some(call) }
    }
}

impl<T: Into<String>> From<T> for Suggestion {
    fn from(text: T) -> Suggestion {
        Suggestion { text: text.into(), call: None }
    }
}
