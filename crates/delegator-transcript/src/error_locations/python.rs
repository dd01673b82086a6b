//! Parses Python tracebacks: frames from the outermost to the innermost, then the exception. A syntax error
//! has a frame without a traceback. Chained exceptions are printed one after the other with a sentence
//! between them; the last one counts. Exception groups have bars at the left. Also parses pytest, which ends
//! its traces with `test_x.py:5: ValueError` and marks the error with `E`.

use super::location::{
    Draft, FoundLocations, Line, LineParser, is_error_name, parse_number, split_error_name,
};

#[derive(Debug, Default)]
pub(super) struct Python<'t> {
    /// Set inside a traceback.
    frames: Option<Frames<'t>>,
    /// A complete traceback, and how many more lines its message may have. It is dropped if a chain sentence
    /// follows.
    pending: Option<(Draft<'t>, u8)>,
    /// The first line that pytest marked with `E` since the last location.
    first_marked_line: Option<&'t str>,
}

#[derive(Debug, Default)]
struct Frames<'t> {
    own_frame: Option<(&'t str, u32)>,
    any_frame: Option<(&'t str, u32)>,
}

/// Lines of a message after the first.
const MAX_EXTRA_MESSAGE_LINES: u8 = 4;

const CHAIN_SENTENCES: [&str; 2] = [
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
];

impl<'t> LineParser<'t> for Python<'t> {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let (body, is_marked) = match line.text.strip_prefix("E  ") {
            Some(marked) => (marked.trim_start(), true),
            None => (line.trimmed.strip_prefix("| ").unwrap_or(line.text), false),
        };
        let text = body.trim_start();
        let is_traceback =
            text.trim_start_matches("+ Exception Group ").starts_with("Traceback (most recent call last)");
        if self.pending.is_some() && !line.is_blank() {
            if CHAIN_SENTENCES.contains(&text) {
                self.pending = None;
                return true;
            }
            self.wait_for_chain(is_traceback, found);
        }
        if is_traceback {
            self.frames = Some(Frames::default());
            return true;
        }
        if let Some(frame) = text.strip_prefix("File \"") {
            return self.parse_frame(frame);
        }
        if self.frames.is_some() {
            let is_source_line = body.starts_with([' ', '\t']);
            if line.is_blank() || is_source_line || self.parse_exception(text) {
                return true;
            }
        }
        if is_marked {
            self.first_marked_line.get_or_insert(text);
            return true;
        }
        self.parse_pytest(line, found)
    }

    fn finish(&mut self, found: &mut FoundLocations<'_>) {
        self.flush_pending(found);
    }
}

impl<'t> Python<'t> {
    /// `/tmp/x.py", line 3, in <module>`
    fn parse_frame(&mut self, text: &'t str) -> bool {
        let Some((file, rest)) = text.split_once("\", line ") else { return false };
        let Some((number, _)) = parse_number(rest) else { return false };
        let frames = self.frames.get_or_insert_default();
        if !file.starts_with('<') {
            frames.any_frame = Some((file, number));
            if is_user_code(file) {
                frames.own_frame = frames.any_frame;
            }
        }
        true
    }

    /// Parses the last line of a traceback.
    fn parse_exception(&mut self, text: &'t str) -> bool {
        let Some(frames) = self.frames.take() else { return false };
        let Some((kind, message)) = split_error_name(text) else { return false };
        if let Some((file, line)) = frames.own_frame.or(frames.any_frame) {
            let message = if message.is_empty() { kind } else { message };
            let draft = Draft { file, line, column: None, message: message.into(), kind: Some(kind) };
            self.pending = Some((draft, MAX_EXTRA_MESSAGE_LINES));
        }
        true
    }

    /// `test_x.py:5: AssertionError`; the outer frames have no error name.
    fn parse_pytest(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let Some(position) = line.position.filter(|position| {
            position.file.ends_with(".py") && position.column.is_none() && !line.is_indented()
        }) else {
            return false;
        };
        let kind = position.message();
        if is_error_name(kind) && !kind.contains(' ') {
            self.flush_pending(found);
            let message = self.first_marked_line.take().unwrap_or(kind);
            // `E   ValueError: bad`: the name is reported separately.
            let message =
                split_error_name(message).filter(|(name, _)| *name == kind).map_or(message, |(_, m)| m);
            found.add(&position.draft(message, Some(kind)));
            return true;
        }
        kind.is_empty()
    }

    /// A message may have several lines before a chain sentence.
    fn wait_for_chain(&mut self, is_traceback: bool, found: &mut FoundLocations<'_>) {
        match &mut self.pending {
            Some((_, lines_left)) if *lines_left > 0 && !is_traceback => *lines_left -= 1,
            _ => self.flush_pending(found),
        }
    }

    fn flush_pending(&mut self, found: &mut FoundLocations<'_>) {
        if let Some((draft, _)) = self.pending.take() {
            found.add(&draft);
        }
    }
}

/// False for the standard library and installed packages.
fn is_user_code(file: &str) -> bool {
    let library = ["/site-packages/", "/dist-packages/", "/lib/python", "/lib64/python", "\\Lib\\"];
    !library.iter().any(|part| file.contains(part))
}
