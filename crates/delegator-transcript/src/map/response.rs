//! Reads commands, patches and plans from the model calls in older session files.
//!
//! Before session files had items, they contained no event for a command or patch, only the model's call and
//! the output that the model received. Such a pair becomes an item if the output contains an exit code; a
//! refused call has none and, as in Codex's own stream, leaves no item. If an event reports the same call,
//! the event is used and the pair is dropped.

use super::effect::UnmappedReason;
use super::pending::Pending;
use crate::event::{CommandExecution, FileChange, ItemDetails, ItemStatus, Todo};
use crate::json::Text;
use crate::patch::patched_files;
use crate::protocol::ResponseItem;
use crate::shell;

#[derive(Debug, Default)]
pub(super) struct OpenResponses {
    calls: Pending<ModelCall>,
}

#[derive(Debug)]
enum ModelCall {
    Command(String),
    Patch(Vec<FileChange<'static>>),
}

impl OpenResponses {
    pub(super) fn discard(&mut self, call_id: &str) {
        self.calls.remove(call_id);
    }

    pub(super) fn plan(&self, response: &ResponseItem<'_>) -> Option<Vec<Todo<'static>>> {
        let ResponseItem::Call { name, input, .. } = response else { return None };
        if *name != *"update_plan" {
            return None;
        }
        let arguments: serde_json::Value = serde_json::from_str(&input.resolve()).ok()?;
        let steps = arguments.get("plan")?.as_array()?;
        Some(
            steps
                .iter()
                .filter_map(|step| {
                    let text = Text::owned(step.get("step")?.as_str()?);
                    Some(Todo { text, completed: step.get("status")?.as_str()? == "completed" })
                })
                .collect(),
        )
    }

    /// Returns a finished item, or why there is none.
    pub(super) fn apply(
        &mut self,
        response: ResponseItem<'_>,
    ) -> Result<(ItemStatus, ItemDetails<'static>), UnmappedReason> {
        match response {
            ResponseItem::Call { call_id, name, input } => {
                let call = parse_call(&name.resolve(), &input.resolve()).ok_or(UnmappedReason::Context)?;
                self.calls.insert(&call_id.resolve(), call, input.len());
                Err(UnmappedReason::Held)
            }
            ResponseItem::Output { call_id, output } => {
                let call = self.calls.remove(&call_id.resolve()).ok_or(UnmappedReason::Redundant)?;
                let (exit_code, output) = parse_output(&output.resolve()).ok_or(UnmappedReason::Ignored)?;
                Ok((ItemStatus::of_result(exit_code == 0), call.into_details(exit_code, output)))
            }
            ResponseItem::UserText(_) | ResponseItem::Other => Err(UnmappedReason::Context),
        }
    }
}

impl ModelCall {
    fn into_details(self, exit_code: i32, output: String) -> ItemDetails<'static> {
        match self {
            Self::Patch(changes) => ItemDetails::FileChange { changes },
            Self::Command(command) => {
                let (command, output) = (Text::owned(command), Text::owned(output));
                ItemDetails::CommandExecution(CommandExecution::ended(command, output, Some(exit_code)))
            }
        }
    }
}

fn parse_call(name: &str, input: &str) -> Option<ModelCall> {
    if name == "apply_patch" {
        // As a function it takes JSON, as a custom tool the patch itself.
        let in_json = serde_json::from_str::<serde_json::Value>(input).ok();
        let patch = in_json.as_ref().and_then(|json| json.get("input")?.as_str()).unwrap_or(input);
        return Some(ModelCall::Patch(patched_files(patch)));
    }
    if !matches!(name, "shell" | "shell_command" | "local_shell" | "exec_command" | "container.exec") {
        return None;
    }
    let arguments: serde_json::Value = serde_json::from_str(input).ok()?;
    match arguments.get("cmd").or_else(|| arguments.get("command"))? {
        serde_json::Value::String(line) => Some(ModelCall::Command(line.clone())),
        serde_json::Value::Array(words) => {
            let words: Vec<String> =
                words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect();
            Some(ModelCall::Command(shell::join(&words)))
        }
        _ => None,
    }
}

/// Parses exit code and output from a tool output: JSON with `metadata`, or a few header lines before the
/// output.
fn parse_output(text: &str) -> Option<(i32, String)> {
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(text) {
        let exit_code = json.get("metadata")?.get("exit_code")?.as_i64()?;
        let output = json.get("output")?.as_str()?.to_owned();
        return Some((i32::try_from(exit_code).ok()?, output));
    }
    let (header, output) = text.split_once("Output:\n").unwrap_or((text, ""));
    let exit_code = header.lines().find_map(|line| {
        let code =
            line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: "))?;
        code.trim().parse::<i32>().ok()
    })?;
    Some((exit_code, output.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_all_codex_versions_are_parsed() {
        for (text, exit_code, output) in [
            ("Wall time: 0.005 seconds\nProcess exited with code 3\nOutput:\nhi\n", 3, "hi\n"),
            ("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n", 0, "Success.\n"),
            (r#"{"output":"o\n","metadata":{"exit_code":1,"duration_seconds":0.0}}"#, 1, "o\n"),
        ] {
            assert_eq!(parse_output(text), Some((exit_code, output.to_owned())));
        }
        for refused in ["unsupported custom tool call: apply_patch", "aborted by user", "{}", ""] {
            assert_eq!(parse_output(refused), None);
        }
    }
}
