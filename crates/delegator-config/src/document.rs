//! Parses the text of a configuration file into checked values, and locates every problem by line and column.
//!
//! The parser continues after a syntax error. The text before the first error was parsed as intended, so its
//! problems are reported along with the syntax errors; the text after it may be misparsed and is not checked.
//! A duplicate key causes no misparsing: the first one counts and the rest of the file is checked as usual.

use std::path::Path;

use toml::de::DeTable;

use crate::check::Checker;
use crate::files;
use crate::keys::{self, Key, ProjectRight};
use crate::node::{Entry, entries_from_toml};
use crate::problem::{Origin, Position, Problem, ProblemSource, Source, ValueProblem};
use crate::resolve::Layer;

/// Message of the parser for a duplicate key.
const DUPLICATE_KEY_MESSAGE: &str = "duplicate key";

/// One missing quote can make every later line an error.
const MAX_SYNTAX_ERRORS: usize = 20;

/// Reads one file. `problem_source` is the source to report if the file cannot be read at all.
pub(crate) fn read_file(
    path: &Path,
    source: Source,
    problem_source: ProblemSource,
    home: Option<&Path>,
) -> (Layer, Vec<Problem>) {
    match files::read_text(path) {
        Ok(text) => read(&text, path, source, home),
        Err(error) => (Layer::new(), vec![Problem::of_source(problem_source, Some(path), error.to_string())]),
    }
}

/// Parses and checks a whole file of the user or of a project, which `source` says.
pub(crate) fn read(text: &str, path: &Path, source: Source, home: Option<&Path>) -> (Layer, Vec<Problem>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let starts_at = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    let reliable_until =
        errors.iter().filter(|error| error.message() != DUPLICATE_KEY_MESSAGE).map(starts_at).min();
    let checker = if reliable_until.is_none() { Checker::new(home) } else { Checker::for_fragment(home) };
    let mut reader = DocumentReader { text, path, source, checker, layer: Layer::new() };
    reader.read_section("", &entries_from_toml(document.get_ref()));
    let DocumentReader { checker, layer, .. } = reader;

    let is_truncated = checker.is_full() || errors.len() > MAX_SYNTAX_ERRORS;
    let is_reliable =
        |problem: &ValueProblem| reliable_until.is_none_or(|end| problem.at.is_some_and(|at| at < end));
    let mut problems_found: Vec<ValueProblem> = checker.problems.into_iter().filter(is_reliable).collect();
    problems_found.extend(errors.iter().take(MAX_SYNTAX_ERRORS).map(|error| syntax_problem(text, error)));
    problems_found.sort_by_key(|problem| problem.at);
    if is_truncated {
        problems_found.push(ValueProblem::more());
    }
    let problems = problems_found.into_iter();
    (layer, problems.map(|problem| problem.into_problem_in(source.into(), path, text)).collect())
}

fn syntax_problem(text: &str, error: &toml::de::Error) -> ValueProblem {
    let span = error.span();
    let at = Some(span.as_ref().map_or(0, |span| span.start));
    if error.message() != DUPLICATE_KEY_MESSAGE {
        return ValueProblem::new("", at, format!("not valid TOML: {}", error.message()));
    }
    let key = span.and_then(|span| text.get(span)).unwrap_or_default();
    ValueProblem::new(key, at, "the key is set twice")
}

struct DocumentReader<'a> {
    text: &'a str,
    path: &'a Path,
    source: Source,
    checker: Checker<'a>,
    layer: Layer,
}

impl DocumentReader<'_> {
    /// Reads the keys of one section; the top of the file is the section without a name.
    fn read_section(&mut self, section: &str, entries: &[Entry]) {
        for entry in entries {
            if self.checker.is_full() {
                return;
            }
            let name =
                if section.is_empty() { entry.name.clone() } else { format!("{section}.{}", entry.name) };
            // A quoted key with a dot is one name in TOML, and no key of ours.
            let is_undotted = !entry.name.contains('.');
            match keys::find(&name).filter(|_| is_undotted) {
                Some(key) => self.read_key(key, entry),
                None if is_undotted && keys::is_section(&name) => {
                    if let Some(entries) = self.checker.fields_of(&name, entry, "a table") {
                        self.read_section(&name, entries);
                    }
                }
                None => self.report_unknown(section, &name, entry),
            }
        }
    }

    fn read_key(&mut self, key: &'static Key, entry: &Entry) {
        if self.source == Source::Project && key.project == ProjectRight::None {
            self.checker.add_problem(key.name, entry.at, project_rights(), None);
            return;
        }
        let Some(value) = self.checker.value(&key.kind, key.name, &entry.node) else { return };
        let position = Position::of(self.text, entry.at.unwrap_or_default());
        let origin = Origin::File { source: self.source, path: self.path.to_owned(), position };
        self.layer.insert(key.name, (value, origin));
    }

    fn report_unknown(&mut self, section: &str, name: &str, entry: &Entry) {
        let misplaced = (!section.is_empty()).then(|| keys::find(&entry.name)).flatten();
        match misplaced {
            Some(key) => {
                let problem =
                    "this key belongs at the top of the file, before the first [section]".to_owned();
                self.checker.add_problem(name, entry.at, problem, Some(key.name.to_owned()));
            }
            None => {
                let nearest = keys::nearest(name).map(str::to_owned);
                self.checker.add(ValueProblem::of_unknown_key(name, entry.at, nearest));
            }
        }
    }
}

/// The problem text for a key that a project file must not set.
fn project_rights() -> String {
    let names = |right: ProjectRight| {
        keys::settings().filter(|key| key.project == right).map(|key| key.name).collect::<Vec<_>>().join(", ")
    };
    format!(
        "a project file may set only {}, and lower {}",
        names(ProjectRight::Set),
        names(ProjectRight::Lower)
    )
}

#[cfg(test)]
mod tests;
