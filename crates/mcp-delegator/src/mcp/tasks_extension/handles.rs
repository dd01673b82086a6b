//! The tasks extension: handles for `run` and `wait` that outlive the server.
//!
//! The handle of a run is the task id. The handle of a wait encodes the task ids, the response options and
//! the deadline, so any server with the same registry can serve it. Two facts do not fit into a handle and
//! are stored with the task: the format requested for a run, and which waits were cancelled.

use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::WaitGoal;
use delegator_engine::{Engine, EngineError};
use delegator_registry::TaskFile;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commands::inputs::TaskRef;
use crate::commands::local::tasks::resolve_task;
use crate::commands::local::wait::{ResolvedWait, Wait};
use crate::commands::{AfterWait, TaskWait};
use crate::error::AppError;
use crate::output::values::milliseconds;
use crate::spec::formats::Format;

#[derive(Debug, Clone)]
pub enum Handle {
    Run(TaskId),
    Wait(Box<WaitHandle>),
}

#[derive(Debug, Clone)]
pub struct WaitHandle {
    pub ids: Vec<TaskId>,
    /// Ids of the call that belong to no task; the response reports them.
    unknown: Vec<TaskRef>,
    /// The inputs that shape the response.
    pub input: Wait,
    /// More tasks have ended than the response lists.
    has_more_ended: bool,
    pub format: Format,
    /// Milliseconds since 1970; `None`: no deadline.
    until_ms: Option<u64>,
}

/// What a wait is for: `task_id`, or the first or all of `task_ids`.
const ONE: &str = "one";
const ANY: &str = "any";
const ALL: &str = "all";

/// The format of that name, if a tool can respond in it.
fn tool_format(name: &str) -> Option<Format> {
    Format::named(name).filter(|format| matches!(format, Format::Json | Format::Markdown))
}

impl WaitHandle {
    fn new(wait: TaskWait, resolved: ResolvedWait, format: Format) -> WaitHandle {
        let ResolvedWait { input, targets, has_more_ended } = resolved;
        let unresolved = targets.iter().filter(|(_, id)| id.is_err());
        let unknown = unresolved.filter_map(|(given, _)| TaskRef::from_text(given)).collect();
        let until_ms = wait.timeout.map(|timeout| now_ms().saturating_add(milliseconds(timeout)));
        WaitHandle { ids: wait.ids, unknown, input, has_more_ended, format, until_ms }
    }

    /// The options that are on or off, with their names in a handle.
    fn flags(&mut self) -> [(&'static str, &mut bool); 4] {
        [
            ("output", &mut self.input.include_output),
            ("exit", &mut self.input.exit_status),
            ("chain", &mut self.input.chain),
            ("more", &mut self.has_more_ended),
        ]
    }

    fn to_text(&self) -> String {
        let kind = match (&self.input.task_id, self.input.until) {
            (Some(_), _) => ONE,
            (None, WaitGoal::Any) => ANY,
            (None, WaitGoal::All) => ALL,
        };
        let mut flagged = self.clone();
        let on = flagged.flags().into_iter().filter(|(_, is_on)| **is_on).map(|(name, _)| name.to_owned());
        let bytes = self.input.max_output_bytes.map(|bytes| bytes.to_string());
        let options: Vec<String> =
            [self.format.name().to_owned()].into_iter().chain(on).chain(bytes).collect();
        let until = self.until_ms.map(|until| until.to_string()).unwrap_or_default();
        let ids: Vec<&str> = self.ids.iter().map(TaskId::as_str).collect();
        let unknown: Vec<&str> = self.unknown.iter().map(TaskRef::as_str).collect();
        let handle = format!("wait.{kind}.{}.{until}.{}", options.join("+"), ids.join("+"));
        if unknown.is_empty() { handle } else { format!("{handle}.{}", unknown.join("+")) }
    }

    fn from_text(text: &str) -> Option<WaitHandle> {
        let parts: Vec<&str> = text.split('.').collect();
        let (parts, unknown) = match parts.as_slice() {
            [parts @ .., unknown] if parts.len() == 5 => (parts, unknown.split('+').collect()),
            parts => (parts, Vec::new()),
        };
        let ["wait", kind, options, until, ids] = parts else { return None };
        let ids = ids.split('+').map(|id| id.parse().ok()).collect::<Option<Vec<TaskId>>>()?;
        let mut input = Wait::default();
        match (*kind, ids.as_slice()) {
            (ONE, [id]) => input.task_id = Some(id.clone().into()),
            (ANY, _) => input.until = WaitGoal::Any,
            (ALL, _) => input.until = WaitGoal::All,
            _ => return None,
        }
        let until_ms = match *until {
            "" => None,
            until => Some(until.parse().ok()?),
        };
        let unknown = unknown.into_iter().map(TaskRef::from_text).collect::<Option<Vec<_>>>()?;
        let mut options = options.split('+');
        let format = tool_format(options.next()?)?;
        let mut handle = WaitHandle { ids, unknown, input, has_more_ended: false, format, until_ms };
        for option in options {
            if let Some((_, is_on)) = handle.flags().into_iter().find(|(name, _)| *name == option) {
                *is_on = true;
            } else {
                handle.input.max_output_bytes = Some(option.parse().ok()?);
            }
        }
        Some(handle)
    }

    pub fn is_expired(&self) -> bool {
        self.until_ms.is_some_and(|until| now_ms() >= until)
    }

    /// The original wait. An id that had no task then is reported, even if a task with that beginning exists
    /// now.
    pub fn resolved(&self, engine: &Engine) -> ResolvedWait {
        let known = self.ids.iter().map(|id| (id.to_string(), Ok(id.clone())));
        let unknown = self.unknown.iter().map(|given| {
            let unknown = EngineError::UnknownTask { given: given.as_str().to_owned() };
            let error = resolve_task(engine, given).err().unwrap_or_else(|| unknown.into());
            (given.as_str().to_owned(), Err(error))
        });
        let targets = known.chain(unknown).collect();
        ResolvedWait { input: self.input.clone(), targets, has_more_ended: self.has_more_ended }
    }
}

impl Handle {
    pub fn new(wait: TaskWait, after: AfterWait, format: Format) -> Handle {
        match after {
            AfterWait::Run { id, .. } => Handle::Run(id),
            AfterWait::Wait(resolved) => Handle::Wait(Box::new(WaitHandle::new(wait, resolved, format))),
        }
    }

