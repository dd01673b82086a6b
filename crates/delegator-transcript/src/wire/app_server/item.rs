//! Items of a turn.

use crate::event::{CommandExecution, ItemDetails, ItemStatus, McpToolCall};
use crate::json::text::snake_case;
use crate::json::{Object, Text, Value};
use crate::values::{agents_states, collab_call, file_changes, finished_mcp_call};

#[derive(Clone, Debug)]
pub struct ServerItem<'a> {
    pub id: Text<'a>,
    pub item: TurnItem<'a>,
}

#[derive(Clone, Debug)]
pub enum TurnItem<'a> {
    /// An item of Codex exec events.
    Work { status: Option<ItemStatus>, details: ItemDetails<'a> },
    /// The prompt or another message of the user.
    UserMessage,
    /// A known type that Codex exec events leave out.
    Ignored,
}

pub(super) fn read<'a>(fields: &Object<'a>) -> Option<ServerItem<'a>> {
    let kind = fields.text("type")?;
    let item = match kind.simple().unwrap_or_default() {
        "userMessage" => TurnItem::UserMessage,
        "hookPrompt" | "functionCallOutput" | "plan" | "subAgentActivity" | "imageView" | "sleep"
        | "enteredReviewMode" | "exitedReviewMode" | "contextCompaction" => TurnItem::Ignored,
        name => {
            let status = fields.text("status");
            TurnItem::Work {
                status: status.map(|status| ItemStatus::read(&snake_case(&status.resolve()))),
                details: details(name, fields),
            }
        }
    };
    Some(ServerItem { id: fields.text("id").unwrap_or_default(), item })
}

fn details<'a>(kind: &str, fields: &Object<'a>) -> ItemDetails<'a> {
    let text = |key: &str| fields.text(key).unwrap_or_default();
    match kind {
        "agentMessage" => ItemDetails::AgentMessage { text: text("text") },
        "reasoning" => ItemDetails::Reasoning { text: joined(fields, &["summary", "content"]) },
        "commandExecution" => {
            let exit_code = fields.first(&["exitCode"], Value::small_integer);
            let (command, output) = (text("command"), text("aggregatedOutput"));
            let duration_ms = fields.integer("durationMs").and_then(|ms| u64::try_from(ms).ok());
            let ended = CommandExecution::ended(command, output, exit_code);
            ItemDetails::CommandExecution(CommandExecution { duration_ms, ..ended })
        }
        "fileChange" => ItemDetails::FileChange { changes: file_changes(fields) },
        "mcpToolCall" | "dynamicToolCall" => {
            let server = fields.text("server").unwrap_or(Text::plain("agent"));
            ItemDetails::McpToolCall(McpToolCall { server, ..finished_mcp_call(fields) })
        }
        "webSearch" => ItemDetails::WebSearch { query: text("query"), action: fields.raw("action") },
        "collabAgentToolCall" => ItemDetails::CollabToolCall(collab_call(fields, agents_states(fields))),
        other => ItemDetails::Other { kind: Text::owned(snake_case(other)) },
    }
}

/// The texts of the first of these lists that has some.
fn joined<'a>(fields: &Object<'a>, keys: &[&str]) -> Text<'a> {
    let texts = keys.iter().map(|key| fields.list(&[key], Value::text)).find(|texts| !texts.is_empty());
    Text::joined(texts.unwrap_or_default(), "\n\n")
}
