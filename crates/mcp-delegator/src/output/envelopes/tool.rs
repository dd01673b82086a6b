//! The tool envelope: the JSON response of an MCP tool.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{AppError, ErrorCode, Redirect};
use crate::output::call_syntax::CallSyntax;
use crate::output::command_data::Data;
use crate::output::data::batch::BatchResult;
use crate::output::data::failure::{ErrorContextKeys, kind_names};
use crate::output::outcome::{ChildExit, Completion, Outcome, Warning};
use crate::output::values::{ProblemData, TruncationMeta, UtcTime, milliseconds, problems, rfc3339};
use crate::spec::Category;
use crate::spec::command_exit_codes::is_retryable;

/// The version of the envelope, not of the product.
pub const ENVELOPE_VERSION: &str = "3.6";

/// `M` are the facts of the category, `D` its data.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct ToolEnvelope<M, D> {
    #[schemars(extend("const" = ENVELOPE_VERSION))]
    version: &'static str,
    schema_id: String,
    tool: String,
    tool_category: &'static str,
    request_id: String,
    ts: UtcTime,
    status: ResponseStatus,
    meta: ToolMeta<M>,
    data: Option<D>,
    error: Option<ToolError>,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ResponseStatus {
    Ok,
    Error,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolMeta<M> {
    #[serde(flatten)]
    facts: M,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_modified: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    wait_expired: bool,
    #[serde(flatten)]
    truncation: Option<TruncationMeta>,
    /// The exit code of the agent.
    #[serde(flatten)]
    child: Option<ChildExit>,
    /// The fields that the call selected; the data has no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
struct ToolError {
    #[schemars(extend("enum" = tool_codes()))]
    code: &'static str,
    #[schemars(length(min = 1))]
    message: String,
    details: ErrorDetails,
    retryable: bool,
    duration_ms: u64,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorDetails {
    #[serde(flatten)]
    #[schemars(with = "ErrorContextKeys")]
    context: Map<String, Value>,
    #[schemars(extend("enum" = kind_names(), "x-optional" = true))]
    kind: &'static str,
    #[schemars(extend("x-optional" = true))]
    code: &'static str,
    #[schemars(extend("x-optional" = true))]
    cli_exit_code: u8,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ProblemData>,
    suggestion: Option<String>,
    detail: Option<String>,
    redirect: Option<Redirect>,
    #[serde(flatten)]
    #[serialize_always]
    child: Option<ChildExit>,
    retry_after_ms: Option<u64>,
    /// The items of a batch that failed completely.
    #[serde(flatten)]
    #[serialize_always]
    batch: Option<BatchResult>,
}

fn tool_codes() -> BTreeSet<&'static str> {
    ErrorCode::ALL.iter().map(|code| code.facts().tool).collect()
}

pub fn render(outcome: &Outcome, prefix: &str, syntax: CallSyntax<'_>) -> Value {
    let command = outcome.command;
    let error = outcome.tool_error();
    let failed = error.is_some();
    json!(ToolEnvelope {
        version: ENVELOPE_VERSION,
        schema_id: command.category.schema_id(),
        tool: command.tool_name(prefix),
        tool_category: command.category.name(),
        request_id: outcome.request_id.to_string(),
        ts: UtcTime(rfc3339(outcome.emitted)),
        status: if failed { ResponseStatus::Error } else { ResponseStatus::Ok },
        meta: meta(outcome, failed),
        data: (!failed).then(|| data(outcome)),
        error: error.map(|error| tool_error(error, outcome, syntax)),
    })
}

/// The lists of a status snapshot that this envelope omits when they are empty.
pub const OMITTED_IF_EMPTY: [&str; 3] = ["tasks", "queue", "recently_completed"];

/// `data` is always an object.
fn data(outcome: &Outcome) -> Map<String, Value> {
    let mut object = match outcome.output.data.as_ref().map(Data::to_json) {
        Some(Value::Object(object)) => object,
        Some(other) => Map::from_iter([("value".to_owned(), other)]),
        None => Map::new(),
    };
    if outcome.command.category == Category::StatusSnapshot {
        object.retain(|key, value| {
            !(OMITTED_IF_EMPTY.contains(&key.as_str()) && value.as_array().is_some_and(Vec::is_empty))
        });
    }
    object
}

fn meta(outcome: &Outcome, failed: bool) -> ToolMeta<&Map<String, Value>> {
    let output = &outcome.output;
    let is_wait = outcome.command.category == Category::WaitResult;
    ToolMeta {
        facts: &output.facts,
        warnings: output.warnings.clone(),
        next_cursor: output.next_cursor().map(str::to_owned),
        total: output.page.as_ref().map(|page| page.total),
        not_modified: output.completion.is_not_modified(),
        partial: matches!(output.completion, Completion::Partial),
        wait_expired: matches!(output.completion, Completion::Incomplete(_)),
        truncation: outcome.truncated,
        child: output.child.clone().filter(|_| is_wait && !failed),
        fields: output.selected_fields.clone(),
    }
}

fn tool_error(error: AppError, outcome: &Outcome, syntax: CallSyntax<'_>) -> ToolError {
    let facts = error.code.facts();
    let context = error.context.clone();
    let is_free = |key: &str| !context.contains_key(key);
    ToolError {
        code: facts.tool,
        retryable: is_retryable(outcome.command, error.code),
        duration_ms: milliseconds(outcome.duration),
        details: ErrorDetails {
            kind: facts.kind.name(),
            code: facts.agent,
            cli_exit_code: outcome.exit().number(),
            problems: problems(&error),
            suggestion: error.suggestion.as_ref().map(|suggestion| syntax.sentence(suggestion)),
            detail: error.detail.clone().filter(|_| is_free("detail")),
            redirect: error.redirect.clone(),
            child: outcome.output.child.clone().filter(|_| is_free("exit_code")),
            retry_after_ms: error.retry_after.map(milliseconds),
            batch: outcome.failure_data().and_then(Data::batch).cloned(),
            context,
        },
        message: error.message,
    }
}
