//! Where a conversation stands, read from a request.

use serde_json::{Value, json};

/// The API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Responses,
    Messages,
    Chat,
}

impl Api {
    pub(super) fn of_path(path: &str) -> Option<Api> {
        let path = path.split('?').next().unwrap_or_default();
        match path.rsplit('/').next()? {
            "responses" => Some(Api::Responses),
            "messages" => Some(Api::Messages),
            "completions" => Some(Api::Chat),
            _ => None,
        }
    }

    /// A message of the model.
    pub(super) fn text(self, text: &str) -> Value {
        match self {
            Api::Responses => crate::fake_model::message(text),
            Api::Messages => crate::fake_model::text_block(text),
            Api::Chat => json!({"content": text}),
        }
    }

    /// What was said, in order.
    fn entries(self, request: &Value) -> Vec<Entry> {
        let messages = if self == Api::Responses { &request["input"] } else { &request["messages"] };
        messages.as_array().into_iter().flatten().flat_map(|message| self.entries_of(message)).collect()
    }

    fn entries_of(self, message: &Value) -> Vec<Entry> {
        match (self, message["type"].as_str(), message["role"].as_str()) {
            (Api::Responses, Some("function_call_output" | "custom_tool_call_output"), _) => {
                vec![Entry::ToolResult]
            }
            (Api::Chat, _, Some("tool")) => vec![Entry::ToolResult],
            (_, _, Some("user")) => match &message["content"] {
                Value::String(text) => vec![Entry::User(text.clone())],
                content => content.as_array().into_iter().flatten().map(content_entry).collect(),
            },
            _ => Vec::new(),
        }
    }
}

fn content_entry(content: &Value) -> Entry {
    match content["type"].as_str() {
        Some("tool_result") => Entry::ToolResult,
        _ => Entry::User(content["text"].as_str().unwrap_or_default().to_owned()),
    }
}

enum Entry {
    User(String),
    ToolResult,
}

/// The script that the prompt names, and how many results of tools followed.
pub(super) struct Position {
    pub(super) script: &'static str,
    pub(super) results: usize,
}

impl Position {
    pub(super) fn find(
        api: Api,
        request: &Value,
        scripts: impl Iterator<Item = &'static str> + Clone,
    ) -> Option<Position> {
        let mut position = None;
        for entry in api.entries(request) {
            match entry {
                Entry::User(text) => {
                    let mut named = scripts.clone().filter(|name| text.contains(&format!("[script {name}]")));
                    if let Some(script) = named.next() {
                        position = Some(Position { script, results: 0 });
                    }
                }
                Entry::ToolResult => {
                    if let Some(position) = &mut position {
                        position.results += 1;
                    }
                }
            }
        }
        position
    }
}
