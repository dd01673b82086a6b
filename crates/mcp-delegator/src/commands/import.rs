//! `import`: import a past Codex session as a task, or list the sessions.
//!
//! The engine reads the session file and stores a finished task; importing the same session again returns
//! that task. Over MCP only files below `allowed_roots` are read.

use std::fs::File;
use std::io::{self, Read};

use delegator_engine::{PastSession, StoredSession, stored_sessions};
use jiff::Timestamp;

use crate::commands::events::source::open_allowed_file;
use crate::commands::prelude::*;
use crate::output::data::stored_task::seconds_since;
use crate::output::documents::document::truncate_cell;
use crate::output::values::format_age_seconds;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Import {
    /// Session file of Codex, or a unique beginning of a session id (default: list the sessions)
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Positional]))]
    pub rollout: Option<PathBuf>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Imported {
    pub task_id: String,
    pub thread_id: Option<String>,
    pub state: String,
    pub summary: Option<String>,
    /// The session was imported before.
    pub replayed: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionList {
    /// The newest first.
    pub sessions: Vec<ListedSession>,
    /// Older sessions, which are not listed.
    pub more_count: usize,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedSession {
    /// The session's id.
    pub thread_id: String,
    pub started_ts: Option<UtcTime>,
    pub age_seconds: Option<u64>,
    pub working_dir: Option<String>,
    /// The first line of the user's first message.
    pub title: Option<String>,
    /// The task that the session was imported as, or that ran in it; absent if there is none.
    pub task_id: Option<String>,
    pub path: String,
}

/// The data of `import`: a task, or the sessions.
#[derive(Debug, JsonSchema)]
pub struct ImportData {
    #[serde(flatten)]
    pub imported: Option<Imported>,
    #[serde(flatten)]
    pub list: Option<SessionList>,
}

/// Sessions of which the files are read for the list.
const MAX_LISTED: usize = 20;
const MAX_TITLE_BYTES: usize = 60;
/// As of a task id.
const MIN_ID_LENGTH: usize = 4;
const MAX_CANDIDATES: usize = 5;

pub const SPEC: CommandSpec = CommandSpec {
    details: "The imported task works with results and resume. Without a session, lists the newest 20 that Codex stored.",
    shape: Shape::Action("session_imported"),
    other_shape: Some(Shape::List("sessions")),
    idempotent: true,
    failures: &[ErrorCode::NotFound, ErrorCode::PolicyBlocked],
    examples: &[
        example("mcp-delegator import", "the past sessions, with their ids"),
        example("mcp-delegator import ~/.codex/sessions/2026/11/15/rollout-….jsonl", "the session as a task"),
    ],
    ..CommandSpec::new::<Import, ImportData>(&["import"], "Import a past Codex session as a task")
};

pub fn run(context: &Context<'_>, input: Import) -> Result<CommandOutput, AppError> {
    let Some(given) = input.rollout else { return list(context) };
    let path = &session_file(context, given)?;
    let file = open(context, path)?;
    let redactor = context.screen.printer.redactor();
    let imported = engine(context)?.results().import(file, path, redactor, to_ms)?;
    let task = imported.task;
    let output = CommandOutput::done(Imported {
        task_id: task.id.to_string(),
        thread_id: task.thread_id,
        state: task.state.public_name().to_owned(),
        summary: task.ended.and_then(|ended| ended.summary),
        replayed: imported.replayed,
    });
    Ok(output.message(format!("Imported as {}", task.id)))
}

fn list(context: &Context<'_>) -> Result<CommandOutput, AppError> {
    let (engine, stored) = (engine(context)?, stored(context)?);
    let now_ms = Timestamp::now().as_millisecond();
    let redactor = context.screen.printer.redactor();
    let read = |session: &StoredSession| -> Result<ListedSession, AppError> {
        let file = open(context, &session.file)?;
        let past = engine.results().past_session(file, session, redactor, to_ms)?;
        Ok(ListedSession::of(session, past, now_ms))
    };
    let (mut sessions, mut errors) = (Vec::new(), Vec::new());
    for session in stored.iter().take(MAX_LISTED) {
        match read(session) {
            Ok(listed) => sessions.push(listed),
            Err(error) => errors.push(error.message),
        }
    }
    let warning = errors.first().map(|first| {
        let count = plural(errors.len(), "session file");
        Warning::new(WarningCode::SessionsNotListed, format!("{count} could not be read. {first}"))
    });
    let (count, more_count) = (sessions.len(), stored.len().saturating_sub(MAX_LISTED));
    let output = CommandOutput::done(SessionList { sessions, more_count }).fact("count", count);
    Ok(CommandOutput { shape: SPEC.other_shape, ..output.warn(warning) })
}

fn stored(context: &Context<'_>) -> Result<Vec<StoredSession>, AppError> {
    stored_sessions(&variables(context)).map_err(|error| io_error("Reading the sessions of Codex", &error))
}

/// The file that is given by its path, or by the beginning of the session's id.
fn session_file(context: &Context<'_>, given: PathBuf) -> Result<PathBuf, AppError> {
    let is_id = |text: &&str| {
        text.len() >= MIN_ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let Some(prefix) = given.to_str().filter(is_id).filter(|_| !given.exists()) else { return Ok(given) };
    let mut found = stored(context)?;
    found.retain(|session| session.thread_id.starts_with(&prefix.to_ascii_lowercase()));
    // The newest file of each.
    found.sort_by(|one, other| one.thread_id.cmp(&other.thread_id));
    found.dedup_by(|one, other| one.thread_id == other.thread_id);
    match found.as_slice() {
        [only] => Ok(only.file.clone()),
        [] => {
            let message = format!("There is no file {prefix}, and no session with an id that begins so.");
            let list = NextCall::new(SPEC.path);
            Err(AppError::new(ErrorCode::NotFound, message).suggest_call("List the sessions: {call}", list))
        }
        several => {
            let ids: Vec<&str> =
                several.iter().take(MAX_CANDIDATES).map(|session| session.thread_id.as_str()).collect();
            let problem = Problem::invalid("rollout", "is the beginning of several session ids");
            let advice = format!("Give more of the id: {}.", ids.join(", "));
            Err(problem.value(prefix.into()).suggest(Some(advice)).into())
        }
    }
}

fn to_ms(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(|at| at.as_millisecond())
}

fn open(context: &Context<'_>, path: &Path) -> Result<Box<dyn Read>, AppError> {
    Ok(match context.surface {
        Surface::CommandLine => Box::new(open_rollout(path)?),
        Surface::Server => Box::new(open_allowed_file(context, "rollout", path)?),
    })
}

fn open_rollout(path: &Path) -> Result<File, AppError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            AppError::new(ErrorCode::NotFound, format!("The file {} does not exist.", path.display()))
        }
        _ => EngineError::NotImportable { path: path.to_owned(), problem: error.to_string() }.into(),
    })
}

