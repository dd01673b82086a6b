//! Validates the entries of the environments file.

use std::collections::BTreeMap;

use delegator_domain::similar_names;
use serde_json::{Map, Value};

use super::{Environment, OnLost, Provider};
use crate::problem::{Problem, ProblemSource, ValueProblem};

const FIELDS: [&str; 14] = [
    "name",
    "repoUrl",
    "stack",
    "description",
    "provider",
    "branch",
    "setup",
    "mode",
    "labels",
    "priority",
    "on_lost",
    "max_claims",
    "push",
    "createdAt",
];
const MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];
const SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];
const MAX_CLAIMS: u64 = 100;
const MAX_PRIORITY: i64 = 1_000_000;

/// Result of checking one file.
#[derive(Debug, Default)]
pub(super) struct CheckedFile {
    pub(super) environments: Vec<Environment>,
    /// Keys are `id.field`.
    pub(super) problems: Vec<ValueProblem>,
    /// Unknown fields: id, field, and the name that was probably meant.
    pub(super) unknown_fields: Vec<(String, String, Option<&'static str>)>,
}

/// Checks every entry and collects all problems.
pub(super) fn check(object: &Map<String, Value>) -> CheckedFile {
    let mut checked = CheckedFile::default();
    for (id, entry) in object {
        let mut reader = EntryReader { id, checked: &mut checked };
        if !is_id(id) {
            reader
                .add_problem("", "an id is 1 to 128 letters, digits, `.`, `_`, `-`, not beginning with `-`");
        }
        let Some(entry) = entry.as_object() else {
            reader.add_problem("", "expected an object");
            continue;
        };
        if let Some(environment) = reader.environment(entry) {
            checked.environments.push(environment);
        }
    }
    checked
}

/// Problems of an entry that is not in the file yet; keys are the names of its fields, or `id`.
pub fn entry_problems(id: &str, entry: &Map<String, Value>) -> Vec<Problem> {
    let object = Map::from_iter([(id.to_owned(), Value::Object(entry.clone()))]);
    let problems = check(&object).problems.into_iter().map(|value_problem| {
        let problem = value_problem.into_problem(ProblemSource::Environments);
        let key =
            problem.key.rsplit('.').next().filter(|field| FIELDS.contains(field)).unwrap_or("id").to_owned();
        Problem { key, ..problem }
    });
    problems.collect()
}

/// An entry as written to the file: only the given fields, in the order of the documentation.
pub fn new_entry(given: Vec<(&'static str, Option<Value>)>) -> Map<String, Value> {
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn is_id(id: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    (1..=128).contains(&id.len()) && !id.starts_with('-') && id.chars().all(is_allowed)
}

struct EntryReader<'a> {
    id: &'a str,
    checked: &'a mut CheckedFile,
}

impl EntryReader<'_> {
    fn add_problem(&mut self, field: &str, problem: impl Into<String>) {
        let key = if field.is_empty() { self.id.to_owned() } else { format!("{}.{field}", self.id) };
        self.checked.problems.push(ValueProblem::new(&key, None, problem));
    }

    /// The environment, or `None` after reporting its problems.
    fn environment(&mut self, entry: &Map<String, Value>) -> Option<Environment> {
        let before = self.checked.problems.len();
        for field in entry.keys().filter(|field| !FIELDS.contains(&field.as_str())) {
            let meant = similar_names::nearest(field, FIELDS)
                .and_then(|near| FIELDS.into_iter().find(|f| *f == near));
            self.checked.unknown_fields.push((self.id.to_owned(), field.clone(), meant));
        }
        let name = self.required(entry, "name", 128);
        let repo_url = self.required(entry, "repoUrl", 1024);
        let stack = self.required(entry, "stack", 32);
        let environment = Environment {
            id: self.id.to_owned(),
            description: self.text(entry, "description", 2000),
            provider: match self.choice(entry, "provider", &Provider::NAMES) {
                Some("fleet") => Provider::Fleet,
                _ => Provider::CodexCloud,
            },
            branch: self.text(entry, "branch", 255),
            setup: self.text(entry, "setup", 100_000),
            mode: self.choice(entry, "mode", &MODES).unwrap_or("workspace-write").to_owned(),
            labels: self.labels(entry),
            priority: self.number(entry, "priority", -MAX_PRIORITY, MAX_PRIORITY).unwrap_or(0),
            on_lost: match self.choice(entry, "on_lost", &["fail", "retry"]) {
                Some("retry") => OnLost::Retry,
                _ => OnLost::Fail,
            },
            max_claims: self.number(entry, "max_claims", 1, MAX_CLAIMS as i64).map_or(2, i64::unsigned_abs),
            push: self.boolean(entry, "push"),
            created_at: self.timestamp(entry, "createdAt"),
            name: name.unwrap_or_default(),
            repo_url: repo_url.unwrap_or_default(),
            stack: stack.unwrap_or_default(),
        };
        self.check_formats(&environment);
        (self.checked.problems.len() == before).then_some(environment)
    }

    /// Checks the formats of the values that are present.
    fn check_formats(&mut self, environment: &Environment) {
        let Environment { repo_url, stack, branch, .. } = environment;
        if let (false, Some(problem)) = (repo_url.is_empty(), repository_problem(repo_url)) {
            self.add_problem("repoUrl", problem);
        }
        let is_allowed =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "+#.-".contains(letter);
        if !stack.chars().all(is_allowed) {
            self.add_problem("stack", "expected a word like node, python, go or rust");
        }
        if branch.as_deref().is_some_and(|branch| !is_branch_name(branch)) {
            self.add_problem("branch", "not a valid git branch name");
        }
    }

    fn required(&mut self, entry: &Map<String, Value>, field: &str, max_chars: usize) -> Option<String> {
        if !entry.contains_key(field) {
            let meant = similar_names::nearest(
                field,
                entry.keys().map(String::as_str).filter(|key| !FIELDS.contains(key)),
            );
            let key = format!("{}.{field}", self.id);
            let problem = match meant {
                Some(meant) => format!("is missing; `{meant}` is not known"),
                None => "is missing".to_owned(),
            };
            self.checked.problems.push(ValueProblem::new(&key, None, problem));
            return None;
        }
        self.text(entry, field, max_chars)
    }

    fn text(&mut self, entry: &Map<String, Value>, field: &str, max_chars: usize) -> Option<String> {
        let problem = match entry.get(field)? {
            Value::String(text) if text.trim().is_empty() => "must not be empty".to_owned(),
            Value::String(text) if text.chars().count() > max_chars => {
                format!("has more than {max_chars} characters")
            }
            Value::String(text) if text.contains('\0') => "must not contain NUL characters".to_owned(),
            Value::String(text) => return Some(text.clone()),
            _ => "expected text".to_owned(),
        };
        self.add_problem(field, problem);
        None
    }

    fn choice<'c>(
        &mut self,
        entry: &Map<String, Value>,
        field: &str,
        choices: &[&'c str],
    ) -> Option<&'c str> {
        let given = self.text(entry, field, 128)?;
        if let Some(choice) = choices.iter().find(|choice| **choice == given) {
            return Some(choice);
        }
        let suggestion = similar_names::nearest(&given, choices.iter().copied()).map(str::to_owned);
        let key = format!("{}.{field}", self.id);
        let problem = ValueProblem::new(&key, None, format!("expected one of {}", choices.join(", ")));
        self.checked.problems.push(ValueProblem { suggestion, ..problem });
        None
    }

