//! Tool calls: `tool_call`, `tool_call_update` and the call of a permission request.
//!
//! All three contain what has changed, in any order, so every member is optional and an empty value says
//! nothing. Agents put the same fact in different places; the functions below read all of them (recorded with
//! ten agents).

use delegator_domain::named_enum;
use serde::Deserialize;

use crate::event::{ChangeKind, FileChange, Todo};
use crate::file_diff;
use crate::json::{Object, Text, Value};
use crate::patch::patched_files;
use crate::shell;
use crate::values::read_todo;

#[derive(Clone, Debug, Default)]
pub struct ToolCall<'a> {
    pub id: Text<'a>,
    pub title: Option<Text<'a>>,
    pub kind: Option<ToolKind>,
    pub status: Option<CallStatus>,
    /// The tool's own name: `Bash`, `mcp__server__tool`.
    pub tool: Option<Text<'a>>,
    /// The arguments, JSON.
    pub input: Option<&'a str>,
    pub command: Option<Text<'a>>,
    pub input_path: Option<Text<'a>>,
    pub query: Option<Text<'a>>,
    /// A todo list in the arguments: the call sets the plan.
    pub todos: Option<Vec<Todo<'a>>>,
    pub locations: Vec<Text<'a>>,
    /// Changes to files: from diffs, or from a patch in the arguments (Cline).
    pub changes: Vec<FileChange<'a>>,
    /// Text for the user, without code fences: a description before the call runs, its output afterwards.
    pub content: Option<Text<'a>>,
    /// The output of the tool, from the place meant for it.
    pub output: Option<Text<'a>>,
    /// More output; earlier parts came before.
    pub output_delta: Option<Text<'a>>,
    pub exit_code: Option<i32>,
    /// The output says that the tool failed, whatever the status (Cline).
    pub has_failed: bool,
}

