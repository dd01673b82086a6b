//! Java: stack traces (`at a.B.c(B.java:12)` below the exception, what caused it after `Caused by:`), javac
//! (`B.java:3: error: …`, with a caret under the column) and Maven (`[ERROR] /p/B.java:[3,5] …`). A stack names a file
//! without its folder, and so do we.

use super::Found;
use super::place::{Draft, Line, is_error_name, is_source, number};

/// Lines from javac's message to its caret.
const PATIENCE: u8 = 3;

#[derive(Debug, Default)]
pub(super) struct Java<'t> {
    exception: Option<(&'t str, &'t str)>,
    stack: Option<Stack<'t>>,
    /// Of javac: a place whose column is still to come.
    open: Option<(Draft<'t>, u8)>,
}

#[derive(Debug, Default)]
struct Stack<'t> {
    own: Option<(&'t str, u32)>,
    any: Option<(&'t str, u32)>,
    words: Option<(&'t str, &'t str)>,
}

impl<'t> Java<'t> {
    pub(super) fn line(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        if self.open.is_some() && self.caret(line, found) {
            return true;
        }
        if let Some(frame) = line.words.strip_prefix("at ").filter(|_| line.is_indented()) {
            return self.frame(frame);
        }
        if let Some(cause) = line.words.strip_prefix("Caused by: ") {
            self.stack = None;
            self.exception = exception(cause);
            return self.exception.is_some();
        }
        let goes_on = line.words.starts_with("... ") && line.words.ends_with(" more");
        if self.stack.is_some() && goes_on {
            return true;
        }
        self.end_stack(found);
        let words = match line.words.strip_prefix("Exception in thread \"") {
            Some(rest) => rest.split_once("\" ").map_or("", |(_, words)| words),
            None => line.words,
        };
        if let Some(exception) = exception(words) {
            // Others end their errors so too: only a stack of ours makes it one.
            self.exception = Some(exception);
            return false;
        }
        self.maven(line, found) || self.javac(line)
    }

    /// `a.B.c(B.java:12)`, perhaps behind the name of a module or of a class loader.
    fn frame(&mut self, text: &'t str) -> bool {
        let Some((method, place)) = text.split_once('(') else { return false };
        let Some((file, rest)) = place.split_once(':') else {
            return self.stack.is_some() || matches!(place, "Native Method)" | "Unknown Source)");
        };
        let is_jvm =
            [".java", ".kt", ".scala", ".groovy", ".clj"].iter().any(|ending| file.ends_with(ending));
        let Some((line, rest)) = number(rest).filter(|_| is_jvm && !file.contains('/')) else { return false };
        if !rest.starts_with(')') {
            return false;
        }
        let words = self.exception.take();
        let stack = self.stack.get_or_insert_with(|| Stack { words, ..Stack::default() });
        stack.any.get_or_insert((file, line));
        if is_own(method.rsplit('/').next().unwrap_or_default()) {
            stack.own.get_or_insert((file, line));
        }
        true
    }

    fn end_stack(&mut self, found: &mut Found<'_>) {
        let Some(Stack { own, any, words: Some((kind, message)) }) = self.stack.take() else { return };
        if let Some((file, line)) = own.or(any) {
            let message = if message.is_empty() { kind } else { message };
            found.add(&Draft { file, line, column: None, message: message.into(), kind: Some(kind) });
        }
    }

    /// `[ERROR] /p/B.java:[3,5] cannot find symbol`
    fn maven(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        let Some(rest) = line.words.strip_prefix("[ERROR] ") else { return false };
        let place = rest.split_once(":[").and_then(|(file, rest)| {
            let (line, rest) = number(rest)?;
            let (column, rest) = number(rest.strip_prefix(',')?)?;
            Some(Draft {
                file,
                line,
                column: Some(column),
                message: rest.strip_prefix(']')?.trim().into(),
                kind: None,
            })
        });
        if let Some(draft) = place.filter(|draft| is_source(draft.file)) {
            found.add(&draft);
            return true;
        }
        false
    }

    /// `B.java:3: error: cannot find symbol`
    fn javac(&mut self, line: &Line<'t>) -> bool {
        let Some(position) = line.position.filter(|position| position.file.ends_with(".java")) else {
            return false;
        };
        match position.rest.strip_prefix(": error: ") {
            Some(message) if position.column.is_none() => {
                self.open = Some((position.draft(message, None), PATIENCE));
                true
            }
            _ => position.rest.starts_with(": warning: "),
        }
    }

    /// The caret stands under the column, the source above it is shown as it is.
    fn caret(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        let Some((mut draft, patience)) = self.open.take() else { return false };
        if line.words == "^" {
            draft.column = u32::try_from(line.text.chars().count()).ok();
        } else if patience > 1 && line.position.is_none() {
            self.open = Some((draft, patience - 1));
            return true;
        }
        found.add(&draft);
        line.words == "^"
    }

    pub(super) fn end(&mut self, found: &mut Found<'_>) {
        self.end_stack(found);
        if let Some((draft, _)) = self.open.take() {
            found.add(&draft);
        }
        self.exception = None;
    }
}

/// `java.lang.NullPointerException: because`, a name with a package before it or one that says what it is.
fn exception(words: &str) -> Option<(&str, &str)> {
    let end = words.bytes().take(200).position(|b| !(b.is_ascii_alphanumeric() || b"_.$".contains(&b)));
    let (name, rest) = words.split_at(end.unwrap_or(words.len().min(200)));
    let message = if rest.is_empty() { "" } else { rest.strip_prefix(": ")? };
    is_error_name(name).then_some((name, message.trim()))
}

/// Not the Java platform, not what runs tests.
fn is_own(method: &str) -> bool {
    const OTHERS: [&str; 16] = [
        "java.",
        "javax.",
        "jdk.",
        "sun.",
        "com.sun.",
        "kotlin.",
        "scala.",
        "groovy.",
        "clojure.",
        "junit.",
        "org.junit.",
        "org.gradle.",
        "org.apache.maven.",
        "org.assertj.",
        "org.mockito.",
        "org.springframework.",
    ];
    !OTHERS.iter().any(|package| method.starts_with(package))
}
