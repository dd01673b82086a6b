//! The fields of an environment, and the check of a whole file.

use std::collections::BTreeSet;

use delegator_domain::environment::Environment;
use delegator_domain::similar_names;
use delegator_domain::task::Mode;
use serde_json::{Map, Value};

use crate::check::Checker;
use crate::keys::DefaultValue::{self, EmptyTable, Integer, Required, Text, Unset};
use crate::keys::{TextFormat, ValueKind};
use crate::node::{Entry, Node, Shape, node_from_json};
use crate::problem::{Problem, ProblemSource, ValueProblem};

const MAX_PRIORITY: i64 = 1_000_000;

/// Name, type and default of every field.
pub(super) static FIELDS: [(&str, ValueKind, DefaultValue); 14] = [
    ("name", ValueKind::Text(TextFormat::Prose(128)), Required),
    ("repoUrl", ValueKind::Text(TextFormat::Repository), Required),
    ("stack", ValueKind::Text(TextFormat::Stack), Required),
    ("description", ValueKind::Text(TextFormat::Prose(2000)), Unset("")),
    ("provider", ValueKind::Choice(&["codex-cloud", "fleet"]), Text("codex-cloud")),
    ("branch", ValueKind::Text(TextFormat::Branch), Unset("")),
    ("setup", ValueKind::Text(TextFormat::Prose(100_000)), Unset("")),
    ("mode", ValueKind::Choice(&Mode::NAMES), Text("workspace-write")),
    ("labels", ValueKind::Labels, EmptyTable),
    ("priority", ValueKind::Integer { min: -MAX_PRIORITY, max: MAX_PRIORITY, unit: "" }, Integer(0)),
    ("on_lost", ValueKind::Choice(&["fail", "retry"]), Text("fail")),
    ("max_claims", ValueKind::Integer { min: 1, max: 100, unit: "" }, Integer(2)),
    ("push", ValueKind::Bool, DefaultValue::Bool(false)),
    ("createdAt", ValueKind::Text(TextFormat::Timestamp), Unset("")),
];

#[derive(Debug, Default)]
pub(super) struct CheckedFile {
    pub(super) environments: Vec<Environment>,
    /// Keys are `id.field`.
    pub(super) problems: Vec<ValueProblem>,
    pub(super) unknown_fields: Vec<UnknownField>,
}

#[derive(Debug)]
pub(super) struct UnknownField {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) at: Option<usize>,
    /// The field that was probably meant.
    pub(super) nearest: Option<&'static str>,
}

/// Checks every entry of a JSON object and collects all problems.
pub(super) fn check(text: &str) -> Result<CheckedFile, serde_json::Error> {
    let Node { at, shape } = node_from_json(text)?;
    let mut checked = CheckedFile::default();
    let mut checker = Checker::new(None);
    match shape {
        Shape::Table(entries) => {
            for entry in &entries {
                check_entry(&mut checker, &mut checked, entry);
            }
            report_duplicates(&mut checker, "", &entries);
        }
        _ => {
            checker.add_problem("", at, "expected an object, keyed by environment id".to_owned(), None);
        }
    }
    let is_truncated = checker.is_full();
    checked.problems = checker.problems;
    checked.problems.sort_by_key(|problem| problem.at);
    checked.problems.extend(is_truncated.then(ValueProblem::more));
    Ok(checked)
}

fn check_entry(checker: &mut Checker<'_>, checked: &mut CheckedFile, Entry { name: id, at, node }: &Entry) {
    if !is_id(id) {
        let problem = "an id is 1 to 128 letters, digits, `.`, `_`, `-`, not beginning with `-`";
        checker.add_problem(id, *at, problem.to_owned(), None);
    }
    let Shape::Table(fields) = &node.shape else {
        return checker.add_problem(id, *at, "expected an object".to_owned(), None);
    };
    report_duplicates(checker, &format!("{id}."), fields);
    let problems_before = checker.problems.len();
    let known = FIELDS.iter().map(|(name, kind, default)| (*name, kind, default));
    let (values, unknown) = checker.fields(id, *at, fields, known);
    checked.unknown_fields.extend(unknown.into_iter().map(|given| UnknownField {
        id: id.clone(),
        name: given.name.clone(),
        at: given.at,
        nearest: similar_names::nearest(&given.name, FIELDS.iter().map(|(name, ..)| *name)),
    }));
    // A full checker counts no further problems.
    if checker.problems.len() == problems_before && !checker.is_full() {
        let mut object: Map<String, Value> =
            values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        object.insert("id".to_owned(), id.as_str().into());
        let environment = serde_json::from_value(Value::Object(object));
        checked.environments.push(
            environment.unwrap_or_else(|error| unreachable!("a test compares fields and struct: {error}")),
        );
    }
}

fn report_duplicates(checker: &mut Checker<'_>, prefix: &str, entries: &[Entry]) {
    let mut names = BTreeSet::new();
    for entry in entries {
        if !names.insert(&entry.name) {
            let problem = "occurs twice in the file".to_owned();
            checker.add_problem(&format!("{prefix}{}", entry.name), entry.at, problem, None);
        }
    }
}

/// The value of a field that an entry does not have; `None` if there is none.
pub fn field_default(name: &str) -> Option<Value> {
    let (_, _, default) = FIELDS.iter().find(|(field, ..)| *field == name)?;
    Some(default.value(0)).filter(|default| !default.is_null())
}

/// Problems of an entry that is not in the file yet; keys are the names of its fields, or `id`.
pub fn entry_problems(id: &str, entry: &Map<String, Value>) -> Vec<Problem> {
    let to_problem = |value_problem: ValueProblem| {
        let problem = value_problem.into_problem(ProblemSource::Environments);
        let field = problem.key.strip_prefix(id).and_then(|rest| rest.strip_prefix('.'));
        let field = field.and_then(|rest| rest.split('.').next()).unwrap_or("id").to_owned();
        Problem { key: field, ..problem }
    };
    check_new(id, entry).problems.into_iter().map(to_problem).collect()
}

/// Checks an entry that is not in the file yet.
pub(super) fn check_new(id: &str, entry: &Map<String, Value>) -> CheckedFile {
    let object = Map::from_iter([(id.to_owned(), Value::Object(entry.clone()))]);
    check(&Value::Object(object).to_string()).unwrap_or_default()
}

/// An entry as written to the file: only the given fields, in the order of the documentation.
pub fn new_entry(given: Vec<(&'static str, Option<Value>)>) -> Map<String, Value> {
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn is_id(id: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    (1..=128).contains(&id.len()) && !id.starts_with('-') && id.chars().all(is_allowed)
}
