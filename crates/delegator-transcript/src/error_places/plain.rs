//! Everybody else: `path:line:column`, then perhaps what is wrong. Without a column it counts only where the words say
//! that it is an error. Only names of source files count: times, URLs and ports look much the same.

use super::place::{Line, is_source};
use super::{Found, PlainLines};

#[derive(Debug)]
pub(super) struct Plain<'t> {
    lines: PlainLines,
    before: &'t str,
}

impl<'t> Plain<'t> {
    pub(super) fn new(lines: PlainLines) -> Self {
        Plain { lines, before: "" }
    }

    pub(super) fn line(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        if line.is_blank() || self.lines == PlainLines::AreContent {
            return false;
        }
        let before = std::mem::replace(&mut self.before, line.words);
        let Some(position) = line.position.filter(|position| is_source(position.file)) else { return false };
        let said = position.message();
        if position.column.is_none() && !says_error(said) {
            return false;
        }
        // Some tell first what is wrong, and the place alone on a line below it.
        let said = if said.is_empty() { before } else { said.trim_start_matches("- ") };
        let is_other = ["warning", "note", "info", "hint", "help"].iter().any(|word| {
            let start = said.get(..word.len()).unwrap_or_default();
            start.eq_ignore_ascii_case(word)
        });
        if !is_other {
            let message = said.strip_prefix("error: ").unwrap_or(said);
            found.add(&position.draft(message, None));
        }
        true
    }
}

fn says_error(said: &str) -> bool {
    let beginning = &said[..said.floor_char_boundary(80)];
    beginning.starts_with("***")
        || ["error", "Error", "ERROR", "fatal", "Exception"].iter().any(|word| beginning.contains(word))
}
