//! Writes any dialect as Codex exec events, in JSONL.
//!
//! A Codex exec event keeps its bytes; only repeated keys of an object are dropped. Lines of other dialects
//! are written as the events they translate to. A line without a counterpart is counted, and passed through
//! if `keep_unknown` is set. An event that the documentation does not allow gets the field [`MARK`] with the
//! reason; with `strict`, it is written in the documented form, or left out and counted. An over-long line is
//! rewritten from its stored parts, and counted.

mod long_lines;
mod strict;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::decode::Event;
use crate::event::ThreadEvent;
use crate::framer::{Framer, Line, LineLimits, LineText};
use crate::json::Object;
use crate::json::unique::without_repeated_keys;
use crate::json::write::plain_string;
use crate::map::{AssumedThread, Dialect, Effect, MapWarning, Translator, UnmappedReason};
use strict::Deviation;
pub use strict::MARK;

#[derive(Clone, Copy, Debug, Default)]
pub struct NormalizeOptions {
    /// Write only what is documented.
    pub strict: bool,
    /// Pass through lines that have no counterpart.
    pub keep_unknown: bool,
    /// The dialect, if the lines do not show it.
    pub dialect: Option<Dialect>,
}

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
    pub warnings: Vec<MapWarning>,
}

impl NormalizeSummary {
    /// Number of lines whose content is missing in the output; callers should report it to the user.
    pub fn lost_lines(&self) -> u64 {
        self.no_place.iter().filter(|(reason, _)| reason.is_lost()).map(|(_, count)| count).sum()
    }
}

const MAX_WARNINGS: usize = 100;

#[derive(Debug)]
pub struct Normalizer {
    framer: Framer,
    lines: LineNormalizer,
}

#[derive(Debug)]
struct LineNormalizer {
    options: NormalizeOptions,
    translator: Translator,
    summary: NormalizeSummary,
    documented: Vec<u8>,
}

impl Normalizer {
    pub fn new(options: NormalizeOptions, limits: LineLimits) -> Self {
        let lines = LineNormalizer {
            options,
            translator: Translator::new(options.dialect).announcing(AssumedThread::Derived),
            summary: NormalizeSummary::default(),
            documented: Vec::new(),
        };
        Self { framer: Framer::new(limits), lines }
    }

    /// The thread that `thread.started` names if the dialect has none. Without this call, it is derived from
    /// the stream.
    pub fn with_thread(mut self, thread: AssumedThread) -> Self {
        self.lines.translator = self.lines.translator.announcing(thread);
        self
    }

    /// Processes the next bytes and appends the resulting lines to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Self { framer, lines } = self;
        framer.push(bytes, |line| lines.push_line(&line, out));
    }

    pub fn finish(self, out: &mut Vec<u8>) -> NormalizeSummary {
        let Self { mut framer, mut lines } = self;
        framer.finish(|line| lines.push_line(&line, out));
        let LineNormalizer { translator, summary, .. } = &mut lines;
        translator.finish(&mut |effect| {
            if let Effect::Emit(event) = effect {
                write::event(&event, &LineText::Whole(Cow::Borrowed("")), out);
                out.push(b'\n');
                summary.lines_written += 1;
            }
        });
        NormalizeSummary {
            dialect: lines.translator.dialect(),
            mixed_lines: lines.translator.mixed_lines(),
            lines_read: framer.lines(),
            ..lines.summary
        }
    }
}

