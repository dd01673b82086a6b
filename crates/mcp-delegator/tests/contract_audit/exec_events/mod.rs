//! The rows of the document "Codex exec events".

mod events;

crate::row::document! {
    "001",
    "Codex exec events",
    "The lines that `codex exec --json` writes, one JSON object each.",
    72 statements in
    events
}
