//! Parses the output of tools for JavaScript: stacks of Node and of test runners, tsc and ESLint.

use super::location::{
    Draft, FoundLocations, Line, LineParser, Position, is_error_name, is_source_file, looks_like_file,
    parse_number, split_error_name,
};

/// Stacks: `TypeError: …`, then `at f (/src/x.js:3:5)` from the innermost frame outwards.
/// Node's own frames do not count; frames in `node_modules` count only if there are no others. Before an
/// uncaught error Node prints `/src/x.js:3` and the source, which for a syntax error is the only location.
/// Vitest marks its frames with an arrow.
#[derive(Debug, Default)]
pub(super) struct Node<'t> {
    error: Option<ErrorText<'t>>,
    /// `/src/x.js:3` before an uncaught error.
    header: Option<Position<'t>>,
    previous_line: &'t str,
    stack: Option<Stack<'t>>,
}

#[derive(Clone, Copy, Debug)]
struct ErrorText<'t> {
    kind: Option<&'t str>,
    message: &'t str,
}

#[derive(Debug, Default)]
struct Stack<'t> {
    own: Option<Position<'t>>,
    installed: Option<Position<'t>>,
}

impl<'t> LineParser<'t> for Node<'t> {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let frame = line.trimmed.strip_prefix("at ").or_else(|| line.trimmed.strip_prefix("\u{276f} "));
        if let Some(frame) = frame.filter(|_| line.is_indented()) {
            let stack = self.stack.get_or_insert_default();
            if stack.own.is_none()
                && let Some(position) = parse_location(frame)
            {
                let is_installed = position.file.contains("node_modules/");
                let slot = if is_installed { &mut stack.installed } else { &mut stack.own };
                slot.get_or_insert(position);
            }
            return true;
        }
        if line.is_blank() {
            return false;
        }
        self.end_stack(found);
        if let Some(error) = parse_error_text(line.trimmed) {
            self.error = Some(error);
        }
        if let Some(position) = line.position
            && position.rest.is_empty()
            && position.column.is_none()
            && !line.is_indented()
            && is_script(position.file)
        {
            self.header = Some(position);
        }
        self.previous_line = line.trimmed;
        false
    }

    fn finish(&mut self, found: &mut FoundLocations<'_>) {
        self.end_stack(found);
    }
}

impl<'t> Node<'t> {
    fn end_stack(&mut self, found: &mut FoundLocations<'_>) {
        let Some(stack) = self.stack.take() else { return };
        let error = self.error.take().or_else(|| error_above_stack(self.previous_line));
        let header = self.header.take();
        let Some(ErrorText { kind, message }) = error else { return };
        if let Some(position) = stack.own.or(header).or(stack.installed) {
            found.add(&position.draft(message, kind));
        }
    }
}

/// `f (/src/x.js:3:5)`, `async f (…)`, `/src/x.js:3:5`, `file:///src/x.js:3:5`.
fn parse_location(frame: &str) -> Option<Position<'_>> {
    let frame = frame.strip_suffix('{').unwrap_or(frame).trim_end();
    let location = match frame.strip_suffix(')').and_then(|inner| inner.rsplit_once('(')) {
        Some((_, location)) => location,
        None => frame.strip_prefix("async ").unwrap_or(frame).rsplit(' ').next()?,
    };
    let location = location.strip_prefix("file://").unwrap_or(location);
    let (rest, column) = location.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
    let is_location = line > 0 && is_script(file) && looks_like_file(file);
    is_location.then_some(Position { file, line, column: Some(column), rest: "" })
}

