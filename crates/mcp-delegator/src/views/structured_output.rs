//! The answer to a task that was given an output schema: the final message as JSON, held to that schema.
//!
//! A message is JSON as a whole, or one fenced block of it and nothing else; looser readings guess. It is checked when
//! the result is told, against the schema the task was given, and never with anything from a network or a file: a
//! reference to elsewhere is a schema that cannot be used. An answer that breaks its schema does not change how the
//! task ended, for the agent did complete; but it is said.

use delegator_domain::task::State;
use delegator_engine::Record;
use delegator_registry::Task;
use jsonschema::{Retrieve, Uri, Validator};
use serde_json::{Map, Value, json};

use super::error_context::clean_line;
use crate::outcome::Warning;

const MAX_VIOLATIONS: usize = 20;

/// What became of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct StructuredOutput {
    pub value: Value,
    pub problem: Option<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Each with the path of what is wrong, and what is.
    Invalid(Vec<(String, String)>),
    NotJson(String),
    /// Only the beginning of it was kept.
    TooLong {
        bytes: u64,
    },
    NoMessage,
    /// Not the answer's fault.
    UnusableSchema(String),
}

/// `None` for a task without a schema.
pub fn from_task(task: &Task, record: Option<&Record>) -> Option<StructuredOutput> {
    let schema = task.input.get("output_schema")?;
    let message = record.map(|record| &record.report["final_message"]).filter(|message| !message.is_null());
    let mut output = match message {
        None => StructuredOutput { value: Value::Null, problem: Some(Problem::NoMessage) },
        Some(message) if message["truncated"] == true => {
            let bytes = message["bytes"].as_u64().unwrap_or_default();
            StructuredOutput { value: Value::Null, problem: Some(Problem::TooLong { bytes }) }
        }
        Some(message) => parse(schema, message["text"].as_str().unwrap_or_default()),
    };
    // What did not end well owes no answer.
    output.problem = output.problem.filter(|_| task.state == State::Completed);
    Some(output)
}

/// The answer a text is, and what is wrong with it.
pub fn parse(schema: &Value, text: &str) -> StructuredOutput {
    let value: Value = match serde_json::from_str(strip_fence(text.trim())) {
        Ok(value) => value,
        Err(error) => {
            return StructuredOutput {
                value: Value::Null,
                problem: Some(Problem::NotJson(error.to_string())),
            };
        }
    };
    let problem = match validator(schema) {
        Ok(validator) => {
            let violations = validator
                .iter_errors(&value)
                .take(MAX_VIOLATIONS)
                .map(|error| (error.instance_path().to_string(), clean_line(&error.to_string())));
            let violations: Vec<(String, String)> = violations.collect();
            (!violations.is_empty()).then_some(Problem::Invalid(violations))
        }
        Err(problem) => Some(Problem::UnusableSchema(problem)),
    };
    StructuredOutput { value, problem }
}

/// What is wrong with a schema that no answer could be held to.
pub fn schema_problem(schema: &Value) -> Option<String> {
    validator(schema).err()
}

fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options().with_retriever(NoRetrieval).build(schema).map_err(|error| {
        let words = clean_line(&error.to_string());
        match error.instance_path().as_str() {
            "" => words,
            place => format!("{words} at {place}"),
        }
    })
}

/// Without the fence, where one block of JSON is the whole message.
fn strip_fence(text: &str) -> &str {
    let inside = text.strip_prefix("```json").and_then(|rest| rest.strip_suffix("```"));
    match inside {
        Some(inside) if inside.starts_with(['\n', '\r']) && inside.ends_with('\n') => inside,
        _ => text,
    }
}

/// References lead nowhere.
struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("the schema refers to {uri}, which is not looked up").into())
    }
}

