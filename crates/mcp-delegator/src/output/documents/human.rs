//! Errors and warnings for a person at a terminal. They go to stderr; stdout contains only the output.
//!
//! A person reads both on one screen, so an error leaves out what the printed document already states.

use std::borrow::Cow;

use delegator_domain::terminal;
use delegator_domain::warning_code::WarningCode;
use serde_json::Value;

use crate::error::suggestion::Suggestion;
use crate::error::{AppError, ErrorCode, Problem};
use crate::output::call_syntax::CallSyntax;
use crate::output::documents::text::{TextStyle, labelled, state_style};
use crate::output::outcome::Warning;

/// The error without the parts that `printed` contains; empty if it contains all of them.
pub fn error(error: &AppError, printed: &str, style: TextStyle) -> String {
    let mut lines = Vec::new();
    // The document is wrapped, so only the words are compared.
    let printed = words(printed);
    let is_new = |text: &str| !printed.contains(&words(text));
    let message = one_line(&error.message);
    let count = error.summary.as_ref().map(|summary| one_line(&summary.count));
    let message = match (&error.summary, &count) {
        (Some(summary), Some(count)) if !is_new(&one_line(&summary.first)) => format!("{count}."),
        _ => message,
    };
    match error.problems.as_slice() {
        [only] if message.starts_with(&format!("{}: ", only.field)) => {
            let message = format!("{}{}", field_as_typed(only), &message[only.field.len()..]);
            lines.push(labelled(style, "error", &message));
        }
        [_, _, ..] => {
            // The first problem is in the list, too.
            lines.push(labelled(style, "error", &format!("{}:", count.unwrap_or_default())));
            lines.extend(error.problems.iter().map(|problem| {
                let hint = problem.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                style.wrap(&one_line(&format!("  - {}: {}{hint}", field_as_typed(problem), problem.problem)))
            }));
        }
        // The task continues: nothing went wrong.
        _ if error.code == ErrorCode::Incomplete => lines.push(style.wrap(&message)),
        _ => lines.push(labelled(style, "error", &message)),
    }
    // The document of a task states the limit that ended it.
    let is_limit =
        matches!(error.code, ErrorCode::TimeoutIdle | ErrorCode::TimeoutHard) && !printed.is_empty();
    if is_limit || !is_new(&message) {
        lines.clear();
    }
    let quote = |text: &str| -> Vec<String> {
        terminal::sanitize(text).lines().map(|line| style.wrap(&format!("  {line}"))).collect()
    };
    if let Some(detail) = error.detail.as_deref().filter(|detail| is_new(detail)) {
        lines.extend(quote(detail));
    }
    let message = error.context.get("agent_message").and_then(Value::as_str);
    if let Some(message) = message.filter(|message| is_new(message)) {
        lines.push("message of the agent:".to_owned());
        lines.extend(quote(message));
    }
    lines.extend(advice(error, &printed, style));
    lines.join("\n")
}

/// The name of the input as a person types it. A key of the configuration is no flag.
fn field_as_typed(problem: &Problem) -> Cow<'_, str> {
    let is_input = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let is_name = problem.field.contains('_') && problem.field.chars().all(is_input);
    if is_name && problem.code != ErrorCode::ConfigInvalid {
        format!("--{}", problem.field.replace('_', "-")).into()
    } else {
        Cow::Borrowed(&problem.field)
    }
}

