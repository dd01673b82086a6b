//! What the HTTP API can be asked besides the commands: queries that a person at a page needs, and no command line.

pub mod events;
pub mod log;
pub mod messages;
pub mod tasks;
