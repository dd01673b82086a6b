//! Checks the input against its JSON Schema.
//!
//! It converts the validator's violations into problems with a clear message and a suggestion, at most one
//! per input.

use delegator_domain::task::Mode;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, Validator};
use serde_json::Value;

use crate::error::{ErrorCode, Problem, truncate_text};
use crate::spec::{InputSchema, Property};

/// Compiles the schema; `None` if it is invalid.
pub(super) fn validator(inputs: &InputSchema) -> Option<Validator> {
    // The inputs use only keywords that all drafts have, and draft 7 compiles much faster than 2020-12.
    jsonschema::options().with_draft(Draft::Draft7).build(&inputs.to_value()).ok()
}

/// All violations of the input schema, at most one problem per input.
pub(super) fn schema_problems(
    inputs: &InputSchema,
    validator: Option<&Validator>,
    input: &Value,
    max_mode: Mode,
) -> Vec<Problem> {
    let Some(validator) = validator else {
        return vec![Problem::new(
            ErrorCode::Internal,
            "input",
            "has an invalid schema; this is a bug in mcp-delegator",
        )];
    };
    let mut problems: Vec<Problem> = Vec::new();
    for error in validator.iter_errors(input) {
        let problem = match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                Problem::new(ErrorCode::MissingArgument, name, "is missing")
                    .suggest(inputs.get(name).map(|property| format!("{}.", property.description)))
            }
            kind => {
                let path = error.instance_path().as_str().trim_start_matches('/').to_owned();
                let name = path.split('/').next().unwrap_or_default();
                violation_problem(
                    inputs.get(name).map(|property| property.limited_to(max_mode)).as_ref(),
                    &path,
                    kind,
                    &error.instance().clone(),
                    &error.to_string(),
                )
            }
        };
        if !problems.iter().any(|known| known.field == problem.field) {
            problems.push(problem);
        }
    }
    problems
}

fn violation_problem(
    property: Option<&Property>,
    path: &str,
    kind: &ValidationErrorKind,
    value: &Value,
    fallback: &str,
) -> Problem {
    let field = path.replace('/', ".");
    let code = match kind {
        ValidationErrorKind::Pattern { .. } => pattern_error_code(property),
        _ => ErrorCode::InvalidValue,
    };
    let (explanation, permitted) = explain(property, kind, value, fallback);
    let problem = Problem { permitted, ..Problem::new(code, field, explanation) }.value(value.clone());
    match kind {
        ValidationErrorKind::Pattern { .. } => problem.suggest(fleet_id_hint(property, value)),
        ValidationErrorKind::Enum { .. } => {
            let choices = property.map(Property::choices).unwrap_or_default();
            problem.choose_from(value.as_str().unwrap_or_default(), choices.into_iter())
        }
        _ => problem,
    }
}

/// What works with an id that only the fleet and the logs of its workers use.
fn fleet_id_hint(property: Option<&Property>, value: &Value) -> Option<String> {
    let is_task = property.is_some_and(|property| ["task_id", "task_ids"].contains(&property.name.as_str()));
    let id = value.as_str().filter(|id| is_task && is_fleet_id(id))?;
    Some(format!(
        "This is the fleet's own id of a task. 'mcp-delegator fleet tasks' shows the T-cloud- id, which works on the machine that \
         submitted it; 'mcp-delegator fleet cancel {id}' works on every machine."
    ))
}

/// The fleet's ids are UUIDs.
fn is_fleet_id(text: &str) -> bool {
    let is_hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split('-').all(is_hex) && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// Error code for a string that does not match its pattern: ids have their own.
pub(super) fn pattern_error_code(property: Option<&Property>) -> ErrorCode {
    if property.is_some_and(Property::is_id) { ErrorCode::InvalidId } else { ErrorCode::InvalidValue }
}

/// The problem with a value, and what it may be as a request, if the problem does not say that better.
fn explain(
    property: Option<&Property>,
    kind: &ValidationErrorKind,
    value: &Value,
    fallback: &str,
) -> (String, Option<String>) {
    let range = |bound: String| {
        let range = range_text(property, &bound);
        let request = if range == bound { format!("of {range}") } else { range.clone() };
        (format!("must be {range}"), Some(format!("Give a number {request}.")))
    };
    let demand = |verb: &str, what: String| (format!("must {verb} {what}"), Some(format!("Give {what}.")));
    match kind {
        ValidationErrorKind::Enum { .. } => {
            let choices = property.map(Property::choices).unwrap_or_default();
            (format!("must be one of {}", choices.join(", ")), None)
        }
        ValidationErrorKind::Type { kind } => demand("be", type_text(kind)),
        ValidationErrorKind::Minimum { limit } => range(format!("at least {limit}")),
        ValidationErrorKind::Maximum { limit } => range(format!("at most {limit}")),
        ValidationErrorKind::MinLength { limit: 1 } => {
            ("must not be empty".to_owned(), Some("Give a value that is not empty.".to_owned()))
        }
        ValidationErrorKind::MinLength { limit } => demand("have", format!("at least {limit} characters")),
        ValidationErrorKind::MaxLength { limit } => {
            let (length, given) = (format!("at most {limit} characters"), value.as_str());
            let given = given.map_or(0, |text| text.chars().count());
            (format!("must have {length}, not {given}"), Some(format!("Give {length}.")))
        }
        ValidationErrorKind::Pattern { .. } => (pattern_text(property, value), None),
        _ => (fallback.to_owned(), None),
    }
}

fn range_text(property: Option<&Property>, bound: &str) -> String {
    let bounds = property.map(|property| (property.schema.get("minimum"), property.schema.get("maximum")));
    match bounds {
        Some((Some(low), Some(high))) => format!("between {low} and {high}"),
        _ => bound.to_owned(),
    }
}

fn pattern_text(property: Option<&Property>, value: &Value) -> String {
    let given = truncate_text(value.as_str().unwrap_or_default());
    match property.map(|property| property.name.as_str()) {
        Some("task_id" | "task_ids") => {
            format!(
                "{given:?} is not a task id: T-local- or T-cloud- and 10 letters or digits, of which the first 4 are enough"
            )
        }
        Some("thread_id") => {
            format!(
                "{given:?} is not a thread id: use letters, digits, - and _, beginning with a letter or digit"
            )
        }
        Some("model") => {
            "must be 1 to 128 letters, digits or ._:/@+-, must not begin with - and must not be a path"
                .to_owned()
        }
        Some("profile" | "reasoning_effort") => {
            "must be a plain name: 1 to 64 letters, digits or ._-, beginning with a letter, digit or _"
                .to_owned()
        }
        Some("env_allow_list") => "must contain names of environment variables".to_owned(),
        Some("repository" | "repo_url") => "must look like https://github.com/owner/name".to_owned(),
        Some("git_user_email") => "must be an e-mail address".to_owned(),
        _ => "does not match the required pattern".to_owned(),
    }
}

fn type_text(kind: &TypeKind) -> String {
    let type_name = |kind: jsonschema::JsonType| match kind.as_str() {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        "string" => "a string",
        _ => "null",
    };
    match kind {
        TypeKind::Single(only) => type_name(*only).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(type_name).collect::<Vec<_>>().join(" or "),
    }
}
