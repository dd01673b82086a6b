//! The rows of the document "Idle dialect".

mod events;
mod tool_results;

crate::row::document! {
    "003",
    "Idle dialect",
    "The events of agents that stay alive between turns, and how messages are queued for them.",
    38 statements in
    events tool_results
}
