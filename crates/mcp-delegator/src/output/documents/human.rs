//! Errors and warnings for a person at a terminal. They go to stderr; stdout contains only the output.

use delegator_domain::terminal;
use serde_json::Value;

use crate::error::AppError;
use crate::output::call_syntax::CallSyntax;
use crate::output::outcome::Warning;

pub fn error(error: &AppError) -> String {
    let mut lines = vec![format!("error: {}", error.message)];
    if error.problems.len() > 1 {
        for problem in &error.problems {
            let hint = problem.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            lines.push(format!("  - {}: {}{hint}", problem.field, problem.problem));
        }
    }
    if let Some(detail) = &error.detail {
        lines.extend(detail.lines().map(|line| format!("  {line}")));
    }
    if let Some(message) = error.context.get("agent_message").and_then(Value::as_str) {
        lines.push("message of the agent:".to_owned());
        lines.extend(message.lines().map(|line| format!("  {line}")));
    }
    if let (Some(suggestion), true) = (error.hint(), error.problems.len() <= 1) {
        lines.push(format!("hint: {}", CallSyntax::Commands.sentence(suggestion)));
    }
    match (&error.redirect, &error.fix_command) {
        (Some(redirect), _) => lines.push(format!("  {}", redirect.command)),
        (None, Some(command)) => lines.push(format!("fix: {command}")),
        (None, None) => {}
    }
    terminal::sanitize(&lines.join("\n")).into_owned()
}

/// One line per warning: the sentence, then its data.
pub fn warnings(warnings: &[Warning]) -> Vec<String> {
    let line = |warning: &Warning| {
        let data = warning.context.iter().map(|(key, value)| format!("{key}: {value}"));
        let data: Vec<String> = data.collect();
        let data = if data.is_empty() { String::new() } else { format!(" ({})", data.join("; ")) };
        terminal::sanitize(&format!("warning: {}{data}", warning.message)).into_owned()
    };
    warnings.iter().map(line).collect()
}
