//! The rows of the document "Standard envelope".

mod failures;
mod format;
mod reflection;
mod responses;
mod values;

crate::row::document! {
    "004",
    "Standard envelope",
    "JSON of commands in files: sorted, indented, with a shape per kind of command.",
    90 statements in
    responses values failures format reflection
}
