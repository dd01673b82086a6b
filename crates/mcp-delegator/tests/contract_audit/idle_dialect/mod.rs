//! The rows of the document "Idle dialect".

mod events;

crate::row::document! {
    "003",
    "Idle dialect",
    "The events of agents that stay alive between turns, and how messages are queued for them.",
    37 statements in
    events
}
