//! Whether an agent did anything before it failed: callers retry or run another agent only if it did not.

use delegator_domain::agents::AgentProtocol;
use delegator_transcript::{ErrorCode, Report, StreamOutcome};

use crate::agent::reported_failure;

/// Shorter texts may be part of any message.
const MIN_QUOTE_BYTES: usize = 12;
/// What agents write around an error: `Ran into this error: … Please retry if you think …`.
const MAX_CONTEXT_BYTES: usize = 128;

/// Errors are no work, and neither is a last message that only says why the turn failed: some agents send
/// their error as a message, too.
pub fn has_acted(report: &Report) -> bool {
    let last = report.final_message.as_ref().map(|message| message.text.as_str()).unwrap_or_default();
    let only_states_failure = match &report.outcome {
        StreamOutcome::Failed { message, code } => states_failure(last, message, *code),
        _ => false,
    };
    report.counts.items.iter().any(|(kind, count)| match kind.as_str() {
        "error" => false,
        "agent_message" => *count > u64::from(only_states_failure),
        _ => true,
    })
}

/// Whether a text is the failure, quotes it with little more, or is an error of the same kind in other words.
fn states_failure(text: &str, failure: &str, code: Option<ErrorCode>) -> bool {
    let kind = |text: &str, code| reported_failure(AgentProtocol::Acp, text, code);
    let is_of_kind = kind(failure, code).is_some_and(|expected| kind(text, None) == Some(expected));
    let [text, failure] = [text, failure].map(|text| text.trim().trim_end_matches('.'));
    let is_quote = |part: &str, whole: &str| part.len() >= MIN_QUOTE_BYTES && whole.contains(part);
    let is_quoted = is_quote(failure, text) && text.len() - failure.len() <= MAX_CONTEXT_BYTES;
    text == failure || is_quote(text, failure) || is_quoted || is_of_kind
}