    fn number(&mut self, entry: &Map<String, Value>, field: &str, min: i64, max: i64) -> Option<i64> {
        match entry.get(field)?.as_i64().filter(|number| (min..=max).contains(number)) {
            Some(number) => Some(number),
            None => {
                self.add_problem(field, format!("expected a whole number from {min} to {max}"));
                None
            }
        }
    }

    fn boolean(&mut self, entry: &Map<String, Value>, field: &str) -> bool {
        match entry.get(field) {
            None => false,
            Some(Value::Bool(is_on)) => *is_on,
            Some(_) => {
                self.add_problem(field, "expected true or false");
                false
            }
        }
    }

    fn labels(&mut self, entry: &Map<String, Value>) -> BTreeMap<String, String> {
        let Some(value) = entry.get("labels") else { return BTreeMap::new() };
        let pairs = value.as_object().map(|object| {
            object.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
        });
        match pairs.flatten() {
            Some(labels) => labels,
            None => {
                self.add_problem("labels", "expected an object of texts, as in {\"os\": \"linux\"}");
                BTreeMap::new()
            }
        }
    }

    fn timestamp(&mut self, entry: &Map<String, Value>, field: &str) -> Option<String> {
        let given = self.text(entry, field, 64)?;
        if given.parse::<jiff::Timestamp>().is_ok() {
            return Some(given);
        }
        self.add_problem(field, "expected a time like 2026-01-15T00:00:00Z");
        None
    }
}

/// The problem of a repository URL, if there is one. Git gives some URLs a special meaning: one that looks like a
/// flag, or a transport that is a command.
fn repository_problem(url: &str) -> Option<&'static str> {
    let is_bare =
        !url.starts_with('-') && !url.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    let expected = "expected https://host/owner/name, ssh://…, user@host:path or an absolute path";
    if !is_bare || url.contains("::") {
        return Some(expected);
    }
    if url.starts_with('/') {
        return None;
    }
    match url.split_once("://") {
        Some((scheme, rest)) if SCHEMES.contains(&scheme) && !rest.is_empty() => {
            let authority = rest.split('/').next().unwrap_or_default();
            let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
            let is_token = scheme.starts_with("http") && !user.is_empty();
            (is_token || user.contains(':'))
                .then_some("must not contain a password: the file and every response would show it")
        }
        Some(_) => Some(expected),
        None => {
            let is_short_form =
                url.split_once(':').is_some_and(|(host, path)| !host.is_empty() && !path.is_empty());
            (!is_short_form).then_some(expected)
        }
    }
}

fn is_branch_name(name: &str) -> bool {
    let is_allowed =
        |letter: char| !letter.is_whitespace() && !letter.is_control() && !"~^:?*[\\".contains(letter);
    name.chars().all(is_allowed)
        && !name.starts_with(['-', '/', '.'])
        && !name.ends_with(['/', '.'])
        && !name.ends_with(".lock")
        && !["..", "//", "@{"].iter().any(|part| name.contains(part))
}
