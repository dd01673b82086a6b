//! How a command ended, before it is rendered.
//!
//! Handlers return a [`CommandOutput`] or an [`AppError`]; `run` and the MCP server add times and request id,
//! which makes an [`Outcome`]. Every envelope, exit code and `ok` flag is derived from it by the pure
//! renderers in `envelopes` and `documents`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use delegator_config::ConfigWarning;
use delegator_domain::task::TaskId;
use delegator_domain::terminal::escape_line_breaks;
use delegator_domain::warning_code::WarningCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::error::suggestion::{CALL, NextCall, Suggestion};
use crate::error::{AppError, ErrorCode, ExitCode};
use crate::output::command_data::Data;
use crate::output::documents::document::Document;
use crate::output::values::TruncationMeta;
use crate::spec::paging::{Page, position_cursor};
use crate::spec::shell::shell_word;
use crate::spec::{Category, CommandSpec, Shape};

/// The key of the agent's exit code in the data; `exit_code` is that of this program.
pub const AGENT_EXIT_CODE: &str = "agent_exit_code";

/// Something the caller should know although the command succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Warning {
    #[schemars(with = "String")]
    pub code: WarningCode,
    pub message: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub context: Map<String, Value>,
}

impl Warning {
    /// A warning is one line, whatever the names in it are.
    pub fn new(code: WarningCode, message: impl AsRef<str>) -> Self {
        Warning { code, message: escape_line_breaks(message.as_ref()), context: Map::new() }
    }

    pub fn fact(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.context.insert(key.to_owned(), value.into());
        self
    }
}

impl From<ConfigWarning> for Warning {
    fn from(warning: ConfigWarning) -> Warning {
        Warning::new(warning.code, warning.message)
    }
}

impl From<&ConfigWarning> for Warning {
    fn from(warning: &ConfigWarning) -> Self {
        warning.clone().into()
    }
}

/// The exit code of the agent's process, for commands that report one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChildExit {
    #[serde(rename = "exit_code")]
    #[schemars(extend("x-optional" = true))]
    pub code: Option<i32>,
}

/// The tasks that continue without the call; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitHint {
    pub tasks: Vec<TaskId>,
    /// The state directory of the tasks, if it is not the default one.
    pub state_dir: Option<PathBuf>,
}

impl WaitHint {
    pub fn for_task(task: &TaskId) -> WaitHint {
        WaitHint::for_tasks(std::slice::from_ref(task))
    }

    pub fn for_tasks(tasks: &[TaskId]) -> WaitHint {
        WaitHint { tasks: tasks.to_vec(), state_dir: None }
    }

    /// `task T-local-…`, or `tasks T-local-…, T-local-…`.
    pub fn names(&self) -> String {
        let ids: Vec<&str> = self.tasks.iter().map(TaskId::as_str).collect();
        format!("{} {}", if ids.len() == 1 { "task" } else { "tasks" }, ids.join(", "))
    }

    /// The singular or the plural form, by the number of tasks.
    pub fn form<'a>(&self, singular: &'a str, plural: &'a str) -> &'a str {
        if self.tasks.len() == 1 { singular } else { plural }
    }

    /// `task_id` and the only id, or `task_ids` and all of them.
    pub fn id_field(&self) -> (&'static str, Value) {
        match self.tasks.as_slice() {
            [only] => ("task_id", only.as_str().into()),
            several => ("task_ids", several.iter().map(TaskId::as_str).collect()),
        }
    }

    pub fn suggestion(&self, text: &str) -> Suggestion {
        let (field, ids) = self.id_field();
        let wait = NextCall::new(&["local", "wait"]).with(field, ids);
        let variable = self
            .state_dir
            .as_ref()
            .map(|state_dir| format!("MCP_DELEGATOR_HOME={} ", shell_word(&state_dir.to_string_lossy())));
        Suggestion::with_call(format!("{text} {}{CALL}", variable.unwrap_or_default()), wait)
    }

    pub fn attach_to(&self, error: AppError) -> AppError {
        let (field, ids) = self.id_field();
        let text = self.form("Wait for it with:", "Wait for them with:");
        error.context(field, ids).suggest(self.suggestion(text))
    }
}

/// Why a call ended before its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncompleteReason {
    /// The time budget of the call is over. Without a hint, repeating the same call continues the wait.
    CallExpired(Option<WaitHint>),
    /// The caller detached from the tasks.
    Detached(WaitHint),
}