/// Without control sequences and line breaks: a name in the text cannot look like a further line.
fn one_line(text: &str) -> String {
    terminal::escape_line_breaks(&terminal::sanitize(text))
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What to do next. Commands stay on one line.
fn advice(error: &AppError, printed: &str, style: TextStyle) -> Vec<String> {
    let is_printed = |suggestion: &Suggestion| match &suggestion.call {
        Some(call) => CallSyntax::Commands.render(call).is_some_and(|call| printed.contains(&words(&call))),
        None => printed.contains(&words(&suggestion.text)),
    };
    let hint = error.hint().filter(|hint| error.problems.len() <= 1 && !is_printed(hint));
    let hint = hint.map(|hint| {
        let hint = Suggestion { text: format!("hint: {}", one_line(&hint.text)), call: hint.call.clone() };
        style.sentence(&hint)
    });
    let command = match (&error.redirect, &error.fix_command) {
        (Some(redirect), _) => Some(format!("  {}", redirect.command)),
        (None, Some(command)) => Some(format!("fix: {command}")),
        (None, None) => None,
    };
    let command = command.map(|command| one_line(&command));
    hint.into_iter().chain(command).collect()
}

/// A value of a warning as text; `None` for an object, which only programs read.
fn context_text(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) | Value::Null => None,
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(context_text).collect();
            items.filter(|items| !items.is_empty()).map(|items| items.join("; "))
        }
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Each warning that `printed` does not contain: the sentence, then its data.
pub fn warnings(warnings: &[Warning], printed: &str, style: TextStyle) -> Vec<String> {
    let printed = words(printed);
    let line = |warning: &Warning| {
        let data = warning
            .context
            .iter()
            .filter_map(|(key, value)| Some(format!("{}: {}", key.replace('_', " "), context_text(value)?)));
        let data: Vec<String> = data.collect();
        let data = if data.is_empty() { String::new() } else { format!(" ({})", data.join("; ")) };
        let text = format!("{}{data}", warning.message);
        let text = one_line(&text);
        match warning.code {
            WarningCode::GitSettingsChanged => {
                style.paint(state_style("error"), &style.wrap_after("warning: ", &text, 2))
            }
            _ => labelled(style, "warning", &text),
        }
    };
    warnings.iter().filter(|warning| !printed.contains(&words(&warning.message))).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Problem;
    use crate::error::suggestion::NextCall;

    fn text(error: &AppError, printed: &str) -> String {
        super::error(error, printed, TextStyle::default())
    }

    #[test]
    fn changed_settings_of_git_are_red() {
        let style = TextStyle { is_colored: true, ..TextStyle::default() };
        let warning = |code| Warning::new(code, "changed");
        let lines = warnings(
            &[warning(WarningCode::GitSettingsChanged), warning(WarningCode::QueuePaused)],
            "",
            style,
        );
        assert!(lines[0].starts_with("\u{1b}[31mwarning: changed"), "{lines:?}");
        assert!(lines[1].ends_with(": changed") && !lines[1].contains("[31m"), "{lines:?}");
    }

    #[test]
    fn a_name_with_a_line_break_does_not_begin_a_line() {
        let error =
            AppError::new(ErrorCode::NotFound, "no\nerror: forged").suggest("see a\nhint: forged\u{202e}");
        assert_eq!(text(&error, ""), "error: no\\nerror: forged\nhint: see a\\nhint: forged");
    }

    #[test]
    fn an_error_does_not_repeat_the_document() {
        let wait = NextCall::new(&["local", "wait"]).with("task_id", "T-1");
        let error = AppError::new(ErrorCode::AgentFailed, "The agent reported an error.")
            .context("agent_message", "not signed in")
            .suggest_call("Wait: {call}", wait);
        let whole = "error: The agent reported an error.\nmessage of the agent:\n  not signed in\n\
                     hint: Wait: mcp-delegator wait T-1";
        assert_eq!(text(&error, ""), whole);
        assert_eq!(
            text(&error, "x: not signed in\n\nNext: mcp-delegator wait T-1"),
            "error: The agent reported an error."
        );
        assert_eq!(text(&error, whole), "");
    }

    #[test]
    fn an_error_does_not_repeat_wrapped_text() {
        let (count, first) = ("2 problems: agent, git".to_owned(), "codex is missing".to_owned());
        let error = AppError::summarizing(ErrorCode::DependencyMissing, count, first)
            .suggest("Run: npm install -g @openai/codex");
        let printed = "agent  codex is\n       missing\nagent  Run: npm install -g\n       @openai/codex";
        assert_eq!(text(&error, printed), "error: 2 problems: agent, git.");
    }

    #[test]
    fn the_first_of_several_problems_is_named_once() {
        let problem = |field: &str| Problem::invalid(field, "must be a number");
        let error = AppError::from_problems(vec![problem("a"), problem("b")]);
        assert_eq!(
            text(&error, ""),
            "error: 2 problems with the input:\n  - a: must be a number\n  - b: must be a number"
        );
    }
}
