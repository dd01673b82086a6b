//! The tool envelope: the JSON response of an MCP tool.

use serde_json::{Map, Value, json};

use crate::error::AppError;
use crate::output::envelopes::cli as cli_envelope;
use crate::output::next_call::CallSyntax;
use crate::output::outcome::{Completion, Outcome};
use crate::output::values::{milliseconds, problem_values, redirect_value, rfc3339, truncation_facts};
use crate::spec::Category;
use crate::spec::exit_codes::is_retryable;

/// The version of the envelope, not of the product.
pub const ENVELOPE_VERSION: &str = "3.6";

pub fn render(outcome: &Outcome, prefix: &str, syntax: CallSyntax<'_>) -> Value {
    let command = outcome.command;
    let error = outcome.tool_error();
    let mut envelope = Map::new();
    envelope.insert("version".into(), ENVELOPE_VERSION.into());
    envelope.insert("schema_id".into(), command.category.schema_id().into());
    envelope.insert("tool".into(), command.tool_name(prefix).into());
    envelope.insert("tool_category".into(), command.category.name().into());
    envelope.insert("request_id".into(), outcome.request_id.to_string().into());
    envelope.insert("ts".into(), rfc3339(outcome.emitted).into());
    envelope.insert("status".into(), if error.is_none() { "ok" } else { "error" }.into());
    envelope.insert("meta".into(), meta(outcome, error.is_some()));
    match error {
        Some(error) => envelope.insert("error".into(), error_object(&error, outcome, syntax)),
        None => envelope.insert("data".into(), data(outcome)),
    };
    Value::Object(envelope)
}

fn data(outcome: &Outcome) -> Value {
    match &outcome.output.completion {
        Completion::Done(data) | Completion::Incomplete(data, _) | Completion::Failed(_, Some(data)) => {
            as_object(data, outcome)
        }
        Completion::Partial(data) => {
            let mut data = as_object(data, outcome);
            if let Some(object) = data.as_object_mut() {
                object.insert("partial_success".into(), true.into());
            }
            data
        }
        Completion::NotModified | Completion::Failed(_, None) => json!({}),
    }
}

/// `data` is always an object. Three arrays of a status snapshot are omitted when they are empty.
fn as_object(data: &Value, outcome: &Outcome) -> Value {
    let mut object = match data {
        Value::Object(object) => object.clone(),
        other => Map::from_iter([("value".to_owned(), other.clone())]),
    };
    if outcome.command.category == Category::StatusSnapshot {
        object.retain(|key, value| {
            !(["tasks", "queue", "recently_completed"].contains(&key.as_str())
                && value.as_array().is_some_and(Vec::is_empty))
        });
    }
    Value::Object(object)
}

fn meta(outcome: &Outcome, failed: bool) -> Value {
    let mut meta = outcome.output.facts.clone();
    if !outcome.output.warnings.is_empty() {
        meta.insert(
            "warnings".into(),
            outcome.output.warnings.iter().map(cli_envelope::warning_value).collect(),
        );
    }
    if let Some(page) = &outcome.output.page {
        if let Some(cursor) = &page.next_cursor {
            meta.insert("next_cursor".into(), cursor.clone().into());
        }
        meta.entry("total").or_insert(page.total.into());
    }
    match &outcome.output.completion {
        Completion::NotModified => drop(meta.insert("not_modified".into(), true.into())),
        Completion::Partial(_) => drop(meta.insert("partial".into(), true.into())),
        Completion::Incomplete(..) => drop(meta.insert("wait_expired".into(), true.into())),
        Completion::Done(_) | Completion::Failed(..) => {}
    }
    let truncation = outcome.truncated.iter().flat_map(truncation_facts);
    meta.extend(truncation.map(|(key, value)| (key.to_owned(), value)));
    if let (Some(child), Category::WaitResult, false) =
        (&outcome.output.child, outcome.command.category, failed)
    {
        meta.entry("exit_code").or_insert(json!(child.code));
    }
    Value::Object(meta)
}

fn error_object(error: &AppError, outcome: &Outcome, syntax: CallSyntax<'_>) -> Value {
    let facts = error.code.facts();
    let mut details = error.context.clone();
    details.insert("kind".into(), facts.kind.name().into());
    details.insert("code".into(), facts.agent.into());
    details.insert("cli_exit_code".into(), outcome.exit().number().into());
    if !error.problems.is_empty() {
        details.insert("problems".into(), problem_values(error));
    }
    if let Some(suggestion) = &error.suggestion {
        details.insert("suggestion".into(), syntax.sentence(suggestion).into());
    }
    if let Some(detail) = &error.detail {
        details.entry("detail").or_insert(detail.clone().into());
    }
    if let Some(redirect) = &error.redirect {
        details.insert("redirect".into(), redirect_value(redirect));
    }
    if let Some(child) = &outcome.output.child {
        details.entry("exit_code").or_insert(json!(child.code));
    }
    if let Some(wait) = error.retry_after() {
        details.insert("retry_after_ms".into(), milliseconds(wait));
    }
    json!({
        "code": facts.tool,
        "message": error.message,
        "details": details,
        "retryable": is_retryable(outcome.command, error),
        "duration_ms": milliseconds(outcome.duration),
    })
}
