//! The final message and the output of an agent in the document of a task: each text once, and how much of it
//! is missing.
//!
//! The stdout of a structured agent has an event with the final message, and the stdout of a plain agent is
//! the message. People read the events with `logs`.

use delegator_domain::text::beginning;
use delegator_engine::omitted_bytes;
use delegator_transcript::{FoldOptions, LineLimits, Summarizer};

use crate::output::data::output::{AgentOutput, MARK};
use crate::output::prelude::*;

/// Adds the streams to a document, and how much is missing. `stdout` is what the document shows of it.
pub(super) fn append_to(
    document: Document,
    task_id: &str,
    output: &AgentOutput,
    stdout: Option<Stdout>,
) -> Document {
    let append_stdout = |document: Document, stdout| match stdout {
        Stdout::Events(events) => {
            let logs = NextCall::for_task(&["logs"], task_id);
            document
                .block(Block::ForModels("The agent's stdout:", events))
                .block(Block::ForPeople(Suggestion::with_call("What the agent did: {call}", logs)))
        }
        Stdout::Text(text) => document.quote("The agent's stdout:", text),
    };
    let stderr = output.stderr.as_deref().filter(|stderr| !stderr.is_empty());
    document
        .with(stdout, append_stdout)
        .with(stderr, |document, stderr| document.quote("The agent's stderr:", stderr))
        .with(truncation_remark(output), Document::text)
}

fn truncation_remark(output: &AgentOutput) -> Option<String> {
    let original = output.original_size.filter(|_| output.truncated)?;
    let (shown, budget) = (output.size(), output.max_bytes);
    // A longer stream than can be stored has a gap below the limit of the answer.
    let exceeds_limit = shown == 0 || output.streams().any(|text| text.contains(MARK));
    let limit = if exceeds_limit { format!(", the limit is {budget}") } else { String::new() };
    Some(format!("The output was truncated: {shown} of {original} bytes{limit}."))
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stdout {
    /// The events of a structured agent, without the final message.
    Events(String),
    Text(String),
}

/// The final message and stdout of a result as a document shows them: each text once. The stdout of a
/// structured agent has an event with the message, and the stdout of a plain agent is the message.
pub(super) fn distinct_texts<'a>(
    message: Option<&'a str>,
    stdout: Option<&str>,
) -> (Option<&'a str>, Option<Stdout>) {
    let Some(stdout) = stdout.filter(|stdout| !stdout.is_empty()) else { return (message, None) };
    match message {
        _ if is_event_stream(stdout) => {
            (message, Some(Stdout::Events(without_message(stdout, message.unwrap_or_default()))))
        }
        Some(message) if contains_text(message, stdout) => (Some(message), None),
        Some(message) if contains_text(stdout, message) => (None, Some(Stdout::Text(stdout.to_owned()))),
        _ => (message, Some(Stdout::Text(stdout.to_owned()))),
    }
}

fn contains_text(longer: &str, shorter: &str) -> bool {
    let lines = |part: &str| -> Vec<String> {
        let mut runs = vec![String::new()];
        for line in part.lines() {
            match (omitted_bytes(line), runs.last_mut()) {
                (None, Some(run)) => run.extend([line, "\n"]),
                _ => runs.push(String::new()),
            }
        }
        runs
    };
    shorter.split(MARK.trim()).flat_map(lines).all(|run| longer.contains(run.trim()))
}

/// Enough of a long message to recognise it in a line that was truncated.
const MAX_RECOGNISED_BYTES: usize = 200;

/// The events, with a note in place of each that has the message.
fn without_message<'a>(events: &'a str, message: &str) -> String {
    let text = Value::from(message).to_string();
    let start = beginning(&text, MAX_RECOGNISED_BYTES);
    let line = |line: &'a str| if line.contains(start) { "[the event with the final message]" } else { line };
    if message.trim().is_empty() {
        events.to_owned()
    } else {
        events.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Whether this is the output of a structured agent. A plain agent may print JSON, too.
fn is_event_stream(stdout: &str) -> bool {
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    summarizer.push(stdout.as_bytes());
    summarizer.report().dialect.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::data::output::included;

    #[test]
    fn only_the_events_of_an_agent_are_an_event_stream() {
        assert!(is_event_stream(
            "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n"
        ));
        for plain in ["{\"answer\": 42}\n", "{\n  \"type\": \"report\"\n}\n", "text\n"] {
            assert!(!is_event_stream(plain), "{plain}");
        }
    }

    #[test]
    fn the_message_of_a_plain_agent_is_shown_once() {
        let texts = |message: &str, stdout: &str| {
            let (message, stdout) = distinct_texts(Some(message), Some(stdout));
            (message.is_some(), stdout.is_some())
        };
        assert_eq!(texts("a\nb\nc", "a\nb\nc\n"), (true, false));
        assert_eq!(texts("a\nb\nc", "a [truncated] c\n"), (true, false));
        let gap = "a\n{\"type\":\"delegator.omitted\",\"bytes\":2}\nc\n";
        assert_eq!(texts("a\nb\nc", gap), (true, false));
        assert_eq!(texts("[truncated] c", "a\nb\nc\n"), (false, true));
        assert_eq!(texts("other", "a\nb\nc\n"), (true, true));
    }

    #[test]
    fn the_message_of_a_structured_agent_is_shown_once() {
        let long = format!("line \"1\"\n{}", "é".repeat(1000));
        for (message, shown) in [("Done.", "Done."), (&long, &long), (&long, &long[..601])] {
            let event = json!({"type": "item.completed", "item": {"type": "agent_message", "text": shown}});
            let events = format!(
                "{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{event}\n{{\"type\":\"turn.started\"}}\n"
            );
            let (Some(whole), Some(Stdout::Events(events))) = distinct_texts(Some(message), Some(&events))
            else {
                panic!("{events}")
            };
            assert_eq!((whole, events.lines().count()), (message, 3));
            assert!(!events.contains("agent_message") && events.contains("turn.started"), "{events}");
        }
    }

    #[test]
    fn the_remark_names_the_limit_only_if_it_was_reached() {
        let output = |stdout: &str| included(stdout, "", 20, (90, 0));
        let remark = |stdout: &str| truncation_remark(&output(stdout)).unwrap();
        assert_eq!(remark("a [truncated] b"), "The output was truncated: 15 of 90 bytes, the limit is 20.");
        assert_eq!(remark("ab"), "The output was truncated: 2 of 90 bytes.");
    }
}
