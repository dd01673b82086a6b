//! The CLI envelope (`--envelope agent`): one compact line with five keys that are always present.

use serde_json::{Map, Value, json};

use crate::error::{AppError, ExitCode};
use crate::output::call_syntax::CallSyntax;
use crate::output::outcome::{Completion, Outcome};
use crate::output::values::{TruncationFacts, milliseconds, problems, rfc3339};
use crate::spec::CommandSpec;
use crate::spec::command_exit_codes::is_retryable;
use crate::spec::version::PRODUCT_VERSION;

pub const SCHEMA_VERSION: &str = "1.0";

pub fn render(outcome: &Outcome) -> Value {
    let exit = outcome.exit();
    let error = outcome.error();
    json!({
        "ok": exit == ExitCode::Success,
        "data": outcome.data().map(|data| with_child_exit(outcome, data)),
        "error": error.as_ref().map(|error| error_detail(error, outcome.command)),
        "warnings": outcome.output.warnings.iter().map(|w| format!("{}: {}", w.code, w.message)).collect::<Vec<_>>(),
        "meta": meta(outcome, error.as_ref(), exit),
    })
}

fn with_child_exit(outcome: &Outcome, data: &Value) -> Value {
    let mut data = data.clone();
    if let (Some(child), Some(object)) = (&outcome.output.child, data.as_object_mut()) {
        object.entry("agent_exit_code").or_insert(json!(child.code));
    }
    data
}

/// The keys of an error are fixed; all other facts go into `meta`.
fn error_detail(error: &AppError, command: &CommandSpec) -> Value {
    let retryable = is_retryable(command, error);
    let mut object = Map::new();
    object.insert("code".into(), error.code.facts().agent.into());
    object.insert("message".into(), error.message.clone().into());
    if let Some(detail) = &error.detail {
        object.insert("detail".into(), detail.clone().into());
    }
    object.insert("retryable".into(), retryable.into());
    if let (true, Some(wait)) = (retryable, error.retry_after()) {
        object.insert(
            "retry_after".into(),
            wait.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX).into(),
        );
    }
    object.insert("phase".into(), error.phase.name().into());
    if let Some(suggestion) = &error.suggestion {
        object.insert("suggestion".into(), CallSyntax::Commands.sentence(suggestion).into());
    }
    if let Some(redirect) = &error.redirect {
        object.insert("redirect".into(), json!(redirect));
    }
    Value::Object(object)
}

fn meta(outcome: &Outcome, error: Option<&AppError>, exit: ExitCode) -> Value {
    let mut meta = Map::new();
    let mut put = |key: &str, value: Value| {
        meta.entry(key).or_insert(value);
    };
    put("command", outcome.command.name().into());
    put("request_id", outcome.request_id.to_string().into());
    put("timestamp", rfc3339(outcome.started).into());
    put("duration_ms", milliseconds(outcome.duration).into());
    put("exit_code", exit.number().into());
    put("tool_version", PRODUCT_VERSION.into());
    put("schema_version", SCHEMA_VERSION.into());
    if outcome.output.completion == Completion::NotModified {
        put("not_modified", true.into());
    }
    for (key, value) in json!(outcome.truncated.map(TruncationFacts::from)).as_object().into_iter().flatten()
    {
        put(key, value.clone());
    }
    if let Some(cursor) = outcome.output.next_cursor() {
        put("cursor", cursor.into());
    }
    if let Some(page) = &outcome.output.page {
        put("pagination", json!(page));
    }
    if !outcome.output.warnings.is_empty() {
        put("warning_details", json!(outcome.output.warnings));
    }
    if let Some(error) = error {
        error_meta(error, &mut put);
    }
    if let Some(payload) = outcome.failure_data() {
        put("failure_data", with_child_exit(outcome, payload));
    }
    for (key, value) in &outcome.output.facts {
        put(key, value.clone());
    }
    Value::Object(meta)
}

fn error_meta(error: &AppError, put: &mut impl FnMut(&str, Value)) {
    let mut context = error.context.clone();
    context.entry("kind").or_insert(error.code.facts().kind.name().into());
    if !error.problems.is_empty() {
        context.insert("problems".into(), json!(problems(error)));
    }
    put("error_context", Value::Object(context));
    if let Some(command) = &error.fix_command {
        put("fix_command", command.clone().into());
    }
    if let Some(wait) = error.retry_after() {
        put("retry_after_ms", milliseconds(wait).into());
    }
}
