//! `GET /tasks/{id}/log`: what the agent did in plain words, by the number of the event, and the search in it.
//! `GET /tasks/{id}/timeline`: the first line of each entry.

use delegator_domain::terminal;
use delegator_engine::EventPlace;
use delegator_registry::TaskFile;
use delegator_transcript::{LogDetail, ThreadEvent};
use schemars::{Schema, SchemaGenerator};

use crate::commands::inputs::choices;
use crate::commands::logs::log_text::LogText;
use crate::commands::prelude::*;
use crate::mcp::api::queries::events::{EventsInput, MAX_BYTES};
use crate::output::data::log_entry::EntryKind;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct LogInput {
    #[serde(flatten)]
    pub range: EventsInput,
    /// Only what contains this text, in upper or lower case
    #[schemars(length(min = 1, max = 1000))]
    pub q: Option<String>,
    /// Only what has failed
    #[serde(default)]
    pub failed: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogList {
    pub task_id: String,
    pub entries: Vec<NumberedEntry>,
    /// More entries are stored after these.
    pub has_more: bool,
    /// `from` of the next request.
    pub next_from: u64,
    /// The tokens of each turn, and when it ended.
    #[serde(skip)]
    pub turns: Vec<(Option<i64>, i64)>,
    /// The number of the first entry of the task, if it was read.
    #[serde(skip)]
    pub first_number: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NumberedEntry {
    /// The event that it describes: 1, 2, … per task.
    pub number: u64,
    #[schemars(schema_with = "kinds")]
    pub kind: &'static str,
    /// A command that exited with another code than 0, or an error.
    pub has_failed: bool,
    /// When the agent wrote it, to about a second; null if that is not known.
    pub at: Option<UtcTime>,
    pub text: String,
    #[serde(skip)]
    pub at_ms: Option<i64>,
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    choices(EntryKind::NAMES)
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::List("entries"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    ..CommandSpec::read_only::<LogInput, LogList>(&["task", "log"], "Read or search the log of a task")
};

pub const TIMELINE: CommandSpec = CommandSpec {
    path: &["task", "timeline"],
    about: "Read the first line of each entry of the log of a task",
    ..SPEC
};

/// Events that are read at once.
const CHUNK: usize = 500;
const CHUNK_BYTES: usize = 1 << 20;

pub fn run(context: &Context<'_>, input: LogInput) -> Result<CommandOutput, AppError> {
    Ok(CommandOutput::done(entries(context, &input)?))
}

pub fn entries(context: &Context<'_>, input: &LogInput) -> Result<LogList, AppError> {
    read(context, input, Part::First, str::to_owned)
}

/// The last entries instead of the first.
pub fn latest(context: &Context<'_>, input: &LogInput) -> Result<LogList, AppError> {
    read(context, input, Part::Last, str::to_owned)
}

impl LogList {
    fn empty(id: &TaskId, from: u64) -> LogList {
        let (entries, turns) = (Vec::new(), Vec::new());
        LogList { task_id: id.to_string(), entries, has_more: false, next_from: from, turns, first_number: 0 }
    }
}

/// Which entries are answered if there are more than the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Last,
}

pub fn run_timeline(context: &Context<'_>, input: LogInput) -> Result<CommandOutput, AppError> {
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    Ok(CommandOutput::done(read(context, &input, Part::First, first_line)?))
}

fn read(
    context: &Context<'_>,
    input: &LogInput,
    part: Part,
    shown: impl Fn(&str) -> String,
) -> Result<LogList, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.range.task.task_id)?;
    let task = engine.results().task(&id)?;
    engine.remote().fetch_events(&task)?;
    let detail = LogDetail { is_live: !task.state.is_terminal(), is_full: false };
    let mut log_text = LogText::new(context, &engine, &id, detail)?;
    let wanted = input.q.as_ref().map(|text| text.to_lowercase());
    let (from, limit) = (u64::from(input.range.from), input.range.limit as usize);
    let mut list = LogList::empty(&id, from);
    let times = engine.results().event_times(&task)?;
    let (mut place, mut bytes) = (EventPlace::default(), 0);
    loop {
        let range = engine.results().event_range(&id, place, 0, CHUNK, CHUNK_BYTES)?;
        place = range.end;
        if range.is_restarted {
            log_text.restart();
            list = LogList::empty(&id, from);
            bytes = 0;
        }
        for event in range.events {
            while list.entries.len() >= limit || bytes > MAX_BYTES {
                if part == Part::First {
                    list.has_more = true;
                    return Ok(list);
                }
                bytes -= list.entries.remove(0).text.len();
            }
            let at_ms = times.of(&event);
            log_text.take(TaskFile::Events, &event.line, |parsed, text| {
                if let Some(ThreadEvent::TurnCompleted { usage: Some(usage) }) = parsed {
                    list.turns.push((at_ms, usage.input_tokens.saturating_add(usage.output_tokens)));
                }
                let (kind, has_failed) = EntryKind::of(parsed);
                if list.first_number == 0 {
                    list.first_number = event.number;
                }
                let text = shown(&terminal::sanitize(&text));
                let is_found = wanted.as_ref().is_none_or(|wanted| text.to_lowercase().contains(wanted));
                if event.number >= from && is_found && (has_failed || !input.failed) {
                    bytes += text.len();
                    let kind = kind.name();
                    let (number, at) = (event.number, at_ms.map(UtcTime::from_ms));
                    list.entries.push(NumberedEntry { number, kind, has_failed, at, text, at_ms });
                }
            });
            list.next_from = from.max(event.number + 1);
        }
        if !range.has_more {
            return Ok(list);
        }
    }
}

impl CommandData for LogList {}
