//! The published schemas of the envelopes and of the answers of a command, and the validation of an answer.
//!
//! The CLI envelope is a file given by its contract, in `schemas/`; the others are generated from their
//! types. Rules in `allOf` state when the data of a command has its [`Shape`]; an answer with selected
//! fields, for example, lacks required keys.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::error::ErrorCode;
use crate::output::data::acknowledgement::{AckMeta, ExecutionAck};
use crate::output::data::registry::{RegistryInfo, RegistryMeta};
use crate::output::data::status::{StatusMeta, StatusSnapshot};
use crate::output::data::task::{ResultMeta, ResultSet, ResultsData, TaskResult, WaitData, WaitMeta};
use crate::output::envelopes::cli::{self, StreamEnd};
use crate::output::envelopes::standard as standard_envelope;
use crate::output::envelopes::standard::StandardEnvelope;
use crate::output::envelopes::tool::{OMITTED_IF_EMPTY, ToolEnvelope};
use crate::output::outcome::AGENT_EXIT_CODE;
use crate::spec::formats::Envelope;
use crate::spec::{Category, CommandSpec, Shape, output_schema};

const AGENT: &str = include_str!("../../../schemas/agent.json");
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

pub fn agent() -> Value {
    // A test checks the embedded file, so parsing cannot fail in a release.
    serde_json::from_str(AGENT).unwrap_or_default()
}

pub fn standard() -> Value {
    let mut schema = identified(output_schema::<StandardEnvelope>().to_value(), "mcp-delegator/standard/v1");
    schema["allOf"] = json!([{
        "if": {"properties": {"success": {"const": true}}},
        "then": {"properties": {"error": {"type": "null"}}},
        "else": {"properties": {"error": {"type": "object"}, "data": {"type": "null"}}}
    }]);
    schema
}

/// The tool envelope of one category: success and error both validate against it.
pub fn tool(category: Category) -> Value {
    let data = match category {
        Category::ExecutionAck => output_schema::<ExecutionAck>(),
        Category::WaitResult => output_schema::<WaitData>(),
        Category::StatusSnapshot => output_schema::<StatusSnapshot>(),
        Category::ResultSet => output_schema::<ResultsData>(),
        // Each command writes only its own part.
        Category::RegistryInfo => output_schema::<RegistryInfo>(),
    };
    tool_with(category, &category.schema_id(), data.to_value())
}

pub fn tool_with(category: Category, id: &str, data: Value) -> Value {
    let mut schema = match category {
        Category::ExecutionAck => envelope::<AckMeta>(id),
        Category::WaitResult => envelope::<WaitMeta>(id),
        Category::StatusSnapshot => envelope::<StatusMeta>(id),
        Category::ResultSet => envelope::<ResultMeta>(id),
        Category::RegistryInfo => envelope::<RegistryMeta>(id),
    };
    let properties = &mut schema["properties"];
    properties["schema_id"]["const"] = category.schema_id().into();
    properties["tool_category"]["const"] = category.name().into();
    let facts = take_required(&mut properties["meta"]);
    // The data of a wait has the keys of a result only if the wait was for one task that has ended; results
    // of a group are those of its attempts.
    let (keys, other_form) = match category {
        Category::WaitResult => (take_required(&mut output_schema::<TaskResult>().to_value()), Some("tasks")),
        Category::ResultSet => {
            (take_required(&mut output_schema::<ResultSet>().to_value()), Some("attempts"))
        }
        _ => (json!([]), None),
    };
    schema["$defs"] = json!({"Data": tool_data(category, data)});
    schema["allOf"] = json!([
        {
            "if": {"properties": {"status": {"const": "ok"}}},
            "then": {"required": ["data"], "not": {"required": ["error"]}},
            "else": {"required": ["error"], "not": {"required": ["data"]}}
        },
        {
            "if": {"required": ["data"], "not": {"anyOf": reduced_data("meta")}},
            "then": {"properties": {"data": {"$ref": "#/$defs/Data"}}}
        },
        {
            "if": complete_response(other_form),
            "then": {"properties": {"meta": {"required": facts}, "data": {"required": keys}}}
        }
    ]);
    schema
}

