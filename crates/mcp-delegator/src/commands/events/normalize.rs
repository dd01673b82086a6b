//! `events normalize`: convert a transcript of any dialect to Codex exec events.

use delegator_transcript::{LineLimits, NormalizeOptions, NormalizeSummary, Normalizer};

use crate::commands::events::source::Source;
use crate::commands::events::{SOURCE_FAILURES, TranscriptInput};
use crate::commands::prelude::*;
use crate::output::presentation::ItemFormat;
use crate::output::screen::Flow;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Normalize {
    #[serde(flatten)]
    pub transcript: TranscriptInput,
    /// Write only what Codex's schema defines; omit the rest and count it
    #[serde(default)]
    pub strict: bool,
    /// Keep lines that cannot be converted
    #[serde(default)]
    pub keep_unknown: bool,
}

/// Summary of the conversion. The lines themselves are printed, or in `events`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Normalized {
    /// thread, idle, protocol or rollout; null if no line was recognised.
    pub dialect: Option<Value>,
    pub read_line_count: u64,
    pub written_line_count: u64,
    /// Lines of a dialect other than that of the stream.
    pub mixed_dialect_line_count: u64,
    /// Lines that were too long and were truncated to their beginning and end.
    pub shortened_line_count: u64,
    pub is_last_line_unterminated: bool,
    /// Lines that could not be converted, by reason.
    pub no_place: Value,
    /// The events, if they are not printed line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Value>>,
}

/// Maximum bytes of events in one envelope; further events are only counted.
const MAX_COLLECTED_BYTES: usize = 4 * 1024 * 1024;

pub const SPEC: CommandSpec = CommandSpec {
    details: "Reads Codex exec events of any version, session files and the idle dialect, and writes one event per line. Lines that cannot be converted are counted on stderr.",
    shape: Shape::Show("transcript"),
    open_ended: true,
    raw: RawOutput::Always,
    failures: SOURCE_FAILURES,
    examples: &[
        example("mcp-delegator events normalize session.jsonl > events.jsonl", "the events of a session"),
        example(
            "codex exec --json … | mcp-delegator events normalize --strict",
            "only what the schema defines",
        ),
    ],
    ..CommandSpec::read_only::<Normalize, Normalized>(
        &["events", "normalize"],
        "Convert a transcript to Codex's JSONL events",
    )
};

pub fn run(context: &Context<'_>, input: Normalize) -> Result<CommandOutput, AppError> {
    let mut source = Source::open(context, input.transcript.source.as_deref())?;
    let bar = context.screen.progress(source.size());
    let dialect = source.dialect(context)?;
    let options = NormalizeOptions { strict: input.strict, keep_unknown: input.keep_unknown, dialect };
    let mut normalizer = Normalizer::new(options, LineLimits::STANDARD).with_thread(source.thread()?);
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
    let mut summary = normalizer.finish(&mut out);
    bar.finish_and_clear();
    if streams {
        context.screen.write_lines(&out)?;
        return Ok(command_output(&summary, None));
    }
    collect(&mut collected, &mut out);
    // Only whole lines: what follows the last line end is incomplete.
    let events: Vec<Value> = collected
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let not_included = summary.lines_written.saturating_sub(events.len() as u64);
    summary.lines_written = events.len() as u64;
    let mut output = command_output(&summary, Some(events));
    if not_included > 0 {
        let message = format!(
            "{not_included} lines are not in `events`: they are not JSON, or exceed 4 MiB in total. Omit --format json to print all of them, line by line."
        );
        output.warnings.push(Warning::new(WarningCode::Truncated, message));
    }
    Ok(output)
}

fn collect(collected: &mut Vec<u8>, out: &mut Vec<u8>) {
    let available = MAX_COLLECTED_BYTES.saturating_sub(collected.len()).min(out.len());
    collected.extend_from_slice(&out[..available]);
    out.clear();
}

impl CommandData for Normalized {}

fn command_output(summary: &NormalizeSummary, events: Option<Vec<Value>>) -> CommandOutput {
    let data = Normalized {
        dialect: summary.dialect.map(|dialect| json!(dialect)),
        read_line_count: summary.lines_read,
        written_line_count: summary.lines_written,
        mixed_dialect_line_count: summary.mixed_lines,
        shortened_line_count: summary.shortened,
        is_last_line_unterminated: summary.unterminated,
        no_place: json!(summary.no_place),
        events,
    };
    CommandOutput::done(data).raw(String::new()).warn(warnings(summary))
}

fn warnings(summary: &NormalizeSummary) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, message: String| warnings.push(Warning::new(code, message));
    let (lost, read) = (summary.lost_lines(), summary.lines_read);
    if lost > 0 {
        let reasons = summary.no_place.iter().filter(|(reason, _)| reason.is_lost());
        let reasons: Vec<String> = reasons
            .map(|(reason, count)| {
                format!("{count} {}", json!(reason).as_str().unwrap_or_default().replace('_', " "))
            })
            .collect();
        let message = format!("{lost} of {read} lines could not be converted: {}.", reasons.join(", "));
        warn(WarningCode::LinesIgnored, message);
    }
    if summary.dialect.is_none() {
        let unknown = "No line was recognised as an agent event.";
        let message = if read == 0 { "The transcript is empty." } else { unknown };
        warn(WarningCode::NoEvents, message.to_owned());
    }
    if summary.shortened > 0 {
        let text = "lines were too long and were truncated to their beginning and end.";
        warn(WarningCode::LinesTooLong, format!("{} {text}", summary.shortened));
    }
    if let [first, ..] = summary.warnings.as_slice() {
        let message = format!("{} anomalies; the first: {}", summary.warnings.len(), json!(first));
        warn(WarningCode::Anomalies, message);
    }
    warnings
}
