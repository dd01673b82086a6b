//! The tasks extension: handles for `run` and `wait` that outlive the server.
//!
//! The handle of a run is the task itself; the handle of a wait spells out what is awaited, how it is told and until when.
//! Whatever server is asked about it reads the same registry and says the same. What neither can hold is kept with the
//! task: in which form the answer to a run was asked for, and which waits were let go.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::Engine;
use delegator_engine::resident::Goal;
use delegator_registry::TaskFile;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::Admitted;
use crate::cli::globals::Format;
use crate::fault::AppError;
use crate::registry::stay::Staying;

/// What a handle stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle {
    Run(TaskId),
    Wait(Awaited),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    pub ids: Vec<TaskId>,
    pub asked: Asked,
    pub telling: Telling,
    /// Milliseconds since 1970; `None`: as long as it takes.
    pub until_ms: Option<u64>,
}

/// Which of the three questions a wait can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// `task_id`
    One,
    /// `task_ids`, until the first has ended
    Any,
    /// `task_ids`, until all have
    All,
}

/// How the answer to a wait is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    pub format: Format,
    include_output: bool,
    exit_status: bool,
    max_output_bytes: Option<u64>,
}

impl Asked {
    const ALL: [(Asked, &'static str); 3] = [(Asked::One, "one"), (Asked::Any, "any"), (Asked::All, "all")];

    fn name(self) -> &'static str {
        Asked::ALL.iter().find(|(asked, _)| *asked == self).map_or("", |(_, name)| name)
    }

    fn named(name: &str) -> Option<Asked> {
        Asked::ALL.iter().find(|(_, known)| *known == name).map(|(asked, _)| *asked)
    }
}

impl Telling {
    fn of(call: &Admitted) -> Telling {
        let is_set = |key: &str| call.input[key] == true;
        Telling {
            format: call.format,
            include_output: is_set("include_output"),
            exit_status: is_set("exit_status"),
            max_output_bytes: call.input["max_output_bytes"].as_u64(),
        }
    }

    /// As inputs of the call.
    pub fn inputs(&self) -> Map<String, Value> {
        let mut inputs = Map::new();
        inputs.insert("include_output".to_owned(), self.include_output.into());
        inputs.insert("exit_status".to_owned(), self.exit_status.into());
        if let Some(bytes) = self.max_output_bytes {
            inputs.insert("max_output_bytes".to_owned(), bytes.into());
        }
        inputs
    }

    fn to_text(&self) -> String {
        let mut text = self.format.name().to_owned();
        if self.include_output {
            text += "+output";
        }
        if self.exit_status {
            text += "+exit";
        }
        if let Some(bytes) = self.max_output_bytes {
            text += &format!("+{bytes}");
        }
        text
    }

    fn from_text(text: &str) -> Option<Telling> {
        let mut words = text.split('+');
        let format = tool_format(words.next()?)?;
        let mut telling =
            Telling { format, include_output: false, exit_status: false, max_output_bytes: None };
        for word in words {
            match word {
                "output" => telling.include_output = true,
                "exit" => telling.exit_status = true,
                bytes => telling.max_output_bytes = Some(bytes.parse().ok()?),
            }
        }
        Some(telling)
    }
}

/// The two a tool can answer in.
fn tool_format(name: &str) -> Option<Format> {
    Format::named(name).filter(|format| matches!(format, Format::Json | Format::Markdown))
}

impl Awaited {
    pub fn of(staying: &Staying, call: &Admitted) -> Awaited {
        let until = |within: Duration| now_ms().saturating_add(milliseconds(within));
        let asked = match staying.goal {
            _ if !call.input["task_id"].is_null() => Asked::One,
            Goal::Any => Asked::Any,
            Goal::All => Asked::All,
        };
        let (ids, telling) = (staying.ids.clone(), Telling::of(call));
        Awaited { ids, asked, telling, until_ms: staying.within.map(until) }
    }

    pub fn is_over(&self) -> bool {
        self.until_ms.is_some_and(|until| now_ms() >= until)
    }

