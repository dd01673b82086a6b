//! Parses any other tool: `path:line:column`, optionally followed by a message. A line without a column
//! counts only if its text mentions an error. Only names of source files count, because times, URLs and ports
//! look similar.

use delegator_domain::text::beginning;

use super::location::{FoundLocations, Line, LineParser, is_source_file};

#[derive(Debug, Default)]
pub(super) struct Plain<'t> {
    previous_line: &'t str,
}

impl<'t> LineParser<'t> for Plain<'t> {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        if line.is_blank() {
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
        // Some tools print the message first, and the location alone on the line below.
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
    let beginning = beginning(text, 80);
    beginning.starts_with("***")
        || ["error", "Error", "ERROR", "fatal", "Exception"].iter().any(|word| beginning.contains(word))
}
