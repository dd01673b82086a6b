//! What an entry of the log of a task is about, for the timelines of `watch` and the HTTP API.

use delegator_domain::named_enum;
use delegator_transcript::{CommandExecution, ItemDetails, ThreadEvent, looks_like_test_run};

named_enum! {
    pub enum EntryKind {
        Turn = "turn",
        Command = "command",
        Test = "test",
        Edit = "edit",
        Message = "message",
        Plan = "plan",
        Problem = "problem",
        Other = "other",
    }
}

impl EntryKind {
    /// The kind of the entry of an event, and whether what it reports has failed. A line of another stream has no event.
    pub fn of(event: Option<&ThreadEvent<'_>>) -> (EntryKind, bool) {
        match event {
            Some(ThreadEvent::TurnCompleted { .. }) => (EntryKind::Turn, false),
            Some(ThreadEvent::TurnFailed { .. } | ThreadEvent::Error { .. }) => (EntryKind::Problem, true),
            Some(ThreadEvent::Item { item, .. }) => of_item(&item.details),
            Some(ThreadEvent::ThreadStarted { .. } | ThreadEvent::TurnStarted) | None => {
                (EntryKind::Other, false)
            }
        }
    }
}

fn of_item(details: &ItemDetails<'_>) -> (EntryKind, bool) {
    match details {
        ItemDetails::CommandExecution(CommandExecution { command, exit_code, .. }) => {
            let is_test = looks_like_test_run(&command.resolve());
            let kind = if is_test { EntryKind::Test } else { EntryKind::Command };
            (kind, exit_code.is_some_and(|code| code != 0))
        }
        ItemDetails::FileChange { .. } => (EntryKind::Edit, false),
        ItemDetails::AgentMessage { .. } => (EntryKind::Message, false),
        ItemDetails::TodoList { .. } => (EntryKind::Plan, false),
        ItemDetails::Error { .. } => (EntryKind::Problem, true),
        _ => (EntryKind::Other, false),
    }
}
