//! How a command ended, before anyone decides how to say it.
//!
//! Handlers return an [`Answer`] or an [`AppError`]; the door adds what it alone knows (times, request id) and has an
//! [`Outcome`]. Every wrapper, exit code and `ok` flag is derived from it by the pure renderers in `views`.

use std::path::Path;
use std::time::Duration;

use delegator_domain::task::TaskId;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::{AppError, ErrorCode, ExitCode};
use crate::requests::page::position_cursor;
use crate::spec::{Category, CommandSpec, PROGRAM, Shape};
use crate::views::shell_word;

/// Something the caller should know although the command did what it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    pub code: &'static str,
    pub message: String,
    pub context: Map<String, Value>,
}

impl Warning {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Warning { code, message: message.into(), context: Map::new() }
    }
}

/// Which part of a list this answer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub number: usize,
    pub size: usize,
    pub total: usize,
    pub filtered: usize,
    pub next_cursor: Option<String>,
}

/// What a reader counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    Bytes,
    Characters,
}

/// The answer was larger than the caller takes, and was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    pub max_size: usize,
    pub unit: SizeUnit,
    /// Of the whole text.
    pub original_size: usize,
}

/// How the agent's own process ended, where a command reports on one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildExit {
    pub code: Option<i32>,
}

/// A task that goes on without the call, and the command that comes back to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitHint {
    pub task: TaskId,
    pub command: String,
}

impl WaitHint {
    pub fn for_task(task: &TaskId) -> WaitHint {
        WaitHint { task: task.clone(), command: format!("{PROGRAM} local wait {task}") }
    }

    /// The same, where the task is kept in a place of its own.
    pub fn in_state_dir(task: &TaskId, state_dir: &Path) -> WaitHint {
        let command = WaitHint::for_task(task).command;
        let state_dir = shell_word(&state_dir.to_string_lossy());
        WaitHint { task: task.clone(), command: format!("MCP_DELEGATOR_HOME={state_dir} {command}") }
    }

    /// An error about the task, with the way back to it.
    pub fn attach_to(&self, error: AppError) -> AppError {
        error.context("task_id", self.task.as_str()).suggest(format!("Come back with: {}", self.command))
    }
}

/// How a call and its work parted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncompleteReason {
    /// The call's own time ran out. Without a way back the same call goes on waiting.
    CallExpired(Option<WaitHint>),
    /// Whoever called let go of the task.
    Detached(WaitHint),
}

