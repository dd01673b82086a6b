//! `events follow`: a transcript as it is written.
//!
//! What is there is shown at once, then whatever comes. Following ends with what it follows: when the agent's turn is
//! over and nothing has come after it, at the end of standard input, when the file is removed, or when the caller's
//! time is up.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_engine::Engine;
use delegator_transcript::{
    Account, Dialect, Effect, FoldOptions, Framer, Line, LineLimits, NormalizeOptions, Normalizer, headline,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::TranscriptInput;
use super::summary::{self, Summary};
use crate::fault::{AppError, ErrorCode, io_error};
use crate::outcome::{Answer, Completion, Parting, Warning};
use crate::registry::{CommandSpec, Danger, Example, OutputSchema, Shape, Toolset, typed};
use crate::run::Context;
use crate::screen::{Flow, Items};
use crate::tail::{GrowthWatch, Name, Waited, name_of, was_cut};
use crate::transcript_source::Source;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Follow {
    #[serde(flatten)]
    pub transcript: TranscriptInput,
    /// Give up after this many seconds without anything new (default never)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout_sec: Option<u32>,
    /// Where the agent works: paths below it are shown relative to it
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Shows what is there, then what comes, until the agent's turn is over. In a pipe: one event a line, then a last line with the summary.",
    shape: Shape::Show("transcript"),
    danger: Danger::Safe,
    idempotent: true,
    open_ended: true,
    streams: true,
    toolset: Toolset::Hidden,
    failures: &[
        ErrorCode::NotFound,
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::PermissionDenied,
        ErrorCode::Incomplete,
    ],
    examples: &[
        Example {
            command: "mcp-delegator events follow events.jsonl",
            shows: "a line of words for each event",
        },
        Example { command: "codex exec --json … | mcp-delegator events follow", shows: "the same, live" },
    ],
    output: OutputSchema::Type(crate::registry::input_schema::schema_of::<Summary>),
    describe: summary::describe,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<Follow>(&["events", "follow"], "Show events as they are written")
};

/// A line that ends a turn is not longer than this.
const LONGEST_END: usize = 64 * 1024;

/// Lines in, lines out: the state between two reads.
struct Following<'a> {
    context: &'a Context<'a>,
    working_dir: Option<String>,
    framer: Framer,
    account: Account,
    /// Writes the events where programs read them.
    normalizer: Option<Normalizer>,
    /// What came after the last line end, while it is short.
    tail: Option<Vec<u8>>,
    /// The agent's turn is over, as far as was read.
    ended: bool,
}

fn run(context: &Context<'_>, input: Follow) -> Result<Answer, AppError> {
    let mut following = Following::new(context, input.working_dir.clone());
    let mut source = Source::open(context, input.transcript.source.as_deref())?;
    let mut warnings = Vec::new();
    let expired = match &mut source {
        Source::File { file, name, task }
            if task.is_some() || file.metadata().is_ok_and(|meta| meta.is_file()) =>
        {
            let patience = input.timeout_sec.map(|seconds| Duration::from_secs(seconds.into()));
            let followed = Followed { file, path: Path::new(name), task: task.as_ref() };
            follow_file(&mut following, followed, patience, &mut warnings)?
        }
        // Standard input, or a pipe with a name: its end is the end.
        stream => {
            read_pieces(&mut following, stream)?;
            false
        }
    };
    // What has not ended is told as it stands.
    if !expired {
        following.finish()?;
    }
    let report = following.account.report();
    let data = json!(Summary::of(&report, input.working_dir.as_deref()));
    let mut answer = Answer::new(match expired {
        true => Completion::Incomplete(data, Parting::TimeIsUp(None)),
        false => Completion::Done(data),
    });
    answer.warnings = warnings;
    answer.warnings.extend(summary::remarks(&report));
    Ok(answer)
}

fn read_pieces(following: &mut Following<'_>, stream: &mut Source) -> Result<(), AppError> {
    stream.read_all(|bytes| Ok(following.take(bytes)? == Flow::GoOn))
}

/// What is followed.
struct Followed<'a> {
    file: &'a mut File,
    path: &'a Path,
    /// The task that writes it: its end is the end.
    task: Option<&'a (Engine, TaskId)>,
}

impl Followed<'_> {
    fn writer_has_ended(&self) -> Result<bool, AppError> {
        match self.task {
            Some((engine, id)) => Ok(engine.task(id)?.state.is_terminal()),
            None => Ok(false),
        }
    }
}

