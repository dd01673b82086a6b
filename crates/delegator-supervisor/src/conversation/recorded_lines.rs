//! Lines of recorded streams, for tests.

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Agent,
    /// We sent it to the agent.
    Us,
}

pub(super) fn message_of_text(line: &str) -> (Sender, &str) {
    let sent = line.trim_ascii().strip_prefix(r#"{"sent":"#).and_then(|rest| rest.strip_suffix('}'));
    sent.map_or((Sender::Agent, line), |message| (Sender::Us, message))
}
