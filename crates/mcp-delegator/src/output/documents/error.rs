//! The Markdown document of an error: its codes, facts, labelled quotes of the agent, and the next useful
//! call. Only the tail of long output is shown; the suggested call returns the rest.

use delegator_domain::task::FailureKind;

use crate::error::AppError;
use crate::output::command_data::{Data, TaskState};
use crate::output::data::failure::PartialResults;
use crate::output::data::verification::VerificationData;
use crate::output::documents::document::scalar;
use crate::output::outcome::Outcome;
use crate::output::prelude::*;
use crate::spec::command_exit_codes::is_retryable;

const MAX_OUTPUT_CHARS: usize = 2_000;

/// Context keys that are not rendered in the list of facts.
const RENDERED_SEPARATELY: [&str; 7] =
    ["agent_message", "stderr_tail", "partial_results", "verification", "file", "line", "column"];

pub fn build(outcome: &Outcome, error: &AppError, syntax: CallSyntax<'_>) -> Document {
    let codes = error.code.facts();
    let cli_code = if codes.agent == codes.tool { String::new() } else { format!(" ({})", codes.agent) };
    // A single problem is completely described by the message, and its suggestion is the next step.
    let is_complete = matches!(error.problems.as_slice(), [] | [_]);
    let verification = error.context.get("verification").map(VerificationData::deserialize);
    let document = Document::titled(format!("Error: {}{cli_code}", codes.tool))
        .text(error.message.as_str())
        .block(Block::Facts(facts(outcome, error)))
        .with((!is_complete).then(|| problems(error)), Document::block)
        .with(error.detail.clone().map(Block::Verbatim), Document::block)
        .with(verification.and_then(Result::ok), |document, verification| verification.append_to(document));
    let mut document = append_quotes(document, &error.context);
    if let Some(batch) = outcome.failure_data().and_then(Data::batch) {
        batch.append_failures(&mut document);
    }
    let suggestion = error.hint().filter(|_| is_complete);
    let suggestion = suggestion.map(|suggestion| syntax.sentence(suggestion));
    let next = error.redirect.as_ref().map(|redirect| redirect.command.clone()).or(suggestion);
    let document = document.with(next, |document, next| document.text(format!("Next: {next}")));
    next_calls(outcome, error).into_iter().fold(document, Document::block)
}

fn facts(outcome: &Outcome, error: &AppError) -> Vec<(String, String)> {
    let retryable = if is_retryable(outcome.command, error.code) { "yes" } else { "no" };
    let mut facts = vec![("retryable".to_owned(), retryable.to_owned())];
    if let Some(wait) = error.retry_after {
        facts.push(("retry after ms".to_owned(), wait.as_millis().to_string()));
    }
    let detail = error.detail.as_deref().unwrap_or_default();
    let is_in_detail =
        |value: &Value| value.as_str().is_some_and(|text| text.contains('\n') && detail.contains(text));
    let listed = error.context.iter().filter(|(key, value)| {
        !value.is_null()
            && !is_in_detail(value)
            && !RENDERED_SEPARATELY.contains(&key.as_str())
            && (*key != "field" || error.problems.is_empty())
    });
    facts.extend(listed.map(|(key, value)| (fact_name(key), scalar(value))));
    facts.extend(format_location(&error.context).map(|location| ("location".to_owned(), location)));
    facts
}

fn fact_name(key: &str) -> String {
    match key {
        "task_id" => "task".to_owned(),
        "thread_id" => "thread".to_owned(),
        "failure_kind" => "failure".to_owned(),
        other => other.replace('_', " "),
    }
}

/// `src/api.rs:42:15`.
fn format_location(context: &Map<String, Value>) -> Option<String> {
    let file = context.get("file")?.as_str()?;
    let numbers = ["line", "column"].into_iter().filter_map(|key| context.get(key)?.as_u64());
    Some(numbers.fold(file.to_owned(), |location, number| format!("{location}:{number}")))
}

fn problems(error: &AppError) -> Block {
    let suggests = error.problems.iter().any(|problem| problem.hint().is_some());
    let columns = if suggests { vec!["field", "problem", "suggestion"] } else { vec!["field", "problem"] };
    let row = |problem: &crate::error::Problem| {
        let cells = [problem.field.clone(), problem.problem.clone()].into_iter();
        cells.chain(suggests.then(|| problem.hint().unwrap_or_default())).collect()
    };
    Block::Table { columns, rows: error.problems.iter().map(row).collect() }
}

fn append_quotes(document: Document, context: &Map<String, Value>) -> Document {
    let text = |key: &str| context.get(key).and_then(Value::as_str).unwrap_or_default().trim_end();
    let partial =
        context.get("partial_results").and_then(|partial| PartialResults::deserialize(partial).ok());
    let printed = partial.map(|partial| partial.last_output).unwrap_or_default();
    [
        ("Reported by the agent:", text("agent_message")),
        ("The end of its stderr:", text("stderr_tail")),
        ("The end of its output:", tail(printed.trim_end())),
    ]
    .into_iter()
    .filter(|(_, quote)| !quote.is_empty())
    .fold(document, |document, (label, quote)| document.quote(label, quote))
}

/// The last whole lines that fit; if the last line does not fit, its tail.
fn tail(text: &str) -> &str {
    let Some((at, _)) = text.char_indices().rev().nth(MAX_OUTPUT_CHARS - 1) else { return text };
    let end = &text[at..];
    let begins_a_line = at == 0 || text[..at].ends_with('\n');
    match end.split_once('\n') {
        Some((_, lines)) if !begins_a_line => lines,
        _ => end,
    }
}

/// For an ended task: the call for its results, and the call that continues its thread, unless only a sign-in
/// helps.
fn next_calls(outcome: &Outcome, error: &AppError) -> Vec<Block> {
    let task = outcome.failure_data().and_then(Data::task);
    let Some(TaskState { task_id: id, .. }) =
        task.filter(|task| !["queued", "working"].contains(&task.state))
    else {
        return Vec::new();
    };
    let mut calls = vec![Block::Next(NextCall::for_task(&["local", "results"], id))];
    let needs_sign_in =
        error.context.get("failure_kind").is_some_and(|kind| kind == FailureKind::Auth.name());
    if error.context.contains_key("thread_id") && !needs_sign_in {
        let resume = NextCall::new(&["local", "resume"]).with("task", "Go on.").with("task_id", id);
        calls.push(Block::Next(resume));
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_shows_only_its_tail() {
        assert_eq!(tail("short\nlines"), "short\nlines");
        let lines: Vec<String> = (0..1000).map(|number| format!("line {number}")).collect();
        let lines = lines.join("\n");
        let end = tail(&lines);
        assert!(end.starts_with("line ") && end.ends_with("line 999") && end.len() < 2_000, "{end}");
        assert_eq!(tail(&"\u{fc}".repeat(5_000)).chars().count(), MAX_OUTPUT_CHARS);
    }
}
