//! Whether an agent still has a thread, as far as its files show without running it.

use delegator_domain::similar_names;

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

impl ThreadLookup {
    /// A thread that is not among the stored ones.
    pub(super) fn unknown(thread_id: &str, stored: &[String]) -> ThreadLookup {
        let nearest = similar_names::nearest(thread_id, stored.iter().map(String::as_str));
        ThreadLookup::Unknown { nearest: nearest.map(str::to_owned) }
    }
}