impl IncompleteReason {
    pub fn to_error(&self) -> AppError {
        let message = "The time budget of this call is over; the task continues.";
        let expired = AppError::new(ErrorCode::Incomplete, message);
        match self {
            IncompleteReason::CallExpired(Some(hint)) => hint.attach_to(expired),
            IncompleteReason::CallExpired(None) => expired.suggest("Repeat the call to continue waiting."),
            IncompleteReason::Detached(hint) => {
                let message = format!(
                    "Detached from {}; {}.",
                    hint.names(),
                    hint.form("it continues", "they continue")
                );
                hint.attach_to(AppError::new(ErrorCode::Incomplete, message))
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
pub enum Completion {
    #[default]
    Done,
    /// A batch in which at least one item failed and at least one succeeded.
    Partial,
    /// The call is over; the task continues.
    Incomplete(IncompleteReason),
    NotModified,
    Failed(Box<AppError>),
}

impl Completion {
    pub fn is_not_modified(&self) -> bool {
        matches!(self, Completion::NotModified)
    }

    pub fn error(&self) -> Option<&AppError> {
        if let Completion::Failed(error) = self { Some(error) } else { None }
    }

    pub fn error_mut(&mut self) -> Option<&mut AppError> {
        if let Completion::Failed(error) = self { Some(error) } else { None }
    }
}

/// A list of which the data contains one page.
#[derive(Debug, Clone, PartialEq)]
pub struct PagedList {
    /// Where this page begins.
    pub start: i64,
    /// The position of each item of this page.
    pub positions: Vec<i64>,
    /// The number of items from `start` on.
    pub remaining: u64,
}

impl PagedList {
    /// Items that are neither among the `shown` ones nor on an earlier page.
    pub fn not_listed(&self, shown: usize) -> u64 {
        self.remaining.saturating_sub(shown as u64)
    }

    fn next(&self, shown: usize) -> i64 {
        let last = shown.checked_sub(1).and_then(|last| self.positions.get(last));
        last.copied().unwrap_or(self.start)
    }
}

/// Lists that one cursor continues, so that also truncated lists can be read to their end.
#[derive(Debug, Clone, PartialEq)]
pub struct ListCursors {
    pub lists: [PagedList; 3],
    /// The query that the cursors belong to.
    pub query: Value,
}

impl ListCursors {
    /// The cursor to the items after the `shown` ones; `None` in `shown` is a list that the caller does not
    /// read. There is no cursor if no item is shown: the same page would follow.
    pub fn next_cursor(&self, shown: [Option<usize>; 3]) -> Option<String> {
        let has_more = |(list, shown): (&PagedList, Option<usize>)| {
            shown.is_some_and(|shown| list.not_listed(shown) > 0)
        };
        let has_items = shown.into_iter().flatten().any(|shown| shown > 0);
        let next = |at: usize| self.lists[at].next(shown[at].unwrap_or_default());
        (has_items && self.lists.iter().zip(shown).any(has_more))
            .then(|| position_cursor([next(0), next(1), next(2)], &self.query))
    }
}

#[derive(Debug, Clone, Default)]
pub struct CommandOutput {
    pub completion: Completion,
    /// Also an error may have data.
    pub data: Option<Data>,
    /// The text in the command's own format, for commands that have one.
    pub raw: Option<String>,
    /// On a terminal, that text is shown in the user's pager.
    pub is_paged: bool,
    /// Facts about the output: `meta` of every envelope.
    pub facts: Map<String, Value>,
    pub warnings: Vec<Warning>,
    pub page: Option<Page>,
    /// Where the next page begins, for a list without numbered pages.
    pub next_cursor: Option<String>,
    pub child: Option<ChildExit>,
    /// One line for a person, if the data is not self-explanatory.
    pub message: Option<String>,
    /// Nothing was changed: the data is what would happen.
    pub dry_run: bool,
    /// Overrides the shape of the command, for commands with several.
    pub shape: Option<Shape>,
    /// The paths of `--fields`; the data has no others.
    pub selected_fields: Vec<String>,
}

impl CommandOutput {
    pub fn new(completion: Completion, data: Option<Data>) -> Self {
        CommandOutput { completion, data, ..CommandOutput::default() }
    }

    pub fn done(data: impl Into<Data>) -> Self {
        CommandOutput::new(Completion::Done, Some(data.into()))
    }

    /// A failure with data if there is an error, else a success.
    pub fn of(data: impl Into<Data>, error: Option<AppError>) -> Self {
        let failed = |error| Completion::Failed(Box::new(error));
        CommandOutput::new(error.map_or(Completion::Done, failed), Some(data.into()))
    }

    pub fn incomplete(data: impl Into<Data>, reason: IncompleteReason) -> Self {
        CommandOutput::new(Completion::Incomplete(reason), Some(data.into()))
    }

    pub fn failed(error: AppError, data: impl Into<Data>) -> Self {
        CommandOutput::new(Completion::Failed(Box::new(error)), Some(data.into()))
    }

    pub fn document(&self, data: &Data) -> Document {
        let mut document = data.document(self.page.as_ref().map(|page| page.count));
        if let Some(batch) = data.batch() {
            batch.append_failures(&mut document);
        }
        document
    }

    /// The cursor of the next page: `cursor` in the CLI and the standard envelope, `next_cursor` in the tool
    /// envelope.
    pub fn next_cursor(&self) -> Option<&str> {
        let numbered = self.page.as_ref().and_then(|page| page.next_cursor.as_deref());
        self.next_cursor.as_deref().or(numbered)
    }

    pub fn update_cursors(&mut self) {
        let Some(data) = &self.data else { return };
        self.next_cursor = data.next_cursor();
        let Some(page) = &mut self.page else { return };
        // A list that the caller did not select is complete.
        if let Some(shown) = data.to_json()[page.list].as_array() {
            page.end_after(shown.len());
            // The items that are listed; the page has the number of all.
            if let Some(count) = self.facts.get_mut("count") {
                *count = shown.len().into();
            }
        }
    }

    pub fn with_facts(mut self, facts: impl Serialize) -> Self {
        self.facts.extend(json!(facts).as_object().cloned().unwrap_or_default());
        self
    }

    pub fn fact(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(key.to_owned(), value.into());
        self
    }

    /// States the task that the new one retries or reviews, under the name of this relation.
    pub fn origin(self, origin: Option<&(&'static str, TaskId)>) -> Self {
        match origin {
            Some((relation, id)) => self.fact(relation, id.as_str()),
            None => self,
        }
    }

    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    pub fn warn<W: Into<Warning>>(mut self, warnings: impl IntoIterator<Item = W>) -> Self {
        self.warnings.extend(warnings.into_iter().map(Into::into));
        self
    }

    /// States which part of the list with this name the data contains.
    pub fn with_page(self, list: &'static str, page: Page) -> Self {
        CommandOutput { page: Some(Page { list, ..page }), ..self }
    }

    pub fn partial_message(&self) -> &'static str {
        if self.dry_run {
            "Some items would fail; the others would succeed."
        } else {
            "Some items failed; the others succeeded."
        }
    }

    pub fn raw(mut self, text: String) -> Self {
        self.raw = Some(text);
        self
    }
}

impl From<AppError> for CommandOutput {
    fn from(error: AppError) -> Self {
        CommandOutput::new(Completion::Failed(Box::new(error)), None)
    }
}

#[derive(Debug, Clone)]
pub struct Outcome {
    pub command: &'static CommandSpec,
    pub started: Timestamp,
    pub emitted: Timestamp,
    pub duration: Duration,
    pub request_id: Uuid,
    pub output: CommandOutput,
    pub truncated: Option<TruncationMeta>,
}

impl Outcome {
    pub fn exit(&self) -> ExitCode {
        match &self.output.completion {
            Completion::Done | Completion::NotModified => ExitCode::Success,
            Completion::Partial => ExitCode::PartialFailure,
            Completion::Incomplete(_) => ExitCode::Incomplete,
            Completion::Failed(error) => error.exit(),
        }
    }

    pub fn data(&self) -> Option<&Data> {
        self.output.data.as_ref().filter(|_| matches!(self.output.completion, Completion::Done))
    }

    /// The data that accompanies a result other than plain success.
    pub fn failure_data(&self) -> Option<&Data> {
        self.output.data.as_ref().filter(|_| !matches!(self.output.completion, Completion::Done))
    }

    /// Data with the exit code of the agent, for envelopes that have no other field for it.
    pub fn with_agent_exit_code(&self, data: &Data) -> Value {
        let mut data = data.to_json();
        if let (Some(child), Some(object)) = (&self.output.child, data.as_object_mut()) {
            object.entry(AGENT_EXIT_CODE).or_insert(json!(child.code));
        }
        data
    }

    /// The error in tool responses. An expired wait and a partial batch are results there: clients give up
    /// after a minute, so expiry is the normal case. A cancelled run is a result, too: it ended as the caller
    /// wanted.
    pub fn tool_error(&self) -> Option<AppError> {
        let is_cancelled_run = |error: &&AppError| {
            error.code == ErrorCode::Interrupted
                && self.command.category == Category::ExecutionAck
                && self.output.data.is_some()
        };
        self.output.completion.error().filter(|error| !is_cancelled_run(error)).cloned()
    }

    /// The error in formats that report everything but success as an error.
    pub fn error(&self) -> Option<AppError> {
        match &self.output.completion {
            Completion::Done | Completion::NotModified => None,
            Completion::Partial => {
                Some(AppError::new(ErrorCode::PartialFailure, self.output.partial_message()))
            }
            Completion::Incomplete(reason) => Some(reason.to_error()),
            Completion::Failed(error) => Some(AppError::clone(error)),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct CallClock {
    started: Timestamp,
    clock: Instant,
    request_id: Uuid,
}

impl CallClock {
    pub fn begin() -> Self {
        CallClock { started: Timestamp::now(), clock: Instant::now(), request_id: Uuid::new_v4() }
    }

    pub fn end(&self, command: &'static CommandSpec, output: CommandOutput) -> Outcome {
        let truncated = None;
        let (started, request_id, duration) = (self.started, self.request_id, self.clock.elapsed());
        Outcome { command, started, emitted: Timestamp::now(), duration, request_id, output, truncated }
    }
}
