//! `import`: import a past Codex session as a task.
//!
//! The engine reads the session file and stores a finished task; importing the same session again returns
//! that task. Over MCP only files below `allowed_roots` can be imported.

use std::fs::File;
use std::io::{self, Read};

use jiff::Timestamp;

use crate::commands::events::source::open_allowed_file;
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Import {
    /// Session file of Codex
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Positional]))]
    pub rollout: PathBuf,
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

pub const SPEC: CommandSpec = CommandSpec {
    details: "The imported task works with results and resume.",
    shape: Shape::Action("session_imported"),
    idempotent: true,
    failures: &[ErrorCode::NotFound, ErrorCode::PolicyBlocked],
    examples: &[example(
        "mcp-delegator import ~/.codex/sessions/2026/11/15/rollout-….jsonl",
        "the session as a task",
    )],
    ..CommandSpec::new::<Import, Imported>(&["import"], "Import a past Codex session as a task")
};

pub fn run(context: &Context<'_>, input: Import) -> Result<CommandOutput, AppError> {
    let path = &input.rollout;
    let file: Box<dyn Read> = match context.surface {
        Surface::CommandLine => Box::new(open_rollout(path)?),
        Surface::Server => Box::new(open_allowed_file(context, "rollout", path)?),
    };
    let to_ms = |text: &str| text.parse::<Timestamp>().ok().map(|at| at.as_millisecond());
    let imported = engine(context)?.results().import(file, path, context.screen.printer.redactor(), to_ms)?;
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

fn open_rollout(path: &Path) -> Result<File, AppError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            AppError::new(ErrorCode::NotFound, format!("The file {} does not exist.", path.display()))
        }
        _ => EngineError::NotImportable { path: path.to_owned(), problem: error.to_string() }.into(),
    })
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
