//! Writes any dialect as Codex exec events, in JSONL.
//!
//! A Codex exec event is written with the bytes it was read with, including unknown fields; only repeated keys of an
//! object are dropped (Codex writes two `id`s into web-search items), and the first one remains. Lines of other
//! dialects are written as the events they translate to. A line without a counterpart is counted with the reason, and
//! passed through if `keep_unknown` is set.
//!
//! `strict` drops every undocumented field and an `exit_code` of null. An over-long line is rewritten from its stored
//! parts, with a mark where text is missing, and counted as shortened.

mod long_lines;
mod strict;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::Event;
use crate::framer::{Framer, Line, LineLimits, LineText};
use crate::json::unique::without_repeated_keys;
use crate::map::{Dialect, Effect, MapWarning, Translator, UnmappedReason};

#[derive(Clone, Copy, Debug, Default)]
pub struct NormalizeOptions {
    /// Drop undocumented fields.
    pub strict: bool,
    /// Pass through lines that have no counterpart.
    pub keep_unknown: bool,
    /// The dialect, if the lines do not show it.
    pub dialect: Option<Dialect>,
}

/// Statistics of a normalised stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NormalizeSummary {
    /// The dialect of the stream; absent if no line was recognised.
    pub dialect: Option<Dialect>,
    pub lines_read: u64,
    pub lines_written: u64,
    /// Lines of a dialect other than the stream's.
    pub mixed_lines: u64,
    /// Over-long lines that were rewritten.
    pub shortened: u64,
    /// Whether the last line had no line end.
    pub unterminated: bool,
    /// Lines without a counterpart, by reason.
    pub no_place: BTreeMap<UnmappedReason, u64>,
    /// Irregularities of the stream, at most 100.
    pub warnings: Vec<MapWarning>,
}

impl NormalizeSummary {
    /// Number of lines whose content is missing in the output; callers should report it to the user.
    pub fn lost_lines(&self) -> u64 {
        self.no_place.iter().filter(|(reason, _)| reason.is_lost()).map(|(_, count)| count).sum()
    }
}

const MAX_WARNINGS: usize = 100;

/// Normalises one stream.
#[derive(Debug, Default)]
pub struct Normalizer {
    options: NormalizeOptions,
    framer: Framer,
    lines: LineNormalizer,
}

#[derive(Debug, Default)]
struct LineNormalizer {
    translator: Translator,
    summary: NormalizeSummary,
}

impl Normalizer {
    /// Creates a normaliser for a new stream.
    pub fn new(options: NormalizeOptions, limits: LineLimits) -> Self {
        Self { options, framer: Framer::new(limits), lines: LineNormalizer::new(options) }
    }

    /// Processes the next bytes and appends the resulting lines to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Self { options, framer, lines } = self;
        framer.push(bytes, |line| lines.push_line(*options, &line, out));
    }

    /// Ends the stream and returns its statistics.
    pub fn finish(mut self, out: &mut Vec<u8>) -> NormalizeSummary {
        let Self { options, framer, lines } = &mut self;
        framer.finish(|line| lines.push_line(*options, &line, out));
        let mut summary = std::mem::take(&mut lines.summary);
        summary.dialect = lines.translator.dialect();
        summary.mixed_lines = lines.translator.mixed_lines();
        summary.lines_read = framer.lines();
        summary
    }
}

impl LineNormalizer {
    fn new(options: NormalizeOptions) -> Self {
        Self { translator: Translator::new(options.dialect), summary: NormalizeSummary::default() }
    }

    fn push_line(&mut self, options: NormalizeOptions, line: &Line<'_>, out: &mut Vec<u8>) {
        let text = line.text();
        let event = self.translator.decode(line, &text);
        self.summary.unterminated |= !line.terminated;
        let original = match (&event, &text) {
            (Event::Thread(_), LineText::Whole(text)) => Some(text.trim_ascii()),
            _ => None,
        };
        let summary = &mut self.summary;
        self.translator.translate(event, &mut |effect| match effect {
            Effect::Emit(event) => {
                let start = out.len();
                match original {
                    Some(line) => out.extend_from_slice(line.as_bytes()),
                    None => write::event(&event, &text, out),
                }
                if options.strict {
                    let line = out.split_off(start);
                    strict::write_named_fields(&line, out);
                }
                end_line(start, out);
                summary.lines_written += 1;
                summary.shortened += u64::from(line.is_truncated());
            }
            Effect::Unmapped(reason) => {
                *summary.no_place.entry(reason).or_default() += 1;
                if options.keep_unknown && reason.is_lost() {
                    let start = out.len();
                    long_lines::write_unmapped(line, &text, reason, out);
                    end_line(start, out);
                    summary.lines_written += 1;
                    summary.shortened += u64::from(line.is_truncated());
                }
            }
            Effect::Warn(warning) if summary.warnings.len() < MAX_WARNINGS => summary.warnings.push(warning),
            Effect::Warn(_) | Effect::Usage(_) | Effect::Interrupted | Effect::Idle | Effect::Done => {}
        });
    }
}

/// Ends the line that begins at `start`. Every line passes through here, so no written object has a repeated key,
/// whether the line was copied or contains values from a session file.
fn end_line(start: usize, out: &mut Vec<u8>) {
    let written = out.get(start..).and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    if let Cow::Owned(unique) = without_repeated_keys(written) {
        out.truncate(start);
        out.extend_from_slice(unique.as_bytes());
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
