//! Turns written values into checked ones: the only code that decides whether a value is valid for its key.
//!
//! A check does not stop at the first problem: a list reports each invalid item, an agent each invalid field.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delegator_domain::agents::BUILT_IN_AGENT;

use crate::keys::{self, DefaultValue, Key, TextFormat, ValueKind};
use crate::node::{Entry, Node, Shape};
use crate::paths::{self, PathError};
use crate::problem::{ValueProblem, quoted};
use crate::value::{Agent, Value, default_value};

/// A hostile or broken file can contain hundreds of thousands of problems; only the first ones are reported.
const MAX_PROBLEMS: usize = 100;

/// Checks values and collects their problems.
#[derive(Debug)]
pub(crate) struct Checker<'a> {
    home: Option<&'a Path>,
    /// Whether the whole file could be parsed, so that a missing field is known to be missing.
    is_complete: bool,
    problems: Vec<ValueProblem>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(home: Option<&'a Path>) -> Self {
        Checker { home, is_complete: true, problems: Vec::new() }
    }

    /// A checker for the readable part of a broken file: it reports nothing as missing.
    pub(crate) fn for_fragment(home: Option<&'a Path>) -> Self {
        Checker { is_complete: false, ..Checker::new(home) }
    }

    pub(crate) fn into_problems(self) -> Vec<ValueProblem> {
        self.problems
    }

    pub(crate) fn add_problem(
        &mut self,
        key: &str,
        at: Option<usize>,
        problem: String,
        suggestion: Option<String>,
    ) {
        if !self.is_full() {
            self.problems.push(ValueProblem { suggestion, ..ValueProblem::new(key, at, problem) });
        }
    }

    fn add_missing(&mut self, key: &str, at: Option<usize>, problem: String) {
        if self.is_complete {
            self.add_problem(key, at, problem, None);
        }
    }

    /// Whether the maximum number of problems is reached, so that no further check is needed.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// The checked value of the key `path`, or `None` after reporting its problems.
    pub(crate) fn value(&mut self, kind: &ValueKind, path: &str, node: &Node) -> Option<Value> {
        match (kind, &node.shape) {
            (ValueKind::Bool, Shape::Bool(value)) => Some(Value::Bool(*value)),
            (ValueKind::Integer { min, max, .. }, Shape::Integer { value, .. }) => {
                match value.filter(|number| (min..=max).contains(&number)) {
                    Some(number) => Some(Value::Integer(number)),
                    None => self.mismatch(kind, path, node),
                }
            }
            (ValueKind::Choice(choices), Shape::Text(text)) => {
                self.choice(choices, path, node.at, text).map(Value::Text)
            }
            (ValueKind::Text(format), Shape::Text(text)) => {
                self.text(*format, path, node.at, text).map(Value::Text)
            }
            (ValueKind::Program, Shape::Text(text)) => self.program(path, node.at, text).map(Value::Path),
            (ValueKind::Choices(choices), Shape::List(items)) => self
                .check_items(kind, path, items, |checker, at, text| checker.choice(choices, path, at, text))
                .map(Value::List),
            (ValueKind::Texts(format), Shape::List(items)) => self
                .check_items(kind, path, items, |checker, at, text| checker.text(*format, path, at, text))
                .map(Value::List),
            (ValueKind::Paths, Shape::List(items)) => self
                .check_items(kind, path, items, |checker, at, text| checker.path(path, at, text))
                .map(Value::Paths),
            (ValueKind::Command, Shape::List(items)) => self.command(kind, path, node, items),
            (ValueKind::ResumeArguments, Shape::List(items)) => {
                self.resume_arguments(kind, path, node, items)
            }
            (ValueKind::Labels, Shape::Table(entries)) => self.labels(path, entries),
            (ValueKind::Agents, Shape::Table(entries)) => self.agents(path, entries),
            _ => self.mismatch(kind, path, node),
        }
    }

    fn mismatch<T>(&mut self, kind: &ValueKind, path: &str, node: &Node) -> Option<T> {
        self.add_problem(path, node.at, format!("expected {kind}, found {}", node.shape.describe()), None);
        None
    }

    /// All checked items, or `None` if one is invalid; every invalid item is reported.
    fn check_items<T>(
        &mut self,
        kind: &ValueKind,
        path: &str,
        items: &[Node],
        mut check: impl FnMut(&mut Self, Option<usize>, &str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let checked: Vec<Option<T>> = items
            .iter()
            .map(|item| match &item.shape {
                Shape::Text(text) => check(self, item.at, text),
                other => {
                    let problem = format!("expected {kind}; an item is {}", other.describe());
                    self.add_problem(path, item.at, problem, None);
                    None
                }
            })
            .collect();
        checked.into_iter().collect()
    }

    fn choice(
        &mut self,
        choices: &'static [&'static str],
        path: &str,
        at: Option<usize>,
        text: &str,
    ) -> Option<String> {
        if choices.contains(&text) {
            return Some(text.to_owned());
        }
        let nearest = keys::nearest_among(text, choices.iter().copied()).map(str::to_owned);
        self.add_problem(
            path,
            at,
            format!("expected one of {}, found {}", choices.join(", "), quoted(text)),
            nearest,
        );
        None
    }

    fn text(&mut self, format: TextFormat, path: &str, at: Option<usize>, text: &str) -> Option<String> {
        if format.accepts(text) {
            return Some(text.to_owned());
        }
        let problem = match format {
            TextFormat::PassedVariable if TextFormat::VariableName.accepts(text) => {
                format!(
                    "{text} makes programs run code, so it is never passed to an agent; remove it from this list"
                )
            }
            _ => format!("expected {format}"),
        };
        self.add_problem(path, at, problem, None);
        None
    }

    fn path(&mut self, path: &str, at: Option<usize>, text: &str) -> Option<PathBuf> {
        if text.contains('\0') {
            self.add_problem(path, at, PathError::Relative.to_string(), None);
            return None;
        }
        match paths::absolute(Path::new(text), self.home) {
            Ok(absolute) => Some(absolute),
            Err(error) => {
                self.add_problem(path, at, error.to_string(), None);
                None
            }
        }
    }

    fn program(&mut self, path: &str, at: Option<usize>, text: &str) -> Option<PathBuf> {
        if TextFormat::ProgramName.accepts(text) {
            return Some(PathBuf::from(text));
        }
        match paths::absolute(Path::new(text), self.home) {
            Ok(absolute) if !text.contains('\0') => Some(absolute),
            Err(PathError::NoHome) => {
                self.add_problem(path, at, PathError::NoHome.to_string(), None);
                None
            }
            // A relative path would be resolved in the directory of a task, whose contents are not trusted.
            Ok(_) | Err(PathError::Relative) => {
                let problem = "expected a program name without `/`, or an absolute path".to_owned();
                self.add_problem(path, at, problem, None);
                None
            }
        }
    }

    fn command(&mut self, kind: &ValueKind, path: &str, node: &Node, items: &[Node]) -> Option<Value> {
        if items.is_empty() {
            return self.mismatch(kind, path, node);
        }
        let mut is_first = true;
        let args = self.check_items(kind, path, items, |checker, at, text| {
            if std::mem::take(&mut is_first) {
                let program = checker.program(path, at, text)?;
                return Some(program.to_string_lossy().into_owned());
            }
            checker.text(TextFormat::Argument, path, at, text)
        })?;
        Some(Value::List(args))
    }

    fn resume_arguments(
        &mut self,
        kind: &ValueKind,
        path: &str,
        node: &Node,
        items: &[Node],
    ) -> Option<Value> {
        let args = self.check_items(kind, path, items, |checker, at, text| {
            checker.text(TextFormat::Argument, path, at, text)
        })?;
        if args.iter().any(|arg| arg.contains("{thread_id}")) {
            return Some(Value::List(args));
        }
        self.add_missing(path, node.at, format!("expected {kind}; no item contains it"));
        None
    }

    fn labels(&mut self, path: &str, entries: &[Entry]) -> Option<Value> {
        let mut labels = BTreeMap::new();
        let mut is_valid = true;
        for Entry { name, at, node } in entries {
            if self.is_full() {
                return None;
            }
            let is_name = (1..=64).contains(&name.len())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/'));
            if !is_name {
                let problem = "expected a label name of 1 to 64 letters, digits, `.`, `_`, `-` or `/`";
                self.add_problem(path, *at, format!("{problem}, found {}", quoted(name)), None);
            }
            let text = match &node.shape {
                Shape::Text(text) if text.len() <= 256 && !text.contains(char::is_control) => Some(text),
                Shape::Text(_) => {
                    let problem = "expected at most 256 bytes of text without control characters".to_owned();
                    self.add_problem(&format!("{path}.{name}"), node.at, problem, None);
                    None
                }
                other => {
                    let problem = format!("expected text, found {}", other.describe());
                    self.add_problem(&format!("{path}.{name}"), node.at, problem, None);
                    None
                }
            };
            match text {
                Some(text) if is_name => drop(labels.insert(name.clone(), text.clone())),
                _ => is_valid = false,
            }
        }
        is_valid.then_some(Value::Labels(labels))
    }

    fn agents(&mut self, path: &str, entries: &[Entry]) -> Option<Value> {
        let mut agents = BTreeMap::new();
        let problems_before = self.problems.len();
        for entry in entries {
            if self.is_full() {
                return None;
            }
            let is_name = (1..=64).contains(&entry.name.len())
                && entry.name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_'));
            if !is_name {
                let problem = "expected an agent name of 1 to 64 lower-case letters, digits, `-` or `_`";
                self.add_problem(path, entry.at, format!("{problem}, found {}", quoted(&entry.name)), None);
                continue;
            }
            let agent_path = format!("{path}.{}", entry.name);
            match &entry.node.shape {
                Shape::Table(fields) => {
                    let agent = self.agent(&agent_path, entry, fields);
                    agents.insert(entry.name.clone(), agent);
                }
                other => {
                    let problem =
                        format!("expected a table with at least `command`, found {}", other.describe());
                    self.add_problem(&agent_path, entry.node.at, problem, None);
                }
            }
        }
        (self.problems.len() == problems_before).then_some(Value::Agents(agents))
    }

    fn agent(&mut self, path: &str, entry: &Entry, fields: &[Entry]) -> Agent {
        let is_built_in = entry.name == BUILT_IN_AGENT;
        let mut agent: Agent = keys::agent_fields()
            .filter_map(|(field, key)| default_value(key, 0).map(|value| (field, value)))
            .collect();
        if is_built_in {
            agent.insert("dialect", Value::Text("codex-exec".to_owned()));
        }
        let required = |(_, key): &(&str, &Key)| matches!(key.default, DefaultValue::Required);
        for (field, _) in keys::agent_fields().filter(required) {
            if !is_built_in && !fields.iter().any(|given| given.name == field) {
                self.add_missing(&format!("{path}.{field}"), entry.at, format!("`{field}` is missing"));
            }
        }
        for given in fields {
            if self.is_full() {
                break;
            }
            let field_path = format!("{path}.{}", given.name);
            match keys::agent_fields().find(|(field, _)| *field == given.name) {
                Some((field, key)) => {
                    if let Some(value) = self.value(&key.kind, &field_path, &given.node) {
                        agent.insert(field, value);
                    }
                }
                None => {
                    let nearest =
                        keys::nearest_among(&given.name, keys::agent_fields().map(|(field, _)| field));
                    let suggestion = nearest.map(|field| format!("{path}.{field}"));
                    self.add_problem(
                        &field_path,
                        given.at,
                        "an agent has no such field".to_owned(),
                        suggestion,
                    );
                }
            }
        }
        agent
    }
}
