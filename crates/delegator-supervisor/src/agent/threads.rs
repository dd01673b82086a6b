//! Whether an agent still has a thread, as far as its files show without running it.

/// What the files of an agent show about a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadLookup {
    /// The agent can resume it.
    Stored,
    /// The agent refuses to resume it until this command has run.
    Archived { unarchive: String },
    /// The agent's store does not hold it. `nearest` is a stored thread with a similar id.
    Unknown { nearest: Option<String> },
    /// The store could not be searched; only the agent can decide.
    NotSearchable,
}
