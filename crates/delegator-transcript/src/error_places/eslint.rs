//! ESLint: the file on a line of its own, below it `3:5  error  'x' is never used  no-unused-vars`.

use super::Found;
use super::place::{Draft, Line, is_file, is_source, number};

#[derive(Debug, Default)]
pub(super) struct Eslint<'t> {
    file: Option<&'t str>,
}

impl<'t> Eslint<'t> {
    pub(super) fn line(&mut self, line: &Line<'t>, found: &mut Found<'_>) -> bool {
        if line.is_blank() {
            self.file = None;
        } else if !line.is_indented() {
            let is_path = is_source(line.words) && is_file(line.words);
            self.file = is_path.then_some(line.words);
        } else if let Some(file) = self.file {
            return self.problem(file, line.words, found);
        }
        false
    }

    fn problem(&self, file: &'t str, words: &'t str, found: &mut Found<'_>) -> bool {
        let Some((line, rest)) = number(words) else { return false };
        let Some((column, rest)) = rest.strip_prefix(':').and_then(number) else { return false };
        let Some(said) = rest.trim_start().strip_prefix("error ") else { return true };
        // The rule stands behind at least two blanks.
        let (message, rule) = match said.trim().rsplit_once("  ") {
            Some((message, rule)) if !rule.contains(' ') => (message.trim(), Some(rule)),
            _ => (said.trim(), None),
        };
        found.add(&Draft { file, line, column: Some(column), message: message.into(), kind: rule });
        true
    }
}
