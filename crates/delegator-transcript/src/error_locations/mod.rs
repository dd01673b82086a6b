//! Finds the source locations named in the output of a failed command.
//!
//! Compilers, test runners and interpreters each print locations in their own format. There is one parser per
//! format. The text is scanned once; each line goes to the parsers in order, from the most specific to the
//! most general, until one consumes it. A parser also consumes warnings and quoted source, so that later
//! parsers do not take them for errors.
//!
//! Some formats print the location before the message (Java), some after it (rustc), some far apart (Python);
//! those parsers hold bounded state, which is flushed when the format ends. The location of a stack trace is
//! the innermost frame of the user's code; a frame of an installed dependency is used only if there is no
//! other. The last of chained exceptions counts.
//!
//! Parsers recognise formats by shape only. They must rather miss a location than invent one, and must stay
//! linear in the length of the text. A parser runs only if the text contains a mark of its format.

mod best_line;
mod c_family;
mod go;
mod java;
mod javascript;
mod location;
mod plain;
mod python;
mod rust;

use std::borrow::Cow;

use crate::control_sequences::strip_control_sequences;
use c_family::{CFamily, Linker};
use go::Go;
use java::Java;
use javascript::{Eslint, Node, TypeScript};
pub use location::ErrorLocation;
pub(crate) use location::relative_to_workdir;
use location::{FoundLocations, Line, LineParser};
use plain::Plain;
use python::Python;
use rust::Rust;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParsedErrors {
    /// In the order printed, without duplicates.
    pub(crate) locations: Vec<ErrorLocation>,
    /// The most informative line, at most 300 characters.
    pub(crate) message: String,
    pub(crate) kind: Option<String>,
}

/// Parses the output of a failed command. `tail` is its end if the middle is missing. A line of the form
/// `path:line:column` that nothing else marks as an error is the content of a command that searches or prints
/// text, and an error if `plain_lines_are_errors`.
pub(crate) fn parse(
    output: &str,
    tail: Option<&str>,
    workdir: Option<&str>,
    plain_lines_are_errors: bool,
) -> ParsedErrors {
    let (output, tail) = (clean_output(output), tail.map(clean_output));
    let mut found = FoundLocations { workdir, locations: Vec::new() };
    let mut parse = |text| parse_text(text, plain_lines_are_errors, &mut found);
    match &tail {
        // The lines next to the gap are incomplete.
        Some(tail) => {
            parse(output.rsplit_once('\n').map_or("", |(whole, _)| whole));
            parse(tail.split_once('\n').map_or("", |(_, whole)| whole));
        }
        None => parse(&output),
    }
    let locations = found.locations;
    let (message, kind) = match locations.first() {
        Some(first) => (first.message.clone(), first.kind.clone()),
        None => best_line::find(tail.as_deref().unwrap_or(&output)),
    };
    ParsedErrors { locations, message, kind }
}

fn clean_output(output: &str) -> Cow<'_, str> {
    let plain = strip_control_sequences(output);
    match memchr::memchr(b'\r', plain.as_bytes()) {
        Some(_) => Cow::Owned(plain.replace("\r\n", "\n").replace('\r', "\n")),
        None => plain,
    }
}

/// Gives each line to the parsers in order until one consumes it. A parser comes with texts of which its
/// format always contains one.
fn parse_text<'t>(text: &'t str, plain_lines_are_errors: bool, found: &mut FoundLocations<'_>) {
    let has = |mark: &&str| memchr::memmem::find(text.as_bytes(), mark.as_bytes()).is_some();
    let mut parsers: Vec<(&[&str], Box<dyn LineParser<'t> + 't>)> = vec![
        (&["--> ", " panicked at ", ": error["], Box::new(Rust::default())),
        (&["File \"", ".py:"], Box::new(Python::default())),
        (&[" at ", "\tat ", ".java:"], Box::new(Java::default())),
        (&[" at ", "\tat ", "\u{276f} "], Box::new(Node::default())),
        (&["): error ", " - error "], Box::new(TypeScript)),
        (&[".go:"], Box::new(Go::default())),
        (&["undefined reference to "], Box::new(Linker)),
        (&[""], Box::new(CFamily)),
        (&[" error  "], Box::new(Eslint::default())),
    ];
    if plain_lines_are_errors {
        parsers.push((&[""], Box::new(Plain::default())));
    }
    parsers.retain(|(marks, _)| marks.iter().any(has));
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]) {
        if found.is_full() {
            return;
        }
        let line = Line::new(&text[start..end]);
        parsers.iter_mut().any(|(_, parser)| parser.parse_line(&line, found));
        start = end + 1;
    }
    for (_, parser) in &mut parsers {
        parser.finish(found);
    }
}
