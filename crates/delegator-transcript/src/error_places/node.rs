//! JavaScript stacks: `TypeError: …`, then `at f (/src/x.js:3:5)` from the innermost frame out. Node's own frames do
//! not count, those of `node_modules` only if there are no others. An uncaught error is preceded by `/src/x.js:3` and
//! the source, which for a syntax error is the only place there is. Vitest marks its frames with an arrow.

use super::Found;
use super::place::{Line, Position, is_error_name, is_file, named_message};

#[derive(Debug, Default)]
pub(super) struct Node<'t> {
    /// The last line that said what went wrong.
    error: Option<Words<'t>>,
    /// `/src/x.js:3` before an uncaught error.
    header: Option<Position<'t>>,
    before: &'t str,
    stack: Option<Stack<'t>>,
}

#[derive(Clone, Copy, Debug)]
struct Words<'t> {
    kind: Option<&'t str>,
    message: &'t str,
}

#[derive(Debug, Default)]
struct Stack<'t> {
    own: Option<Position<'t>>,
    installed: Option<Position<'t>>,
}

impl<'t> Node<'t> {
    pub(super) fn line(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        let frame = line.words.strip_prefix("at ").or_else(|| line.words.strip_prefix("\u{276f} "));
        if let Some(frame) = frame.filter(|_| line.is_indented()) {
            let stack = self.stack.get_or_insert_default();
            if stack.own.is_none()
                && let Some(position) = location(frame)
            {
                let is_installed = position.file.contains("node_modules/");
                let place = if is_installed { &mut stack.installed } else { &mut stack.own };
                place.get_or_insert(position);
            }
            return true;
        }
        if line.is_blank() {
            return false;
        }
        self.end_stack(found);
        if let Some(words) = error_words(line.words) {
            self.error = Some(words);
        }
        if let Some(position) = line.position
            && position.rest.is_empty()
            && position.column.is_none()
            && !line.is_indented()
            && is_script(position.file)
        {
            self.header = Some(position);
        }
        self.before = line.words;
        false
    }

    fn end_stack(&mut self, found: &mut Found<'_>) {
        let Some(stack) = self.stack.take() else { return };
        let error = self.error.take().or_else(|| other_words(self.before));
        let header = self.header.take();
        let Some(Words { kind, message }) = error else { return };
        if let Some(position) = stack.own.or(header).or(stack.installed) {
            found.add(&position.draft(message, kind));
        }
    }

    pub(super) fn end(&mut self, found: &mut Found<'_>) {
        self.end_stack(found);
        *self = Node::default();
    }
}

/// `f (/src/x.js:3:5)`, `async f (…)`, `/src/x.js:3:5`, `file:///src/x.js:3:5`.
fn location(frame: &str) -> Option<Position<'_>> {
    let frame = frame.strip_suffix('{').unwrap_or(frame).trim_end();
    let place = match frame.strip_suffix(')').and_then(|inner| inner.rsplit_once('(')) {
        Some((_, place)) => place,
        None => frame.strip_prefix("async ").unwrap_or(frame).rsplit(' ').next()?,
    };
    let place = place.strip_prefix("file://").unwrap_or(place);
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
    let is_place = line > 0 && is_script(file) && is_file(file);
    is_place.then_some(Position { file, line, column: Some(column), rest: "" })
}

/// `TypeError: x`, `AssertionError [ERR_ASSERTION]: x`, and what Jest says of an expectation.
fn error_words(words: &str) -> Option<Words<'_>> {
    let words = words.strip_prefix("Uncaught ").unwrap_or(words);
    let words = words.strip_prefix("[cause]: ").unwrap_or(words);
    if words.starts_with("expect(") {
        return Some(Words { kind: None, message: words });
    }
    let name_end = words.bytes().take(100).position(|b| !b.is_ascii_alphanumeric() && b != b'_')?;
    let (name, rest) = words.split_at(name_end);
    if !is_error_name(name) {
        return None;
    }
    // The code in brackets.
    let rest = match rest.strip_prefix(" [") {
        Some(code) => code.split_once(']')?.1,
        None => rest,
    };
    rest.strip_prefix(':').map(|message| Words { kind: Some(name), message: message.trim() })
}

/// The line above a stack, where it has a name that is not that of an error; warnings are none.
fn other_words(before: &str) -> Option<Words<'_>> {
    let (name, message) = named_message(before)?;
    let is_error = !name.ends_with("Warning") && !matches!(name, "Trace" | "warning" | "note");
    (is_error && !message.is_empty()).then_some(Words { kind: Some(name), message })
}

fn is_script(file: &str) -> bool {
    let ending = file.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
    matches!(ending, "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx" | "vue" | "svelte")
}
