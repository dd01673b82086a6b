//! `events follow`: print a transcript while it is written.
//!
//! Existing events are printed first, then new ones as they arrive. Following ends when the agent's turn has
//! ended and nothing follows, at the end of standard input, when the file is removed, or after the caller's
//! timeout.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Instant;

use delegator_engine::EventFollower;
use delegator_transcript::{
    Dialect, Effect, FoldOptions, Framer, Headlines, Line, LineLimits, LineSummarizer, NormalizeOptions,
    Normalizer,
};

use crate::commands::events::TranscriptInput;
use crate::commands::events::source::Source;
use crate::commands::events::summary::{self, Summary};
use crate::commands::events::tail::{GrowthWait, GrowthWatch, PathState, path_state, was_truncated};
use crate::commands::prelude::*;
use crate::output::documents::text::TextStyle;
use crate::output::outcome::IncompleteReason;
use crate::output::presentation::ItemFormat;
use crate::output::screen::Flow;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Follow {
    #[serde(flatten)]
    pub transcript: TranscriptInput,
    /// Stop after this many seconds without a new event (default: never)
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout_sec: Option<u32>,
    /// Working directory of the agent: paths below it are shown as relative paths
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Prints existing and new events until the agent's turn ends. In a pipe: one event per line, then a last line with the summary.",
    shape: Shape::Show("transcript"),
    open_ended: true,
    streams: true,
    toolset: Toolset::Hidden,
    failures: &[ErrorCode::InvalidId, ErrorCode::Incomplete, ErrorCode::Unsupported],
    examples: &[
        example("mcp-delegator events follow events.jsonl", "one line of text per event"),
        example("codex exec --json … | mcp-delegator events follow", "the same, live"),
    ],
    ..CommandSpec::read_only::<Follow, Summary>(&["events", "follow"], "Show events as they are written")
};

/// A lost worker was replaced.
pub const RESTARTED: &str = "The task was started again; the events of the new attempt follow.";

/// Maximum length of a line that ends a turn.
const MAX_TURN_END_BYTES: usize = 64 * 1024;

struct FollowState<'a> {
    context: &'a Context<'a>,
    options: FoldOptions,
    framer: Framer,
    printer: LinePrinter,
    /// Writes events as JSON lines, if the output is for programs.
    normalizer: Option<Normalizer>,
    /// Bytes after the last newline; `None` if they are too long to end a turn.
    tail: Option<Vec<u8>>,
}

pub fn run(context: &Context<'_>, input: Follow) -> Result<CommandOutput, AppError> {
    let mut source = Source::open(context, input.transcript.source.as_deref())?;
    let mut state = FollowState::new(context, input.working_dir.clone(), &source)?;
    let mut warnings = Vec::new();
    let expired = match &mut source {
        Source::File { file, name, task }
            if task.is_some() || file.metadata().is_ok_and(|meta| meta.is_file()) =>
        {
            let timeout = input.timeout_sec.map(|seconds| Duration::from_secs(seconds.into()));
            let copy = task.as_ref().map(follow_remote).transpose()?.flatten();
            let target = FollowedFile { file, path: Path::new(name), task: task.as_ref(), copy };
            follow_file(&mut state, target, timeout, &mut warnings)?
        }
        // Standard input or a named pipe: read to its end.
        stream => {
            stream.read_all(|bytes| Ok(state.take(bytes)? == Flow::Continue))?;
            false
        }
    };
    // After a timeout the report shows the unfinished state.
    if !expired {
        state.finish()?;
    }
    let report = state.printer.summarizer.report();
    let summary = Summary::of(&report, input.working_dir.as_deref(), source.ended_writer()?);
    let output = if expired {
        CommandOutput::incomplete(summary, IncompleteReason::CallExpired(None))
    } else {
        CommandOutput::done(summary)
    };
    Ok(output.warn(warnings).warn(summary::warnings(&report)))
}

struct FollowedFile<'a> {
    file: &'a mut File,
    path: &'a Path,
    /// The task that writes it: following ends when the task ends.
    task: Option<&'a (Engine, TaskId)>,
    /// What copies the events of a task that a provider runs.
    copy: Option<EventFollower>,
}