/// Data in this envelope, which omits some lists when they are empty.
fn tool_data(category: Category, mut data: Value) -> Value {
    if category == Category::StatusSnapshot {
        for list in OMITTED_IF_EMPTY {
            data["properties"][list]["minItems"] = 1.into();
        }
        if let Some(required) = data["required"].as_array_mut() {
            required.retain(|key| !OMITTED_IF_EMPTY.iter().any(|list| key == list));
        }
    }
    data
}

pub fn tool_error() -> Value {
    let mut schema = envelope::<Empty>("codex/v3.6/error/v1");
    schema["properties"]["status"] = json!({"const": "error"});
    schema["properties"]["tool_category"]["enum"] = json!(Category::ALL.map(Category::name));
    if let Some(required) = schema["required"].as_array_mut() {
        required.push("error".into());
    }
    schema
}

/// A type without keys.
#[derive(JsonSchema)]
struct Empty {}

fn envelope<M: JsonSchema>(id: &str) -> Value {
    identified(output_schema::<ToolEnvelope<M, Empty>>().to_value(), id)
}

/// A schema document with its draft and id.
fn identified(mut schema: Value, id: &str) -> Value {
    schema["$schema"] = DRAFT.into();
    schema["$id"] = id.into();
    schema
}

fn take_required(schema: &mut Value) -> Value {
    let required = schema.as_object_mut().and_then(|schema| schema.shift_remove("required"));
    required.unwrap_or_else(|| json!([]))
}

/// The answers whose data lacks required keys: it is not modified, or a selection, or the size limit left
/// nothing of it.
pub fn reduced_data(meta: &str) -> Vec<Value> {
    let has = |flag: &str| json!({"properties": {meta: {"required": [flag]}}});
    let mut reduced = vec![has("not_modified"), has("fields")];
    let mut empty = has("truncated");
    empty["properties"]["data"] = json!({"maxProperties": 0});
    reduced.push(empty);
    reduced
}

/// A response with all required parts of its category: not an error, not reduced, not an expired wait, and
/// not the form with several tasks.
fn complete_response(other_form: Option<&str>) -> Value {
    let mut others = reduced_data("meta");
    others.push(json!({"properties": {"status": {"const": "error"}}}));
    others.push(json!({"properties": {"meta": {"required": ["wait_expired"]}}}));
    others.extend(other_form.map(|key| json!({"properties": {"data": {"required": [key]}}})));
    json!({"not": {"anyOf": others}})
}

pub fn answer_schema(envelope: Envelope, spec: &CommandSpec) -> Option<Value> {
    match envelope {
        Envelope::Agent => Some(cli_answer(spec)),
        Envelope::Standard => Some(standard_answer(spec)),
        Envelope::Tool => Some(tool_with(spec.category, &id(spec, "tool"), spec.output_schema())),
        Envelope::Raw => None,
    }
}

fn id(spec: &CommandSpec, envelope: &str) -> String {
    format!("mcp-delegator/{}/{envelope}/v1", spec.name())
}

fn cli_answer(spec: &CommandSpec) -> Value {
    let mut answer = agent();
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
                "not": {"anyOf": reduced_data("meta")}
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
    let mut answer = standard();
    answer["$id"] = id(spec, "standard").into();
    let data = with_agent_exit_code(spec);
    let mut shapes = json!({"$ref": "#/$defs/Data"});
    answer["$defs"] = json!({"Data": standard_envelope::shaped_schema(spec.shape, spec, data.clone())});
    if let Some(other) = spec.other_shape {
        answer["$defs"]["OtherData"] = standard_envelope::shaped_schema(other, spec, data.clone());
        let key = standard_envelope::distinctive_key(other);
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