named_enum! {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ToolKind {
        Execute = "execute",
        Edit = "edit",
        Delete = "delete",
        Move = "move",
        Read = "read",
        Search = "search",
        Fetch = "fetch",
        /// Also thinking and switching the mode.
        #[serde(other)]
        Other = "other",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl CallStatus {
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl<'a> ToolCall<'a> {
    pub(super) fn read(call: &Object<'a>) -> Self {
        let meta = call.object("_meta").unwrap_or_default();
        let input = call.first(&["rawInput"], |input| Some(input).filter(|input| !is_empty(*input)));
        let arguments = input.and_then(Value::object).unwrap_or_default();
        let output = call.first(&["rawOutput"], |output| Some(output).filter(|output| !output.is_null()));
        let delta = || meta.object("terminal_output_delta")?.text("data");
        let exit =
            meta.object("terminal_exit").and_then(|exit| exit.first(&["exit_code"], Value::small_integer));
        Self {
            id: call.text("toolCallId").unwrap_or_default(),
            title: call.text("title"),
            kind: call.first(&["kind"], Value::variant),
            status: call.first(&["status"], Value::variant),
            tool: tool_name(call, &meta),
            input: input.and_then(Value::raw),
            command: arguments.first(&["command", "cmd", "commands"], command),
            input_path: arguments
                .first(&["file_path", "filePath", "path", "filepath", "fileName"], Value::text),
            query: arguments.text("query"),
            todos: arguments
                .first(&["todos"], |todos| Some(todos.elements()?.filter_map(plan_step).collect())),
            locations: call.list(&["locations"], |location| location.object()?.text("path")),
            changes: call.first(&["content"], changes).unwrap_or_else(|| patch_in(&arguments)),
            content: call.first(&["content"], content_text),
            output: output.and_then(output_text),
            output_delta: delta(),
            exit_code: exit.or_else(|| output.and_then(output_exit_code)),
            has_failed: output.is_some_and(reports_failure),
        }
    }
}

fn is_empty(value: Value<'_>) -> bool {
    value.is_null() || matches!(value.available(), "{}" | "[]" | "\"\"")
}

/// `name`, or where Claude Code, Qwen Code and goose put it.
fn tool_name<'a>(call: &Object<'a>, meta: &Object<'a>) -> Option<Text<'a>> {
    let claude = || meta.object("claudeCode")?.text("toolName");
    let goose = || meta.object("goose")?.object("toolCall")?.text("toolName");
    call.text("name").or_else(claude).or_else(|| meta.text("toolName")).or_else(goose)
}

/// A command line, the words of one (`["bash","-lc","…"]`), or several command lines.
fn command(value: Value<'_>) -> Option<Text<'_>> {
    if let Some(text) = value.text() {
        return Some(text).filter(|text| !text.is_empty());
    }
    let words: Vec<String> =
        value.elements()?.filter_map(|word| Some(word.text()?.resolve().into_owned())).collect();
    match words.as_slice() {
        [] => None,
        [_, flag, script] if matches!(flag.as_str(), "-c" | "-lc") => Some(Text::owned(script.as_str())),
        lines if lines.iter().any(|line| line.contains(' ')) => Some(Text::owned(lines.join(" && "))),
        words => Some(Text::owned(shell::join(words))),
    }
}

/// The changes in the diffs of a content list; `None` if there is no diff.
fn changes(content: Value<'_>) -> Option<Vec<FileChange<'_>>> {
    let diffs = parts(content, "diff")?.iter().filter_map(file_change).collect::<Vec<_>>();
    Some(diffs).filter(|diffs| !diffs.is_empty())
}

fn patch_in(arguments: &Object<'_>) -> Vec<FileChange<'static>> {
    let input = arguments.text("input").map(|input| input.resolve().into_owned());
    let patch = input.filter(|input| input.starts_with("*** Begin Patch"));
    patch.map(|patch| patched_files(&patch)).unwrap_or_default()
}

fn content_text(content: Value<'_>) -> Option<Text<'_>> {
    let parts = parts(content, "content")?;
    let texts = parts.iter().filter_map(|part| part.first(&["content"], text_of_content));
    Some(Text::joined(texts.map(without_fence), "\n"))
}

fn parts<'a>(content: Value<'a>, kind: &str) -> Option<Vec<Object<'a>>> {
    let has_kind = |part: &Object<'_>| part.text("type").is_some_and(|found| found == *kind);
    Some(content.elements()?.filter_map(Value::object).filter(has_kind).collect())
}

/// The text of a content block: `{"type":"text","text":…}`.
pub(super) fn text_of_content(block: Value<'_>) -> Option<Text<'_>> {
    let block = block.object()?;
    block.text("text").filter(|_| block.has_text("type", "text"))
}

/// `{"content":"fix it","status":"completed"}`; other agents' todo lists call the text `title`.
pub(super) fn plan_step(step: Value<'_>) -> Option<Todo<'_>> {
    read_todo(step, &["content", "title", "text"])
}

/// The kind that codex-acp and Gemini CLI write, or whether there was a text before.
fn file_change<'a>(diff: &Object<'a>) -> Option<FileChange<'a>> {
    let named = diff.object("_meta").and_then(|meta| meta.text("kind"));
    let [old, new] = ["oldText", "newText"].map(|key| diff.text(key).unwrap_or_default());
    let kind = match named.as_ref().and_then(Text::simple) {
        Some("add") => ChangeKind::Add,
        Some("delete") => ChangeKind::Delete,
        Some("update") => ChangeKind::Update,
        _ if !old.is_empty() => ChangeKind::Update,
        _ => ChangeKind::Add,
    };
    Some(FileChange {
        path: diff.text("path")?,
        kind,
        diff: file_diff::between(&old.resolve(), &new.resolve()),
    })
}

/// Removes the fence in which claude-acp encloses output.
fn without_fence(text: Text<'_>) -> Text<'_> {
    let resolved = text.resolve();
    let Some((first, rest)) = resolved.strip_prefix("```").and_then(|rest| rest.split_once('\n')) else {
        return text;
    };
    if !first.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return text;
    }
    let inside = rest.strip_suffix("```").unwrap_or(rest);
    Text::owned(inside.strip_suffix('\n').unwrap_or(inside))
}

/// Text, an object with the output under one of several names, or a list of results (Cline).
fn output_text(output: Value<'_>) -> Option<Text<'_>> {
    if let Some(text) = output.text() {
        return Some(text);
    }
    if let Some(results) = output.elements() {
        let results = results.filter_map(|result| result.object()?.first(&["result"], Value::text_or_json));
        return Some(Text::joined(results, "\n"));
    }
    let fields = output.object()?;
    let named = ["formatted_output", "aggregated_output", "output", "content", "result"];
    named.iter().find_map(|name| fields.text(name)).or_else(|| {
        let streams = [fields.text("stdout")?, fields.text("stderr").unwrap_or_default()];
        let [stdout, stderr] = streams.each_ref().map(Text::resolve);
        let needs_break = !(stdout.is_empty() || stdout.ends_with('\n') || stderr.is_empty());
        Some(Text::owned(format!("{stdout}{}{stderr}", if needs_break { "\n" } else { "" })))
    })
}

/// `{"result":"","error":"…","success":false}`, or a list with such a result.
fn reports_failure(output: Value<'_>) -> bool {
    let is_failure = |result: Value<'_>| result.object()?.first(&["success"], Value::boolean).map(|is| !is);
    match output.elements() {
        Some(mut results) => results.any(|result| is_failure(result).unwrap_or(false)),
        None => is_failure(output).unwrap_or(false),
    }
}

fn output_exit_code(output: Value<'_>) -> Option<i32> {
    let fields = output.object()?;
    let nested = || fields.object("metadata")?.first(&["exit"], Value::small_integer);
    let listed =
        || fields.list(&["contents"], |part| part.object()?.first(&["exitCode"], Value::small_integer)).pop();
    fields.first(&["exit_code", "exitCode"], Value::small_integer).or_else(nested).or_else(listed)
}
