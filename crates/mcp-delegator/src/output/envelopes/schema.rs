//! The published schemas of the envelopes, and their validation.
//!
//! The schemas of the tool envelope are generated from its types and those of each category. The CLI envelope is a file given
//! by its contract, and the standard envelope a file written by this project; both are in `schemas/`.

use std::sync::OnceLock;

use jsonschema::Validator;
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::output::data::acknowledgement::{AckFacts, ExecutionAck};
use crate::output::data::registry::{RegistryFacts, RegistryInfo};
use crate::output::data::status::{StatusFacts, StatusSnapshot};
use crate::output::data::task::{ResultFacts, ResultSet, TaskResult, WaitData, WaitFacts};
use crate::output::envelopes::tool::ToolEnvelope;
use crate::spec::formats::Envelope;
use crate::spec::{Category, output_schema};

const AGENT: &str = include_str!("../../../schemas/agent.json");
const STANDARD: &str = include_str!("../../../schemas/standard.json");

/// Tests check the embedded files, so parsing cannot fail in a release.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

pub fn agent() -> Value {
    parsed(AGENT)
}

pub fn standard() -> Value {
    parsed(STANDARD)
}

/// The tool envelope of one category: success and error both validate against it.
pub fn tool(category: Category) -> Value {
    match category {
        Category::ExecutionAck => schema_with::<AckFacts, ExecutionAck, ExecutionAck>(category, None),
        Category::WaitResult => schema_with::<WaitFacts, WaitData, TaskResult>(category, Some("tasks")),
        Category::StatusSnapshot => {
            schema_with::<StatusFacts, StatusSnapshot, StatusSnapshot>(category, None)
        }
        Category::ResultSet => schema_with::<ResultFacts, ResultSet, ResultSet>(category, None),
        // Each command writes only its own part.
        Category::RegistryInfo => schema_with::<RegistryFacts, RegistryInfo, Empty>(category, None),
    }
}

/// A type without keys.
#[derive(JsonSchema)]
struct Empty {}

/// The envelope of a category with its facts `M` and its data `D`. A complete response has the required keys of `M` and `R`;
/// one with the key `incomplete` need not have them.
fn schema_with<M: JsonSchema, D: JsonSchema, R: JsonSchema>(
    category: Category,
    incomplete: Option<&str>,
) -> Value {
    let mut schema = envelope::<M, D>(&category.schema_id());
    let properties = &mut schema["properties"];
    properties["schema_id"]["const"] = category.schema_id().into();
    properties["tool_category"]["const"] = category.name().into();
    let facts = take_required(&mut properties["meta"]);
    take_required(&mut properties["data"]);
    let data = take_required(&mut output_schema::<R>().to_value());
    schema["allOf"] = json!([
        {
            "if": {"properties": {"status": {"const": "ok"}}},
            "then": {"required": ["data"], "not": {"required": ["error"]}},
            "else": {"required": ["error"], "not": {"required": ["data"]}}
        },
        {
            "if": complete_response(incomplete),
            "then": {"properties": {"meta": {"required": facts}, "data": {"required": data}}}
        }
    ]);
    schema
}

/// The error form, for any category.
pub fn tool_error() -> Value {
    let mut schema = envelope::<Empty, Empty>("codex/v3.6/error/v1");
    schema["properties"]["status"] = json!({"const": "error"});
    schema["properties"]["tool_category"]["enum"] = json!(Category::ALL.map(Category::name));
    if let Some(required) = schema["required"].as_array_mut() {
        required.push("error".into());
    }
    schema
}

fn envelope<M: JsonSchema, D: JsonSchema>(id: &str) -> Value {
    let mut schema = output_schema::<ToolEnvelope<M, D>>().to_value();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["$id"] = id.into();
    schema
}

fn take_required(schema: &mut Value) -> Value {
    let required = schema.as_object_mut().and_then(|schema| schema.shift_remove("required"));
    required.unwrap_or_else(|| json!([]))
}

/// A response with all required parts of its category: not an error, not "unchanged", not an expired wait, and not the
/// form with several tasks.
fn complete_response(incomplete: Option<&str>) -> Value {
    let mut absent = vec![json!({"properties": {"status": {"const": "error"}}})];
    for flag in ["not_modified", "wait_expired", "partial"] {
        absent.push(json!({"properties": {"meta": {"required": [flag]}}}));
    }
    absent.extend(incomplete.map(|key| json!({"properties": {"data": {"required": [key]}}})));
    json!({"not": {"anyOf": absent}})
}

pub fn schema_of(envelope: Envelope, category: Category) -> Option<Value> {
    match envelope {
        Envelope::Agent => Some(agent()),
        Envelope::Standard => Some(standard()),
        Envelope::Tool => Some(tool(category)),
        Envelope::Raw => None,
    }
}

/// The violations of a rendered envelope. A server validates many, so each validator is built only once.
pub fn check(envelope: Envelope, category: Category, value: &Value) -> Vec<String> {
    const COUNT: usize = 2 + Category::ALL.len();
    static VALIDATORS: [OnceLock<CompiledSchema>; COUNT] = [const { OnceLock::new() }; COUNT];
    let at = match envelope {
        Envelope::Agent => 0,
        Envelope::Standard => 1,
        Envelope::Tool => 2 + category as usize,
        Envelope::Raw => return Vec::new(),
    };
    let build = || compile(&schema_of(envelope, category).unwrap_or_default());
    errors_of(VALIDATORS[at].get_or_init(build), value)
}

/// The schema violations of an envelope; empty if it is valid.
pub fn violations(schema: &Value, envelope: &Value) -> Vec<String> {
    errors_of(&compile(schema), envelope)
}

/// A validator, or why its schema is invalid.
type CompiledSchema = Result<Validator, String>;

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

    #[test]
    fn a_schema_that_does_not_compile_is_a_violation() {
        let found = violations(&json!({"type": "nonsense"}), &json!({}));
        assert!(found[0].starts_with("the schema itself is broken: "), "{found:?}");
        // A schema that could not be parsed is null, which must not accept everything.
        assert!(!violations(&Value::default(), &json!({})).is_empty());
    }

    #[test]
    fn every_envelope_is_checked_against_its_own_schema() {
        for envelope in [Envelope::Agent, Envelope::Standard, Envelope::Tool] {
            for category in Category::ALL {
                let schema = schema_of(envelope, category).unwrap();
                let expected = violations(&schema, &json!({}));
                assert!(!expected.is_empty(), "{envelope:?} {category:?}");
                assert_eq!(check(envelope, category, &json!({})), expected, "{envelope:?} {category:?}");
            }
        }
        assert!(check(Envelope::Raw, Category::RegistryInfo, &json!({})).is_empty());
    }
}
