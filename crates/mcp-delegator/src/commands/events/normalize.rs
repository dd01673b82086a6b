//! `events normalize`: any dialect as Codex's JSONL.

use delegator_transcript::{LineLimits, NormalizeOptions, NormalizeSummary, Normalizer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{SOURCE_FAILURES, TranscriptInput};
use crate::error::AppError;
use crate::outcome::{CommandOutput, Warning};
use crate::run::Context;
use crate::screen::{Flow, ItemFormat};
use crate::spec::{CommandSpec, Danger, Example, OutputSchema, RawOutput, Shape, Toolset, run_typed};
use crate::transcript_source::Source;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Normalize {
    #[serde(flatten)]
    pub transcript: TranscriptInput,
    /// Leave out fields the dialect does not name, and an exit code of null
    #[serde(default)]
    pub strict: bool,
    /// Pass lines through that have no place in the dialect
    #[serde(default)]
    pub keep_unknown: bool,
}

/// What was done, where the lines themselves went elsewhere or into `events`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Normalized {
    /// thread, idle, protocol or rollout; null when no line was recognised.
    pub dialect: Option<Value>,
    pub lines_read: u64,
    pub lines_written: u64,
    /// Lines of another dialect than the stream's.
    pub mixed_dialect_lines: u64,
    /// Over-long lines, of which the beginning and the end were kept.
    pub shortened_lines: u64,
    pub last_line_unterminated: bool,
    /// Lines without a place in the dialect, by reason.
    pub no_place: Value,
    /// The events, where the answer comes as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Value>>,
}

/// How many bytes of events one envelope takes before the rest is only counted.
const MAX_COLLECTED_BYTES: usize = 4 * 1024 * 1024;

pub const SPEC: CommandSpec = CommandSpec {
    details: "Reads Codex's exec streams of any version, its session files and the idle dialect, and writes one event a line. Lines with no place in the dialect are counted on stderr.",
    shape: Shape::Show("transcript"),
    danger: Danger::Safe,
    idempotent: true,
    open_ended: true,
    raw: RawOutput::Always,
    toolset: Toolset::Extra,
    failures: SOURCE_FAILURES,
    examples: &[
        Example {
            command: "mcp-delegator events normalize session.jsonl > events.jsonl",
            shows: "the events of a session",
        },
        Example {
            command: "codex exec --json … | mcp-delegator events normalize --strict",
            shows: "only what the contract names",
        },
    ],
    output: OutputSchema::Type(crate::spec::input_schema::schema_of::<Normalized>),
    run: Some(|context, input| run_typed(context, input, run)),
    ..CommandSpec::declare::<Normalize>(
        &["events", "normalize"],
        "Write a transcript in Codex's JSONL dialect",
    )
};

fn run(context: &Context<'_>, input: Normalize) -> Result<CommandOutput, AppError> {
    let mut source = Source::open(context, input.transcript.source.as_deref())?;
    let bar = context.screen.progress(source.size());
    let options = NormalizeOptions { strict: input.strict, keep_unknown: input.keep_unknown };
    let mut normalizer = Normalizer::new(options, LineLimits::STANDARD);
    let streams = context.screen.presentation.items() != ItemFormat::Collected;
    let (mut out, mut collected) = (Vec::new(), Vec::new());
    source.read_all(|bytes| {
        bar.inc(bytes.len() as u64);
        normalizer.push(bytes, &mut out);
        if !streams {
            collect(&mut collected, &mut out);
            return Ok(true);
        }
        let flow = context.screen.write_lines(&out)?;
        out.clear();
        Ok(flow == Flow::Continue)
    })?;
    let summary = normalizer.finish(&mut out);
    bar.finish_and_clear();
    if streams {
        context.screen.write_lines(&out)?;
        return Ok(answer(&summary, None));
    }
    collect(&mut collected, &mut out);
    let complete = collected.len() < MAX_COLLECTED_BYTES;
    let events: Vec<Value> =
        collected.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let mut answer = answer(&summary, Some(events));
    if !complete {
        let message =
            "Only the first events are here; without --format json all of them are written, line by line.";
        answer.warnings.push(Warning::new("W_TRUNCATION_001", message));
    }
    Ok(answer)
}

/// Moves what was written into the collection, as far as there is room.
fn collect(collected: &mut Vec<u8>, out: &mut Vec<u8>) {
    let available = MAX_COLLECTED_BYTES.saturating_sub(collected.len()).min(out.len());
    collected.extend_from_slice(&out[..available]);
    out.clear();
}

fn answer(summary: &NormalizeSummary, events: Option<Vec<Value>>) -> CommandOutput {
    let data = Normalized {
        dialect: summary.dialect.map(|dialect| json!(dialect)),
        lines_read: summary.lines_read,
        lines_written: summary.lines_written,
        mixed_dialect_lines: summary.mixed_lines,
        shortened_lines: summary.shortened,
        last_line_unterminated: summary.unterminated,
        no_place: json!(summary.no_place),
        events,
    };
    let mut answer = CommandOutput::done(json!(data)).raw(String::new());
    answer.warnings = warnings(summary);
    answer
}

fn warnings(summary: &NormalizeSummary) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if summary.lost_lines() > 0 {
        let reasons: Vec<String> = summary
            .no_place
            .iter()
            .filter(|(reason, _)| reason.is_lost())
            .map(|(reason, count)| {
                format!("{count} {}", json!(reason).as_str().unwrap_or_default().replace('_', " "))
            })
            .collect();
        let message = format!(
            "{} of {} lines have no place here: {}.",
            summary.lost_lines(),
            summary.lines_read,
            reasons.join(", ")
        );
        warnings.push(Warning::new("W_EVENTS_001", message));
    }
    if summary.dialect.is_none() {
        let message = if summary.lines_read == 0 {
            "The transcript is empty."
        } else {
            "No line was recognised as an agent's."
        };
        warnings.push(Warning::new("W_EVENTS_002", message));
    }
    if summary.shortened > 0 {
        let message =
            format!("{} over-long lines were shortened to their beginning and end.", summary.shortened);
        warnings.push(Warning::new("W_EVENTS_003", message));
    }
    if !summary.warnings.is_empty() {
        let first = json!(summary.warnings[0]);
        let message = format!("{} oddities, the first: {first}", summary.warnings.len());
        warnings.push(Warning::new("W_EVENTS_004", message));
    }
    warnings
}
