//! `GET /tasks/{id}/events`: a range of what the agent wrote, by line.

use delegator_engine::{EventPlace, StoredEvent};

use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct EventsInput {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Number of the first event
    #[serde(default = "default_number::<1>")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub from: u32,
    /// Events or entries of an answer
    #[serde(default = "default_number::<200>")]
    #[schemars(range(min = 1, max = 5000))]
    pub limit: u32,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EventList {
    pub task_id: String,
    pub events: Vec<NumberedEvent>,
    /// More events are stored after these.
    pub has_more: bool,
    /// `from` of the next request.
    pub next_from: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NumberedEvent {
    /// 1, 2, … per task.
    pub number: u64,
    /// As the agent wrote it; a text if it is not JSON.
    pub event: Value,
}

/// The events of a response have no more bytes as they are sent; at least one is in it.
pub const MAX_BYTES: usize = 4 << 20;

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::List("events"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    ..CommandSpec::read_only::<EventsInput, EventList>(
        &["task", "events"],
        "Read a range of the events of a task",
    )
};

impl From<&StoredEvent> for NumberedEvent {
    fn from(stored: &StoredEvent) -> NumberedEvent {
        let text = || Value::String(String::from_utf8_lossy(&stored.line).into_owned());
        let event = serde_json::from_slice(&stored.line).unwrap_or_else(|_| text());
        NumberedEvent { number: stored.number, event }
    }
}

pub fn run(context: &Context<'_>, input: EventsInput) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.task.task_id)?;
    engine.remote().fetch_events(&engine.results().task(&id)?)?;
    let skip = u64::from(input.from) - 1;
    let limit = input.limit as usize;
    let range = engine.results().event_range(&id, EventPlace::default(), skip, limit, MAX_BYTES)?;
    let stored = range.events.len();
    let mut bytes = 0;
    let fits = |event: &NumberedEvent| {
        let is_first = bytes == 0;
        bytes += event.event.to_string().len();
        is_first || bytes <= MAX_BYTES
    };
    let events: Vec<NumberedEvent> = range.events.iter().map(Into::into).take_while(fits).collect();
    let next_from = events.last().map_or(u64::from(input.from), |last| last.number + 1);
    let has_more = range.has_more || events.len() < stored;
    Ok(CommandOutput::done(EventList { task_id: id.to_string(), events, has_more, next_from }))
}

impl CommandData for EventList {}
