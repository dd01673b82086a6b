//! The standard envelope: sorted and indented, for files and diffs.

use std::collections::BTreeSet;

use delegator_domain::warning_code::WarningCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{AppError, ErrorCode, ExitCode, Redirect};
use crate::output::call_syntax::CallSyntax;
use crate::output::command_data::Data;
use crate::output::data::failure::{ErrorContextKeys, kind_names};
use crate::output::documents::document::pretty;
use crate::output::outcome::{Completion, Outcome, Warning};
use crate::output::values::{
    ProblemData, TruncationMeta, UtcTime, add_missing, milliseconds, problems, rfc3339, seconds,
};
use crate::spec::paging::Page;
use crate::spec::version::PRODUCT_VERSION;
use crate::spec::{CommandSpec, Shape, output_schema};

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct StandardEnvelope {
    success: bool,
    timestamp: UtcTime,
    #[schemars(regex(pattern = "^[a-z][a-z0-9]*(_[a-z0-9]+)*$"))]
    command: String,
    #[schemars(with = "Option<Map<String, Value>>")]
    data: Option<Value>,
    error: Option<StandardError>,
    #[schemars(with = "CallMetadata")]
    metadata: Map<String, Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
struct StandardError {
    #[serde(rename = "type")]
    #[schemars(extend("enum" = error_types()))]
    kind: &'static str,
    #[schemars(length(min = 1))]
    message: String,
    details: ErrorDetails,
    #[schemars(regex(pattern = r"^E_[A-Z]+_\d{3}$"))]
    code: &'static str,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorDetails {
    #[serde(flatten)]
    #[schemars(with = "ErrorContextKeys")]
    context: Map<String, Value>,
    #[schemars(extend("enum" = kind_names()))]
    kind: &'static str,
    /// The first invalid input.
    field: Option<String>,
    /// Its value.
    value: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ProblemData>,
    suggestion: Option<String>,
    detail: Option<String>,
    redirect: Option<Redirect>,
    /// The data that accompanies the error.
    #[schemars(with = "Option<Map<String, Value>>")]
    failure_data: Option<Value>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
struct CallMetadata {
    #[schemars(regex(pattern = r"^\d+\.\d+\.\d+"))]
    version: &'static str,
    /// In seconds.
    #[schemars(range(min = 0))]
    execution_time: f64,
    warnings: Vec<Warning>,
    request_id: String,
    exit_code: u8,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_modified: bool,
    #[serde(flatten)]
    #[serialize_always]
    truncation: Option<TruncationMeta>,
    pagination: Option<Page>,
    cursor: Option<String>,
    retry_after_ms: Option<u64>,
    /// The fields that the call selected; the data has no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
}

/// The data of an action.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
struct ActionData<'a> {
    action: &'static str,
    result: &'a Value,
    /// In seconds.
    #[schemars(range(min = 0))]
    duration: f64,
    message: String,
}

/// The part of a list that its data contains.
#[derive(Debug, Serialize, JsonSchema)]
struct ListCounts {
    total_count: usize,
    filtered_count: usize,
    #[schemars(range(min = 1))]
    page: usize,
    page_size: usize,
    /// That the list is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

fn error_types() -> BTreeSet<&'static str> {
    ErrorCode::ALL.iter().map(|code| code.facts().standard.0).collect()
}

pub fn render(outcome: &Outcome) -> Value {
    // A partial batch is a success in this envelope, unlike in the exit code and in `ok` of the CLI envelope.
    let partial = matches!(outcome.output.completion, Completion::Partial);
    let error = outcome.error().filter(|_| !partial);
    let partial_data = outcome.failure_data().filter(|_| partial).map(Data::to_json);
    let data = outcome.data().map(|data| shaped(outcome, data)).or(partial_data);
    json!(StandardEnvelope {
        success: error.is_none(),
        timestamp: UtcTime(rfc3339(outcome.emitted)),
        command: outcome.command.name().replace(['.', '-'], "_"),
        data,
        metadata: metadata(outcome, error.as_ref()),
        error: error.map(|error| error_object(error, outcome)),
    })
}

/// Two-space indentation, sorted keys, unescaped UTF-8, so that files can be compared with diff.
pub fn to_text(value: &Value) -> String {
    let mut sorted = value.clone();
    sort_keys(&mut sorted);
    pretty(&sorted)
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

fn shaped(outcome: &Outcome, data: &Data) -> Value {
    let json = outcome.with_agent_exit_code(data);
    match outcome.output.shape.unwrap_or(outcome.command.shape) {
        Shape::List(plural) => list(plural, &json, outcome.output.page.as_ref()),
        Shape::Show(singular) => json!({ singular: json }),
        Shape::Action(action) => {
            let title = || outcome.output.document(data).title;
            json!(ActionData {
                action,
                result: &json,
                duration: seconds(outcome.duration),
                message: outcome
                    .output
                    .message
                    .clone()
                    .or_else(title)
                    .unwrap_or_else(|| action.replace('_', " ")),
            })
        }
    }
}

fn list(plural: &str, data: &Value, page: Option<&Page>) -> Value {
    let mut data = data.as_object().cloned().unwrap_or_default();
    let listed = data.get(plural).and_then(Value::as_array).map_or(0, Vec::len);
    let page = page.cloned().unwrap_or_else(|| Page::whole(listed));
    let is_empty = listed == 0 && data.contains_key(plural);
    add_missing(
        &mut data,
        &ListCounts {
            total_count: page.total,
            filtered_count: page.filtered,
            page: page.number,
            page_size: page.size,
            message: is_empty.then(|| format!("No {} found", plural.replace('_', " "))),
        },
    );
    Value::Object(data)
}

pub fn shaped_schema(shape: Shape, spec: &CommandSpec, mut data: Value) -> Value {
    match shape {
        Shape::List(plural) => {
            let counts = output_schema::<ListCounts>().to_value();
            for part in ["properties", "required"] {
                merge(&mut data[part], &counts[part]);
            }
            merge(&mut data["required"], &json!([plural]));
            data
        }
        Shape::Show(singular) => json!({
            "type": "object",
            "properties": { singular: data },
            "required": [singular],
            "additionalProperties": false,
        }),
        Shape::Action(action) => {
            let mut schema = output_schema::<ActionData<'_>>().to_value();
            schema["properties"]["action"] = match spec.other_actions {
                [] => json!({ "const": action }),
                others => {
                    let actions: Vec<&str> = [action].into_iter().chain(others.iter().copied()).collect();
                    json!({ "enum": actions })
                }
            };
            schema["properties"]["result"] = data;
            schema
        }
    }
}

/// A key that only data in this shape has.
pub fn distinctive_key(shape: Shape) -> &'static str {
    match shape {
        Shape::List(_) => "total_count",
        Shape::Show(singular) => singular,
        Shape::Action(_) => "action",
    }
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(object), Value::Object(more)) => {
            for (key, value) in more {
                object.entry(key).or_insert(value.clone());
            }
        }
        (Value::Array(items), Value::Array(more)) => {
            let missing: Vec<Value> = more.iter().filter(|item| !items.contains(item)).cloned().collect();
            items.extend(missing);
        }
        (into, more) => *into = more.clone(),
    }
}

