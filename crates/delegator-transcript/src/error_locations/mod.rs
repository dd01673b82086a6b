//! Finds the source locations named in the output of a failed command.
//!
//! Compilers, test runners and interpreters each print locations in their own format. There is one parser per format.
//! The text is scanned once; each line goes to the parsers in order, from the most specific to the most general, until
//! one consumes it. A parser also consumes warnings and quoted source, so that later parsers do not take them for
//! errors.
//!
//! Some formats print the location before the message (Java), some after it (rustc), some far apart (Python); those
//! parsers hold bounded state, which is flushed when the format ends. Of a stack trace the location is the innermost
//! frame of the user's code; a frame of an installed dependency is used only if there is no other. Of chained
//! exceptions the last counts.
//!
//! Parsers recognise formats by shape only. They must rather miss a location than invent one, and must stay linear in
//! the length of the text. A parser runs only if the text contains a mark of its format ([`PossibleFormats`]).

mod best_line;
mod c_family;
mod eslint;
mod go;
mod java;
mod location;
mod node;
mod plain;
mod python;
mod rust;
mod typescript;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::control::strip_control_sequences;
pub(crate) use location::relative_to_workdir;
use location::{Draft, Line};

/// Locations stored per command.
const MAX_LOCATIONS: usize = 20;
const MAX_MESSAGE_CHARS: usize = 300;
const MAX_KIND_CHARS: usize = 120;

/// A source location that a failed command reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorLocation {
    /// As printed; an absolute path inside the working directory is made relative to it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1; absent if the command printed none.
    pub column: Option<u32>,
    /// The error message, at most 300 characters.
    pub message: String,
    /// The error code or type: `E0308`, `TypeError`, `TS2322`, `java.lang.NullPointerException`.
    pub kind: Option<String>,
}

/// The result of parsing one command's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParsedErrors {
    /// In the order printed, without duplicates.
    pub(crate) locations: Vec<ErrorLocation>,
    /// The most informative line, at most 300 characters.
    pub(crate) message: String,
    pub(crate) kind: Option<String>,
}

/// Whether a line of the form `path:line:column` counts as an error when nothing else marks it as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlainLines {
    #[default]
    AreErrors,
    /// The command searches or prints text: such lines are content.
    AreContent,
}

/// Parses the output of a failed command. `tail` is its end if the middle is missing.
pub(crate) fn parse(
    output: &str,
    tail: Option<&str>,
    workdir: Option<&str>,
    plain_lines: PlainLines,
) -> ParsedErrors {
    let (output, tail) = (clean_output(output), tail.map(clean_output));
    let mut parsers = Parsers { plain_lines, ..Parsers::default() };
    parsers.found.workdir = workdir;
    match &tail {
        // The lines next to the gap are incomplete.
        Some(tail) => {
            parsers.parse_text(output.rsplit_once('\n').map_or("", |(whole, _)| whole));
            parsers.parse_text(tail.split_once('\n').map_or("", |(_, whole)| whole));
        }
        None => parsers.parse_text(&output),
    }
    let locations = parsers.found.locations;
    let (message, kind) = match locations.first() {
        Some(first) => (first.message.clone(), first.kind.clone()),
        None => best_line::find(tail.as_deref().unwrap_or(&output)),
    };
    ParsedErrors { locations, message, kind }
}

/// Removes control sequences and turns every carriage return into a line end.
fn clean_output(output: &str) -> Cow<'_, str> {
    let plain = strip_control_sequences(output);
    match memchr::memchr(b'\r', plain.as_bytes()) {
        Some(_) => Cow::Owned(plain.replace("\r\n", "\n").replace('\r', "\n")),
        None => plain,
    }
}

/// The locations found so far.
#[derive(Debug, Default)]
struct FoundLocations<'w> {
    workdir: Option<&'w str>,
    locations: Vec<ErrorLocation>,
}

impl FoundLocations<'_> {
    fn add(&mut self, draft: &Draft<'_>) {
        let file = relative_to_workdir(draft.file, self.workdir);
        let is_same = |known: &ErrorLocation| {
            known.file == file && known.line == draft.line && known.column == draft.column
        };
        if self.is_full() || self.locations.iter().any(is_same) {
            return;
        }
        self.locations.push(ErrorLocation {
            file: file.to_owned(),
            line: draft.line,
            column: draft.column,
            message: location::sanitize(&draft.message, MAX_MESSAGE_CHARS),
            kind: draft.kind.map(|kind| location::sanitize(kind, MAX_KIND_CHARS)),
        });
    }

    fn is_full(&self) -> bool {
        self.locations.len() >= MAX_LOCATIONS
    }
}

/// Which formats can occur in a text at all, judged by marks that each format always contains.
#[derive(Clone, Copy, Debug)]
struct PossibleFormats {
    rust: bool,
    python: bool,
    java: bool,
    node: bool,
    typescript: bool,
    go: bool,
    linker: bool,
    eslint: bool,
}

impl PossibleFormats {
    fn detect(text: &str) -> Self {
        let has = |mark: &str| memchr::memmem::find(text.as_bytes(), mark.as_bytes()).is_some();
        let has_frames = has(" at ") || has("\tat ");
        PossibleFormats {
            rust: has("--> ") || has(" panicked at ") || has(": error["),
            python: has("File \"") || has(".py:"),
            java: has_frames || has(".java:"),
            node: has_frames || has("\u{276f} "),
            typescript: has("): error ") || has(" - error "),
            go: has(".go:"),
            linker: has("undefined reference to "),
            eslint: has(" error  "),
        }
    }
}

/// The parsers of all formats, in the order in which they are tried.
#[derive(Debug, Default)]
struct Parsers<'t, 'w> {
    rust: rust::Rust<'t>,
    python: python::Python<'t>,
    java: java::Java<'t>,
    node: node::Node<'t>,
    go: go::Go<'t>,
    eslint: eslint::Eslint<'t>,
    plain: plain::Plain<'t>,
    plain_lines: PlainLines,
    found: FoundLocations<'w>,
}

impl<'t> Parsers<'t, '_> {
    fn parse_text(&mut self, text: &'t str) {
        let formats = PossibleFormats::detect(text);
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]) {
            if self.found.is_full() {
                return;
            }
            self.parse_line(&Line::new(&text[start..end]), formats);
            start = end + 1;
        }
        self.finish();
    }

    fn parse_line(&mut self, line: &Line<'t>, formats: PossibleFormats) {
        let found = &mut self.found;
        let _consumed = formats.rust && self.rust.parse_line(line, found)
            || formats.python && self.python.parse_line(line, found)
            || formats.java && self.java.parse_line(line, found)
            || formats.node && self.node.parse_line(line, found)
            || formats.typescript && typescript::parse_line(line, found)
            || formats.go && self.go.parse_line(line, found)
            || formats.linker && c_family::parse_linker_line(line, found)
            || c_family::parse_line(line, found)
            || formats.eslint && self.eslint.parse_line(line, found)
            || self.plain_lines == PlainLines::AreErrors && self.plain.parse_line(line, found);
    }

    /// Called at the end of the text and at a gap in it.
    fn finish(&mut self) {
        let found = &mut self.found;
        self.rust.finish(found);
        self.python.finish(found);
        self.java.finish(found);
        self.node.finish(found);
        self.go = go::Go::default();
        self.eslint = eslint::Eslint::default();
    }
}
