//! The final message of a task with an output schema as JSON, validated against the schema.
//!
//! The message must be JSON as a whole, or exactly one fenced block of JSON; anything looser would be
//! guessing. A schema with an external reference is unusable: nothing is fetched. A violation is a warning
//! and does not change the state of the task, because the agent did complete.

use delegator_transcript::FinalMessage;
use jsonschema::{Retrieve, Uri, Validator};

use crate::output::data::error_context::clean_line;
use crate::output::prelude::*;

pub const MAX_VIOLATIONS: usize = 20;

#[derive(Debug, Clone, PartialEq)]
pub struct StructuredOutput {
    pub value: Value,
    pub problem: Option<OutputProblem>,
}

/// Where the final message violates the output schema, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Violation {
    pub path: String,
    pub problem: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputProblem {
    Invalid(Vec<Violation>),
    NotJson(String),
    /// Only the beginning of the message was stored.
    TooLong {
        bytes: u64,
    },
    NoMessage,
    /// The schema is invalid, not the message.
    UnusableSchema(String),
}

/// There is no value because of this problem.
impl From<OutputProblem> for StructuredOutput {
    fn from(problem: OutputProblem) -> StructuredOutput {
        StructuredOutput { value: Value::Null, problem: Some(problem) }
    }
}

/// `None` for a task without a schema.
pub fn from_task(task: &Task, record: Option<&Record>) -> Option<StructuredOutput> {
    let schema = task.input.get("output_schema")?;
    let message = record.and_then(|record| record.report.final_message.as_ref());
    let mut output = match message {
        None => OutputProblem::NoMessage.into(),
        Some(FinalMessage { truncated: true, bytes, .. }) => OutputProblem::TooLong { bytes: *bytes }.into(),
        Some(message) => parse(schema, &message.text),
    };
    // Only a completed task must have a valid message.
    output.problem = output.problem.filter(|_| task.state == State::Completed);
    Some(output)
}

pub fn parse(schema: &Value, text: &str) -> StructuredOutput {
    let value: Value = match serde_json::from_str(strip_fence(text.trim())) {
        Ok(value) => value,
        Err(error) => return OutputProblem::NotJson(error.to_string()).into(),
    };
    let problem = match validator(schema) {
        Ok(validator) => {
            let violations = validator.iter_errors(&value).take(MAX_VIOLATIONS).map(|error| Violation {
                path: error.instance_path().to_string(),
                problem: clean_line(&error.to_string()),
            });
            let violations: Vec<Violation> = violations.collect();
            (!violations.is_empty()).then_some(OutputProblem::Invalid(violations))
        }
        Err(problem) => Some(OutputProblem::UnusableSchema(problem)),
    };
    StructuredOutput { value, problem }
}

/// The problem of a schema that cannot be used.
pub fn schema_problem(schema: &Value) -> Option<String> {
    validator(schema).err()
}

fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options().with_retriever(NoRetrieval).build(schema).map_err(|error| {
        let problem = clean_line(&error.to_string());
        match error.instance_path().as_str() {
            "" => problem,
            path => format!("{problem} at {path}"),
        }
    })
}

fn strip_fence(text: &str) -> &str {
    let inside = text.strip_prefix("```json").and_then(|rest| rest.strip_suffix("```"));
    match inside {
        Some(inside) if inside.starts_with(['\n', '\r']) && inside.ends_with('\n') => inside,
        _ => text,
    }
}

struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("the schema refers to {uri}; external references are not supported").into())
    }
}

impl StructuredOutput {
    pub fn violations(&self) -> Vec<Violation> {
        let violation = |problem: String| vec![Violation { path: String::new(), problem }];
        match &self.problem {
            None | Some(OutputProblem::UnusableSchema(_)) => Vec::new(),
            Some(OutputProblem::Invalid(violations)) => violations.clone(),
            Some(OutputProblem::NotJson(problem)) => {
                violation(format!("the final message is not JSON: {problem}"))
            }
            Some(problem) => violation(problem.sentence()),
        }
    }
}

impl OutputProblem {
    /// A fixed sentence. Text of the agent or the caller is in [`OutputProblem::details`].
    fn sentence(&self) -> String {
        match self {
            OutputProblem::Invalid(violations) => {
                let count = violations.len();
                format!("the final message does not match the output schema ({count} violations)")
            }
            OutputProblem::NotJson(_) => "the final message is not JSON".to_owned(),
            OutputProblem::TooLong { bytes } => {
                format!("the final message is too long to be checked: {bytes} bytes, stored in part")
            }
            OutputProblem::NoMessage => "there is no final message".to_owned(),
            OutputProblem::UnusableSchema(_) => "the output schema could not be used".to_owned(),
        }
    }

    fn details(&self) -> Option<(&'static str, Value)> {
        match self {
            OutputProblem::Invalid(violations) => Some(("violations", json!(violations))),
            OutputProblem::NotJson(problem) | OutputProblem::UnusableSchema(problem) => {
                Some(("problem", problem.as_str().into()))
            }
            OutputProblem::TooLong { .. } | OutputProblem::NoMessage => None,
        }
    }
}

pub fn warnings(task: &Task, record: Option<&Record>) -> Option<Warning> {
    let problem = from_task(task, record)?.problem?;
    let code = match problem {
        OutputProblem::Invalid(_) | OutputProblem::NotJson(_) | OutputProblem::NoMessage => {
            WarningCode::OutputInvalid
        }
        OutputProblem::TooLong { .. } | OutputProblem::UnusableSchema(_) => WarningCode::OutputNotValidated,
    };
    let mut warning = Warning::new(code, problem.sentence());
    warning.context.extend(problem.details().map(|(key, value)| (key.to_owned(), value)));
    Some(warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}}})
    }

    #[test]
    fn message_is_json_alone_or_in_one_fence() {
        let message = json!({"name": "x", "age": 3});
        for text in [
            message.to_string(),
            format!("  {message}\n"),
            format!("```json\n{message}\n```"),
            format!("```json\r\n{message}\r\n```\n"),
        ] {
            assert_eq!(
                parse(&schema(), &text),
                StructuredOutput { value: message.clone(), problem: None },
                "{text}"
            );
        }
        for text in [
            String::new(),
            "All done.".to_owned(),
            format!("Here it is: {message}"),
            format!("Here:\n```json\n{message}\n```"),
            format!("```\n{message}\n```"),
            format!("```json\n{message}\n```\nand ```json\n1\n```"),
        ] {
            let read = parse(&schema(), &text);
            assert!(
                matches!(read.problem, Some(OutputProblem::NotJson(_))) && read.value.is_null(),
                "{text}"
            );
        }
    }

    #[test]
    fn every_violation_has_its_path() {
        let Some(OutputProblem::Invalid(violations)) = parse(&schema(), "{\"age\": \"three\"}").problem
        else {
            panic!("it is not valid");
        };
        let mut paths: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["", "/age"]);
    }

    #[test]
    fn external_references_are_not_followed() {
        for elsewhere in ["http://127.0.0.1:9/x.json", "file:///etc/hostname", "https://json-schema.org/x"] {
            let read = parse(&json!({"$ref": elsewhere}), "{}");
            assert!(matches!(read.problem, Some(OutputProblem::UnusableSchema(_))), "{elsewhere}: {read:?}");
            assert_eq!(read.value, json!({}));
        }
        let local = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}});
        assert_eq!(parse(&local, "3").problem, None);
    }
}
