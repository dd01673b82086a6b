//! The agent's final message in a result: complete on request, else its most useful part and the call for the
//! rest.
//!
//! The beginning of a message has its summary. The message of a plain agent is everything it printed, so its
//! end is shown.

use delegator_transcript::{Dialect, FinalMessage};

use crate::output::prelude::*;
use crate::output::truncation::apply::shorten;

/// Characters of the final message that every result contains.
const MAX_CHARS: usize = 8_000;
/// Marks the missing part; its length counts.
const MARK: &str = "[truncated]";
/// Above this many bytes an MCP response needs a larger size limit for the whole message.
const MAX_BYTES_WITHOUT_LIMIT: u64 = 30_000;
/// The largest `max_output_bytes`.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// How much of the final message is missing, and how to read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessageTruncation {
    pub shown_bytes: u64,
    /// As the agent wrote it.
    pub total_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

pub fn of_task(
    id: &TaskId,
    record: Option<&Record>,
    is_whole: bool,
    syntax: CallSyntax<'_>,
) -> (Option<String>, Option<MessageTruncation>) {
    let Some(report) = record.map(|record| &record.report) else { return (None, None) };
    let Some(message) = &report.final_message else { return (None, None) };
    let is_plain = report.dialect == Some(Dialect::Plain);
    let shown = if is_whole { message.text.clone() } else { truncate(&message.text, MAX_CHARS, is_plain) };
    let is_shortened = shown != message.text;
    let truncation = (is_shortened || message.truncated).then(|| MessageTruncation {
        shown_bytes: shown.len() as u64,
        total_bytes: message.bytes,
        suggestion: Some(syntax.sentence(&suggestion(id, message, is_shortened, syntax))),
    });
    (Some(shown), truncation)
}

fn suggestion(id: &TaskId, message: &FinalMessage, is_shortened: bool, syntax: CallSyntax<'_>) -> Suggestion {
    let is_command = syntax == CallSyntax::Commands;
    if !is_shortened || message.truncated && is_command {
        let logs = NextCall::for_task(&["logs"], id.as_str()).with("raw", true);
        return Suggestion::with_call("Only the agent's output has the whole message: {call}", logs);
    }
    let results = NextCall::for_task(&["local", "results"], id.as_str()).with("include_output", true);
    let needs_limit = !is_command && message.bytes > MAX_BYTES_WITHOUT_LIMIT;
    let results = if needs_limit {
        results.with("max_output_bytes", message.bytes.min(MAX_OUTPUT_BYTES))
    } else {
        results
    };
    let part = if message.truncated { "more of the" } else { "the whole" };
    Suggestion::with_call(format!("Read {part} message: {{call}}"), results)
}

/// At most `max_chars` of the beginning or of the end, including the mark.
fn truncate(text: &str, max_chars: usize, shows_end: bool) -> String {
    let count = text.chars().count();
    let retained = max_chars.saturating_sub(MARK.len() + 1);
    if count <= max_chars {
        text.to_owned()
    } else if shows_end {
        format!("{MARK} {}", text.chars().skip(count - retained).collect::<String>())
    } else {
        format!("{} {MARK}", text.chars().take(retained).collect::<String>())
    }
}

/// Shortens the message to the size limit, and updates how much of it is missing.
pub fn shrink(message: &mut Option<String>, missing: &mut Option<MessageTruncation>, max_bytes: usize) {
    let Some(text) = message else { return };
    let total_bytes = text.len() as u64;
    shorten(text, max_bytes);
    let shown_bytes = text.len() as u64;
    if shown_bytes != total_bytes {
        let unknown = MessageTruncation { shown_bytes, total_bytes, suggestion: None };
        missing.get_or_insert(unknown).shown_bytes = shown_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ServedTools;

    fn message(text: &str, bytes: u64) -> FinalMessage {
        FinalMessage { text: text.to_owned(), bytes, truncated: bytes > text.len() as u64 }
    }

    #[test]
    fn the_shown_part_fits_with_its_mark() {
        let text = "é".repeat(9_000);
        for shows_end in [false, true] {
            assert_eq!(truncate(&text, 8_000, shows_end).chars().count(), 8_000);
            assert_eq!(truncate("short", 8_000, shows_end), "short");
        }
        assert_eq!(truncate("abcdefghijklmnopq", 15, false), "abc [truncated]");
        assert_eq!(truncate("abcdefghijklmnopq", 15, true), "[truncated] opq");
    }

    #[test]
    fn the_remedy_returns_what_is_missing() {
        let id: TaskId = "T-local-0123456789".parse().unwrap();
        let sentence = |message: &FinalMessage, is_shortened, syntax: CallSyntax<'_>| {
            syntax.sentence(&suggestion(&id, message, is_shortened, syntax))
        };
        let served = ServedTools { prefix: "_codex_".to_owned(), names: vec!["local_results".to_owned()] };
        let tools = CallSyntax::Tools(&served);
        let text = "m".repeat(40_000);
        let long = message(&text, 40_000);
        assert_eq!(
            sentence(&long, true, CallSyntax::Commands),
            format!("Read the whole message: mcp-delegator results {id} --include-output")
        );
        let call = format!(r#"{{"task_id":"{id}","include_output":true,"max_output_bytes":40000}}"#);
        assert_eq!(
            sentence(&long, true, tools),
            format!("Read the whole message: _codex_local_results {call}")
        );
        let beyond = message(&text, 2 << 20);
        let logs = format!("mcp-delegator logs {id} --raw");
        assert!(sentence(&beyond, false, tools).ends_with(&logs));
        // `results` has only a part of this message.
        assert!(sentence(&beyond, true, CallSyntax::Commands).ends_with(&logs));
        assert!(sentence(&beyond, true, tools).starts_with("Read more of the message: _codex_local_results"));
    }
}
