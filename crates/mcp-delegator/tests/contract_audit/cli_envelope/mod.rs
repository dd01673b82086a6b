//! The rows of the document "CLI envelope".

mod envelope;

crate::row::document! {
    "002",
    "CLI envelope",
    "The JSON Schema of what every command prints on a pipe.",
    40 statements in
    envelope
}
