//! One tool call: what its messages said so far, and the item it becomes.
//!
//! Messages arrive in any order and repeat themselves: a permission request may come before the call is
//! announced (Gemini CLI), an update before the call (Cline), a new title after its end (goose). So each
//! message sets what it contains, and the item starts once there is something to show.

use super::text::{Output, bounded};
use crate::event::{
    ChangeKind, CommandExecution, FileChange, ItemDetails, ItemPhase, ItemStatus, McpToolCall,
};
use crate::json::Text;
use crate::map::effect::Effects;
use crate::wire::acp::{CallStatus, ToolCall, ToolKind};

const MAX_TEXT_BYTES: usize = 8 << 10;
const MAX_COMMAND_BYTES: usize = 64 << 10;
const MAX_INPUT_BYTES: usize = 256 << 10;
const MAX_PATH_BYTES: usize = 4 << 10;
const MAX_FILES: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Call {
    item_id: Option<Text<'static>>,
    /// The user or the policy refused it.
    pub(super) is_rejected: bool,
    /// It only sets the plan: no item.
    pub(super) is_plan: bool,
    /// The agent writes exit codes only of commands that failed.
    pub(super) completes_with_zero: bool,
    status: Option<CallStatus>,
    kind: Option<ToolKind>,
    tool: Option<String>,
    /// Later titles are labels for people.
    first_title: Option<String>,
    title: Option<String>,
    input: Option<String>,
    command: Option<String>,
    query: Option<String>,
    input_path: Option<String>,
    locations: Vec<String>,
    changes: Vec<FileChange<'static>>,
    output: Option<Output>,
    streamed_output: Output,
    content_text: Option<Output>,
    exit_code: Option<i32>,
    has_failed: bool,
}