fn error_object(error: AppError, outcome: &Outcome) -> StandardError {
    let facts = error.code.facts();
    let (kind, code) = facts.standard;
    let suggestion = error.suggestion.as_ref().map(|suggestion| CallSyntax::Commands.sentence(suggestion));
    let redirect = error.redirect.clone();
    let first = error.problems.first();
    StandardError {
        kind,
        details: ErrorDetails {
            kind: facts.kind.name(),
            field: first.map(|problem| problem.field.clone()),
            value: first.map(|problem| problem.value.clone().unwrap_or_default()),
            problems: problems(&error),
            suggestion: redirect.as_ref().map(|redirect| redirect.command.clone()).or(suggestion),
            detail: error.detail,
            redirect,
            failure_data: outcome.failure_data().map(|data| outcome.with_agent_exit_code(data)),
            context: error.context,
        },
        message: error.message,
        code,
    }
}

fn metadata(outcome: &Outcome, error: Option<&AppError>) -> Map<String, Value> {
    let mut warnings = outcome.output.warnings.clone();
    if outcome.exit() == ExitCode::PartialFailure {
        warnings.push(Warning::new(WarningCode::PartialFailure, outcome.output.partial_message()));
    }
    let mut metadata = Map::new();
    add_missing(
        &mut metadata,
        &CallMetadata {
            version: PRODUCT_VERSION,
            execution_time: seconds(outcome.duration),
            warnings,
            request_id: outcome.request_id.to_string(),
            exit_code: outcome.exit().number(),
            not_modified: outcome.output.completion.is_not_modified(),
            truncation: outcome.truncated,
            cursor: outcome.output.next_cursor().map(str::to_owned),
            pagination: outcome.output.page.clone(),
            retry_after_ms: error.and_then(|error| error.retry_after).map(milliseconds),
            fields: outcome.output.selected_fields.clone(),
        },
    );
    add_missing(&mut metadata, &outcome.output.facts);
    metadata
}
