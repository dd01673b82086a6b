//! Rewrites suggestions that name a CLI command into tool calls, for MCP clients.
//!
//! A suggestion is written once, with a shell command in quotes or at its end. The command is parsed as the CLI parses it
//! and replaced by the call of its tool. A command without a served tool stays: the user may still run it.

use std::ffi::OsString;

use delegator_transcript::shell;
use serde_json::Value;

use crate::error::AppError;
use crate::input::argv;
use crate::output::outcome::CommandOutput;
use crate::spec::ServedTools;
use crate::spec::catalog::Catalog;
use crate::spec::version::PROGRAM;

pub fn rewrite_for_tools(answer: &mut CommandOutput, catalog: Catalog, served: &ServedTools) {
    let (data, error) = answer.completion.parts_mut();
    if let Some(error) = error {
        rewrite_error(error, catalog, served);
    }
    let Some(data) = data else { return };
    rewrite_task(data, catalog, served);
    for task in data.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten() {
        rewrite_task(task, catalog, served);
    }
}

fn rewrite_task(task: &mut Value, catalog: Catalog, served: &ServedTools) {
    if let Some(context) = task.pointer_mut("/metadata/error_context") {
        rewrite_suggestions(context, catalog, served);
    }
}

fn rewrite_error(error: &mut AppError, catalog: Catalog, served: &ServedTools) {
    let problems = error.problems.iter_mut().map(|problem| &mut problem.suggestion);
    for advice in problems.chain([&mut error.suggestion]).flatten() {
        *advice = rewrite_text(advice, catalog, served);
    }
    for value in error.context.values_mut() {
        rewrite_suggestions(value, catalog, served);
    }
}

/// Rewrites the list `suggestions` of an error context.
fn rewrite_suggestions(context: &mut Value, catalog: Catalog, served: &ServedTools) {
    for advice in context.get_mut("suggestions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::String(text) = advice {
            *text = rewrite_text(text, catalog, served);
        }
    }
}

fn rewrite_text(advice: &str, catalog: Catalog, served: &ServedTools) -> String {
    let mut rewritten = String::new();
    let mut rest = advice;
    while let Some(at) = rest.find(PROGRAM) {
        let (before, from) = rest.split_at(at);
        // A quoted command ends at the closing quote, any other at the end of the text.
        let quoted = before.ends_with('\'').then(|| from.find('\'')).flatten();
        let (command, after) = from.split_at(quoted.unwrap_or(from.len()));
        let call = tool_call(command, catalog, served);
        let unquoted = |call: String| match quoted {
            Some(_) => (before.trim_end_matches('\''), call, after.strip_prefix('\'').unwrap_or(after)),
            None => (before, call, after),
        };
        let (before, text, after) = call.map_or((before, command.to_owned(), after), unquoted);
        rewritten.push_str(before);
        rewritten.push_str(&text);
        rest = after;
    }
    rewritten + rest
}

/// The tool call for a command; `None` if no served tool does the same.
fn tool_call(command: &str, catalog: Catalog, served: &ServedTools) -> Option<String> {
    let args: Vec<OsString> = shell::split(command)?.into_iter().map(OsString::from).collect();
    let invocation = argv::parse(catalog, &args).ok()?;
    let spec = invocation.spec?;
    let name = served.prefixed_name(&spec.snake_name()).filter(|_| invocation.problems.is_empty())?;
    Some(match invocation.object.is_empty() {
        true => name,
        false => format!("{name} {}", Value::Object(invocation.object)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_a_served_tool_become_tool_calls() {
        let names = ["local_status", "local_wait", "local_resume"].map(str::to_owned).to_vec();
        let served = ServedTools { prefix: "_codex_".to_owned(), names };
        for (advice, expected) in [
            ("'mcp-delegator local status' lists the tasks.", "_codex_local_status lists the tasks."),
            (
                "Wait for it first: mcp-delegator local wait T-local-1",
                r#"Wait for it first: _codex_local_wait {"task_id":"T-local-1"}"#,
            ),
            (
                "Go on: mcp-delegator local resume 'go on' --task-id T-local-1",
                r#"Go on: _codex_local_resume {"task":"go on","task_id":"T-local-1"}"#,
            ),
            ("Or 'mcp-delegator local exec x'.", "Or 'mcp-delegator local exec x'."),
            ("See what is missing: mcp-delegator doctor", "See what is missing: mcp-delegator doctor"),
            (
                "'mcp-delegator doctor' or 'mcp-delegator local status'.",
                "'mcp-delegator doctor' or _codex_local_status.",
            ),
            ("It is mcp-delegator's own.", "It is mcp-delegator's own."),
            ("Nothing of the kind.", "Nothing of the kind."),
        ] {
            assert_eq!(rewrite_text(advice, crate::app::command_list::catalog(), &served), expected);
        }
    }
}
