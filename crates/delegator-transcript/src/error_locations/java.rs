//! Parses Java output: stack traces (`at a.B.c(B.java:12)` below the exception, its cause after
//! `Caused by:`), javac (`B.java:3: error: …`, with a caret under the column) and Maven
//! (`[ERROR] /p/B.java:[3,5] …`). A stack trace names files without their directory, so these locations have
//! only the file name.

use super::location::{
    Draft, FoundLocations, Line, LineParser, is_error_name, is_source_file, parse_number, split_error_name,
};

/// Lines between javac's message and its caret.
const MAX_LINES_TO_CARET: u8 = 3;

#[derive(Debug, Default)]
pub(super) struct Java<'t> {
    exception: Option<(&'t str, &'t str)>,
    stack: Option<Stack<'t>>,
    /// A javac error whose column is not known yet.
    awaiting_caret: Option<(Draft<'t>, u8)>,
}

#[derive(Debug, Default)]
struct Stack<'t> {
    own_frame: Option<(&'t str, u32)>,
    any_frame: Option<(&'t str, u32)>,
    error: Option<(&'t str, &'t str)>,
}

impl<'t> LineParser<'t> for Java<'t> {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        if self.awaiting_caret.is_some() && self.parse_caret(line, found) {
            return true;
        }
        if let Some(frame) = line.trimmed.strip_prefix("at ").filter(|_| line.is_indented()) {
            return self.parse_frame(frame);
        }
        if let Some(cause) = line.trimmed.strip_prefix("Caused by: ") {
            self.stack = None;
            self.exception = parse_exception(cause);
            return self.exception.is_some();
        }
        let is_elision = line.trimmed.starts_with("... ") && line.trimmed.ends_with(" more");
        if self.stack.is_some() && is_elision {
            return true;
        }
        self.end_stack(found);
        let text = match line.trimmed.strip_prefix("Exception in thread \"") {
            Some(rest) => rest.split_once("\" ").map_or("", |(_, text)| text),
            None => line.trimmed,
        };
        if let Some(exception) = parse_exception(text) {
            // Other languages print errors of this form too; it counts only if a Java stack follows.
            self.exception = Some(exception);
            return false;
        }
        self.parse_maven(line, found) || self.parse_javac(line)
    }

    fn finish(&mut self, found: &mut FoundLocations<'_>) {
        self.end_stack(found);
        if let Some((draft, _)) = self.awaiting_caret.take() {
            found.add(&draft);
        }
    }
}

impl<'t> Java<'t> {
    /// `a.B.c(B.java:12)`, optionally after the name of a module or class loader.
    fn parse_frame(&mut self, text: &'t str) -> bool {
        let Some((method, location)) = text.split_once('(') else { return false };
        let Some((file, rest)) = location.split_once(':') else {
            return self.stack.is_some() || matches!(location, "Native Method)" | "Unknown Source)");
        };
        let is_jvm =
            [".java", ".kt", ".scala", ".groovy", ".clj"].iter().any(|ending| file.ends_with(ending));
        let Some((line, rest)) = parse_number(rest).filter(|_| is_jvm && !file.contains('/')) else {
            return false;
        };
        if !rest.starts_with(')') {
            return false;
        }
        let error = self.exception.take();
        let stack = self.stack.get_or_insert_with(|| Stack { error, ..Stack::default() });
        stack.any_frame.get_or_insert((file, line));
        if is_user_code(method.rsplit('/').next().unwrap_or_default()) {
            stack.own_frame.get_or_insert((file, line));
        }
        true
    }

    fn end_stack(&mut self, found: &mut FoundLocations<'_>) {
        let Some(Stack { own_frame: own, any_frame: any, error: Some((kind, message)) }) = self.stack.take()
        else {
            return;
        };
        if let Some((file, line)) = own.or(any) {
            let message = if message.is_empty() { kind } else { message };
            found.add(&Draft { file, line, column: None, message: message.into(), kind: Some(kind) });
        }
    }

    /// `[ERROR] /p/B.java:[3,5] cannot find symbol`
    fn parse_maven(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let Some(rest) = line.trimmed.strip_prefix("[ERROR] ") else { return false };
        let location = rest.split_once(":[").and_then(|(file, rest)| {
            let (line, rest) = parse_number(rest)?;
            let (column, rest) = parse_number(rest.strip_prefix(',')?)?;
            Some(Draft {
                file,
                line,
                column: Some(column),
                message: rest.strip_prefix(']')?.trim().into(),
                kind: None,
            })
        });
        if let Some(draft) = location.filter(|draft| is_source_file(draft.file)) {
            found.add(&draft);
            return true;
        }
        false
    }

    /// `B.java:3: error: cannot find symbol`
    fn parse_javac(&mut self, line: &Line<'t>) -> bool {
        let Some(position) = line.position.filter(|position| position.file.ends_with(".java")) else {
            return false;
        };
        match position.rest.strip_prefix(": error: ") {
            Some(message) if position.column.is_none() => {
                self.awaiting_caret = Some((position.draft(message, None), MAX_LINES_TO_CARET));
                true
            }
            _ => position.rest.starts_with(": warning: "),
        }
    }

    /// The caret is under the column; source lines are printed unindented, so its offset is the column.
    fn parse_caret(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let Some((mut draft, lines_left)) = self.awaiting_caret.take() else { return false };
        if line.trimmed == "^" {
            draft.column = u32::try_from(line.text.chars().count()).ok();
        } else if lines_left > 1 && line.position.is_none() {
            self.awaiting_caret = Some((draft, lines_left - 1));
            return true;
        }
        found.add(&draft);
        line.trimmed == "^"
    }
}

/// `java.lang.NullPointerException: because`: an exception name and its message.
fn parse_exception(text: &str) -> Option<(&str, &str)> {
    split_error_name(text).filter(|(name, _)| is_error_name(name))
}

/// False for the Java platform, JVM languages and test libraries.
fn is_user_code(method: &str) -> bool {
    const LIBRARY_PACKAGES: &str = "java. javax. jdk. sun. com.sun. kotlin. scala. groovy. clojure. junit. org.junit. org.gradle. \
        org.apache.maven. org.assertj. org.mockito. org.springframework.";
    !LIBRARY_PACKAGES.split(' ').any(|package| method.starts_with(package))
}
