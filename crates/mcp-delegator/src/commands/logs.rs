//! `logs`: what a task's agent did, or with `--raw` the stored output of the agent.
//!
//! The stored streams are already redacted. For a person each event is a line of plain words (`printing`);
//! programs get the streams in an envelope. `--raw` writes the agent's stdout unchanged to stdout, and its
//! stderr to stderr. With `--follow` new lines are printed until the task ends.

pub mod log_text;
mod printing;
pub mod streams;

use delegator_domain::task::EndKind;
use delegator_registry::TaskFile;
use delegator_transcript::LogDetail;

use crate::commands::prelude::*;
use crate::output::data::failure::EndReason;
use crate::output::data::stored_task::end_name;
use crate::output::presentation::ItemFormat;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Logs {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Print new output until the task ends
    #[serde(default)]
    pub follow: bool,
    /// Show all that commands printed and all lines of edits, not only the first and the last ones
    #[serde(default)]
    pub full: bool,
    /// Print the agent's output unchanged
    #[serde(default)]
    pub raw: bool,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogsOutput {
    pub task_id: String,
    pub state: String,
    #[serde(flatten)]
    #[serialize_always]
    pub end: Option<EndReason>,
    pub stdout: String,
    pub stderr: String,
    /// Output of the environment's setup script, of a fleet task that has ended
    pub setup: Option<String>,
    /// Output of the verify command, if one was run
    pub verify: Option<String>,
    /// When an agent that takes messages was idle or done, as JSON lines
    pub supervisor_log: Option<String>,
    /// The lines were printed while they arrived; the streams are empty
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_printed: bool,
    /// The agent has written nothing
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_empty: bool,
    #[serde(skip)]
    is_refuted: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "On a terminal: commands with exit code, duration and what they printed, edits as short diffs, and messages, in plain words; durations and edits \
              as far as the agent reports them. In a pipe: the agent's standard \
              output (the events) and standard error and the output of the verify command and of a fleet environment's setup script, in an envelope. --raw prints the events alone. \
              All are redacted, and available while the task runs.",
    open_ended: true,
    raw: RawOutput::With("raw"),
    shape: Shape::Show("log"),
    failures: &[ErrorCode::Unsupported],
    examples: &[
        example("mcp-delegator logs T-local-…", "what the agent did"),
        example("mcp-delegator logs T-local-… --follow", "the same, live"),
        example("mcp-delegator logs T-local-… --raw", "the events as the agent wrote them"),
    ],
    ..CommandSpec::read_only::<Logs, LogsOutput>(&["logs"], "Show what a task's agent did")
};

pub fn run(context: &Context<'_>, input: Logs) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.task.task_id)?;
    engine.remote().check_events(&engine.results().recorded_task(&id)?)?;
    match context.screen.presentation.items() {
        ItemFormat::Text => {
            let detail = LogDetail { is_live: input.follow, is_full: input.full };
            let text = log_text::LogText::new(context, &engine, &id, detail)?;
            let lines = printing::LogLines { context, text };
            printed(&engine, &id, lines, input.follow)
        }
        ItemFormat::Json => printed(&engine, &id, printing::RawLines(context), input.follow),
        ItemFormat::Collected => collected(&engine, &id, input.follow),
    }
}

fn printed(
    engine: &Engine,
    id: &TaskId,
    lines: impl printing::LineSink,
    follow: bool,
) -> Result<CommandOutput, AppError> {
    let Some(dir) = engine.results().task_dir(id)? else {
        return Err(EngineError::UnknownTask { given: id.to_string() }.into());
    };
    let (task, bytes) = printing::print(engine, id, dir, lines, follow)?;
    Ok(CommandOutput::done(LogsOutput {
        is_printed: true,
        is_empty: bytes == 0,
        ..LogsOutput::of(&task, <[String; 4]>::default())
    }))
}

fn collected(engine: &Engine, id: &TaskId, follow: bool) -> Result<CommandOutput, AppError> {
    let results = engine.results();
    let task = if follow { engine.waits().for_task(id, None, |_| {})?.task } else { results.task(id)? };
    engine.remote().fetch_events(&task)?;
    let text = |which| {
        results.read_stored(&task.id, which).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let streams =
        [text(TaskFile::Setup)?, text(TaskFile::Events)?, text(TaskFile::Stderr)?, text(TaskFile::Verify)?];
    let log = Some(text(TaskFile::SupervisorLog)?).filter(|log| !log.is_empty());
    Ok(CommandOutput::done(LogsOutput { supervisor_log: log, ..LogsOutput::of(&task, streams) }))
}

impl LogsOutput {
    fn of(task: &Task, [setup, stdout, stderr, verify]: [String; 4]) -> LogsOutput {
        let is_empty = [&setup, &stdout, &stderr, &verify].iter().all(|text| text.is_empty());
        LogsOutput {
            task_id: task.id.to_string(),
            state: task.state.public_name().to_owned(),
            end: EndReason::of(task),
            is_empty,
            stdout,
            stderr,
            setup: Some(setup).filter(|text| !text.is_empty()),
            verify: Some(verify).filter(|text| !text.is_empty()),
            supervisor_log: None,
            is_printed: false,
            is_refuted: end_name(task) == EndKind::VerifyFailed.name(),
        }
    }
}

impl CommandData for LogsOutput {
    /// The streams, unless they were printed already; then the state of the task and what to do next.
    fn document(&self) -> Document {
        let streams = [
            (self.setup.as_deref(), Some("setup:")),
            (Some(self.stdout.as_str()), None),
            (Some(self.stderr.as_str()), Some("stderr:")),
            (self.verify.as_deref(), Some("verify:")),
        ];
        let mut document = Document::default();
        for (text, label) in streams {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                document.blocks.extend(label.map(|label| Block::Text(label.to_owned())));
                document.blocks.push(Block::Verbatim(text.to_owned()));
            }
        }
        let (id, state) = (&self.task_id, &self.state);
        let has_ended = !matches!(state.as_str(), "queued" | "working");
        if self.is_empty {
            let yet = if has_ended { "" } else { " yet" };
            document = document.text(format!("The agent has written nothing{yet}."));
        }
        let reason = self.end.as_ref().map(|end| format!(" {}", end.reason)).unwrap_or_default();
        let refuted = if self.is_refuted { ", verify failed" } else { "" };
        let advice = if has_ended {
            Suggestion::with_call(
                format!("Task {id} {state}{refuted}.{reason} Its result: {{call}}"),
                NextCall::for_task(&["local", "results"], id),
            )
        } else {
            Suggestion::with_call(
                format!("Task {id} is {state}. Follow it: {{call}}"),
                NextCall::for_task(&["logs"], id).with("follow", true),
            )
        };
        document.block(Block::ForPeople(advice))
    }
}
