//! Values that several envelopes and documents write the same way: times, durations, problems, escaped JSON.

use std::time::Duration;

use delegator_engine::ExpectedDuration;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{AppError, Problem};

/// A time in our JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("format" = "date-time"))]
pub struct UtcTime(pub String);

impl UtcTime {
    pub fn from_ms(milliseconds: i64) -> UtcTime {
        UtcTime(Timestamp::from_millisecond(milliseconds).map(rfc3339).unwrap_or_default())
    }
}

/// RFC 3339, UTC, milliseconds: the only time format of this program.
pub fn rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Seconds with three decimals, for the standard envelope.
pub(super) fn seconds(duration: Duration) -> f64 {
    f64::from(u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)) / 1000.0
}

pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// JSON that is safe on a terminal: control characters are escaped, which does not change the parsed value.
pub fn json_text(value: &Value) -> String {
    escape_terminal_controls(&value.to_string())
}

/// Escapes characters that control a terminal in serialised JSON.
pub fn escape_terminal_controls(text: &str) -> String {
    let is_control = |letter: char| {
        matches!(letter, '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
    };
    if text.is_ascii() && !text.contains('\u{7f}') {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_control(letter) {
            let mut units = [0; 2];
            escaped.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// Marks a truncated text; its length counts.
const MARK: &str = " [truncated]";

/// Truncates a text to `max_chars`, including the mark.
pub fn truncate_chars(text: &str, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let head: String = text.chars().take(max_chars.saturating_sub(MARK.len())).collect();
    format!("{head}{MARK}")
}

/// The `meta` facts of truncated output, in the unit of its limit.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct TruncationMeta {
    pub truncated: bool,
    pub max_bytes: Option<usize>,
    pub max_characters: Option<usize>,
    pub original_size: usize,
}

/// Adds the fields of `facts` that an object does not have yet.
pub(super) fn add_missing(object: &mut Map<String, Value>, facts: &impl Serialize) {
    if let Value::Object(facts) = json!(facts) {
        for (key, value) in facts {
            object.entry(key).or_insert(value);
        }
    }
}

/// A problem of an input.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProblemData {
    pub field: String,
    pub problem: String,
    pub code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(flatten)]
    pub context: Map<String, Value>,
    pub suggestion: String,
}

pub fn problems(error: &AppError) -> Vec<ProblemData> {
    let data = |problem: &Problem| ProblemData {
        field: problem.field.clone(),
        problem: problem.problem.clone(),
        code: problem.code.facts().agent,
        value: problem.value.clone(),
        context: problem.context.clone(),
        suggestion: problem.advice(),
    };
    error.problems.iter().map(data).collect()
}

const UNITS: [(u64, &str); 3] = [(3_600_000, "hour"), (60_000, "minute"), (1_000, "second")];

/// `5-10 minutes`, `about 1 hour`, `under a second`.
pub fn format_estimate(expected: ExpectedDuration) -> String {
    if expected.to_ms < 1_000 {
        return "under a second".to_owned();
    }
    // The upper end decides; less than two of a unit is shown in the smaller unit.
    let fits = |(unit, _): &&(u64, &str)| expected.to_ms >= unit * 2 || *unit == 1_000;
    let (unit, name) = UNITS.iter().find(fits).copied().unwrap_or((1_000, "second"));
    let rounded = |milliseconds: u64| (milliseconds + unit / 2) / unit;
    let (from, to) = (rounded(expected.from_ms), rounded(expected.to_ms).max(1));
    let plural = if to == 1 { "" } else { "s" };
    match from {
        0 => format!("up to {to} {name}{plural}"),
        same if same == to => format!("about {to} {name}{plural}"),
        from => format!("{from}-{to} {name}s"),
    }
}

pub fn format_duration(milliseconds: u64) -> String {
    format_estimate(ExpectedDuration { from_ms: milliseconds, to_ms: milliseconds })
}

/// Milliseconds for a reader of a table: one number, one unit.
pub fn format_age(milliseconds: i64) -> String {
    match milliseconds.max(0) / 1000 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 2 * 3600 => format!("{} min", seconds / 60),
        seconds if seconds < 48 * 3600 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / (24 * 3600)),
    }
}

/// The same of whole seconds.
pub fn format_age_seconds(seconds: u64) -> String {
    format_age(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
}

/// A number of bytes for a reader, with the largest unit that leaves a number of at least 1.
pub fn format_size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match UNITS.into_iter().find(|(bits, _)| bytes >> bits > 0) {
        Some((bits, unit)) => {
            let tenths = (u128::from(bytes) * 10) >> bits;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_rounded() {
        let minute = 60_000;
        for (from_ms, to_ms, expected) in [
            (3, 900, "under a second"),
            (800, 1_400, "about 1 second"),
            (100, 4_000, "up to 4 seconds"),
            (20_000, 95_000, "20-95 seconds"),
            (5 * minute, 10 * minute, "5-10 minutes"),
            (8 * minute, 8 * minute + 5_000, "about 8 minutes"),
            (minute / 4, 9 * minute, "up to 9 minutes"),
            (90 * minute, 150 * minute, "2-3 hours"),
        ] {
            assert_eq!(format_estimate(ExpectedDuration { from_ms, to_ms }), expected);
        }
    }

    #[test]
    fn ages_have_one_unit() {
        let ages = [0, 119_999, 120_000, 7_199_999, 7_200_000, 172_800_000].map(format_age);
        assert_eq!(ages, ["0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
    }

    #[test]
    fn sizes_have_binary_units() {
        let sizes = [0, 1023, 1024, 1_600_000, 10 << 30, u64::MAX].map(format_size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "10.0 GiB", "16777215.9 TiB"]);
    }
}
