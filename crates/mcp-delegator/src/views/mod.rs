//! Pure renderers of outcomes: envelopes, documents and the JSON of tasks.
//!
//! Only this module knows the keys of our JSON. It performs no I/O and decides nothing about tasks.

pub mod cli_envelope;
pub mod document;
pub mod envelope_schema;
pub mod error_context;
pub mod error_document;
pub mod estimate;
pub mod events;
pub mod failure;
pub mod fields;
pub mod files;
pub mod github_guide;
pub mod human;
pub mod jsonl;
pub mod meta_facts;
pub mod output;
pub mod reference;
pub mod restore_point;
pub mod standard_envelope;
pub mod status_document;
pub mod structured_output;
pub mod suggestions;
pub mod task;
pub mod task_document;
pub mod tool_envelope;
pub mod truncate_apply;
pub mod truncate_plan;
pub mod usage;
pub mod verification;
pub mod warnings;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::error::{AppError, Redirect};
use crate::outcome::{Page, SizeUnit, Truncation};

pub const PRODUCT_VERSION: &str = env!("CARGO_PKG_VERSION");

/// RFC 3339, UTC, milliseconds: the only time format of this program.
pub fn rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Seconds with three decimals, for the standard envelope.
fn seconds(duration: Duration) -> Value {
    let milliseconds = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
    Value::from(f64::from(milliseconds) / 1000.0)
}

fn milliseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}

fn pagination(page: &Page) -> Value {
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
fn truncation_facts(truncation: &Truncation) -> [(&'static str, Value); 3] {
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

fn redirect_value(redirect: &Redirect) -> Value {
    json!({"command": redirect.command, "permanent": redirect.permanent, "reason": redirect.reason})
}

fn problem_values(error: &AppError) -> Value {
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
            if let Some(suggestion) = &problem.suggestion {
                object.insert("suggestion".into(), suggestion.clone().into());
            }
            Value::Object(object)
        })
        .collect()
}

/// A word quoted for a shell.
pub fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@,+%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
