//! The rows of the document "Codex exec events".

mod guarantees;
mod mapping;
mod types;

crate::row::document! {
    "001",
    "Codex exec events",
    "The lines that `codex exec --json` writes, one JSON object each.",
    72 statements in
    types mapping guarantees
}
