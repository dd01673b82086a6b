//! The rows of the document "CLI envelope".

mod envelope;

crate::row::document! {
    "002",
    "CLI envelope",
    "The JSON Schema of what every command prints on a pipe.",
    37 statements in
    envelope
}