impl LineNormalizer {
    fn push_line(&mut self, line: &Line<'_>, out: &mut Vec<u8>) {
        let text = line.text();
        let event = self.translator.decode(line, &text);
        self.summary.unterminated |= !line.terminated;
        let original = match (&event, &text) {
            (Event::Thread(_), LineText::Whole(text)) => Some(text.trim_ascii()),
            _ => None,
        };
        let Self { options, translator, summary, documented } = self;
        let written_before = summary.lines_written;
        translator.translate(event, &mut |effect| match effect {
            Effect::Emit(event) => {
                let written = match original {
                    Some(line) => without_repeated_keys(line),
                    None => Cow::Owned(written_event(&event, &text)),
                };
                documented.clear();
                let id = match &event {
                    ThreadEvent::Item { item, .. } => Some(&item.id),
                    _ => None,
                };
                let checked = strict::write_documented(&written, id, documented).or_else(|deviation| {
                    documented.clear();
                    let is_other_spelling = original.is_some_and(|line| is_other_spelling(&event, line));
                    let decoded = is_other_spelling.then(|| written_event(&event, &text)).ok_or(deviation)?;
                    strict::write_documented(&decoded, id, documented).map(|_| Some(deviation))
                });
                match (options.strict, checked) {
                    (true, Ok(_)) => out.extend_from_slice(documented),
                    (false, Ok(None)) => out.extend_from_slice(written.as_bytes()),
                    (false, Ok(Some(deviation)) | Err(deviation)) => write_marked(&written, deviation, out),
                    (true, Err(deviation)) => {
                        *summary.no_place.entry(deviation.into()).or_default() += 1;
                        if !options.keep_unknown {
                            return;
                        }
                        write_marked(&written, deviation, out);
                    }
                }
                out.push(b'\n');
                summary.lines_written += 1;
            }
            Effect::Unmapped(reason) => {
                *summary.no_place.entry(reason).or_default() += 1;
                if options.keep_unknown && reason.is_lost() {
                    let unmapped = long_lines::unmapped(line, &text, reason);
                    out.extend_from_slice(without_repeated_keys(&unmapped).as_bytes());
                    out.push(b'\n');
                    summary.lines_written += 1;
                }
            }
            Effect::Warn(warning) if summary.warnings.len() < MAX_WARNINGS => summary.warnings.push(warning),
            Effect::Warn(_) | Effect::Usage(_) | Effect::UsageBefore(_) | Effect::Cost(_) => {}
            Effect::LimitReset(_) => {}
            Effect::Interrupted | Effect::Idle | Effect::Done => {}
        });
        summary.shortened += u64::from(line.is_truncated() && summary.lines_written > written_before);
    }
}

/// Whether an event whose line is not documented says the same as a documented one: an error as plain text,
/// or the end of a turn without usage. Any other invalid field would have to be invented.
fn is_other_spelling(event: &ThreadEvent<'_>, line: &str) -> bool {
    match event {
        ThreadEvent::TurnFailed { error } => !error.message.is_empty(),
        ThreadEvent::Error { message } => !message.is_empty(),
        ThreadEvent::TurnCompleted { .. } => Object::read(line).raw("usage").is_none(),
        ThreadEvent::ThreadStarted { .. } | ThreadEvent::TurnStarted | ThreadEvent::Item { .. } => false,
    }
}

/// Writes a decoded event. Values of a session file may have repeated keys.
fn written_event(event: &ThreadEvent<'_>, source: &LineText<'_>) -> String {
    let mut out = Vec::new();
    write::event(event, source, &mut out);
    let line = String::from_utf8(out).unwrap_or_default();
    match without_repeated_keys(&line) {
        Cow::Owned(unique) => unique,
        Cow::Borrowed(_) => line,
    }
}

/// Appends a line with the mark, which it may already have.
fn write_marked(line: &str, deviation: Deviation, out: &mut Vec<u8>) {
    let before_end = line.strip_suffix('}').filter(|_| Object::read(line).raw(MARK).is_none());
    let Some(before_end) = before_end else { return out.extend_from_slice(line.as_bytes()) };
    out.extend_from_slice(before_end.as_bytes());
    out.push(b',');
    plain_string(out, MARK);
    out.push(b':');
    plain_string(out, deviation.name());
    out.push(b'}');
}

impl From<Deviation> for UnmappedReason {
    fn from(deviation: Deviation) -> Self {
        match deviation {
            Deviation::UnknownItem => Self::UnknownItem,
            Deviation::PatchInProgress => Self::PatchInProgress,
            Deviation::Declined | Deviation::ItemId | Deviation::InvalidField => Self::InvalidField,
        }
    }
}

#[cfg(test)]
mod tests;
