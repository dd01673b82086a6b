//! Parses ESLint: the file on a line of its own, below it `3:5  error  'x' is never used  no-unused-vars`.

use super::location::{
    Draft, FoundLocations, Line, LineParser, is_source_file, looks_like_file, parse_number,
};

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
