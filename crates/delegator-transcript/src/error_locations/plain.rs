//! Everybody else: `path:line:column`, then perhaps what is wrong. Without a column it counts only where the words say
//! that it is an error. Only names of source files count: times, URLs and ports look much the same.

use super::location::{Line, is_source_file};
use super::{FoundLocations, PlainLines};

#[derive(Debug)]
pub(super) struct Plain<'t> {
    lines: PlainLines,
    previous_line: &'t str,
}

impl<'t> Plain<'t> {
    pub(super) fn new(lines: PlainLines) -> Self {
        Plain { lines, previous_line: "" }
    }

    pub(super) fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        if line.is_blank() || self.lines == PlainLines::AreContent {
            return false;
        }
        let previous_line = std::mem::replace(&mut self.previous_line, line.trimmed);
        let Some(position) = line.position.filter(|position| is_source_file(position.file)) else {
            return false;
        };
        let text = position.message();
        if position.column.is_none() && !mentions_error(text) {
            return false;
        }
        // Some tell first what is wrong, and the place alone on a line below it.
        let text = if text.is_empty() { previous_line } else { text.trim_start_matches("- ") };
        let is_not_error = ["warning", "note", "info", "hint", "help"].iter().any(|word| {
            let start = text.get(..word.len()).unwrap_or_default();
            start.eq_ignore_ascii_case(word)
        });
        if !is_not_error {
            let message = text.strip_prefix("error: ").unwrap_or(text);
            found.add(&position.draft(message, None));
        }
        true
    }
}

fn mentions_error(text: &str) -> bool {
    let beginning = &text[..text.floor_char_boundary(80)];
    beginning.starts_with("***")
        || ["error", "Error", "ERROR", "fatal", "Exception"].iter().any(|word| beginning.contains(word))
}
