//! The standard envelope: sorted and indented, for files and diffs.

use serde_json::{Map, Value, json};

use crate::error::{AppError, ExitCode};
use crate::output::call_syntax::CallSyntax;
use crate::output::outcome::{Completion, Outcome, SOME_ITEMS_FAILED, Warning};
use crate::output::values::{milliseconds, problems, rfc3339, seconds};
use crate::spec::Shape;
use crate::spec::paging::Page;
use crate::spec::version::PRODUCT_VERSION;

pub fn render(outcome: &Outcome) -> Value {
    // A partial batch is a success in this envelope, unlike in the exit code and in `ok` of the CLI envelope.
    let partial = matches!(outcome.output.completion, Completion::Partial(_));
    let error = outcome.error().filter(|_| !partial);
    let data = match &outcome.output.completion {
        Completion::Done(data) => Some(shaped(outcome, data)),
        Completion::Partial(data) => Some(data.clone()),
        Completion::Incomplete(..) | Completion::NotModified | Completion::Failed(..) => None,
    };
    json!({
        "success": error.is_none(),
        "timestamp": rfc3339(outcome.emitted),
        "command": outcome.command.name().replace(['.', '-'], "_"),
        "data": data,
        "error": error.as_ref().map(|error| error_object(error, outcome)),
        "metadata": metadata(outcome, error.as_ref()),
    })
}

/// Two-space indentation, sorted keys, unescaped UTF-8, so that files can be compared with diff.
pub fn to_text(value: &Value) -> String {
    let mut sorted = value.clone();
    sort_keys(&mut sorted);
    // Serialising a `Value` cannot fail.
    serde_json::to_string_pretty(&sorted).unwrap_or_default()
}

fn sort_keys(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.sort_keys();
            object.values_mut().for_each(sort_keys);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_keys),
        _ => {}
    }
}

fn shaped(outcome: &Outcome, data: &Value) -> Value {
    match outcome.output.shape.unwrap_or(outcome.command.shape) {
        Shape::List(plural) => list(plural, data, outcome.output.page.as_ref()),
        Shape::Show(singular) => json!({ singular: data }),
        Shape::Action(action) => json!({
            "action": action,
            "result": data,
            "duration": seconds(outcome.duration),
            "message": outcome.output.message.clone().unwrap_or_else(|| action.replace('_', " ")),
        }),
    }
}

fn list(plural: &str, data: &Value, page: Option<&Page>) -> Value {
    let mut data = data.as_object().cloned().unwrap_or_default();
    let listed = data.get(plural).and_then(Value::as_array).map_or(0, Vec::len);
    let page = page.cloned().unwrap_or_else(|| Page::whole(listed));
    data.insert("total_count".into(), page.total.into());
    data.insert("filtered_count".into(), page.filtered.into());
    data.insert("page".into(), page.number.into());
    data.insert("page_size".into(), page.size.into());
    if listed == 0 && data.contains_key(plural) {
        data.entry("message").or_insert(format!("No {} found", plural.replace('_', " ")).into());
    }
    Value::Object(data)
}

fn error_object(error: &AppError, outcome: &Outcome) -> Value {
    let facts = error.code.facts();
    let mut details = error.context.clone();
    details.entry("kind").or_insert(facts.kind.name().into());
    if let Some(first) = error.problems.first() {
        details.insert("field".into(), first.field.clone().into());
        details.insert("value".into(), first.value.clone().unwrap_or_default());
        details.insert("problems".into(), json!(problems(error)));
    }
    if let Some(suggestion) = &error.suggestion {
        details.insert("suggestion".into(), CallSyntax::Commands.sentence(suggestion).into());
    }
    if let Some(detail) = &error.detail {
        details.entry("detail").or_insert(detail.clone().into());
    }
    if let Some(redirect) = &error.redirect {
        details.insert("suggestion".into(), redirect.command.clone().into());
        details.insert("redirect".into(), json!(redirect));
    }
    if let Some(payload) = outcome.failure_data() {
        details.insert("failure_data".into(), payload.clone());
    }
    let (kind, code) = facts.standard;
    json!({"type": kind, "message": error.message, "details": details, "code": code})
}

fn metadata(outcome: &Outcome, error: Option<&AppError>) -> Value {
    let mut warnings = outcome.output.warnings.clone();
    if outcome.exit() == ExitCode::PartialFailure {
        warnings.push(Warning::new("W_PARTIAL_001", SOME_ITEMS_FAILED));
    }
    let mut metadata = Map::new();
    metadata.insert("version".into(), PRODUCT_VERSION.into());
    metadata.insert("execution_time".into(), seconds(outcome.duration).into());
    metadata.insert("warnings".into(), json!(warnings));
    metadata.insert("request_id".into(), outcome.request_id.to_string().into());
    metadata.insert("exit_code".into(), outcome.exit().number().into());
    if outcome.output.completion == Completion::NotModified {
        metadata.insert("not_modified".into(), true.into());
    }
    if let Some(page) = &outcome.output.page {
        metadata.insert("pagination".into(), json!(page));
    }
    metadata.extend(outcome.output.next_cursor().map(|cursor| ("cursor".to_owned(), cursor.into())));
    if let Some(wait) = error.and_then(AppError::retry_after) {
        metadata.insert("retry_after_ms".into(), milliseconds(wait).into());
    }
    for (key, value) in &outcome.output.facts {
        metadata.entry(key).or_insert(value.clone());
    }
    Value::Object(metadata)
}
