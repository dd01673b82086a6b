//! Messages to the agent of a task, and answers to its questions. Only the supervisor passes them on.

pub(crate) mod messages;
pub(crate) mod questions;