impl IncompleteReason {
    fn to_error(&self) -> AppError {
        let words = "The time for this call ran out; the work goes on.";
        let time_is_up = AppError::new(ErrorCode::Incomplete, words);
        match self {
            IncompleteReason::CallExpired(Some(way_back)) => way_back.attach_to(time_is_up),
            IncompleteReason::CallExpired(None) => time_is_up.suggest("Call again to go on waiting."),
            IncompleteReason::Detached(way_back) => {
                let words = format!("Let go of task {}; it goes on.", way_back.task);
                way_back.attach_to(AppError::new(ErrorCode::Incomplete, words))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Completion {
    Done(Value),
    /// A batch of which at least one item failed and at least one did not.
    Partial(Value),
    /// The call is over; the work goes on.
    Incomplete(Value, IncompleteReason),
    NotModified,
    /// The failure, and the payload a command declares for this case.
    Failed(Box<AppError>, Option<Value>),
}

impl Completion {
    /// The payload, whatever became of the call, and the failure.
    pub fn parts(&self) -> (Option<&Value>, Option<&AppError>) {
        match self {
            Completion::Done(data) | Completion::Partial(data) | Completion::Incomplete(data, _) => {
                (Some(data), None)
            }
            Completion::Failed(error, data) => (data.as_ref(), Some(error)),
            Completion::NotModified => (None, None),
        }
    }

    pub fn parts_mut(&mut self) -> (Option<&mut Value>, Option<&mut AppError>) {
        match self {
            Completion::Done(data) | Completion::Partial(data) | Completion::Incomplete(data, _) => {
                (Some(data), None)
            }
            Completion::Failed(error, data) => (data.as_mut(), Some(error)),
            Completion::NotModified => (None, None),
        }
    }
}

/// How to go on after each item of a list, so that one that was cut short loses nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ListCursors {
    /// The list's name in the data.
    pub list: &'static str,
    /// Where each of its items stands.
    pub positions: Vec<i64>,
    /// What the cursors belong to.
    pub query: Value,
}

impl ListCursors {
    /// The cursor that leads on, if only so many items are shown.
    pub fn cursor_after(&self, shown: usize) -> Option<String> {
        let last = shown.checked_sub(1).filter(|_| shown < self.positions.len())?;
        self.positions.get(last).map(|place| position_cursor(*place, &self.query))
    }
}

/// What a handler says.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandOutput {
    pub completion: Completion,
    /// The command's own format, for commands that write one.
    pub raw: Option<String>,
    /// Small facts about the answer: `meta` of every envelope.
    pub facts: Map<String, Value>,
    pub warnings: Vec<Warning>,
    pub page: Option<Page>,
    pub list_cursors: Option<ListCursors>,
    pub child: Option<ChildExit>,
    /// One line for a person, where the data alone does not say it.
    pub message: Option<String>,
    /// Where one command answers in more than one shape.
    pub shape: Option<Shape>,
}

impl CommandOutput {
    pub fn new(completion: Completion) -> Self {
        CommandOutput {
            completion,
            raw: None,
            facts: Map::new(),
            warnings: Vec::new(),
            page: None,
            list_cursors: None,
            child: None,
            message: None,
            shape: None,
        }
    }

    pub fn done(data: Value) -> Self {
        CommandOutput::new(Completion::Done(data))
    }

    pub fn fact(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(key.to_owned(), value.into());
        self
    }

    pub fn raw(mut self, text: String) -> Self {
        self.raw = Some(text);
        self
    }
}

impl From<AppError> for CommandOutput {
    fn from(error: AppError) -> Self {
        CommandOutput::new(Completion::Failed(Box::new(error), None))
    }
}

/// The end of one call, complete.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub command: &'static CommandSpec,
    pub started: Timestamp,
    pub emitted: Timestamp,
    pub duration: Duration,
    pub request_id: Uuid,
    pub output: CommandOutput,
    pub truncated: Option<Truncation>,
}

impl Outcome {
    pub fn exit(&self) -> ExitCode {
        match &self.output.completion {
            Completion::Done(_) | Completion::NotModified => ExitCode::Success,
            Completion::Partial(_) => ExitCode::PartialFailure,
            Completion::Incomplete(..) => ExitCode::Incomplete,
            Completion::Failed(error, _) => error.exit(),
        }
    }

    /// The payload of a success.
    pub fn data(&self) -> Option<&Value> {
        match &self.output.completion {
            Completion::Done(data) => Some(data),
            Completion::Partial(_)
            | Completion::Incomplete(..)
            | Completion::NotModified
            | Completion::Failed(..) => None,
        }
    }

    /// The payload that comes along although the command did not simply succeed.
    pub fn failure_data(&self) -> Option<&Value> {
        match &self.output.completion {
            Completion::Partial(data)
            | Completion::Incomplete(data, _)
            | Completion::Failed(_, Some(data)) => Some(data),
            Completion::Done(_) | Completion::NotModified | Completion::Failed(_, None) => None,
        }
    }

    /// The error as tools say it. A wait that ran out and a batch that went half well are answers there: hosts give up
    /// after a minute, so expiry is the ordinary case. So is a run that somebody cancelled: it ended as they wished.
    pub fn tool_error(&self) -> Option<AppError> {
        match &self.output.completion {
            Completion::Failed(error, Some(_))
                if error.code == ErrorCode::Interrupted
                    && self.command.category == Category::ExecutionAck =>
            {
                None
            }
            Completion::Failed(error, _) => Some(AppError::clone(error)),
            Completion::Done(_)
            | Completion::Partial(_)
            | Completion::Incomplete(..)
            | Completion::NotModified => None,
        }
    }

    /// The error as every vocabulary that has no gentler word must say it.
    pub fn error(&self) -> Option<AppError> {
        match &self.output.completion {
            Completion::Done(_) | Completion::NotModified => None,
            Completion::Partial(_) => Some(AppError::new(
                ErrorCode::PartialFailure,
                "Some of the items failed; the others were done.",
            )),
            Completion::Incomplete(_, parting) => Some(parting.to_error()),
            Completion::Failed(error, _) => Some(AppError::clone(error)),
        }
    }
}
