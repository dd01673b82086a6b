//! Parses rustc and cargo: `error[E0308]: mismatched types`, then `--> src/main.rs:3:18`, then the underlined
//! source. Only the first arrow after an error is its location; later arrows belong to notes. Also parses
//! panics: `thread 'main' panicked at src/main.rs:3:5:` with the message on the next line.

use std::borrow::Cow;

use super::location::{Draft, FoundLocations, Line, LineParser, Position};

/// Lines between an error and its arrow.
const MAX_LINES_TO_ARROW: u8 = 4;

#[derive(Debug, Default)]
pub(super) struct Rust<'t> {
    /// An error whose arrow has not been printed yet.
    header: Option<Header<'t>>,
    /// An error whose source lines are being printed.
    current: Option<Draft<'t>>,
    has_label: bool,
    panic: Option<Panic<'t>>,
}

#[derive(Debug)]
struct Header<'t> {
    kind: Option<&'t str>,
    message: &'t str,
    lines_left: u8,
}

#[derive(Debug)]
enum Panic<'t> {
    /// The next line is the message.
    AwaitingMessage(Position<'t>),
    /// `left` and `right` of an assertion may follow.
    WithMessage(Draft<'t>),
}

impl<'t> LineParser<'t> for Rust<'t> {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        if self.panic.is_some() && self.parse_panic_message(line, found) {
            return true;
        }
        match line.trimmed.as_bytes().first() {
            Some(b'e') if !line.is_indented() && self.parse_header(line.trimmed, found) => return true,
            Some(b'w') if ["warning: ", "warning["].iter().any(|start| line.text.starts_with(start)) => {
                self.finish(found);
                return true;
            }
            Some(b'-') => {
                if let Some(location) = line.trimmed.strip_prefix("--> ") {
                    self.parse_arrow(location);
                    return true;
                }
            }
            Some(b't') if line.trimmed.starts_with("thread '") && self.parse_panic(line.trimmed, found) => {
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
        self.parse_source(line, found)
    }

    fn finish(&mut self, found: &mut FoundLocations<'_>) {
        self.header = None;
        if let Some(draft) = self.current.take() {
            found.add(&draft);
        }
        match self.panic.take() {
            Some(Panic::WithMessage(draft)) => add_panic(&draft, found),
            Some(Panic::AwaitingMessage(position)) => add_panic(&position.draft("", Some("panic")), found),
            None => {}
        }
    }
}

impl<'t> Rust<'t> {
    /// `error[E0308]: mismatched types` or `error: expected expression`.
    fn parse_header(&mut self, text: &'t str, found: &mut FoundLocations<'_>) -> bool {
        let Some(rest) = text.strip_prefix("error") else { return false };
        let (kind, message) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            Some((kind, message)) => (Some(kind), message),
            None => match rest.strip_prefix(": ") {
                Some(message) => (None, message),
                None => return false,
            },
        };
        self.finish(found);
        self.header = Some(Header { kind, message, lines_left: MAX_LINES_TO_ARROW });
        true
    }

    fn parse_arrow(&mut self, location: &'t str) {
        let Some(header) = self.header.take() else { return };
        if let Some(position) = Position::at_start(location) {
            self.current = Some(position.draft(header.message, header.kind));
            self.has_label = false;
        }
    }

    /// Consumes the source lines below an arrow and appends the first label to the message.
    fn parse_source(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        if let Some(header) = &mut self.header {
            header.lines_left -= 1;
            if header.lines_left == 0 {
                self.header = None;
            }
        }
        let Some(current) = &mut self.current else { return false };
        if line.is_blank() {
            self.finish(found);
            return true;
        }
        if !self.has_label
            && line.trimmed.starts_with('|')
            && let Some((_, label)) = line.trimmed.rsplit_once('^')
            && !label.trim().is_empty()
        {
            self.has_label = true;
            current.message = format!("{}: {}", current.message, label.trim()).into();
        }
        line.is_indented() || line.trimmed.contains('|')
    }

    /// `thread 'main' panicked at src/main.rs:3:5:`, before Rust 1.73
    /// `… panicked at 'message', src/main.rs:3:5`.
    fn parse_panic(&mut self, text: &'t str, found: &mut FoundLocations<'_>) -> bool {
        let Some((_, location)) = text.split_once(" panicked at ") else { return false };
        if let Some(position) = Position::at_start(location) {
            self.panic = Some(Panic::AwaitingMessage(position));
        } else if let Some((message, location)) = location.rsplit_once("', ")
            && let Some(position) = Position::at_start(location)
        {
            add_panic(&position.draft(message.trim_start_matches('\''), Some("panic")), found);
        }
        true
    }

    fn parse_panic_message(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        match self.panic.take() {
            Some(Panic::AwaitingMessage(position)) => {
                self.panic = Some(Panic::WithMessage(position.draft(line.trimmed, Some("panic"))));
                true
            }
            Some(Panic::WithMessage(mut draft)) if is_assertion_side(line.trimmed) => {
                draft.message = Cow::Owned(format!("{}, {}", draft.message, line.trimmed));
                self.panic = Some(Panic::WithMessage(draft));
                true
            }
            Some(Panic::WithMessage(draft)) => {
                add_panic(&draft, found);
                false
            }
            None => false,
        }
    }
}

fn is_assertion_side(text: &str) -> bool {
    (text.starts_with("left: ") || text.starts_with("right: ")) && text.len() < 200
}

/// Drops panics inside the standard library.
fn add_panic(draft: &Draft<'_>, found: &mut FoundLocations<'_>) {
    if !draft.file.starts_with("/rustc/") {
        found.add(draft);
    }
}