impl StructuredOutput {
    /// Puts it where answers have it.
    pub fn insert_into(self, data: &mut Map<String, Value>) {
        data.insert("structured_output".into(), self.value);
        let violations: Vec<Value> = match &self.problem {
            None | Some(Problem::UnusableSchema(_)) => Vec::new(),
            Some(Problem::Invalid(violations)) => violation_values(violations),
            Some(Problem::NotJson(problem)) => {
                vec![json!({"path": "", "problem": format!("the final message is not JSON: {problem}")})]
            }
            Some(problem) => vec![json!({"path": "", "problem": problem.sentence()})],
        };
        if !violations.is_empty() {
            data.insert("structured_output_violations".into(), violations.into());
        }
    }
}

impl Problem {
    /// A fixed sentence. What the agent or the caller wrote is in [`Problem::details`].
    fn sentence(&self) -> String {
        match self {
            Problem::Invalid(violations) => {
                let count = violations.len();
                format!("the final message does not match the output schema ({count} violations)")
            }
            Problem::NotJson(_) => "the final message is not JSON".to_owned(),
            Problem::TooLong { bytes } => {
                format!("the final message is too long to be checked: {bytes} bytes, stored in part")
            }
            Problem::NoMessage => "there is no final message".to_owned(),
            Problem::UnusableSchema(_) => "the output schema could not be used".to_owned(),
        }
    }

    /// The data of the problem, by name.
    fn details(&self) -> Option<(&'static str, Value)> {
        match self {
            Problem::Invalid(violations) => Some(("violations", violation_values(violations).into())),
            Problem::NotJson(problem) | Problem::UnusableSchema(problem) => {
                Some(("problem", problem.as_str().into()))
            }
            Problem::TooLong { .. } | Problem::NoMessage => None,
        }
    }
}

fn violation_values(violations: &[(String, String)]) -> Vec<Value> {
    violations.iter().map(|(path, problem)| json!({"path": path, "problem": problem})).collect()
}

/// What a caller should know of it.
pub fn warnings(task: &Task, record: Option<&Record>) -> Option<Warning> {
    let problem = from_task(task, record)?.problem?;
    let code = match problem {
        Problem::Invalid(_) | Problem::NotJson(_) | Problem::NoMessage => "W_OUTPUT_001",
        Problem::TooLong { .. } | Problem::UnusableSchema(_) => "W_OUTPUT_002",
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
        let answer = json!({"name": "x", "age": 3});
        for text in [
            answer.to_string(),
            format!("  {answer}\n"),
            format!("```json\n{answer}\n```"),
            format!("```json\r\n{answer}\r\n```\n"),
        ] {
            assert_eq!(
                parse(&schema(), &text),
                StructuredOutput { value: answer.clone(), problem: None },
                "{text}"
            );
        }
        for text in [
            String::new(),
            "All done.".to_owned(),
            format!("Here it is: {answer}"),
            format!("Here:\n```json\n{answer}\n```"),
            format!("```\n{answer}\n```"),
            format!("```json\n{answer}\n```\nand ```json\n1\n```"),
        ] {
            let read = parse(&schema(), &text);
            assert!(matches!(read.problem, Some(Problem::NotJson(_))) && read.value.is_null(), "{text}");
        }
    }

    #[test]
    fn every_violation_has_its_path() {
        let Some(Problem::Invalid(violations)) = parse(&schema(), "{\"age\": \"three\"}").problem else {
            panic!("it is not valid");
        };
        let mut paths: Vec<&str> = violations.iter().map(|(path, _)| path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["", "/age"]);
    }

    #[test]
    fn external_references_are_not_followed() {
        for elsewhere in ["http://127.0.0.1:9/x.json", "file:///etc/hostname", "https://json-schema.org/x"] {
            let read = parse(&json!({"$ref": elsewhere}), "{}");
            assert!(matches!(read.problem, Some(Problem::UnusableSchema(_))), "{elsewhere}: {read:?}");
            assert_eq!(read.value, json!({}));
        }
        let local = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}});
        assert_eq!(parse(&local, "3").problem, None);
    }
}
