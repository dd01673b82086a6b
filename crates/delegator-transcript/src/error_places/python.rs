//! Python: `Traceback (most recent call last):`, frames from the outermost in, and at the end the exception. A syntax
//! error has a frame without a traceback. Exceptions that led to each other are printed one after the other with a
//! sentence between: the last one counts. Groups of exceptions are drawn with bars at the left. And pytest, which ends its own kind of trace with `test_x.py:5: ValueError`
//! and marks what is wrong with `E`.

use super::Found;
use super::place::{Draft, Line, is_error_name, named_message, number};

#[derive(Debug, Default)]
pub(super) struct Python<'t> {
    /// Inside a traceback.
    frames: Option<Frames<'t>>,
    /// A whole one, and how many more lines its message may have. It is given up if the next words say that it only
    /// led to another.
    done: Option<(Draft<'t>, u8)>,
    /// What pytest marked first since the last place.
    marked: Option<&'t str>,
}

#[derive(Debug, Default)]
struct Frames<'t> {
    /// The innermost of the user's code.
    own: Option<(&'t str, u32)>,
    /// The innermost of all that lie in a file.
    any: Option<(&'t str, u32)>,
}

/// Lines of a message behind the first.
const PATIENCE: u8 = 4;

const CHAINED: [&str; 2] = [
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
];

impl<'t> Python<'t> {
    pub(super) fn line(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        let (body, is_marked) = match line.text.strip_prefix("E  ") {
            Some(marked) => (marked.trim_start(), true),
            None => (line.words.strip_prefix("| ").unwrap_or(line.text), false),
        };
        let words = body.trim_start();
        let is_traceback =
            words.trim_start_matches("+ Exception Group ").starts_with("Traceback (most recent call last)");
        if self.done.is_some() && !line.is_blank() {
            if CHAINED.contains(&words) {
                self.done = None;
                return true;
            }
            self.wait_for_chain(is_traceback, found);
        }
        if is_traceback {
            self.frames = Some(Frames::default());
            return true;
        }
        if let Some(frame) = words.strip_prefix("File \"") {
            return self.frame(frame);
        }
        if self.frames.is_some() {
            let is_source = body.starts_with([' ', '\t']);
            if line.is_blank() || is_source || self.exception(words) {
                return true;
            }
        }
        if is_marked {
            self.marked.get_or_insert(words);
            return true;
        }
        self.pytest(line, found)
    }

    /// `/tmp/x.py", line 3, in <module>`
    fn frame(&mut self, text: &'t str) -> bool {
        let Some((file, rest)) = text.split_once("\", line ") else { return false };
        let Some((number, _)) = number(rest) else { return false };
        let frames = self.frames.get_or_insert_default();
        if !file.starts_with('<') {
            frames.any = Some((file, number));
            if is_own(file) {
                frames.own = frames.any;
            }
        }
        true
    }

    /// The line a traceback ends with.
    fn exception(&mut self, words: &'t str) -> bool {
        let Some(frames) = self.frames.take() else { return false };
        let Some((kind, message)) = named_message(words) else { return false };
        if let Some((file, line)) = frames.own.or(frames.any) {
            let message = if message.is_empty() { kind } else { message };
            let draft = Draft { file, line, column: None, message: message.into(), kind: Some(kind) };
            self.done = Some((draft, PATIENCE));
        }
        true
    }

    /// `test_x.py:5: AssertionError`; frames on the way to it have no name.
    fn pytest(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        let Some(position) = line.position.filter(|position| {
            position.file.ends_with(".py") && position.column.is_none() && !line.is_indented()
        }) else {
            return false;
        };
        let kind = position.message();
        if is_error_name(kind) && !kind.contains(' ') {
            self.end_done(found);
            let message = self.marked.take().unwrap_or(kind);
            // `E   ValueError: bad`: the name is told apart.
            let message =
                named_message(message).filter(|(name, _)| *name == kind).map_or(message, |(_, m)| m);
            found.add(&position.draft(message, Some(kind)));
            return true;
        }
        kind.is_empty()
    }

    /// A message may have several lines before it is told that it only led to another.
    fn wait_for_chain(&mut self, is_traceback: bool, found: &mut Found<'_>) {
        match &mut self.done {
            Some((_, patience)) if *patience > 0 && !is_traceback => *patience -= 1,
            _ => self.end_done(found),
        }
    }

    fn end_done(&mut self, found: &mut Found<'_>) {
        if let Some((done, _)) = self.done.take() {
            found.add(&done);
        }
    }

    pub(super) fn end(&mut self, found: &mut Found<'_>) {
        self.end_done(found);
        (self.frames, self.marked) = (None, None);
    }
}

/// Not the interpreter's library, not an installed package.
fn is_own(file: &str) -> bool {
    let library = ["/site-packages/", "/dist-packages/", "/lib/python", "/lib64/python", "\\Lib\\"];
    !library.iter().any(|part| file.contains(part))
}
