//! The published schema of a command's answers, in each envelope, and the validation of an answer.
//!
//! The schema is that of the envelope, completed with what is particular to the command: the type of its
//! data, and the [`Shape`] that the standard envelope gives it. Rules in `allOf` state when `data` has this
//! shape; an answer with selected fields, for example, lacks required keys.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::error::ErrorCode;
use crate::output::envelopes::cli::{self, StreamEnd};
use crate::output::envelopes::{schema, standard};
use crate::output::outcome::AGENT_EXIT_CODE;
use crate::spec::formats::Envelope;
use crate::spec::{Category, CommandSpec, Shape, output_schema};

/// The schema of all answers of a command in an envelope.
pub fn answer_schema(envelope: Envelope, spec: &CommandSpec) -> Option<Value> {
    match envelope {
        Envelope::Agent => Some(cli_answer(spec)),
        Envelope::Standard => Some(standard_answer(spec)),
        Envelope::Tool => Some(schema::tool_with(spec.category, &id(spec, "tool"), spec.output_schema())),
        Envelope::Raw => None,
    }
}

fn id(spec: &CommandSpec, envelope: &str) -> String {
    format!("mcp-delegator/{}/{envelope}/v1", spec.name())
}

fn cli_answer(spec: &CommandSpec) -> Value {
    let mut answer = schema::agent();
    answer["$id"] = id(spec, "cli").into();
    let definitions = &mut answer["definitions"];
    definitions["Data"] = with_agent_exit_code(spec);
    definitions["StreamEnd"] = output_schema::<StreamEnd>().to_value();
    definitions["Meta"] = cli::meta_schema();
    let data = json!({"$ref": "#/definitions/Data"});
    // With --format jsonl the items of a list are lines of their own.
    let done = match listed_key(spec) {
        Some(list) => json!({
            "if": {"required": ["count"], "not": {"required": [list]}},
            "then": {"$ref": "#/definitions/StreamEnd"},
            "else": data.clone(),
        }),
        None => data.clone(),
    };
    answer["allOf"] = json!([
        {"properties": {"meta": {"$ref": "#/definitions/Meta"}}},
        {
            "if": {"properties": {"ok": {"const": true}}},
            "then": {"properties": {"error": {"type": "null"}}},
            "else": {"properties": {"error": {"type": "object"}, "meta": {"required": ["error_context"]}}}
        },
        {
            "if": {"properties": {"ok": {"const": true}, "meta": {"not": {"required": ["not_modified"]}}}},
            "then": {"properties": {"data": {"type": "object"}}},
            "else": {"properties": {"data": {"type": "null"}}}
        },
        {
            "if": {
                "properties": {"data": {"type": "object"}},
                "not": {"anyOf": schema::reduced_data("meta")}
            },
            "then": {"properties": {"data": done}}
        },
        {
            "if": {"not": {"anyOf": [
                {"properties": {"meta": {"required": ["fields"]}}},
                {"properties": {"meta": {"required": ["truncated"]}}},
            ]}},
            "then": {"properties": {"meta": {"properties": {"failure_data": data}}}}
        }
    ]);
    answer
}

fn standard_answer(spec: &CommandSpec) -> Value {
    let mut answer = schema::standard();
    answer["$id"] = id(spec, "standard").into();
    let data = with_agent_exit_code(spec);
    let mut shapes = json!({"$ref": "#/$defs/Data"});
    answer["$defs"] = json!({"Data": standard::shaped_schema(spec.shape, spec, data.clone())});
    if let Some(other) = spec.other_shape {
        answer["$defs"]["OtherData"] = standard::shaped_schema(other, spec, data.clone());
        let key = standard::distinctive_key(other);
        shapes = json!({"if": {"required": [key]}, "then": {"$ref": "#/$defs/OtherData"}, "else": shapes});
    }
    if spec.failures.contains(&ErrorCode::PartialFailure) {
        answer["$defs"]["PartialData"] = data;
        let partial = json!({"$ref": "#/$defs/PartialData"});
        shapes = json!({"if": {"required": ["partial_success"]}, "then": partial, "else": shapes});
    }
    let reduced = json!({"anyOf": [
        {"properties": {"data": {"type": "null"}}},
        {"properties": {"metadata": {"required": ["fields"]}}},
        {"properties": {"metadata": {"required": ["truncated"]}}},
    ]});
    if let Some(rules) = answer["allOf"].as_array_mut() {
        rules.push(json!({"if": {"not": reduced}, "then": {"properties": {"data": shapes}}}));
    }
    answer
}

/// The key of the list in the data, if the data is a list.
fn listed_key(spec: &CommandSpec) -> Option<&'static str> {
    [Some(spec.shape), spec.other_shape].into_iter().flatten().find_map(|shape| match shape {
        Shape::List(plural) => Some(plural),
        Shape::Show(_) | Shape::Action(_) => None,
    })
}

/// The data of a command, with the exit code of the agent that its commands report.
fn with_agent_exit_code(spec: &CommandSpec) -> Value {
    let mut data = spec.output_schema();
    if matches!(spec.category, Category::ExecutionAck | Category::WaitResult | Category::ResultSet) {
        data["properties"][AGENT_EXIT_CODE] = json!({"type": ["integer", "null"]});
    }
    data
}

/// The violations of a rendered answer. A server validates many, so each validator is built only once.
pub fn check(envelope: Envelope, spec: &'static CommandSpec, answer: &Value) -> Vec<String> {
    static VALIDATORS: Mutex<BTreeMap<ValidatorKey, Arc<CompiledSchema>>> = Mutex::new(BTreeMap::new());
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = match validators.entry((envelope.name(), spec.path)) {
        Entry::Occupied(known) => Arc::clone(known.get()),
        Entry::Vacant(new) => match answer_schema(envelope, spec) {
            Some(schema) => Arc::clone(new.insert(Arc::new(compile(&schema)))),
            None => return Vec::new(),
        },
    };
    drop(validators);
    errors_of(&validator, answer)
}

/// The name of the envelope and the path of the command.
type ValidatorKey = (&'static str, &'static [&'static str]);

/// A validator, or why its schema is invalid.
type CompiledSchema = Result<Validator, String>;

/// The violations of a schema; empty if the value is valid.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    errors_of(&compile(schema), value)
}

fn compile(schema: &Value) -> CompiledSchema {
    let options = jsonschema::options().should_validate_formats(true);
    options.build(schema).map_err(|error| error.to_string())
}

fn errors_of(compiled: &CompiledSchema, instance: &Value) -> Vec<String> {
    match compiled {
        Ok(validator) => validator
            .iter_errors(instance)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect(),
        Err(error) => vec![format!("the schema itself is broken: {error}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::local::status;

    #[test]
    fn a_schema_that_does_not_compile_is_a_violation() {
        let found = violations(&json!({"type": "nonsense"}), &json!({}));
        assert!(found[0].starts_with("the schema itself is broken: "), "{found:?}");
        // A schema that could not be parsed is null, which must not accept everything.
        assert!(!violations(&Value::default(), &json!({})).is_empty());
    }

    #[test]
    fn an_answer_is_checked_against_the_schema_of_its_envelope() {
        for envelope in [Envelope::Agent, Envelope::Standard, Envelope::Tool] {
            let schema = answer_schema(envelope, &status::SPEC).unwrap();
            let expected = violations(&schema, &json!({}));
            assert!(!expected.is_empty(), "{envelope:?}");
            assert_eq!(check(envelope, &status::SPEC, &json!({})), expected, "{envelope:?}");
        }
        assert!(check(Envelope::Raw, &status::SPEC, &json!({})).is_empty());
    }
}