/// Whether the caller's time ran out first.
fn follow_file(
    following: &mut Following<'_>,
    followed: Followed<'_>,
    patience: Option<Duration>,
    warnings: &mut Vec<Warning>,
) -> Result<bool, AppError> {
    let is_task = followed.task.is_some();
    let path = followed.path;
    let failed = |error: std::io::Error| io_error(&format!("Following {}", path.display()), &error);
    // Watched before it is read: what comes in between is not missed.
    let mut watch =
        GrowthWatch::on(if path.exists() { path } else { path.parent().unwrap_or(path) }).map_err(failed)?;
    let mut deadline = patience.map(|patience| Instant::now() + patience);
    let (mut chunk, mut read, mut looks) = (vec![0; 64 * 1024], 0_u64, 0_u32);
    loop {
        // Asked before reading: what a task wrote before it ended is then read for certain.
        let over = looks > 0 && followed.writer_has_ended()?;
        let count = followed.file.read(&mut chunk).map_err(failed)?;
        read += count as u64;
        if count > 0 {
            (deadline, looks) = (patience.map(|patience| Instant::now() + patience), 0);
            if following.take(&chunk[..count])? == Flow::Stop {
                return Ok(false);
            }
            continue;
        }
        let turn_is_over = following.ended || (looks > 0 && following.ends_with_what_is_there());
        if over || (turn_is_over && !is_task) {
            return Ok(false);
        }
        match name_of(followed.file, path).map_err(failed)? {
            Name::Gone if is_task => {
                looks += 1;
                if watch.wait(deadline).map_err(failed)? == Waited::TimeIsUp {
                    return Ok(true);
                }
            }
            Name::Gone => {
                warnings.push(Warning::new("W_EVENTS_006", "The file was removed while it was followed."));
                return Ok(false);
            }
            Name::Another => {
                if !is_task {
                    warnings
                        .push(Warning::new("W_EVENTS_007", "The file was replaced while it was followed."));
                }
                *followed.file = File::open(path).map_err(failed)?;
                (watch, read) = (GrowthWatch::on(path).map_err(failed)?, 0);
            }
            // Whoever found a task without its supervisor has cut half a last line; the rest was told.
            Name::Same if is_task && was_cut(followed.file, read).map_err(failed)? => {
                read = followed.file.seek(SeekFrom::End(0)).map_err(failed)?;
            }
            Name::Same if was_cut(followed.file, read).map_err(failed)? => {
                warnings.push(Warning::new("W_EVENTS_007", "The file was begun anew while it was followed."));
                read = followed.file.seek(SeekFrom::Start(0)).map_err(failed)?;
            }
            Name::Same => {
                looks += 1;
                if watch.wait(deadline).map_err(failed)? == Waited::TimeIsUp {
                    return Ok(true);
                }
            }
        }
    }
}

impl<'a> Following<'a> {
    fn new(context: &'a Context<'a>, working_dir: Option<String>) -> Self {
        let options = FoldOptions { workdir: working_dir.clone(), usage_before: None };
        let for_programs = context.screen.presentation.items() == Items::Json;
        Following {
            context,
            working_dir,
            framer: Framer::new(LineLimits::STANDARD),
            account: Account::new(options),
            normalizer: for_programs
                .then(|| Normalizer::new(NormalizeOptions::default(), LineLimits::STANDARD)),
            tail: Some(Vec::new()),
            ended: false,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Flow, AppError> {
        self.remember_tail(bytes);
        let mut out = Vec::new();
        if let Some(normalizer) = &mut self.normalizer {
            normalizer.push(bytes, &mut out);
        }
        let mut teller = Teller { account: &mut self.account, ended: &mut self.ended };
        let working_dir = self.working_dir.as_deref();
        let in_words = self.context.screen.presentation.items() == Items::Text;
        self.framer.push(bytes, |line| teller.tell(&line, in_words.then_some(&mut out), working_dir));
        self.context.screen.lines(&out)
    }

    fn remember_tail(&mut self, bytes: &[u8]) {
        let rest = match memchr::memrchr(b'\n', bytes) {
            Some(at) => {
                self.tail = Some(Vec::new());
                &bytes[at + 1..]
            }
            None => bytes,
        };
        if let Some(tail) = &mut self.tail {
            tail.extend_from_slice(rest);
        }
        // A turn's end is short; what is longer is something else.
        if self.tail.as_ref().is_some_and(|tail| tail.len() > LONGEST_END) {
            self.tail = None;
        }
    }

    /// Whether the last line, which has no line end yet, is whole and ends the turn: some writers never write one.
    fn ends_with_what_is_there(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| {
            let mut ahead = Account::new(FoldOptions::default());
            let mut framer = Framer::new(LineLimits::STANDARD);
            let mut ended = false;
            framer.push(tail, |_| {});
            framer.finish(|line| ended = ahead.line(&line).turn_ended || ended);
            ended
        })
    }

    fn finish(&mut self) -> Result<(), AppError> {
        let mut out = Vec::new();
        if let Some(normalizer) = self.normalizer.take() {
            normalizer.finish(&mut out);
        }
        let mut teller = Teller { account: &mut self.account, ended: &mut self.ended };
        let working_dir = self.working_dir.as_deref();
        let in_words = self.context.screen.presentation.items() == Items::Text;
        self.framer.finish(|line| teller.tell(&line, in_words.then_some(&mut out), working_dir));
        self.account.finish();
        self.context.screen.lines(&out).map(|_| ())
    }
}

/// Tells one line after the other, and notices the end.
struct Teller<'a> {
    account: &'a mut Account,
    ended: &'a mut bool,
}

impl Teller<'_> {
    fn tell(&mut self, line: &Line<'_>, mut out: Option<&mut Vec<u8>>, working_dir: Option<&str>) {
        let seen = self.account.line_with(line, |effect| {
            if let (Effect::Emit(event), Some(out)) = (effect, &mut out) {
                out.extend_from_slice(headline(event, working_dir).as_bytes());
                out.push(b'\n');
            }
        });
        if seen.is_activity {
            // An idle agent has ended a turn but waits for the next message.
            *self.ended = seen.turn_ended && self.account.dialect() != Some(Dialect::Idle);
        }
        *self.ended |= seen.done;
    }
}