    pub fn to_text(&self) -> String {
        match self {
            Handle::Run(id) => id.to_string(),
            Handle::Wait(wait) => wait.to_text(),
        }
    }

    pub fn from_text(text: &str) -> Option<Handle> {
        match text.parse() {
            Ok(id) => Some(Handle::Run(id)),
            Err(_) => WaitHandle::from_text(text).map(|wait| Handle::Wait(Box::new(wait))),
        }
    }

    /// The task whose directory holds the notes of this handle.
    fn owning_task(&self) -> Option<&TaskId> {
        match self {
            Handle::Run(id) => Some(id),
            Handle::Wait(awaited) => awaited.ids.first(),
        }
    }
}

/// A line of the handle file of a task.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    /// The requested response format of the run.
    Format(String),
    /// The wait with this handle was cancelled.
    #[serde(rename = "let_go")]
    WaitCancelled(String),
}

fn read_notes(engine: &Engine, handle: &Handle) -> Result<Vec<Note>, AppError> {
    let Some(id) = handle.owning_task() else { return Ok(Vec::new()) };
    let stored = engine.results().read_stored(id, TaskFile::Handles)?;
    // An unparsable line was not written completely.
    Ok(stored.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn append_note(engine: &Engine, handle: &Handle, note: &Note) -> Result<(), AppError> {
    match handle.owning_task() {
        Some(id) => Ok(engine.results().append_handle(id, &json!(note).to_string())?),
        None => Ok(()),
    }
}

pub fn store_format(engine: &Engine, handle: &Handle, format: Format) -> Result<(), AppError> {
    append_note(engine, handle, &Note::Format(format.name().to_owned()))
}

/// The format that was requested last.
pub fn stored_format(engine: &Engine, handle: &Handle) -> Result<Option<Format>, AppError> {
    let mut formats = read_notes(engine, handle)?.into_iter().rev().filter_map(|note| match note {
        Note::Format(name) => tool_format(&name),
        Note::WaitCancelled(_) => None,
    });
    Ok(formats.next())
}

pub fn cancel_wait(engine: &Engine, handle: &Handle) -> Result<(), AppError> {
    append_note(engine, handle, &Note::WaitCancelled(handle.to_text()))
}

pub fn is_wait_cancelled(engine: &Engine, handle: &Handle) -> Result<bool, AppError> {
    let (text, notes) = (handle.to_text(), read_notes(engine, handle)?);
    Ok(notes.iter().any(|note| matches!(note, Note::WaitCancelled(wait) if *wait == text)))
}

fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::TaskLocation;

    use super::*;

    #[test]
    fn handles_round_trip_through_text() {
        let id = |byte| TaskId::from_random(TaskLocation::Local, [byte; 16]);
        let (one, two) = (id(1), id(2));
        for handle in [
            id(3).to_string(),
            format!("wait.any.json.4711.{one}+{two}"),
            format!("wait.all.markdown+output+exit+more+4096..{one}+{two}.T-local-00000000"),
            format!("wait.all.markdown+exit..{one}.T-local-00000000+T-local-11111111"),
            format!("wait.one.json+output.0.{one}"),
        ] {
            assert_eq!(Handle::from_text(&handle).unwrap().to_text(), handle);
        }
        let two = format!("wait.one.json..{}+{}", id(1), id(2));
        for other in [
            "",
            "wait",
            "wait.any.json..",
            "wait.some.json..T-local-1",
            "wait.any.jsonl..x",
            "T-local-x",
            &format!("wait.all.json..{}.no id", id(1)),
            two.as_str(),
        ] {
            assert!(Handle::from_text(other).is_none(), "{other}");
        }
    }
}
