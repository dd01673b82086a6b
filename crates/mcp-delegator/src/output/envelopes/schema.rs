//! The published schemas of the envelopes, and their validation.
//!
//! The schemas of the tool envelope are generated from its types and those of each category. The CLI envelope is a file given
//! by its contract, and the standard envelope a file written by this project; both are in `schemas/`.

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

/// The schema violations of an envelope; empty if it is valid.
pub fn violations(schema: &Value, envelope: &Value) -> Vec<String> {
    match jsonschema::options().should_validate_formats(true).build(schema) {
        Ok(validator) => errors_of(&validator, envelope),
        Err(error) => vec![format!("the schema itself is broken: {error}")],
    }
}

fn errors_of(validator: &Validator, instance: &Value) -> Vec<String> {
    validator.iter_errors(instance).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
