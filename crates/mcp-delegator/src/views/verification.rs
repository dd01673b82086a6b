//! The check of a task's work in our JSON and for a reader: our word, beside the agent's.

use delegator_domain::task::Verification;
use delegator_engine::Record;
use delegator_registry::Task;
use serde_json::{Value, json};

use super::document::{Block, Document, scalar};
use super::task::test_results;
use super::task_document;
use crate::error::{AppError, ErrorCode};
use crate::outcome::Warning;

/// What an answer holds of its output unless it holds output anyway.
const TAIL_BYTES: usize = 4 << 10;
const MAX_TAIL_BYTES: usize = 64 << 10;

/// `data.verification` of an ended task; `None` where none was asked for. `budget`: how much output the caller asked for.
pub fn to_json(task: &Task, record: Option<&Record>, budget: Option<usize>) -> Option<Value> {
    let command = verify_command(task)?;
    let Some(check) = record.and_then(|record| record.check.as_ref()) else {
        let outcome = task.ended.as_ref().map(|ended| Verification::not_run(&ended.end))?;
        return Some(json!({"status": outcome.status(), "command": command, "reason": outcome.reason()}));
    };
    let outcome = check.outcome();
    let tail = tail(&check.last_output, budget);
    let mut value = json!({
        "status": outcome.status(),
        "command": command,
        "exit_code": check.exit_code,
        "sandboxed": check.is_sandboxed,
        "duration_ms": check.duration_ms,
        "output_tail": tail,
        "output_bytes": check.output.received,
    });
    if let Some(results) = check.tests.as_ref().and_then(test_results) {
        value["test_results"] = results;
    }
    if let Some(signal) = check.signal {
        value["signal"] = signal.into();
    }
    if let Some(reason) = outcome.reason() {
        value["reason"] = reason.into();
    }
    if let Some(detail) = &check.detail {
        value["detail"] = detail.clone().into();
    }
    Some(value)
}

fn verify_command(task: &Task) -> Option<&Value> {
    task.input.get("verify").filter(|words| words.as_array().is_some_and(|words| !words.is_empty()))
}

/// Said aloud: the agent completed, and that is not all that was asked for.
pub fn warnings(task: &Task, record: Option<&Record>) -> Vec<Warning> {
    let words = record
        .and_then(|record| record.check.as_ref())
        .filter(|check| verify_command(task).is_some() && check.outcome() != Verification::Verified);
    words.map(|check| Warning::new("W_VERIFY_001", check.describe())).into_iter().collect()
}

/// How a task whose agent completed and whose work was not verified is told by a command that answers for it.
pub fn failure(task: &Task, record: Option<&Record>) -> Option<AppError> {
    let value = to_json(task, record, None).filter(|value| value["status"] != "verified")?;
    let check = record.and_then(|record| record.check.as_ref());
    let words = check.map_or_else(|| "not verified".to_owned(), delegator_engine::CheckRecord::describe);
    let error = AppError::new(ErrorCode::AgentFailed, format!("The agent completed its task; {words}."));
    Some(error.context("failure_kind", value["status"].clone()).context("verification", value))
}

/// What the check printed, apart and labelled, where it matters.
pub fn append_to(document: Document, data: &Value) -> Document {
    let value = &data["verification"];
    if value["status"].is_null() {
        return document;
    }
    let mut facts = vec![("verification".to_owned(), scalar(&value["status"]))];
    for (name, key) in [("because of", "reason"), ("which means", "detail"), ("its exit code", "exit_code")] {
        if !value[key].is_null() {
            facts.push((name.to_owned(), scalar(&value[key])));
        }
    }
    facts.extend(task_document::tests(&value["test_results"]));
    let document = document.block(Block::Facts(facts));
    match value["output_tail"].as_str().filter(|text| !text.is_empty() && value["status"] != "verified") {
        Some(text) => document
            .block(Block::Text("What the verify command printed last:".to_owned()))
            .block(Block::Verbatim(text.to_owned())),
        None => document,
    }
}

/// Gives what the check printed no more room than an answer with so much output would.
pub fn shrink(value: &mut Value, budget: usize) {
    if let Some(Value::String(text)) = value.get_mut("output_tail") {
        *text = tail(text, Some(budget)).to_owned();
    }
}

fn tail(text: &str, budget: Option<usize>) -> &str {
    let bytes = budget.unwrap_or(0).clamp(TAIL_BYTES, MAX_TAIL_BYTES);
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}
