//! Values that several envelopes and documents write the same way: times, durations, problems, escaped JSON.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::error::{AppError, Redirect};
use crate::output::outcome::{SizeUnit, Truncation};
use crate::spec::paging::Page;

/// RFC 3339, UTC, milliseconds: the only time format of this program.
pub fn rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Seconds with three decimals, for the standard envelope.
pub(super) fn seconds(duration: Duration) -> Value {
    let milliseconds = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
    Value::from(f64::from(milliseconds) / 1000.0)
}

pub(super) fn milliseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}

pub(super) fn pagination(page: &Page) -> Value {
    json!({"page": page.number, "page_size": page.size, "total_count": page.total, "filtered_count": page.filtered})
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

/// The `meta` facts of truncated output, in the unit of its limit.
pub(super) fn truncation_facts(truncation: &Truncation) -> [(&'static str, Value); 3] {
    let limit_key = match truncation.unit {
        SizeUnit::Bytes => "max_bytes",
        SizeUnit::Characters => "max_characters",
    };
    [
        ("truncated", true.into()),
        (limit_key, truncation.max_size.into()),
        ("original_size", truncation.original_size.into()),
    ]
}

pub(super) fn redirect_value(redirect: &Redirect) -> Value {
    json!({"command": redirect.command, "permanent": redirect.permanent, "reason": redirect.reason})
}

pub(super) fn problem_values(error: &AppError) -> Value {
    error
        .problems
        .iter()
        .map(|problem| {
            let mut object = Map::new();
            object.insert("field".into(), problem.field.clone().into());
            object.insert("problem".into(), problem.problem.clone().into());
            object.insert("code".into(), problem.code.facts().agent.into());
            if let Some(value) = &problem.value {
                object.insert("value".into(), value.clone());
            }
            object.extend(problem.context.clone());
            if let Some(advice) = problem.advice() {
                object.insert("suggestion".into(), advice.into());
            }
            Value::Object(object)
        })
        .collect()
}
