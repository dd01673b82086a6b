//! The tasks extension: handles for `run` and `wait` that outlive the server.
//!
//! The handle of a run is the task id. The handle of a wait encodes the task ids, the response options and
//! the deadline, so any server with the same registry can serve it. Two facts do not fit into a handle and
//! are stored with the task: the format requested for a run, and which waits were cancelled.

use std::collections::BTreeMap;
use std::time::Duration;

use delegator_domain::named_enum;
use delegator_domain::task::TaskId;
use delegator_engine::wait_thread::WaitGoal;
use delegator_engine::{Engine, EngineError};
use delegator_registry::TaskFile;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commands::AfterWait;
use crate::commands::blocking::TaskWait;
use crate::commands::inputs::TaskRef;
use crate::commands::local::tasks::resolve_task;
use crate::commands::local::wait::{ResolvedWait, Wait};
use crate::error::AppError;
use crate::spec::formats::Format;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle {
    Run(TaskId),
    Wait(WaitHandle),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitHandle {
    pub ids: Vec<TaskId>,
    /// Ids of the call that belong to no task; the response reports them.
    unknown: Vec<TaskRef>,
    pub kind: WaitKind,
    pub options: ResponseOptions,
    /// Milliseconds since 1970; `None`: no deadline.
    pub until_ms: Option<u64>,
}

named_enum! {
    pub enum WaitKind {
        /// `task_id`
        One = "one",
        /// `task_ids`, until the first has ended
        Any = "any",
        /// `task_ids`, until all have
        All = "all",
    }
}

/// What shapes the response of a wait: inputs, and whether more tasks have ended than it lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseOptions {
    pub format: Format,
    include_output: bool,
    exit_status: bool,
    max_output_bytes: Option<u32>,
    /// The tasks include the rest of their chains.
    is_chain: bool,
    has_more_ended: bool,
}

impl ResponseOptions {
    fn new(format: Format) -> ResponseOptions {
        ResponseOptions {
            format,
            include_output: false,
            exit_status: false,
            max_output_bytes: None,
            is_chain: false,
            has_more_ended: false,
        }
    }

    /// The options that are on or off, with their names in a handle.
    fn flags(&mut self) -> [(&'static str, &mut bool); 4] {
        [
            ("output", &mut self.include_output),
            ("exit", &mut self.exit_status),
            ("chain", &mut self.is_chain),
            ("more", &mut self.has_more_ended),
        ]
    }

    fn to_text(&self) -> String {
        let mut options = self.clone();
        let on = options.flags().into_iter().filter(|(_, is_on)| **is_on).map(|(name, _)| name.to_owned());
        let bytes = self.max_output_bytes.map(|bytes| bytes.to_string());
        let parts: Vec<String> = [self.format.name().to_owned()].into_iter().chain(on).chain(bytes).collect();
        parts.join("+")
    }

    fn from_text(text: &str) -> Option<ResponseOptions> {
        let mut parts = text.split('+');
        let mut options = ResponseOptions::new(tool_format(parts.next()?)?);
        for part in parts {
            if let Some((_, is_on)) = options.flags().into_iter().find(|(name, _)| *name == part) {
                *is_on = true;
            } else {
                options.max_output_bytes = Some(part.parse().ok()?);
            }
        }
        Some(options)
    }
}

/// The format of that name, if a tool can respond in it.
fn tool_format(name: &str) -> Option<Format> {
    Format::named(name).filter(|format| matches!(format, Format::Json | Format::Markdown))
}

impl WaitHandle {
    fn new(wait: TaskWait, resolved: &ResolvedWait, format: Format) -> WaitHandle {
        let ResolvedWait { input, targets, has_more_ended } = resolved;
        let deadline = |timeout: Duration| now_ms().saturating_add(milliseconds(timeout));
        let kind = match wait.goal {
            _ if input.task_id.is_some() => WaitKind::One,
            WaitGoal::Any => WaitKind::Any,
            WaitGoal::All => WaitKind::All,
        };
        let options = ResponseOptions {
            format,
            include_output: input.include_output,
            exit_status: input.exit_status,
            max_output_bytes: input.max_output_bytes,
            is_chain: input.chain,
            has_more_ended: *has_more_ended,
        };
        let unresolved = targets.iter().filter(|(_, id)| id.is_err());
        let unknown = unresolved.filter_map(|(given, _)| TaskRef::from_text(given)).collect();
        WaitHandle { ids: wait.ids, unknown, kind, options, until_ms: wait.timeout.map(deadline) }
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
        ResolvedWait { input: self.input(), targets, has_more_ended: self.options.has_more_ended }
    }