impl FollowedFile<'_> {
    fn writer_has_ended(&mut self) -> Result<bool, AppError> {
        match (&mut self.copy, self.task) {
            (Some(copy), _) => Ok(copy.has_ended()?),
            (None, Some((engine, id))) => Ok(engine.results().task(id)?.state.is_terminal()),
            (None, None) => Ok(false),
        }
    }
}

fn follow_remote((engine, id): &(Engine, TaskId)) -> Result<Option<EventFollower>, AppError> {
    Ok(engine.remote().follow_events(&engine.results().recorded_task(id)?)?)
}

fn changed_file(code: WarningCode, change: &str) -> Warning {
    Warning::new(code, format!("The file was {change} while it was followed."))
}

/// Follows a file; returns whether the timeout ended it.
fn follow_file(
    state: &mut FollowState<'_>,
    mut target: FollowedFile<'_>,
    timeout: Option<Duration>,
    warnings: &mut Vec<Warning>,
) -> Result<bool, AppError> {
    let is_task = target.task.is_some();
    let path = target.path;
    let failed = |error: std::io::Error| io_error(&format!("Following {}", path.display()), &error);
    // Watch before reading, so that no change in between is missed.
    let mut watch =
        GrowthWatch::on(if path.exists() { path } else { path.parent().unwrap_or(path) }).map_err(failed)?;
    let mut deadline = timeout.map(|timeout| Instant::now() + timeout);
    let (mut chunk, mut read, mut idle_polls) = (vec![0; 64 * 1024], 0_u64, 0_u32);
    loop {
        // Query the state before reading, so that everything the task wrote before its end is read.
        let writer_ended = idle_polls > 0 && target.writer_has_ended()?;
        let count = target.file.read(&mut chunk).map_err(failed)?;
        read += count as u64;
        if count > 0 {
            (deadline, idle_polls) = (timeout.map(|timeout| Instant::now() + timeout), 0);
            if state.take(&chunk[..count])? == Flow::Stop {
                return Ok(false);
            }
            continue;
        }
        let turn_ended = state.printer.has_ended || (idle_polls > 0 && state.unterminated_line_ends_turn());
        let path_state = path_state(target.file, path).map_err(failed)?;
        // The events of another attempt are in another file, which must be read before the end.
        if (writer_ended && path_state != PathState::Replaced) || (turn_ended && !is_task) {
            return Ok(false);
        }
        match path_state {
            PathState::Removed if !is_task => {
                warnings.push(changed_file(WarningCode::FollowedFileChanged, "removed"));
                return Ok(false);
            }
            PathState::Replaced => {
                if !is_task {
                    warnings.push(changed_file(WarningCode::FollowedFileChanged, "replaced"));
                } else if read > 0 {
                    warnings.extend(state.restart()?);
                }
                *target.file = File::open(path).map_err(failed)?;
                (watch, read) = (GrowthWatch::on(path).map_err(failed)?, 0);
            }
            // Rescuing the task truncated an incomplete last line; everything before it was already printed.
            PathState::SameFile if is_task && was_truncated(target.file, read).map_err(failed)? => {
                read = target.file.seek(SeekFrom::End(0)).map_err(failed)?;
            }
            PathState::SameFile if was_truncated(target.file, read).map_err(failed)? => {
                warnings.push(changed_file(WarningCode::FollowedFileChanged, "truncated"));
                read = target.file.seek(SeekFrom::Start(0)).map_err(failed)?;
            }
            PathState::Removed | PathState::SameFile => {
                idle_polls += 1;
                if watch.wait(deadline).map_err(failed)? == GrowthWait::TimedOut {
                    return Ok(true);
                }
            }
        }
    }
}

impl<'a> FollowState<'a> {
    fn new(context: &'a Context<'a>, working_dir: Option<String>, source: &Source) -> Result<Self, AppError> {
        let (dialect, thread) = (source.dialect(context)?, source.thread()?);
        let options = FoldOptions { workdir: working_dir, dialect, thread, ..FoldOptions::default() };
        Ok(FollowState::with_options(context, options))
    }

