//! Describes an event in plain words, for people who follow a stream or read the log of a task.

use crate::control_sequences::strip_control_sequences;
use crate::error_locations::relative_to_workdir;
use crate::event::{CommandExecution, FileChange, Item, ItemDetails, ItemPhase, ItemStatus, ThreadEvent};
use crate::fold::activity::{describe_item, describe_retry, one_line};
use crate::json::Text;

const FAILED_TURN: &str = "Turn failed";

#[derive(Debug, Clone, Copy, Default)]
pub struct LogDetail {
    /// Also items that have not ended.
    pub is_live: bool,
    /// All that commands printed and all changed lines, not only the first and the last ones.
    pub is_full: bool,
}

/// Lines of what a command printed, or of an edit, that are shown of its beginning and of its end.
const FIRST_LINES: usize = 5;
const LAST_LINES: usize = 10;

/// Describes the events of one stream in their order. A failed turn repeats the error event before it, so its
/// line has no message then.
#[derive(Debug, Default)]
pub struct Headlines {
    last_error: Option<String>,
}

impl Headlines {
    /// One line without control characters.
    pub fn line(&mut self, event: &ThreadEvent<'_>, workdir: Option<&str>) -> String {
        if self.repeats_error(event) { FAILED_TURN.to_owned() } else { headline(event, workdir) }
    }

    /// For the log of a task: messages are complete, commands have their duration and what they printed,
    /// edits have the changed lines, and events that tell a person nothing are left out.
    pub fn log_text(
        &mut self,
        event: &ThreadEvent<'_>,
        workdir: Option<&str>,
        detail: LogDetail,
    ) -> Option<String> {
        if self.repeats_error(event) {
            Some(FAILED_TURN.to_owned())
        } else {
            log_text(event, workdir, detail)
        }
    }

    fn repeats_error(&mut self, event: &ThreadEvent<'_>) -> bool {
        match event {
            ThreadEvent::Error { message } => {
                self.last_error = Some(message.resolve().into_owned());
                false
            }
            ThreadEvent::TurnFailed { error } => {
                self.last_error.take().is_some_and(|last| last == error.message.resolve())
            }
            _ => false,
        }
    }
}

fn headline(event: &ThreadEvent<'_>, workdir: Option<&str>) -> String {
    match event {
        ThreadEvent::ThreadStarted { thread_id } => labelled("Thread", thread_id),
        ThreadEvent::TurnStarted => "Turn started".to_owned(),
        ThreadEvent::TurnCompleted { usage: None } => "Turn completed".to_owned(),
        ThreadEvent::TurnCompleted { usage: Some(usage) } => {
            let (input, cached) = (usage.input_tokens, usage.cached_input_tokens);
            let output = usage.output_tokens;
            format!("Turn completed: {input} tokens read ({cached} cached), {output} written")
        }
        ThreadEvent::TurnFailed { error } => labelled(FAILED_TURN, &error.message),
        ThreadEvent::Error { message } => {
            let text = describe_retry(&message.resolve());
            if text.starts_with("Reconnecting") { text } else { labelled("Error", message) }
        }
        ThreadEvent::Item { phase, item } => item_headline(*phase, item, workdir),
    }
}

/// Describes an event for the log of a task: messages are complete. `None` if the event tells a person
/// nothing: thread and turn starts, and, unless the log is `live`, an item that has not ended.
fn log_text(event: &ThreadEvent<'_>, workdir: Option<&str>, detail: LogDetail) -> Option<String> {
    match event {
        ThreadEvent::ThreadStarted { .. } | ThreadEvent::TurnStarted => None,
        ThreadEvent::Item { phase: ItemPhase::Completed, item } => match &item.details {
            ItemDetails::AgentMessage { text } => {
                Some(format!("Message: {}", strip_control_sequences(&text.resolve()).trim()))
            }
            ItemDetails::CommandExecution(command) => {
                // Without an exit code it may never have run.
                let duration_ms = command.exit_code.and(command.duration_ms);
                let duration = duration_ms.map(|ms| format!(" ({})", duration(ms)));
                let headline = headline(event, workdir) + &duration.unwrap_or_default();
                Some([vec![headline], shortened(printed_lines(command), detail)].concat().join("\n"))
            }
            ItemDetails::FileChange { changes } => {
                let lines = changes
                    .iter()
                    .flat_map(|change| edited_lines(change, changes.len() > 1, workdir, detail));
                Some(std::iter::once(headline(event, workdir)).chain(lines).collect::<Vec<_>>().join("\n"))
            }
            _ => Some(headline(event, workdir)),
        },
        ThreadEvent::Item { phase: ItemPhase::Updated, item } => {
            matches!(item.details, ItemDetails::TodoList { .. }).then(|| headline(event, workdir))
        }
        ThreadEvent::Item { phase: ItemPhase::Started, .. } if !detail.is_live => None,
        _ => Some(headline(event, workdir)),
    }
}

