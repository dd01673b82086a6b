//! Parses Go output: compiler and vet errors (`./x.go:3:5: undefined: y`), failed tests
//! (`x_test.go:12: got 3`, printed before `--- FAIL` with `-v` and after it without), and panics. A panic's
//! stack starts at the innermost function; each function is followed by a line with its file.

use super::location::{FoundLocations, Line, LineParser, Position};

/// Log lines of a test that are held until its verdict is printed.
const MAX_LOG_LINES: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Go<'t> {
    panic: Option<&'t str>,
    /// Set inside the first stack after a panic: the function that the next file line belongs to.
    stack: Option<&'t str>,
    /// A frame in an installed module; used if the stack has no frame of the user's code.
    installed: Option<Position<'t>>,
    /// Log lines of the current test, before its verdict.
    logs: Vec<Position<'t>>,
    has_failed: bool,
}

impl<'t> LineParser<'t> for Go<'t> {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        if let Some(message) = line.text.strip_prefix("panic: ") {
            // The test runner panics again with the value that it recovered.
            let message = message.strip_suffix(" [recovered]").unwrap_or(message);
            self.panic.get_or_insert(message);
            return true;
        }
        if let Some(message) = line.text.strip_prefix("fatal error: ") {
            self.panic.get_or_insert(message);
            return false;
        }
        if line.text.starts_with("goroutine ") && line.text.ends_with("]:") {
            self.stack = self.panic.map(|_| "");
            return true;
        }
        if self.stack.is_some() && self.parse_frame(line, found) {
            return true;
        }
        if self.parse_verdict(line, found) {
            return true;
        }
        let vet_position = line.trimmed.strip_prefix("vet: ").map(Position::at_start);
        let Some(position) =
            vet_position.unwrap_or(line.position).filter(|location| location.file.ends_with(".go"))
        else {
            return false;
        };
        if !position.rest.starts_with(':') {
            return false;
        }
        if position.column.is_none() && line.is_indented() && position.file.ends_with("_test.go") {
            self.parse_test_log(position, found);
            return true;
        }
        found.add(&position.draft(position.message(), None));
        true
    }
}

impl<'t> Go<'t> {
    fn parse_verdict(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let Some(rest) = line.trimmed.strip_prefix("--- ").or_else(|| line.trimmed.strip_prefix("=== "))
        else {
            return false;
        };
        self.has_failed = rest.starts_with("FAIL: ");
        if self.has_failed {
            for log in self.logs.drain(..) {
                found.add(&log.draft(log.message(), None));
            }
        }
        if !rest.starts_with("RUN") {
            self.logs.clear();
        }
        true
    }

    fn parse_test_log(&mut self, position: Position<'t>, found: &mut FoundLocations<'_>) {
        if self.has_failed {
            found.add(&position.draft(position.message(), None));
        } else if self.logs.len() < MAX_LOG_LINES {
            self.logs.push(position);
        }
    }

    /// A function, or below it `\t/src/x.go:8 +0x1d`.
    fn parse_frame(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        if line.is_blank() {
            self.end_stack(found);
            return true;
        }
        let Some(position) = line.position.filter(|_| line.text.starts_with('\t')) else {
            let is_function = line.trimmed.ends_with(')') || line.trimmed.starts_with("created by ");
            if is_function {
                self.stack = Some(line.trimmed);
            } else {
                self.end_stack(found);
            }
            return is_function;
        };
        let function = self.stack.unwrap_or_default();
        let is_go = ["panic(", "runtime.", "testing.", "created by "]
            .iter()
            .any(|prefix| function.starts_with(prefix));
        if position.file.contains("/pkg/mod/") {
            self.installed.get_or_insert(position);
        } else if !is_go {
            found.add(&position.draft(self.panic.unwrap_or_default(), Some("panic")));
            (self.panic, self.stack, self.installed) = (None, None, None);
        }
        true
    }

    fn end_stack(&mut self, found: &mut FoundLocations<'_>) {
        if let (Some(position), Some(message)) = (self.installed.take(), self.panic) {
            found.add(&position.draft(message, Some("panic")));
        }
        (self.panic, self.stack) = (None, None);
    }
}