    /// The inputs of the wait it was.
    pub fn inputs(&self) -> Value {
        let ids: Vec<&str> = self.ids.iter().map(TaskId::as_str).collect();
        let mut inputs = self.telling.inputs();
        match self.asked {
            Asked::One => inputs.insert("task_id".to_owned(), json!(ids.first())),
            asked => {
                inputs.insert("until".to_owned(), asked.name().into());
                inputs.insert("task_ids".to_owned(), json!(ids))
            }
        };
        Value::Object(inputs)
    }
}

impl Handle {
    pub fn to_text(&self) -> String {
        match self {
            Handle::Run(id) => id.to_string(),
            Handle::Wait(Awaited { ids, asked, telling, until_ms }) => {
                let until = until_ms.map(|until| until.to_string()).unwrap_or_default();
                let ids: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
                format!("wait.{}.{}.{until}.{}", asked.name(), telling.to_text(), ids.join("+"))
            }
        }
    }

    pub fn from_text(text: &str) -> Option<Handle> {
        if let Ok(id) = text.parse() {
            return Some(Handle::Run(id));
        }
        let parts: Vec<&str> = text.split('.').collect();
        let ["wait", asked, telling, until, ids] = parts.as_slice() else { return None };
        let asked = Asked::named(asked)?;
        let until_ms = match *until {
            "" => None,
            until => Some(until.parse().ok()?),
        };
        let telling = Telling::from_text(telling)?;
        let ids = ids.split('+').map(|id| id.parse().ok()).collect::<Option<Vec<TaskId>>>()?;
        (asked != Asked::One || ids.len() == 1).then_some(())?;
        Some(Handle::Wait(Awaited { ids, asked, telling, until_ms }))
    }

    /// The task it is kept with.
    fn first(&self) -> Option<&TaskId> {
        match self {
            Handle::Run(id) => Some(id),
            Handle::Wait(awaited) => awaited.ids.first(),
        }
    }
}

/// A line of what is kept with a task.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    /// The answer to the run was asked for in this format.
    Format(String),
    /// This wait was cancelled.
    LetGo(String),
}

fn notes(engine: &Engine, handle: &Handle) -> Result<Vec<Note>, AppError> {
    let Some(id) = handle.first() else { return Ok(Vec::new()) };
    let stored = engine.stored(id, TaskFile::Handles)?;
    // A line that cannot be read was not written to its end.
    Ok(stored.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn note(engine: &Engine, handle: &Handle, note: &Note) -> Result<(), AppError> {
    match handle.first() {
        Some(id) => Ok(engine.note_handle(id, &json!(note).to_string())?),
        None => Ok(()),
    }
}

pub fn keep_format(engine: &Engine, handle: &Handle, format: Format) -> Result<(), AppError> {
    note(engine, handle, &Note::Format(format.name().to_owned()))
}

/// The one that was asked for last.
pub fn kept_format(engine: &Engine, handle: &Handle) -> Result<Option<Format>, AppError> {
    let mut formats = notes(engine, handle)?.into_iter().rev().filter_map(|note| match note {
        Note::Format(name) => tool_format(&name),
        Note::LetGo(_) => None,
    });
    Ok(formats.next())
}

pub fn let_go(engine: &Engine, handle: &Handle) -> Result<(), AppError> {
    note(engine, handle, &Note::LetGo(handle.to_text()))
}

pub fn was_let_go(engine: &Engine, handle: &Handle) -> Result<bool, AppError> {
    let (text, notes) = (handle.to_text(), notes(engine, handle)?);
    Ok(notes.iter().any(|note| matches!(note, Note::LetGo(wait) if *wait == text)))
}

fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::Place;

    use super::*;

    #[test]
    fn a_handle_reads_back() {
        let id = |byte| TaskId::from_random(Place::Local, [byte; 16]);
        let telling = |text: &str| Telling::from_text(text).unwrap();
        let waits = [
            (Asked::Any, "json", Some(4711), vec![id(1), id(2)]),
            (Asked::All, "markdown+output+exit+4096", None, vec![id(1), id(2)]),
            (Asked::All, "markdown+exit", None, vec![id(1)]),
            (Asked::One, "json+output", Some(0), vec![id(1)]),
        ];
        let waits = waits.map(|(asked, told, until_ms, ids)| {
            Handle::Wait(Awaited { ids, asked, telling: telling(told), until_ms })
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
            two.as_str(),
        ] {
            assert_eq!(Handle::from_text(other), None, "{other}");
        }
    }
}