fn printed_lines(command: &CommandExecution<'_>) -> Vec<String> {
    let mut printed = lines(&command.output);
    if let Some(tail) = &command.output_tail {
        printed
            .push(format!("[only the beginning and the end of {} bytes are stored]", command.output_bytes));
        printed.extend(lines(tail));
    }
    printed
}

/// The changed lines of a file, below its path unless it is the only one.
fn edited_lines(
    change: &FileChange<'_>,
    is_one_of_several: bool,
    workdir: Option<&str>,
    detail: LogDetail,
) -> Vec<String> {
    let mut edited = shortened(lines(&change.diff), detail);
    if is_one_of_several {
        let path = one_line(relative_to_workdir(&change.path.resolve(), workdir));
        edited.insert(0, format!("{} {path}", change.kind.name()));
    }
    edited
}

fn lines(text: &Text<'_>) -> Vec<String> {
    let text = strip_control_sequences(&text.resolve()).into_owned();
    text.trim_end().lines().map(str::to_owned).collect()
}

/// Shortened in the middle, unless all lines are wanted.
fn shortened(mut lines: Vec<String>, detail: LogDetail) -> Vec<String> {
    let omitted = lines.len().saturating_sub(FIRST_LINES + LAST_LINES);
    // A mark in place of a single line would save nothing.
    if !detail.is_full && omitted > 1 {
        let mark = format!("[{omitted} lines omitted; logs --full shows them]");
        lines.splice(FIRST_LINES..FIRST_LINES + omitted, [mark]);
    }
    lines
}

/// `<1s`, `12s` or `1m 05s`.
fn duration(milliseconds: u64) -> String {
    match milliseconds / 1_000 {
        0 => "<1s".to_owned(),
        seconds @ 1..60 => format!("{seconds}s"),
        seconds => format!("{}m {:02}s", seconds / 60, seconds % 60),
    }
}

/// Strips control sequences first, so that a text with nothing else counts as empty.
fn labelled(what: &str, text: &Text<'_>) -> String {
    one_line(&format!("{what}: {}", strip_control_sequences(&text.resolve()).trim()))
}

