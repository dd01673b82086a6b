//! rustc and cargo: `error[E0308]: mismatched types`, then `--> src/main.rs:3:18`, then the source with what is
//! underlined. Only the first arrow after an error is its place; those of notes belong to notes. And panics:
//! `thread 'main' panicked at src/main.rs:3:5:` with the message below.

use std::borrow::Cow;

use super::Found;
use super::place::{Draft, Line, Position};

/// Lines between an error and its arrow.
const PATIENCE: u8 = 4;

#[derive(Debug, Default)]
pub(super) struct Rust<'t> {
    /// An error whose arrow has not come.
    header: Option<Header<'t>>,
    /// An error whose source is being shown.
    open: Option<Draft<'t>>,
    has_label: bool,
    panic: Option<Panic<'t>>,
}

#[derive(Debug)]
struct Header<'t> {
    kind: Option<&'t str>,
    message: &'t str,
    patience: u8,
}

#[derive(Debug)]
enum Panic<'t> {
    /// The next line says what happened.
    At(Position<'t>),
    /// `left` and `right` of an assertion may follow.
    Told(Draft<'t>),
}

impl<'t> Rust<'t> {
    pub(super) fn line(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        if self.panic.is_some() && self.panicked(line, found) {
            return true;
        }
        match line.words.as_bytes().first() {
            Some(b'e') if !line.is_indented() && self.is_header(line.words, found) => return true,
            Some(b'w') if ["warning: ", "warning["].iter().any(|start| line.text.starts_with(start)) => {
                self.end(found);
                return true;
            }
            Some(b'-') => {
                if let Some(place) = line.words.strip_prefix("--> ") {
                    self.arrow(place);
                    return true;
                }
            }
            Some(b't') if line.words.starts_with("thread '") && self.is_panic(line.words, found) => {
                return true;
            }
            _ => {}
        }
        // `--message-format short`
        if let Some(position) = &line.position
            && let Some(rest) = position.rest.strip_prefix(": error[")
            && let Some((kind, message)) = rest.split_once("]: ")
        {
            found.add(&position.draft(message, Some(kind)));
            return true;
        }
        self.shown_source(line, found)
    }

    /// `error[E0308]: mismatched types` or `error: expected expression`.
    fn is_header(&mut self, words: &'t str, found: &mut Found<'_>) -> bool {
        let Some(rest) = words.strip_prefix("error") else { return false };
        let (kind, message) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            Some((kind, message)) => (Some(kind), message),
            None => match rest.strip_prefix(": ") {
                Some(message) => (None, message),
                None => return false,
            },
        };
        self.end(found);
        self.header = Some(Header { kind, message, patience: PATIENCE });
        true
    }

    fn arrow(&mut self, place: &'t str) {
        let Some(header) = self.header.take() else { return };
        if let Some(position) = Position::at_start(place) {
            self.open = Some(position.draft(header.message, header.kind));
            self.has_label = false;
        }
    }

    /// The lines below an arrow: source, underlined; none of it is for anybody else.
    fn shown_source(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        if let Some(header) = &mut self.header {
            header.patience -= 1;
            if header.patience == 0 {
                self.header = None;
            }
        }
        let Some(open) = &mut self.open else { return false };
        if line.is_blank() {
            self.end(found);
            return true;
        }
        if !self.has_label
            && line.words.starts_with('|')
            && let Some((_, label)) = line.words.rsplit_once('^')
            && !label.trim().is_empty()
        {
            self.has_label = true;
            open.message = format!("{}: {}", open.message, label.trim()).into();
        }
        line.is_indented() || line.words.contains('|')
    }

    /// `thread 'main' panicked at src/main.rs:3:5:`, before Rust 1.73 `… panicked at 'message', src/main.rs:3:5`.
    fn is_panic(&mut self, words: &'t str, found: &mut Found<'_>) -> bool {
        let Some((_, place)) = words.split_once(" panicked at ") else { return false };
        if let Some(position) = Position::at_start(place) {
            self.panic = Some(Panic::At(position));
        } else if let Some((message, place)) = place.rsplit_once("', ")
            && let Some(position) = Position::at_start(place)
        {
            add_panic(&position.draft(message.trim_start_matches('\''), Some("panic")), found);
        }
        true
    }

    fn panicked(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        match self.panic.take() {
            Some(Panic::At(position)) => {
                self.panic = Some(Panic::Told(position.draft(line.words, Some("panic"))));
                true
            }
            Some(Panic::Told(mut draft)) if is_side(line.words) => {
                draft.message = Cow::Owned(format!("{}, {}", draft.message, line.words));
                self.panic = Some(Panic::Told(draft));
                true
            }
            Some(Panic::Told(draft)) => {
                add_panic(&draft, found);
                false
            }
            None => false,
        }
    }

    pub(super) fn end(&mut self, found: &mut Found<'_>) {
        self.header = None;
        if let Some(open) = self.open.take() {
            found.add(&open);
        }
        match self.panic.take() {
            Some(Panic::Told(draft)) => add_panic(&draft, found),
            Some(Panic::At(position)) => add_panic(&position.draft("", Some("panic")), found),
            None => {}
        }
    }
}

fn is_side(words: &str) -> bool {
    (words.starts_with("left: ") || words.starts_with("right: ")) && words.len() < 200
}

/// The standard library's own places say nothing about the user's code.
fn add_panic(draft: &Draft<'_>, found: &mut Found<'_>) {
    if !draft.file.starts_with("/rustc/") {
        found.add(draft);
    }
}