/// `TypeError: x`, `AssertionError [ERR_ASSERTION]: x`, and Jest's `expect(…)` lines.
fn parse_error_text(text: &str) -> Option<ErrorText<'_>> {
    let text = text.strip_prefix("Uncaught ").unwrap_or(text);
    let text = text.strip_prefix("[cause]: ").unwrap_or(text);
    if text.starts_with("expect(") {
        return Some(ErrorText { kind: None, message: text });
    }
    let name_end = text.bytes().take(100).position(|b| !b.is_ascii_alphanumeric() && b != b'_')?;
    let (name, rest) = text.split_at(name_end);
    if !is_error_name(name) {
        return None;
    }
    // Skip the error code in brackets.
    let rest = match rest.strip_prefix(" [") {
        Some(code) => code.split_once(']')?.1,
        None => rest,
    };
    rest.strip_prefix(':').map(|message| ErrorText { kind: Some(name), message: message.trim() })
}

/// The line above a stack whose name does not end in `Error`; warnings do not count.
fn error_above_stack(line: &str) -> Option<ErrorText<'_>> {
    let (name, message) = split_error_name(line)?;
    let is_error = !name.ends_with("Warning") && !matches!(name, "Trace" | "warning" | "note");
    (is_error && !message.is_empty()).then_some(ErrorText { kind: Some(name), message })
}

fn is_script(file: &str) -> bool {
    let ending = file.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
    matches!(ending, "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx" | "vue" | "svelte")
}

/// tsc: `a.ts(3,5): error TS2322: …`, and with `--pretty` `a.ts:3:5 - error TS2322: …`.
pub(super) struct TypeScript;

impl<'t> LineParser<'t> for TypeScript {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let draft = match &line.position {
            Some(position) => position.rest.strip_prefix(" - error ").and_then(|text| {
                let (kind, message) = split_code(text)?;
                Some(position.draft(message, Some(kind)))
            }),
            None => parse_parenthesised(line.trimmed),
        };
        match draft {
            Some(draft) => {
                found.add(&draft);
                true
            }
            // Indented locations of related declarations are consumed and ignored.
            None => {
                line.is_indented() && line.position.is_some_and(|position| position.rest.starts_with(" - "))
            }
        }
    }
}

/// `a.ts(3,5): error TS2322: …`; the C# compiler prints the same format with its own codes.
fn parse_parenthesised(text: &str) -> Option<Draft<'_>> {
    let (location, error) = text.split_once("): error ")?;
    let (file, location) = location.rsplit_once('(')?;
    let (line, rest) = parse_number(location)?;
    let (column, _) = parse_number(rest.strip_prefix(',')?)?;
    let (kind, message) = split_code(error)?;
    looks_like_file(file).then_some(Draft {
        file,
        line,
        column: Some(column),
        message: message.into(),
        kind: Some(kind),
    })
}

fn split_code(text: &str) -> Option<(&str, &str)> {
    let (code, message) = text.split_once(": ")?;
    let is_code = code.len() <= 12 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    is_code.then_some((code, message))
}

/// ESLint: the file on a line of its own, below it `3:5  error  'x' is never used  no-unused-vars`.
#[derive(Debug, Default)]
pub(super) struct Eslint<'t> {
    file: Option<&'t str>,
}

impl<'t> LineParser<'t> for Eslint<'t> {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        if line.is_blank() {
            self.file = None;
        } else if !line.is_indented() {
            let is_path = is_source_file(line.trimmed) && looks_like_file(line.trimmed);
            self.file = is_path.then_some(line.trimmed);
        } else if let Some(file) = self.file {
            return self.parse_problem(file, line.trimmed, found);
        }
        false
    }
}

impl<'t> Eslint<'t> {
    fn parse_problem(&self, file: &'t str, text: &'t str, found: &mut FoundLocations<'_>) -> bool {
        let Some((line, rest)) = parse_number(text) else { return false };
        let Some((column, rest)) = rest.strip_prefix(':').and_then(parse_number) else { return false };
        let Some(error_text) = rest.trim_start().strip_prefix("error ") else { return true };
        // The rule is separated by at least two spaces.
        let (message, rule) = match error_text.trim().rsplit_once("  ") {
            Some((message, rule)) if !rule.contains(' ') => (message.trim(), Some(rule)),
            _ => (error_text.trim(), None),
        };
        found.add(&Draft { file, line, column: Some(column), message: message.into(), kind: rule });
        true
    }
}
