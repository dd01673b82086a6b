//! Requests for permission to use a tool. A question to the user is one, too: the tool is `AskUserQuestion`,
//! and the permission contains the answers.

use super::tool::{self, ToolKind};
use crate::json::{Object, Text, Value};

/// `can_use_tool`
#[derive(Clone, Debug)]
pub struct PermissionRequest<'a> {
    pub call_id: Option<Text<'a>>,
    pub tool: Text<'a>,
    pub action: ToolAction<'a>,
    /// Raw JSON; a permission repeats it.
    pub input: &'a str,
    /// Why the agent asks.
    pub reason: Option<Text<'a>>,
}

#[derive(Clone, Debug)]
pub enum ToolAction<'a> {
    /// `Bash`
    Command { command: Text<'a> },
    /// `Edit`, `Write`, …
    Edit { path: Text<'a> },
    /// A tool of an MCP server: what it does is unknown.
    McpTool,
    /// `AskUserQuestion`
    Ask(Vec<AgentQuestion<'a>>),
    /// Reading, searching, sub-agents, plans: nothing that writes.
    Other,
}

#[derive(Clone, Debug)]
pub struct AgentQuestion<'a> {
    pub question: Text<'a>,
    pub options: Vec<QuestionOption<'a>>,
    /// More than one option may be chosen.
    pub multiple: bool,
}

/// An answer that the agent suggests.
#[derive(Clone, Debug)]
pub struct QuestionOption<'a> {
    pub label: Text<'a>,
    pub description: Option<Text<'a>>,
}

pub(super) fn read<'a>(request: &Object<'a>) -> Option<PermissionRequest<'a>> {
    let tool = request.text("tool_name")?;
    let input = request.object("input").unwrap_or_default();
    let raw_input = request.raw("input").unwrap_or("{}");
    let action = match tool::kind_of(&tool, &input, None) {
        ToolKind::Command { command } => ToolAction::Command { command },
        ToolKind::Edit { path } => ToolAction::Edit { path },
        ToolKind::Other { server: Some(_), .. } => ToolAction::McpTool,
        ToolKind::Other { .. } if tool == *"AskUserQuestion" => {
            ToolAction::Ask(input.list(&["questions"], read_question))
        }
        _ => ToolAction::Other,
    };
    let reason = request.first(&["decision_reason", "description"], Value::text);
    Some(PermissionRequest { call_id: request.text("tool_use_id"), tool, action, input: raw_input, reason })
}

fn read_question(question: Value<'_>) -> Option<AgentQuestion<'_>> {
    let question = question.object()?;
    Some(AgentQuestion {
        options: question.list(&["options"], |option| {
            let option = option.object()?;
            Some(QuestionOption { label: option.text("label")?, description: option.text("description") })
        }),
        multiple: question.is_true("multiSelect"),
        question: question.text("question")?,
    })
}
