//! `GET /tasks/{id}/log`: what the agent did in plain words, by the number of the event, and the search in it.

use delegator_domain::terminal;
use delegator_engine::EventPlace;
use delegator_transcript::{Effect, FoldOptions, Framer, Headlines, LineLimits, LineSummarizer, LogDetail};

use crate::commands::events::source::task_dialect;
use crate::commands::prelude::*;
use crate::mcp::api::queries::events::MAX_BYTES;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Log {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Only what contains this text, in upper or lower case
    #[schemars(length(min = 1, max = 1000))]
    pub q: Option<String>,
    /// Number of the first event
    #[serde(default = "default_number::<1>")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub from: u32,
    /// Entries
    #[serde(default = "default_number::<200>")]
    #[schemars(range(min = 1, max = 5000))]
    pub limit: u32,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogList {
    pub task_id: String,
    pub entries: Vec<LogEntry>,
    /// More entries are stored after these.
    pub has_more: bool,
    /// `from` of the next request.
    pub next_from: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogEntry {
    /// The event that it describes: 1, 2, … per task.
    pub number: u64,
    pub text: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::List("entries"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    ..CommandSpec::read_only::<Log, LogList>(&["task", "log"], "Read or search the log of a task")
};

/// Events that are read at once.
const CHUNK: usize = 500;
const CHUNK_BYTES: usize = 1 << 20;

pub fn run(context: &Context<'_>, input: Log) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.task.task_id)?;
    let task = engine.results().task(&id)?;
    engine.remote().fetch_events(&task)?;
    let options = FoldOptions { dialect: task_dialect(context, &engine, &id)?, ..FoldOptions::default() };
    let (mut framer, mut summarizer) = (Framer::new(LineLimits::STANDARD), LineSummarizer::new(options));
    let mut headlines = Headlines::default();
    let detail = LogDetail { is_live: !task.state.is_terminal(), is_full: false };
    let text = input.q.as_ref().map(|text| text.to_lowercase());
    let is_wanted = |found: &String| text.as_ref().is_none_or(|text| found.to_lowercase().contains(text));
    let (from, limit) = (u64::from(input.from), input.limit as usize);
    let mut list = LogList { task_id: id.to_string(), entries: Vec::new(), has_more: false, next_from: from };
    let (mut place, mut bytes) = (EventPlace::default(), 0);
    'chunks: loop {
        let range = engine.results().event_range(&id, place, 0, CHUNK, CHUNK_BYTES)?;
        place = range.end;
        for event in range.events {
            if list.entries.len() >= limit || bytes > MAX_BYTES {
                list.has_more = true;
                break 'chunks;
            }
            let mut texts = Vec::new();
            framer.push(&[&event.line, b"\n".as_slice()].concat(), |line| {
                summarizer.push_line_with(&line, |effect| {
                    if let Effect::Emit(event) = effect {
                        texts.extend(headlines.log_text(event, Some(&task.working_dir), detail));
                    }
                });
            });
            if event.number >= from {
                let entry = |text: String| LogEntry { number: event.number, text };
                let texts = texts.iter().map(|text| terminal::sanitize(text).to_string()).filter(is_wanted);
                let texts = texts.inspect(|text| bytes += text.len());
                list.entries.extend(texts.map(entry));
                list.next_from = event.number + 1;
            }
        }
        if !range.has_more {
            break;
        }
    }
    Ok(CommandOutput::done(list))
}

impl CommandData for LogList {}
