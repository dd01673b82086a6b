//! Calls of tools, their results, and requests for permission to use a tool.

use crate::event::{ChangeKind, Todo};
use crate::file_diff;
use crate::json::{Object, Text, Value};
use crate::values::{read_suggestions, read_todos};

#[derive(Clone, Debug)]
pub struct ToolCall<'a> {
    pub id: Text<'a>,
    pub kind: ToolKind<'a>,
    /// When the line was printed, in milliseconds of the day.
    pub at_ms: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum ToolKind<'a> {
    /// `Bash`
    Command { command: Text<'a> },
    /// `Edit`, `Write`, …
    Edit { path: Text<'a> },
    /// `WebSearch`
    WebSearch { query: Text<'a> },
    /// `TodoWrite`: the whole plan.
    Plan(Vec<Todo<'a>>),
    /// `TaskCreate`, `TaskUpdate`: a step of the plan.
    PlanStep(TaskChange<'a>),
    /// A tool of an MCP server (`mcp__SERVER__TOOL`), or any other tool of the agent. The input is raw JSON.
    Other { server: Option<Text<'a>>, tool: Text<'a>, input: Option<&'a str> },
}

/// A change to a step of the plan. A new step gets its number from the result.
#[derive(Clone, Debug, Default)]
pub struct TaskChange<'a> {
    pub task_id: Option<Text<'a>>,
    pub subject: Option<Text<'a>>,
    pub status: Option<Text<'a>>,
}

impl TaskChange<'_> {
    pub(crate) fn into_owned(self) -> TaskChange<'static> {
        TaskChange {
            task_id: self.task_id.map(Text::into_owned),
            subject: self.subject.map(Text::into_owned),
            status: self.status.map(Text::into_owned),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ToolResult<'a> {
    pub call_id: Text<'a>,
    pub text: Text<'a>,
    pub is_error: bool,
    /// The call was not allowed.
    pub is_declined: bool,
    /// The file did not exist before.
    pub is_new_file: bool,
    /// The changed lines of an edited file.
    pub diff: Text<'a>,
    /// The command goes on after this result.
    pub is_running: bool,
    /// The number of a new step of the plan.
    pub task_id: Option<Text<'a>>,
    /// The result of an MCP server, raw JSON.
    pub structured: Option<&'a str>,
    /// When the line was printed, in milliseconds of the day.
    pub at_ms: Option<u64>,
}

/// Reads a block of type `tool_use` of `line`.
pub(super) fn read_call<'a>(block: &Object<'a>, line: &Object<'a>) -> Option<ToolCall<'a>> {
    let name = block.text("name")?;
    let input = block.object("input").unwrap_or_default();
    let kind = kind_of(&name, &input, block.raw("input"));
    Some(ToolCall { id: block.text("id").unwrap_or_default(), kind, at_ms: time_of(line) })
}

/// The time in `2026-11-15T18:54:52.557Z`; no command runs for a day.
fn time_of(line: &Object<'_>) -> Option<u64> {
    let timestamp = line.text("timestamp")?;
    let number = |range: std::ops::Range<usize>| timestamp.simple()?.get(range)?.parse::<u64>().ok();
    Some(((number(11..13)? * 60 + number(14..16)?) * 60 + number(17..19)?) * 1_000 + number(20..23)?)
}

pub(super) fn kind_of<'a>(name: &Text<'a>, input: &Object<'a>, raw: Option<&'a str>) -> ToolKind<'a> {
    let text = |key: &str| input.text(key).unwrap_or_default();
    match name.simple().unwrap_or_default() {
        "Bash" => ToolKind::Command { command: text("command") },
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit {
            path: input.first(&["file_path", "notebook_path"], Value::text).unwrap_or_default(),
        },
        "WebSearch" => ToolKind::WebSearch { query: text("query") },
        "TodoWrite" => ToolKind::Plan(read_todos(input, "todos", "content")),
        "TaskCreate" | "TaskUpdate" => ToolKind::PlanStep(TaskChange {
            task_id: input.text("taskId"),
            subject: input.text("subject"),
            status: input.text("status"),
        }),
        _ => {
            let (server, tool) = match mcp_tool(name) {
                Some((server, tool)) => (Some(server), tool),
                None => (None, name.clone()),
            };
            ToolKind::Other { server, tool, input: raw }
        }
    }
}

/// Server and tool in `mcp__SERVER__TOOL`.
fn mcp_tool(name: &Text<'_>) -> Option<(Text<'static>, Text<'static>)> {
    let name = name.resolve();
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    Some((Text::owned(server), Text::owned(tool)))
}

/// Reads a block of type `tool_result` of `line`.
pub(super) fn read_result<'a>(block: &Object<'a>, line: &Object<'a>) -> Option<ToolResult<'a>> {
    block.text("type").filter(|kind| *kind == *"tool_result")?;
    let call_id = block.text("tool_use_id")?;
    let details = line.object("tool_use_result").unwrap_or_default();
    let is_declined = line.list(&["tool_result_meta"], |meta| {
        let meta = meta.object()?;
        meta.text("id").filter(|id| *id == call_id)?;
        let decision = meta.object("permission_decision")?.text("decision")?;
        Some(decision == *"reject")
    });
    Some(ToolResult {
        text: block.first(&["content"], content_text).unwrap_or_default(),
        is_error: block.is_true("is_error"),
        is_declined: is_declined.contains(&true),
        is_new_file: details.has_text("type", "create"),
        diff: diff_in(&details),
        is_running: details.text("backgroundTaskId").is_some(),
        task_id: details.object("task").and_then(|task| task.first(&["id"], Value::text_or_json)),
        structured: details.raw("structuredContent"),
        at_ms: time_of(line),
        call_id,
    })
}

/// The hunks of an edit, or the text of a new file.
fn diff_in<'a>(details: &Object<'a>) -> Text<'a> {
    let hunk = |hunk: Value<'a>| Some(Text::joined(hunk.object()?.list(&["lines"], Value::text), "\n"));
    let hunks = details.list(&["structuredPatch"], hunk);
    match details.text("content").filter(|_| details.has_text("type", "create")) {
        Some(content) => file_diff::of_text(ChangeKind::Add, content),
        None => file_diff::of_text(ChangeKind::Update, Text::joined(hunks, "\n@@\n")),
    }
}

/// A string, or the texts of a list of blocks.
fn content_text(content: Value<'_>) -> Option<Text<'_>> {
    content.text().or_else(|| {
        let texts = content.elements()?.filter_map(|part| part.object()?.text("text"));
        Some(Text::joined(texts, ""))
    })
}

/// `can_use_tool`: a request for permission to use a tool. A question to the user is one, too: the tool is
/// `AskUserQuestion`, and the permission contains the answers.
#[derive(Clone, Debug)]
pub struct PermissionRequest<'a> {
    pub call_id: Option<Text<'a>>,
    pub tool: Text<'a>,
    pub action: ToolAction<'a>,
    /// Raw JSON; a permission repeats it.
    pub input: &'a str,
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
    /// Suggested answers, each with a description.
    pub options: Vec<(Text<'a>, Option<Text<'a>>)>,
    /// More than one option may be chosen.
    pub multiple: bool,
}

pub(super) fn read_permission<'a>(request: &Object<'a>) -> Option<PermissionRequest<'a>> {
    let tool = request.text("tool_name")?;
    let input = request.object("input").unwrap_or_default();
    let raw_input = request.raw("input").unwrap_or("{}");
    let action = match kind_of(&tool, &input, None) {
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
        options: read_suggestions(&question),
        multiple: question.is_true("multiSelect"),
        question: question.text("question")?,
    })
}