impl Call {
    pub(super) fn merge(&mut self, message: &ToolCall<'_>) {
        let set = |slot: &mut Option<String>, text: &Option<Text<'_>>, max_bytes: usize| {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                *slot = Some(bounded(text, max_bytes));
            }
        };
        self.status = message.status.or(self.status);
        self.kind = message.kind.or(self.kind);
        set(&mut self.tool, &message.tool, MAX_TEXT_BYTES);
        set(&mut self.title, &message.title, MAX_TEXT_BYTES);
        if self.first_title.is_none() {
            self.first_title = self.title.clone();
        }
        set(&mut self.command, &message.command, MAX_COMMAND_BYTES);
        set(&mut self.query, &message.query, MAX_TEXT_BYTES);
        set(&mut self.input_path, &message.input_path, MAX_PATH_BYTES);
        if let Some(input) = message.input {
            self.input = Some(input.to_owned()).filter(|input| input.len() <= MAX_INPUT_BYTES);
        }
        if !message.locations.is_empty() {
            let path = |path: &Text<'_>| bounded(path, MAX_PATH_BYTES);
            self.locations = message.locations.iter().take(MAX_FILES).map(path).collect();
        }
        self.merge_output(message);
    }

    fn merge_output(&mut self, message: &ToolCall<'_>) {
        if !message.changes.is_empty() {
            let change = |change: &FileChange<'_>| FileChange {
                path: Text::owned(bounded(&change.path, MAX_PATH_BYTES)),
                kind: change.kind,
                diff: change.diff.clone().into_owned(),
            };
            self.changes = message.changes.iter().take(MAX_FILES).map(change).collect();
        }
        if let Some(content) = message.content.as_ref().filter(|_| is_output(message)) {
            self.content_text = Some(Output::of(content));
        }
        if let Some(output) = &message.output {
            self.output = Some(Output::of(output));
        }
        if let Some(delta) = &message.output_delta {
            self.streamed_output.push(&delta.resolve());
        }
        self.exit_code = message.exit_code.or(self.exit_code);
        self.has_failed |= message.has_failed;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some_and(CallStatus::is_final)
    }

    /// Whether there is enough to show. The first message is often only "Terminal" or "Preparing file…".
    pub(super) fn can_start(&self) -> bool {
        let has_input = match self.kind() {
            ToolKind::Execute => self.command.is_some(),
            _ => self.input.is_some(),
        };
        let is_running = self.status == Some(CallStatus::InProgress);
        self.has_ended() || is_running || has_input || !self.changes.is_empty()
    }

    /// Goose marks no kind; its tools have names.
    fn kind(&self) -> ToolKind {
        match (self.kind.unwrap_or(ToolKind::Other), self.tool.as_deref()) {
            (ToolKind::Other, Some("shell" | "bash")) => ToolKind::Execute,
            (ToolKind::Other, Some("write" | "edit")) => ToolKind::Edit,
            (kind, _) => kind,
        }
    }

    /// Starts the item, unless that happened before.
    pub(super) fn start(&mut self, effects: &mut Effects<'_, '_>) {
        if self.item_id.is_some() || self.is_plan {
            return;
        }
        let details = match self.details() {
            ItemDetails::CommandExecution(CommandExecution { command, .. }) => {
                ItemDetails::CommandExecution(CommandExecution::started(command))
            }
            details => details,
        };
        self.item_id = Some(effects.start_item(details));
    }

    /// Ends the item, if it was started. The call has ended, or the end of its turn ended it.
    pub(super) fn end(&self, effects: &mut Effects<'_, '_>) {
        let Some(id) = self.item_id.clone() else { return };
        let details = self.details();
        let is_command = matches!(details, ItemDetails::CommandExecution(_));
        let has_failed = match &details {
            ItemDetails::CommandExecution(CommandExecution { exit_code: Some(code), .. }) => *code != 0,
            _ => self.has_failed,
        };
        let status = match self.status {
            _ if self.is_rejected && is_command => ItemStatus::Declined,
            Some(CallStatus::Completed) if !self.is_rejected && !has_failed => ItemStatus::Completed,
            _ => ItemStatus::Failed,
        };
        effects.item(ItemPhase::Completed, id, Some(status), details);
    }

    fn details(&self) -> ItemDetails<'static> {
        let kind = self.kind();
        if kind == ToolKind::Execute {
            return ItemDetails::CommandExecution(self.command_execution());
        }
        if !self.changes.is_empty() || matches!(kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) {
            return ItemDetails::FileChange { changes: self.file_changes(kind) };
        }
        if matches!(kind, ToolKind::Fetch | ToolKind::Search) && self.names_the_web() {
            let query = self.query.clone().or_else(|| self.title.clone()).unwrap_or_default();
            return ItemDetails::WebSearch { query: Text::owned(query), action: None };
        }
        let (server, tool) = self.server_and_tool(kind);
        // Codex writes the arguments of every call.
        let is_object = |input: &&String| input.starts_with('{');
        let arguments = self.input.as_ref().filter(is_object).map_or("{}", String::as_str);
        ItemDetails::McpToolCall(McpToolCall {
            server: Text::owned(server),
            tool: Text::owned(tool),
            arguments: Some(Text::owned(arguments)),
            ..McpToolCall::default()
        })
    }

    fn command_execution(&self) -> CommandExecution<'static> {
        let has_completed = self.status == Some(CallStatus::Completed) && !self.is_rejected;
        let implied = (self.completes_with_zero && has_completed).then_some(0);
        let title = || self.title.as_ref().map(|title| title.trim_matches('`').to_owned());
        let streamed = Some(&self.streamed_output).filter(|output| output.bytes > 0);
        // What is meant as the output counts, even if it is empty.
        let output = streamed.or(self.output.as_ref()).or(self.content_text.as_ref());
        let text = output.map(Output::text).unwrap_or_default();
        CommandExecution {
            command: Text::owned(self.command.clone().or_else(title).unwrap_or_default()),
            exit_code: self.exit_code.or_else(|| exit_code_in(&text)).or(implied),
            output: Text::owned(text),
            output_tail: None,
            output_bytes: output.map_or(0, |output| output.bytes),
            duration_ms: None,
        }
    }

    fn file_changes(&self, kind: ToolKind) -> Vec<FileChange<'static>> {
        if !self.changes.is_empty() {
            return self.changes.clone();
        }
        let kind = if kind == ToolKind::Delete { ChangeKind::Delete } else { ChangeKind::Update };
        let change = |path: &String| FileChange::of_path(Text::owned(path.as_str()), kind);
        match self.locations.as_slice() {
            [] => self.input_path.iter().map(change).collect(),
            locations => locations.iter().map(change).collect(),
        }
    }

    fn names_the_web(&self) -> bool {
        let has_web = |text: &Option<String>| {
            text.as_ref().is_some_and(|text| text.to_ascii_lowercase().contains("web"))
        };
        has_web(&self.tool) || has_web(&self.title)
    }

    /// `mcp__server__tool` as name or title, a name `server__tool`, or a title `tool (server MCP Server)`;
    /// all others are tools of the agent.
    fn server_and_tool(&self, kind: ToolKind) -> (&str, &str) {
        let named = self.tool.as_deref().and_then(split_tool_name);
        let titled = || {
            let titles = [self.first_title.as_deref(), self.title.as_deref()];
            // Kimi writes the arguments behind the name.
            let names = titles.into_iter().flatten().filter(|title| title.starts_with("mcp__"));
            let mut names = names.filter_map(|title| title.split([' ', ':', '(', '{']).next());
            if let Some(found) = names.find_map(split_tool_name) {
                return Some(found);
            }
            let (tool, server) = self.title.as_deref()?.strip_suffix(" MCP Server)")?.split_once(" (")?;
            Some((server, tool))
        };
        named.or_else(titled).unwrap_or_else(|| {
            let title = self.first_title.as_deref().map(tool_in_title);
            ("agent", self.tool.as_deref().or(title).unwrap_or(kind.name()))
        })
    }

    pub(super) fn stored_bytes(&self) -> usize {
        let texts = [
            &self.tool,
            &self.first_title,
            &self.title,
            &self.input,
            &self.command,
            &self.query,
            &self.input_path,
        ];
        let outputs = [Some(&self.streamed_output), self.output.as_ref(), self.content_text.as_ref()];
        texts.into_iter().flatten().chain(&self.locations).map(String::len).sum::<usize>()
            + self.changes.iter().map(FileChange::stored_bytes).sum::<usize>()
            + outputs.into_iter().flatten().map(Output::stored_bytes).sum::<usize>()
    }
}

