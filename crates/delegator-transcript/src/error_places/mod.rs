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

mod c_family;
mod eslint;
mod go;
mod java;
mod node;
mod place;
mod plain;
mod python;
mod rust;
mod telling;
mod typescript;

use std::borrow::Cow;

use serde::Serialize;

use crate::control::without_sequences;
use place::{Draft, Line};

/// Places kept of one command.
const MOST_PLACES: usize = 20;
const LONGEST_MESSAGE: usize = 300;
const LONGEST_KIND: usize = 120;

/// A place a failed command complained about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorPlace {
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
pub(crate) struct ErrorReading {
    /// In the order they were printed, each once.
    pub(crate) places: Vec<ErrorPlace>,
    /// The one line that says most, at most 300 characters.
    pub(crate) message: String,
    pub(crate) kind: Option<String>,
}

/// Whether a line `path:line:column` is taken for an error although nothing else says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainLines {
    Count,
    /// The command searches or shows text: such lines are what it found.
    AreContent,
}

/// Reads what a failed command printed. `tail` is the end of it where the middle is missing.
pub(crate) fn read(
    output: &str,
    tail: Option<&str>,
    workdir: Option<&str>,
    plain: PlainLines,
) -> ErrorReading {
    let (output, tail) = (cleaned(output), tail.map(cleaned));
    let mut readers = Readers { plain: plain::Plain::new(plain), ..Readers::new(workdir) };
    match &tail {
        // The line at a cut is only a part of one.
        Some(tail) => {
            readers.read(output.rsplit_once('\n').map_or("", |(whole, _)| whole));
            readers.read(tail.split_once('\n').map_or("", |(_, whole)| whole));
        }
        None => readers.read(&output),
    }
    let places = readers.found.places;
    let (message, kind) = match places.first() {
        Some(first) => (first.message.clone(), first.kind.clone()),
        None => telling::line(tail.as_deref().unwrap_or(&output)),
    };
    ErrorReading { places, message, kind }
}

/// Without colours; a line that was overwritten by way of a carriage return ends where that stands.
fn cleaned(output: &str) -> Cow<'_, str> {
    let plain = without_sequences(output);
    match memchr::memchr(b'\r', plain.as_bytes()) {
        Some(_) => Cow::Owned(plain.replace("\r\n", "\n").replace('\r', "\n")),
        None => plain,
    }
}

/// What was found so far.
#[derive(Debug)]
struct Found<'w> {
    workdir: Option<&'w str>,
    places: Vec<ErrorPlace>,
}

impl Found<'_> {
    fn add(&mut self, draft: &Draft<'_>) {
        let file = place::shown(draft.file, self.workdir);
        let is_same = |known: &ErrorPlace| {
            known.file == file && known.line == draft.line && known.column == draft.column
        };
        if self.is_full() || self.places.iter().any(is_same) {
            return;
        }
        self.places.push(ErrorPlace {
            file: file.to_owned(),
            line: draft.line,
            column: draft.column,
            message: place::bounded(&draft.message, LONGEST_MESSAGE),
            kind: draft.kind.map(|kind| place::bounded(kind, LONGEST_KIND)),
        });
    }

    fn is_full(&self) -> bool {
        self.places.len() >= MOST_PLACES
    }
}

/// Which formats a text can be in at all.
#[derive(Clone, Copy, Debug)]
struct Marks {
    rust: bool,
    python: bool,
    java: bool,
    node: bool,
    typescript: bool,
    go: bool,
    linker: bool,
    eslint: bool,
}

impl Marks {
    fn of(text: &str) -> Self {
        let has = |mark: &str| memchr::memmem::find(text.as_bytes(), mark.as_bytes()).is_some();
        let has_frames = has(" at ") || has("\tat ");
        Marks {
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
struct Readers<'t, 'w> {
    rust: rust::Rust<'t>,
    python: python::Python<'t>,
    java: java::Java<'t>,
    node: node::Node<'t>,
    go: go::Go<'t>,
    eslint: eslint::Eslint<'t>,
    plain: plain::Plain<'t>,
    found: Found<'w>,
}

impl<'t, 'w> Readers<'t, 'w> {
    fn new(workdir: Option<&'w str>) -> Self {
        Readers {
            rust: rust::Rust::default(),
            python: python::Python::default(),
            java: java::Java::default(),
            node: node::Node::default(),
            go: go::Go::default(),
            eslint: eslint::Eslint::default(),
            plain: plain::Plain::new(PlainLines::Count),
            found: Found { workdir, places: Vec::new() },
        }
    }

    fn read(&mut self, text: &'t str) {
        let marks = Marks::of(text);
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]) {
            if self.found.is_full() {
                return;
            }
            self.line(&Line::of(&text[start..end]), marks);
            start = end + 1;
        }
        self.end();
    }

    fn line(&mut self, line: &Line<'t>, marks: Marks) {
        let found = &mut self.found;
        let _taken = marks.rust && self.rust.line(line, found)
            || marks.python && self.python.line(line, found)
            || marks.java && self.java.line(line, found)
            || marks.node && self.node.line(line, found)
            || marks.typescript && typescript::line(line, found)
            || marks.go && self.go.line(line, found)
            || marks.linker && c_family::linked(line, found)
            || c_family::line(line, found)
            || marks.eslint && self.eslint.line(line, found)
            || self.plain.line(line, found);
    }

    /// The text is over, or there is a hole in it.
    fn end(&mut self) {
        let found = &mut self.found;
        self.rust.end(found);
        self.python.end(found);
        self.java.end(found);
        self.node.end(found);
        self.go.end();
        self.eslint = eslint::Eslint::default();
    }
}
