//! Where something is wrong, according to what a failed command printed.
//!
//! Compilers, test runners and interpreters name the places of their errors in prose, each in its own way. One reader
//! per format knows one way, and only that. The text is gone through once, line by line; each line is shown to the
//! readers in turn, from the particular to the general, until one takes it. Taking a line does not mean that it names
//! a place: a reader takes warnings and quoted source too, so that nobody after it mistakes them for errors.
//!
//! Some formats tell the place before the message (a stack trace of Java), some after it (rustc), some far apart
//! (a Python traceback, whose last line says what it was about). Such readers hold a little state; what they hold is
//! given up when the format's shape ends. Where a stack has many frames the place is the innermost one that belongs
//! to the user's code: not the interpreter, not its library, and an installed dependency only if there is nothing
//! else. Of exceptions that caused each other the last one counts.
//!
//! No format is written down anywhere in the output, so all of this is a matter of shape. The readers rather miss a
//! place than invent one. Each line is looked at a bounded number of times, and each look is bounded by the line: the
//! whole is linear in the text, whatever the text is. Most outputs are of one format: a reader is asked at all only if
//! the text has one of the marks without which its format cannot be told ([`Marks`]).

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

use serde::Serialize;

use crate::control::strip_control_sequences;
use location::{Draft, Line};

/// Places kept of one command.
const MAX_LOCATIONS: usize = 20;
const MAX_MESSAGE_CHARS: usize = 300;
const MAX_KIND_CHARS: usize = 120;

/// A place a failed command complained about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorLocation {
    /// As printed; relative to the working directory where it was an absolute path below it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1, where it was told.
    pub column: Option<u32>,
    /// What is wrong there, at most 300 characters.
    pub message: String,
    /// What kind of error: `E0308`, `TypeError`, `TS2322`, `java.lang.NullPointerException`.
    pub kind: Option<String>,
}

/// What was read out of one command's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParsedErrors {
    /// In the order they were printed, each once.
    pub(crate) locations: Vec<ErrorLocation>,
    /// The one line that says most, at most 300 characters.
    pub(crate) message: String,
    pub(crate) kind: Option<String>,
}

/// Whether a line `path:line:column` is taken for an error although nothing else says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainLines {
    AreErrors,
    /// The command searches or shows text: such lines are what it found.
    AreContent,
}

/// Reads what a failed command printed. `tail` is the end of it where the middle is missing.
pub(crate) fn parse(
    output: &str,
    tail: Option<&str>,
    workdir: Option<&str>,
    plain_lines: PlainLines,
) -> ParsedErrors {
    let (output, tail) = (clean_output(output), tail.map(clean_output));
    let mut parsers = Parsers { plain: plain::Plain::new(plain_lines), ..Parsers::new(workdir) };
    match &tail {
        // The line at a cut is only a part of one.
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

/// Without colours; a line that was overwritten by way of a carriage return ends where that stands.
fn clean_output(output: &str) -> Cow<'_, str> {
    let plain = strip_control_sequences(output);
    match memchr::memchr(b'\r', plain.as_bytes()) {
        Some(_) => Cow::Owned(plain.replace("\r\n", "\n").replace('\r', "\n")),
        None => plain,
    }
}

/// What was found so far.
#[derive(Debug)]
struct FoundLocations<'w> {
    workdir: Option<&'w str>,
    locations: Vec<ErrorLocation>,
}

impl FoundLocations<'_> {
    fn add(&mut self, draft: &Draft<'_>) {
        let file = location::relative_to_workdir(draft.file, self.workdir);
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

/// Which formats a text can be in at all.
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

/// All formats, in the order they are asked.
#[derive(Debug)]
struct Parsers<'t, 'w> {
    rust: rust::Rust<'t>,
    python: python::Python<'t>,
    java: java::Java<'t>,
    node: node::Node<'t>,
    go: go::Go<'t>,
    eslint: eslint::Eslint<'t>,
    plain: plain::Plain<'t>,
    found: FoundLocations<'w>,
}

impl<'t, 'w> Parsers<'t, 'w> {
    fn new(workdir: Option<&'w str>) -> Self {
        Parsers {
            rust: rust::Rust::default(),
            python: python::Python::default(),
            java: java::Java::default(),
            node: node::Node::default(),
            go: go::Go::default(),
            eslint: eslint::Eslint::default(),
            plain: plain::Plain::new(PlainLines::AreErrors),
            found: FoundLocations { workdir, locations: Vec::new() },
        }
    }

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
            || self.plain.parse_line(line, found);
    }

    /// The text is over, or there is a hole in it.
    fn finish(&mut self) {
        let found = &mut self.found;
        self.rust.finish(found);
        self.python.finish(found);
        self.java.finish(found);
        self.node.finish(found);
        self.go.finish();
        self.eslint = eslint::Eslint::default();
    }
}
