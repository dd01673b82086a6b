//! Turns written values into checked ones: the only code that decides whether a value is valid for its key.
//!
//! A checked value is JSON of the type that the key requires, with `~` replaced and, in an agent, every
//! default. A check does not stop at the first problem: a list reports each invalid item, an agent each
//! invalid field.

use std::collections::BTreeMap;
use std::path::Path;

use delegator_domain::agents::{DEFAULT_AGENT, built_in_agent};
use delegator_domain::notification::Template;
use delegator_domain::similar_names;
use serde_json::Value;

use crate::keys::{self, DefaultValue, TextFormat, ValueKind};
use crate::locations::{self, PathError};
use crate::node::{Entry, Node, Shape};
use crate::problem::{ValueProblem, escaped, quoted};

/// A hostile or broken file can contain hundreds of thousands of problems; only the first ones are reported.
const MAX_PROBLEMS: usize = 100;

#[derive(Debug)]
pub(crate) struct Checker<'a> {
    home: Option<&'a Path>,
    /// Whether the whole file could be parsed, so that a missing field is known to be missing.
    is_complete: bool,
    pub(crate) problems: Vec<ValueProblem>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(home: Option<&'a Path>) -> Self {
        Checker { home, is_complete: true, problems: Vec::new() }
    }

    /// A checker for the readable part of a broken file: it reports nothing as missing.
    pub(crate) fn for_fragment(home: Option<&'a Path>) -> Self {
        Checker { is_complete: false, ..Checker::new(home) }
    }

    pub(crate) fn add_problem(
        &mut self,
        key: &str,
        at: Option<usize>,
        problem: String,
        suggestion: Option<String>,
    ) {
        self.add(ValueProblem { suggestion, ..ValueProblem::new(key, at, problem) });
    }

    pub(crate) fn add(&mut self, problem: ValueProblem) {
        if !self.is_full() {
            self.problems.push(problem);
        }
    }

    /// Whether the maximum number of problems is reached, so that no further check is needed.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// The checked value of the key `path`, or `None` after reporting its problems.
    pub(crate) fn value(&mut self, kind: &ValueKind, path: &str, node: &Node) -> Option<Value> {
        match (kind, &node.shape) {
            (ValueKind::Bool, Shape::Bool(value)) => Some((*value).into()),
            (ValueKind::Integer { min, max, .. }, Shape::Integer { value: Some(number), .. })
                if (min..=max).contains(&number) =>
            {
                Some((*number).into())
            }
            (
                ValueKind::Choice(_) | ValueKind::Text(_) | ValueKind::Path | ValueKind::Program,
                Shape::Text(text),
            ) => self.text(kind, path, node.at, text).map(Value::from),
            (ValueKind::Command, Shape::List(items)) if items.is_empty() => self.mismatch(kind, path, node),
            (_, Shape::List(items)) if kind.is_list() => self.list(kind, path, items),
            (ValueKind::Labels, Shape::Table(entries)) => {
                self.table(entries, |checker, entry| checker.label(path, entry))
            }
            (ValueKind::Agents, Shape::Table(entries)) => {
                self.table(entries, |checker, entry| checker.agent(path, entry))
            }
            (ValueKind::Repositories, Shape::Table(entries)) => {
                self.table(entries, |checker, entry| checker.repository(path, entry))
            }
            _ => self.mismatch(kind, path, node),
        }
    }

    fn mismatch(&mut self, kind: &ValueKind, path: &str, node: &Node) -> Option<Value> {
        let problem = format!("expected {kind}, found {}", node.shape.describe());
        self.add(ValueProblem::of_value(path, node.at, problem, kind, node.shape.to_value()));
        None
    }

    /// All checked items, or `None` if one is invalid; every invalid item is reported.
    fn list(&mut self, kind: &ValueKind, path: &str, items: &[Node]) -> Option<Value> {
        let mut checked = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let item_kind = match kind {
                ValueKind::Choices(choices) => ValueKind::Choice(choices),
                ValueKind::Texts(format) => ValueKind::Text(*format),
                ValueKind::Command if index == 0 => ValueKind::Program,
                ValueKind::Paths => ValueKind::Path,
                _ => ValueKind::Text(TextFormat::Argument),
            };
            match &item.shape {
                Shape::Text(text) => checked.extend(self.text(&item_kind, path, item.at, text)),
                other => {
                    let problem = format!("expected {kind}; an item is {}", other.describe());
                    self.add(ValueProblem::of_value(path, item.at, problem, kind, other.to_value()));
                }
            }
        }
        if checked.len() < items.len() {
            return None;
        }
        Some(checked.into())
    }

    /// One checked text: a value, or an item of a list.
    fn text(&mut self, kind: &ValueKind, path: &str, at: Option<usize>, text: &str) -> Option<String> {
        let (problem, suggestion) = match kind {
            ValueKind::Choice(choices) if choices.contains(&text) => return Some(text.to_owned()),
            ValueKind::Choice(choices) => (
                format!("expected one of {}, found {}", choices.join(", "), quoted(text)),
                similar_names::nearest(text, choices.iter().copied()).map(str::to_owned),
            ),
            ValueKind::Text(format) if format.accepts(text) => return Some(text.to_owned()),
            ValueKind::Text(TextFormat::PassedVariable) if TextFormat::VariableName.accepts(text) => (
                format!(
                    "{text} makes programs run code, so it is never passed to an agent; remove it from this list"
                ),
                None,
            ),
            ValueKind::Text(TextFormat::Repository) if keys::has_password(text) => {
                ("must not contain a password: the file and every response would show it".to_owned(), None)
            }
            ValueKind::Text(TextFormat::NotificationTemplate) if let Err(problem) = Template::parse(text) => {
                (problem, None)
            }
            ValueKind::Text(format) => (format!("expected {format}"), None),
            ValueKind::Program if TextFormat::ProgramName.accepts(text) => return Some(text.to_owned()),
            _ => match locations::absolute_text(text, self.home) {
                Ok(absolute) => return Some(absolute),
                // A relative path would be resolved in the directory of a task, whose contents are not
                // trusted.
                Err(PathError::Relative) if matches!(kind, ValueKind::Program) => {
                    ("expected a program name without `/`, or an absolute path".to_owned(), None)
                }
                Err(error) => (error.to_string(), None),
            },
        };
        let problem = ValueProblem::of_value(path, at, problem, kind, Some(escaped(text).into()));
        self.add(ValueProblem { suggestion, ..problem });
        None
    }

    /// All checked entries of a table, or `None` if one has a problem, which `check` reports.
    fn table(
        &mut self,
        entries: &[Entry],
        check: impl Fn(&mut Self, &Entry) -> Option<(String, Value)>,
    ) -> Option<Value> {
        let mut checked = BTreeMap::new();
        let problems_before = self.problems.len();
        for entry in entries {
            if self.is_full() {
                return None;
            }
            checked.extend(check(self, entry));
        }
        (self.problems.len() == problems_before).then(|| checked.into_iter().collect())
    }

    fn label(&mut self, path: &str, Entry { name, at, node }: &Entry) -> Option<(String, Value)> {
        if !TextFormat::LabelName.accepts(name) {
            let problem = format!("expected {}, found {}", TextFormat::LabelName, quoted(name));
            self.add_problem(path, *at, problem, None);
        }
        let problem = match &node.shape {
            Shape::Text(text) if text.len() <= 256 && !text.contains(char::is_control) => {
                return Some((name.clone(), Value::from(text.as_str())));
            }
            Shape::Text(_) => "expected at most 256 bytes of text without control characters".to_owned(),
            other => format!("expected text, found {}", other.describe()),
        };
        self.add_problem(&format!("{path}.{name}"), node.at, problem, None);
        None
    }

    /// The fields of an entry that must be a table; `expected` describes it.
    pub(crate) fn fields_of<'e>(
        &mut self,
        path: &str,
        entry: &'e Entry,
        expected: &str,
    ) -> Option<&'e [Entry]> {
        if let Shape::Table(fields) = &entry.node.shape {
            return Some(fields);
        }
        let problem = format!("expected {expected}, found {}", entry.node.shape.describe());
        self.add_problem(path, entry.node.at, problem, None);
        None
    }

    fn repository(&mut self, path: &str, entry: &Entry) -> Option<(String, Value)> {
        let name = match locations::absolute_text(&entry.name, self.home) {
            Ok(name) => name,
            Err(error) => {
                self.add_problem(path, entry.at, format!("{}: {error}", quoted(&entry.name)), None);
                return None;
            }
        };
        let path = format!("{path}.{}", quoted(&entry.name));
        let fields = self.fields_of(&path, entry, "a table")?;
        let known = keys::fields_of("repositories").map(|(field, key)| (field, &key.kind, &key.default));
        let (repository, unknown) = self.fields(&path, entry.at, fields, known);
        for given in unknown {
            let nearest =
                similar_names::nearest(&given.name, keys::fields_of("repositories").map(|(field, _)| field));
            let suggestion = nearest.map(|field| format!("{path}.{field}"));
            let field = format!("{path}.{}", given.name);
            self.add_problem(&field, given.at, "a repository has no such field".to_owned(), suggestion);
        }
        Some((name, repository.into_iter().collect()))
    }

    /// `None` without a problem if a required field is absent in the readable part of a broken file.
    fn agent(&mut self, path: &str, entry: &Entry) -> Option<(String, Value)> {
        if !TextFormat::AgentName.accepts(&entry.name) {
            let problem = format!("expected {}, found {}", TextFormat::AgentName, quoted(&entry.name));
            self.add_problem(path, entry.at, problem, None);
            return None;
        }
        let path = &format!("{path}.{}", entry.name);
        let fields = self.fields_of(path, entry, "a table with `protocol` and `command`")?;
        let is_default = entry.name == DEFAULT_AGENT;
        let built_in = built_in_agent(&entry.name);
        let is_allowed = move |field: &str| !is_default || field == "env";
        let known = keys::fields_of("agents").filter(move |(field, _)| is_allowed(field));
        let known = known.map(move |(field, key)| match &key.default {
            DefaultValue::Required if built_in.is_some() => (field, &key.kind, &BUILT_IN),
            default => (field, &key.kind, default),
        });
        let (mut agent, unknown) = self.fields(path, entry.at, fields, known.clone());
        let is_given = |(field, _, default): KnownField| {
            !matches!(default, DefaultValue::Required) || agent.contains_key(field)
        };
        let is_complete = known.clone().all(is_given);
        if let Some(built_in) = built_in {
            agent.entry("protocol").or_insert_with(|| built_in.protocol.name().into());
        }
        for given in unknown {
            if self.is_full() {
                break;
            }
            let nearest =
                similar_names::nearest(&given.name, keys::fields_of("agents").map(|(field, _)| field));
            let (problem, suggestion) = match nearest {
                Some(field) if !is_allowed(field) => {
                    ("the default agent has only `env`; `codex_bin` sets its program", None)
                }
                nearest => ("an agent has no such field", nearest.map(|field| format!("{path}.{field}"))),
            };
            self.add_problem(&format!("{path}.{}", given.name), given.at, problem.to_owned(), suggestion);
        }
        is_complete.then(|| (entry.name.clone(), agent.into_iter().collect()))
    }

    /// The valid fields of a table with the defaults of absent ones, and the fields that are not known.
    pub(crate) fn fields<'e>(
        &mut self,
        path: &str,
        at: Option<usize>,
        given: &'e [Entry],
        known: impl Iterator<Item = KnownField> + Clone,
    ) -> (BTreeMap<&'static str, Value>, Vec<&'e Entry>) {
        let is_known = |entry: &&Entry| known.clone().any(|(name, ..)| name == entry.name);
        let unknown: Vec<&Entry> = given.iter().filter(|entry| !is_known(entry)).collect();
        let mut values = BTreeMap::new();
        for (name, kind, default) in known.clone() {
            let field_path = format!("{path}.{name}");
            let value = match (given.iter().find(|entry| entry.name == name), default) {
                (Some(entry), _) => self.value(kind, &field_path, &entry.node),
                (None, DefaultValue::Required) if !self.is_complete => None,
                (None, DefaultValue::Required) => {
                    let meant = similar_names::nearest(name, unknown.iter().map(|entry| entry.name.as_str()));
                    let hint =
                        meant.map(|meant| format!("; {} is not known", quoted(meant))).unwrap_or_default();
                    self.add_problem(&field_path, at, format!("is missing{hint}"), None);
                    None
                }
                (None, default) => Some(default.value(0)).filter(|value| !value.is_null()),
            };
            values.extend(value.map(|value| (name, value)));
        }
        (values, unknown)
    }
}

/// What a built-in agent has of the fields that other agents must have.
const BUILT_IN: DefaultValue = DefaultValue::Unset("that of the built-in agent");

/// Name, type and default of a field of a table.
pub(crate) type KnownField = (&'static str, &'static ValueKind, &'static DefaultValue);