impl ListedSession {
    fn of(session: &StoredSession, past: PastSession, now_ms: i64) -> ListedSession {
        ListedSession {
            thread_id: session.thread_id.clone(),
            started_ts: past.started_at_ms.map(UtcTime::from_ms),
            age_seconds: past.started_at_ms.map(|started_ms| seconds_since(started_ms, now_ms)),
            working_dir: past.working_dir,
            title: past.title,
            task_id: past.task.map(|task| task.to_string()),
            path: session.file.display().to_string(),
        }
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.thread_id.clone(),
            cell(self.age_seconds.map(format_age_seconds).as_ref()),
            truncate_cell(self.title.as_deref().unwrap_or_default(), MAX_TITLE_BYTES),
            cell(self.working_dir.as_ref()),
            self.task_id.clone().unwrap_or_default(),
        ]
    }
}

impl CommandData for SessionList {
    fn document(&self) -> Document {
        let Some(first) = self.sessions.first() else { return Document::titled("No session found") };
        let more = (self.more_count > 0).then(|| format!("{} more, which are older", self.more_count));
        let next = self.sessions.iter().find(|session| session.task_id.is_none()).unwrap_or(first);
        Document::titled(plural(self.sessions.len(), "session"))
            .table(
                &["session", "age", "first message", "directory", "task"],
                self.sessions.iter().map(ListedSession::row).collect(),
            )
            .with(more, Document::text)
            .block(Block::Next(NextCall::new(SPEC.path).with("rollout", next.thread_id.as_str())))
    }
}

impl CommandData for Imported {
    fn document(&self) -> Document {
        Document::titled("Imported").block(Block::facts([
            ("task id", Some(self.task_id.clone())),
            ("thread id", Some(cell(self.thread_id.as_ref()))),
            ("state", Some(self.state.clone())),
            ("summary", Some(cell(self.summary.as_ref()))),
        ]))
    }
}
