//! Part of the events of a task that runs elsewhere.

/// A position in the events of a task. The default is the beginning of the latest attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventPosition {
    /// The first attempt to run the task is 1.
    pub attempt: i32,
    /// In bytes.
    pub offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventPage {
    /// Not necessarily complete lines.
    pub bytes: Vec<u8>,
    pub next: EventPosition,
    /// A new attempt replaces the one of the requested position; the bytes are the beginning of its events.
    pub is_restarted: bool,
}