    fn with_options(context: &'a Context<'a>, options: FoldOptions) -> Self {
        let normalize_options = NormalizeOptions { dialect: options.dialect, ..NormalizeOptions::default() };
        let normalizer = Normalizer::new(normalize_options, LineLimits::STANDARD);
        let normalizer = normalizer.with_thread(options.thread.clone());
        let presentation = context.screen.presentation;
        let items = presentation.items();
        let printer = LinePrinter {
            summarizer: LineSummarizer::new(options.clone()),
            headlines: Headlines::default(),
            has_ended: false,
            style: (items == ItemFormat::Text).then(|| presentation.body_style()),
            working_dir: options.workdir.clone(),
        };
        FollowState {
            context,
            framer: Framer::new(LineLimits::STANDARD),
            printer,
            options,
            normalizer: (items == ItemFormat::Json).then_some(normalizer),
            tail: Some(Vec::new()),
        }
    }

    /// Forgets the events so far: those of a new attempt follow.
    fn restart(&mut self) -> Result<Option<Warning>, AppError> {
        *self = FollowState::with_options(self.context, self.options.clone());
        if self.normalizer.is_some() {
            return Ok(Some(Warning::new(WarningCode::TaskRestarted, RESTARTED)));
        }
        self.context.screen.write_lines(format!("{RESTARTED}\n").as_bytes())?;
        Ok(None)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Flow, AppError> {
        self.update_tail(bytes);
        let mut out = Vec::new();
        if let Some(normalizer) = &mut self.normalizer {
            normalizer.push(bytes, &mut out);
        }
        self.framer.push(bytes, |line| self.printer.print(&line, &mut out));
        self.context.screen.write_lines(&out)
    }

    fn update_tail(&mut self, bytes: &[u8]) {
        let after_newline = match memchr::memrchr(b'\n', bytes) {
            Some(at) => {
                self.tail = Some(Vec::new());
                &bytes[at + 1..]
            }
            None => bytes,
        };
        if let Some(tail) = &mut self.tail {
            tail.extend_from_slice(after_newline);
        }
        // A line that ends a turn is short; a longer one is another event.
        if self.tail.as_ref().is_some_and(|tail| tail.len() > MAX_TURN_END_BYTES) {
            self.tail = None;
        }
    }

    /// Whether the last line, without a newline, is complete and ends the turn: some writers omit the final
    /// newline.
    fn unterminated_line_ends_turn(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| {
            let mut lookahead = LineSummarizer::new(FoldOptions::default());
            let mut framer = Framer::new(LineLimits::STANDARD);
            let mut ended = false;
            framer.push(tail, |_| {});
            framer.finish(|line| ended = lookahead.push_line(&line).turn_ended || ended);
            ended
        })
    }

    fn finish(&mut self) -> Result<(), AppError> {
        let mut out = Vec::new();
        if let Some(normalizer) = self.normalizer.take() {
            normalizer.finish(&mut out);
        }
        self.framer.finish(|line| self.printer.print(&line, &mut out));
        self.printer.summarizer.finish();
        self.context.screen.write_lines(&out).map(|_| ())
    }
}

struct LinePrinter {
    summarizer: LineSummarizer,
    headlines: Headlines,
    /// Whether the agent's turn has ended, as far as was read.
    has_ended: bool,
    /// `None` if the output is not text.
    style: Option<TextStyle>,
    working_dir: Option<String>,
}

impl LinePrinter {
    fn print(&mut self, line: &Line<'_>, out: &mut Vec<u8>) {
        let effects = self.summarizer.push_line_with(line, |effect| {
            if let (Effect::Emit(event), Some(style)) = (effect, self.style) {
                let line = self.headlines.line(event, self.working_dir.as_deref());
                out.extend_from_slice(style.wrap_indented(&line, 2).as_bytes());
                out.push(b'\n');
            }
        });
        if effects.is_activity {
            // In the idle dialect the agent waits for the next message after its turn.
            self.has_ended = effects.turn_ended && self.summarizer.dialect() != Some(Dialect::Idle);
        }
        self.has_ended |= effects.done;
    }
}
