//! The CLI envelope (`--envelope agent`): one compact line with five keys that are always present.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{AppError, ExitCode, Redirect};
use crate::output::outcome::{Completion, Outcome, Warning};
use crate::output::values::{TruncationFacts, milliseconds, problems, rfc3339};
use crate::spec::CommandSpec;
use crate::spec::exit_codes::is_retryable;
use crate::spec::paging::Page;
use crate::spec::version::PRODUCT_VERSION;

pub const SCHEMA_VERSION: &str = "1.0";

#[derive(Debug, Serialize)]
struct CliEnvelope<'a> {
    ok: bool,
    data: Option<Value>,
    error: Option<ErrorDetail<'a>>,
    warnings: Vec<String>,
    meta: Map<String, Value>,
}

/// The keys of an error are fixed; all other facts go into `meta`.
#[derive(Debug, Serialize)]
struct ErrorDetail<'a> {
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    retryable: bool,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<&'a Redirect>,
}

#[derive(Debug, Serialize)]
struct ResponseMeta<'a> {
    command: String,
    request_id: String,
    timestamp: String,
    duration_ms: u64,
    exit_code: u8,
    tool_version: &'static str,
    schema_version: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_modified: bool,
    #[serde(flatten)]
    truncation: Option<TruncationFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pagination: Option<&'a Page>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warning_details: &'a [Warning],
    #[serde(skip_serializing_if = "Option::is_none")]
    error_context: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix_command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_data: Option<Value>,
}

pub fn render(outcome: &Outcome) -> Value {
    let exit = outcome.exit();
    let error = outcome.error();
    let text = |warning: &Warning| format!("{}: {}", warning.code, warning.message);
    json!(CliEnvelope {
        ok: exit == ExitCode::Success,
        data: outcome.data().map(|data| with_child_exit(outcome, data)),
        error: error.as_ref().map(|error| error_detail(error, outcome.command)),
        warnings: outcome.output.warnings.iter().map(text).collect(),
        meta: meta(outcome, error.as_ref(), exit),
    })
}

fn with_child_exit(outcome: &Outcome, data: &Value) -> Value {
    let mut data = data.clone();
    if let (Some(child), Some(object)) = (&outcome.output.child, data.as_object_mut()) {
        object.entry("agent_exit_code").or_insert(json!(child.code));
    }
    data
}

fn error_detail<'a>(error: &'a AppError, command: &CommandSpec) -> ErrorDetail<'a> {
    let retryable = is_retryable(command, error);
    ErrorDetail {
        code: error.code.facts().agent,
        message: &error.message,
        detail: error.detail.as_deref(),
        retryable,
        retry_after: error.retry_after().filter(|_| retryable).map(|wait| milliseconds(wait).div_ceil(1000)),
        phase: error.phase.name(),
        suggestion: error.suggestion.as_deref(),
        redirect: error.redirect.as_ref(),
    }
}

fn meta(outcome: &Outcome, error: Option<&AppError>, exit: ExitCode) -> Map<String, Value> {
    let output = &outcome.output;
    let page = output.page.as_ref();
    let own = ResponseMeta {
        command: outcome.command.name(),
        request_id: outcome.request_id.to_string(),
        timestamp: rfc3339(outcome.started),
        duration_ms: milliseconds(outcome.duration),
        exit_code: exit.number(),
        tool_version: PRODUCT_VERSION,
        schema_version: SCHEMA_VERSION,
        not_modified: output.completion == Completion::NotModified,
        truncation: outcome.truncated.map(Into::into),
        cursor: page.and_then(|page| page.next_cursor.as_deref()),
        pagination: page,
        warning_details: &output.warnings,
        error_context: error.map(error_context),
        fix_command: error.and_then(|error| error.fix_command.as_deref()),
        retry_after_ms: error.and_then(AppError::retry_after).map(milliseconds),
        failure_data: outcome.failure_data().map(|data| with_child_exit(outcome, data)),
    };
    let mut meta = json!(own).as_object().cloned().unwrap_or_default();
    for (key, value) in &output.facts {
        meta.entry(key).or_insert(value.clone());
    }
    meta
}

fn error_context(error: &AppError) -> Map<String, Value> {
    let mut context = error.context.clone();
    context.entry("kind").or_insert(error.code.facts().kind.name().into());
    if !error.problems.is_empty() {
        context.insert("problems".into(), json!(problems(error)));
    }
    context
}