fn split_tool_name(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.strip_prefix("mcp__").unwrap_or(name).split_once("__")?;
    Some((server, tool)).filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

/// Whether the content of a message is output. Content that comes with title and arguments, before the call
/// runs, describes the call.
fn is_output(message: &ToolCall<'_>) -> bool {
    match message.status {
        Some(status) => status != CallStatus::Pending,
        None => message.title.is_none() && message.input.is_none(),
    }
}

/// The tool in a title of Cline, `read_files: {"files":…}`; of other agents, the title.
fn tool_in_title(title: &str) -> &str {
    let is_tool =
        |name: &&str| name.contains('_') && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    title.split_once(": ").map(|(name, _)| name).filter(is_tool).unwrap_or(title)
}

/// The exit code that an agent writes only into the text of the output.
fn exit_code_in(output: &str) -> Option<i32> {
    // Claude Code and Qwen Code write a line of its own, the others a phrase.
    let on_own_line = output.lines().find_map(|line| {
        let rest = line.strip_prefix("Exit code").or_else(|| line.strip_prefix("Exit Code"))?;
        let (code, rest) = number(rest.strip_prefix(':').unwrap_or(rest).strip_prefix(' ')?)?;
        rest.is_empty().then_some(code)
    });
    let phrases = ["Command failed with exit code: ", "Command exited with code "];
    let in_phrase = || phrases.iter().find_map(|phrase| Some(number(output.split_once(phrase)?.1)?.0));
    // Copilot: `<shellId: 1 completed with exit code 0>`.
    let in_mark = || {
        let (code, rest) = number(output.rsplit_once("exit code ")?.1)?;
        rest.starts_with('>').then_some(code)
    };
    on_own_line.or_else(in_phrase).or_else(in_mark)
}

/// The number at the start of a text, and what follows it.
fn number(text: &str) -> Option<(i32, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::exit_code_in;

    #[test]
    fn exit_codes_are_found_in_the_texts_of_the_agents() {
        for (output, code) in [
            ("Exit code 3\noops", Some(3)),
            ("Command: x\nOutput: y\nExit Code: -1\nSignal: (none)", Some(-1)),
            ("hello\n<shellId: 1 completed with exit code 0>", Some(0)),
            ("oops\nCommand failed with exit code: 3.", Some(3)),
            ("Command exited with code 127", Some(127)),
            ("the Exit code 3 of another program", None),
            ("Exit code 3 of another program", None),
            ("exit code 3", None),
            ("", None),
        ] {
            assert_eq!(exit_code_in(output), code, "{output}");
        }
    }
}
