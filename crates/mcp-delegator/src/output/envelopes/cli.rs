//! The CLI envelope (`--envelope agent`): one compact line with five keys that are always present.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{AppError, ExitCode, Redirect};
use crate::output::call_syntax::CallSyntax;
use crate::output::command_data::CommandData;
use crate::output::data::failure::{ErrorContextKeys, kind_names};
use crate::output::outcome::{Outcome, Warning};
use crate::output::values::{
    ProblemData, TruncationMeta, UtcTime, add_missing, milliseconds, problems, rfc3339,
};
use crate::spec::command_exit_codes::is_retryable;
use crate::spec::paging::Page;
use crate::spec::version::PRODUCT_VERSION;
use crate::spec::{CommandSpec, Shape, output_schema};

pub const SCHEMA_VERSION: &str = "1.0";

/// `meta`; the facts of the command are added to it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
struct Meta {
    command: String,
    request_id: String,
    /// When the call started.
    timestamp: UtcTime,
    duration_ms: u64,
    exit_code: u8,
    tool_version: &'static str,
    schema_version: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_modified: bool,
    #[serde(flatten)]
    #[serialize_always]
    truncation: Option<TruncationMeta>,
    cursor: Option<String>,
    pagination: Option<Page>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warning_details: Vec<Warning>,
    error_context: Option<ErrorContextData>,
    fix_command: Option<String>,
    retry_after_ms: Option<u64>,
    /// The data that accompanies the error.
    #[schemars(with = "Option<Map<String, Value>>")]
    failure_data: Option<Value>,
    /// The fields that the call selected; the data has no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
}

/// The keys of an error are fixed; all other facts go into `meta`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
struct ErrorDetail {
    code: &'static str,
    message: String,
    detail: Option<String>,
    retryable: bool,
    /// In seconds. The contract has it only for retryable errors; `meta.retry_after_ms` has the time for all.
    retry_after: Option<u64>,
    phase: &'static str,
    suggestion: Option<String>,
    redirect: Option<Redirect>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ErrorContextData {
    #[serde(flatten)]
    #[schemars(with = "ErrorContextKeys")]
    context: Map<String, Value>,
    #[schemars(extend("enum" = kind_names()))]
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ProblemData>,
}

/// The data in the last line of a stream of items.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct StreamEnd {
    pub count: usize,
}

impl CommandData for StreamEnd {}

pub fn meta_schema() -> Value {
    output_schema::<Meta>().to_value()
}

pub fn render(outcome: &Outcome) -> Value {
    let exit = outcome.exit();
    let error = outcome.error();
    json!({
        "ok": exit == ExitCode::Success,
        "data": outcome.data().map(|data| outcome.with_agent_exit_code(data)),
        "error": error.as_ref().map(|error| error_detail(error, outcome.command)),
        "warnings": outcome.output.warnings.iter().map(|w| format!("{}: {}", w.code.name(), w.message)).collect::<Vec<_>>(),
        "meta": meta(outcome, error.as_ref(), exit),
    })
}

fn error_detail(error: &AppError, command: &CommandSpec) -> ErrorDetail {
    let retryable = is_retryable(command, error.code);
    ErrorDetail {
        code: error.code.facts().agent,
        message: error.message.clone(),
        detail: error.detail.clone(),
        retryable,
        retry_after: error.retry_after.filter(|_| retryable).map(|wait| milliseconds(wait).div_ceil(1000)),
        phase: error.phase.name(),
        suggestion: error.suggestion.as_ref().map(|suggestion| CallSyntax::Commands.sentence(suggestion)),
        redirect: error.redirect.clone(),
    }
}

fn meta(outcome: &Outcome, error: Option<&AppError>, exit: ExitCode) -> Value {
    let output = &outcome.output;
    let mut meta = Map::new();
    add_missing(
        &mut meta,
        &Meta {
            command: outcome.command.name(),
            request_id: outcome.request_id.to_string(),
            timestamp: UtcTime(rfc3339(outcome.started)),
            duration_ms: milliseconds(outcome.duration),
            exit_code: exit.number(),
            tool_version: PRODUCT_VERSION,
            schema_version: SCHEMA_VERSION,
            not_modified: output.completion.is_not_modified(),
            truncation: outcome.truncated,
            cursor: output.next_cursor().map(str::to_owned),
            pagination: output.page.clone(),
            warning_details: output.warnings.clone(),
            error_context: error.map(error_context),
            fix_command: error.and_then(|error| error.fix_command.clone()),
            retry_after_ms: error.and_then(|error| error.retry_after).map(milliseconds),
            failure_data: outcome.failure_data().map(|data| outcome.with_agent_exit_code(data)),
            fields: output.selected_fields.clone(),
        },
    );
    add_missing(&mut meta, &output.facts);
    Value::Object(meta)
}

fn error_context(error: &AppError) -> ErrorContextData {
    ErrorContextData {
        context: error.context.clone(),
        kind: error.code.facts().kind.name(),
        problems: problems(error),
    }
}

/// `--format jsonl`: the items, one line each, and the last line with the envelope.
pub fn render_stream(outcome: &Outcome, stream: bool) -> (Vec<Value>, Value) {
    let list = match outcome.output.shape.unwrap_or(outcome.command.shape) {
        Shape::List(plural) if stream => {
            outcome.data().and_then(|data| data.to_json().get_mut(plural).map(Value::take))
        }
        _ => None,
    };
    let Some(Value::Array(items)) = list else { return (Vec::new(), render(outcome)) };
    let mut ending = outcome.clone();
    ending.output.data = Some(StreamEnd { count: items.len() }.into());
    (items, render(&ending))
}