    fn input(&self) -> Wait {
        let ResponseOptions { include_output, exit_status, max_output_bytes, is_chain, .. } = self.options;
        let mut ids: Vec<TaskRef> = self.ids.iter().cloned().map(TaskRef::from).collect();
        Wait {
            task_id: if self.kind == WaitKind::One { ids.pop() } else { None },
            task_ids: ids.into_iter().chain(self.unknown.iter().cloned()).collect(),
            labels: BTreeMap::new(),
            until: if self.kind == WaitKind::Any { WaitGoal::Any } else { WaitGoal::All },
            timeout_sec: None,
            include_output,
            max_output_bytes,
            chain: is_chain,
            exit_status,
        }
    }
}

impl Handle {
    pub fn new(wait: TaskWait, after: AfterWait, format: Format) -> Handle {
        match after {
            AfterWait::Run { id, .. } => Handle::Run(id),
            AfterWait::Wait(resolved) => Handle::Wait(WaitHandle::new(wait, &resolved, format)),
        }
    }

    pub fn to_text(&self) -> String {
        match self {
            Handle::Run(id) => id.to_string(),
            Handle::Wait(WaitHandle { ids, unknown, kind, options, until_ms }) => {
                let until = until_ms.map(|until| until.to_string()).unwrap_or_default();
                let ids: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
                let handle = format!("wait.{}.{}.{until}.{}", kind.name(), options.to_text(), ids.join("+"));
                let unknown: Vec<&str> = unknown.iter().map(TaskRef::as_str).collect();
                if unknown.is_empty() { handle } else { format!("{handle}.{}", unknown.join("+")) }
            }
        }
    }

    pub fn from_text(text: &str) -> Option<Handle> {
        if let Ok(id) = text.parse() {
            return Some(Handle::Run(id));
        }
        let parts: Vec<&str> = text.split('.').collect();
        let (parts, unknown) = match parts.as_slice() {
            [parts @ .., unknown] if parts.len() == 5 => (parts, unknown.split('+').collect()),
            parts => (parts, Vec::new()),
        };
        let ["wait", kind, options, until, ids] = parts else { return None };
        let kind = WaitKind::from_name(kind)?;
        let until_ms = match *until {
            "" => None,
            until => Some(until.parse().ok()?),
        };
        let options = ResponseOptions::from_text(options)?;
        let ids = ids.split('+').map(|id| id.parse().ok()).collect::<Option<Vec<TaskId>>>()?;
        (kind != WaitKind::One || ids.len() == 1).then_some(())?;
        let unknown = unknown.into_iter().map(TaskRef::from_text).collect::<Option<Vec<_>>>()?;
        Some(Handle::Wait(WaitHandle { ids, unknown, kind, options, until_ms }))
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
    let stored = engine.read_stored(id, TaskFile::Handles)?;
    // An unparsable line was not written completely.
    Ok(stored.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn append_note(engine: &Engine, handle: &Handle, note: &Note) -> Result<(), AppError> {
    match handle.owning_task() {
        Some(id) => Ok(engine.append_handle(id, &json!(note).to_string())?),
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

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::TaskLocation;

    use super::*;

    #[test]
    fn handles_round_trip_through_text() {
        let id = |byte| TaskId::from_random(TaskLocation::Local, [byte; 16]);
        let options = |text: &str| ResponseOptions::from_text(text).unwrap();
        let waits = [
            (WaitKind::Any, "json", Some(4711), vec![id(1), id(2)], vec![]),
            (
                WaitKind::All,
                "markdown+output+exit+more+4096",
                None,
                vec![id(1), id(2)],
                vec!["T-local-00000000"],
            ),
            (WaitKind::All, "markdown+exit", None, vec![id(1)], vec!["T-local-00000000", "T-local-11111111"]),
            (WaitKind::One, "json+output", Some(0), vec![id(1)], vec![]),
        ];
        let waits = waits.map(|(kind, text, until_ms, ids, unknown)| {
            let unknown = unknown.into_iter().map(|text| TaskRef::from_text(text).unwrap()).collect();
            Handle::Wait(WaitHandle { ids, unknown, kind, options: options(text), until_ms })
        });
        for handle in [Handle::Run(id(3))].into_iter().chain(waits) {
            assert_eq!(Handle::from_text(&handle.to_text()), Some(handle));
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
            assert_eq!(Handle::from_text(other), None, "{other}");
        }
    }
}