fn item_headline(phase: ItemPhase, item: &Item<'_>, workdir: Option<&str>) -> String {
    match &item.details {
        ItemDetails::AgentMessage { text } => labelled("Message", text),
        ItemDetails::Reasoning { text } => labelled("Reasoning", text),
        ItemDetails::Error { message } => labelled("Warning", message),
        ItemDetails::TodoList { items } => {
            let done = items.iter().filter(|todo| todo.completed).count();
            format!("Plan: {done} of {} steps done", items.len())
        }
        details if phase == ItemPhase::Completed => {
            let activity = describe_item(details, workdir);
            match (details, item.status) {
                (ItemDetails::CommandExecution(CommandExecution { exit_code: Some(code), .. }), _) => {
                    format!("{activity}: exit {code}")
                }
                (ItemDetails::CommandExecution(_), Some(status)) => format!("{activity}: {}", status.name()),
                (_, None | Some(ItemStatus::Completed | ItemStatus::Other)) => format!("{activity}: done"),
                (_, Some(status)) => format!("{activity}: {}", status.name()),
            }
        }
        details => describe_item(details, workdir),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Event;
    use crate::decode::decode_text;

    #[test]
    fn a_log_has_whole_messages_and_ended_items() {
        let text = |line: &str, is_live| {
            let Event::Thread(event) = decode_text(line) else { panic!("{line}") };
            log_text(&event, None, LogDetail { is_live, is_full: false })
        };
        let message = r#"{"type":"item.completed","item":{"type":"agent_message","text":"Hi\nthere"}}"#;
        assert_eq!(text(message, false).as_deref(), Some("Message: Hi\nthere"));
        let started = r#"{"type":"item.started","item":{"type":"command_execution","command":"ls"}}"#;
        assert_eq!((text(started, false), text(started, true).as_deref()), (None, Some("Running ls")));
        assert_eq!(text(r#"{"type":"turn.started"}"#, true), None);
    }

    #[test]
    fn a_log_has_the_beginning_and_the_end_of_what_commands_printed() {
        let text = |lines: usize, is_full| {
            let output: String = (1..=lines).map(|number| format!("{number}\\n")).collect();
            let item = format!(
                r#"{{"type":"command_execution","command":"seq","aggregated_output":"{output}","exit_code":0}}"#
            );
            let line = format!(r#"{{"type":"item.completed","item":{item}}}"#);
            let Event::Thread(event) = decode_text(&line) else { panic!("{line}") };
            log_text(&event, None, LogDetail { is_live: false, is_full }).unwrap()
        };
        assert_eq!(text(0, false), "Running seq: exit 0");
        assert_eq!(text(2, false), "Running seq: exit 0\n1\n2");
        assert_eq!(text(16, false).lines().count(), 17, "a single line is not worth a mark");
        let short = text(40, false);
        assert!(short.contains("\n5\n[25 lines omitted; logs --full shows them]\n31\n"), "{short}");
        assert_eq!(text(40, true).lines().count(), 41);
    }

    #[test]
    fn a_failed_turn_does_not_repeat_its_error() {
        let mut headlines = Headlines::default();
        let mut line = |text: &str| {
            let Event::Thread(event) = decode_text(text) else { panic!("{text}") };
            headlines.log_text(&event, None, LogDetail::default())
        };
        let failed = r#"{"type":"turn.failed","error":{"message":"no quota"}}"#;
        assert_eq!(line(r#"{"type":"error","message":"no quota"}"#).as_deref(), Some("Error: no quota"));
        assert_eq!(line(failed).as_deref(), Some("Turn failed"));
        assert_eq!(line(failed).as_deref(), Some("Turn failed: no quota"), "the error of another turn");
    }

    #[test]
    fn every_kind_of_event_has_a_line() {
        for (line, expected) in [
            (r#"{"type":"thread.started","thread_id":"01a1"}"#, "Thread: 01a1"),
            (r#"{"type":"turn.started"}"#, "Turn started"),
            (
                r#"{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":4,"output_tokens":2}}"#,
                "Turn completed: 9 tokens read (4 cached), 2 written",
            ),
            (r#"{"type":"turn.failed","error":{"message":"a\nb"}}"#, "Turn failed: a…"),
            (r#"{"type":"error","message":"Reconnecting... 1/5 (x)"}"#, "Reconnecting to the model (1/5)"),
            (r#"{"type":"error","message":"quota"}"#, "Error: quota"),
            (
                r#"{"type":"item.completed","item":{"type":"agent_message","text":"Hi\u001b[1m"}}"#,
                "Message: Hi",
            ),
            (r#"{"type":"item.completed","item":{"type":"error","message":"w"}}"#, "Warning: w"),
            (
                r#"{"type":"item.started","item":{"type":"command_execution","command":"sh -c ls"}}"#,
                "Running ls",
            ),
            (
                r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls","exit_code":3,"status":"failed"}}"#,
                "Running ls: exit 3",
            ),
            (
                r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls","exit_code":null,"status":"declined"}}"#,
                "Running ls: declined",
            ),
            (
                r#"{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"/w/a","kind":"add"}],"status":"failed"}}"#,
                "Editing a: failed",
            ),
            (
                r#"{"type":"item.updated","item":{"type":"todo_list","items":[{"text":"x","completed":true},{"text":"y","completed":false}]}}"#,
                "Plan: 1 of 2 steps done",
            ),
        ] {
            let Event::Thread(event) = decode_text(line) else { panic!("{line}") };
            assert_eq!(headline(&event, Some("/w")), expected);
        }
    }
}
