//! The published schemas of the envelopes, and their validation.
//!
//! The schema files are in `schemas/`: the CLI envelope as given by its contract, the standard envelope as written by this
//! project, and for the tool envelope the parts of each category, which are assembled here into one object per category.

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::spec::Category;
use crate::spec::formats::Envelope;

const AGENT: &str = include_str!("../../../schemas/agent.json");
const STANDARD: &str = include_str!("../../../schemas/standard.json");
const TOOL_ERROR: &str = include_str!("../../../schemas/tool/error.json");
const TOOL_COMMON: &str = include_str!("../../../schemas/tool/common.json");

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

fn category_parts(category: Category) -> Value {
    parsed(match category {
        Category::ExecutionAck => include_str!("../../../schemas/tool/execution_ack.json"),
        Category::WaitResult => include_str!("../../../schemas/tool/wait_result.json"),
        Category::StatusSnapshot => include_str!("../../../schemas/tool/status_snapshot.json"),
        Category::ResultSet => include_str!("../../../schemas/tool/result_set.json"),
        Category::RegistryInfo => include_str!("../../../schemas/tool/registry_info.json"),
    })
}

/// The schema of a category's `data`, for commands without a more specific one.
pub fn category_data(category: Category) -> Value {
    let mut schema = category_parts(category)["data"].take();
    if let Some(object) = schema.as_object_mut() {
        object.insert("$defs".into(), parsed(TOOL_COMMON));
    }
    schema
}

/// The tool envelope of one category: success and error both validate against it.
pub fn tool(category: Category) -> Value {
    let mut parts = category_parts(category);
    let required = parts["required"].take();
    let mut schema = tool_envelope(
        &category.schema_id(),
        json!({"const": category.schema_id()}),
        json!({"const": category.name()}),
    );
    schema["properties"]["meta"] = parts["meta"].take();
    schema["properties"]["data"] = parts["data"].take();
    schema["allOf"] = json!([
        {
            "if": {"properties": {"status": {"const": "ok"}}},
            "then": {"required": ["data"], "not": {"required": ["error"]}},
            "else": {"required": ["error"], "not": {"required": ["data"]}}
        },
        {"if": complete_response(&required), "then": required_parts(&required)}
    ]);
    schema["$defs"] = parsed(TOOL_COMMON);
    schema
}

/// The error form, for any category.
pub fn tool_error() -> Value {
    let categories: Vec<&str> = Category::ALL.iter().map(|category| category.name()).collect();
    let mut schema =
        tool_envelope("codex/v3.6/error/v1", json!({"type": "string"}), json!({"enum": categories}));
    schema["properties"]["status"] = json!({"const": "error"});
    schema["properties"]["meta"] = json!({"type": "object"});
    schema["required"] = json!([
        "version",
        "schema_id",
        "tool",
        "tool_category",
        "request_id",
        "ts",
        "status",
        "meta",
        "error"
    ]);
    schema
}

fn tool_envelope(id: &str, schema_id: Value, category: Value) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": id,
        "type": "object",
        "required": ["version", "schema_id", "tool", "tool_category", "request_id", "ts", "status", "meta"],
        "additionalProperties": false,
        "properties": {
            "version": {"const": "3.6"},
            "schema_id": schema_id,
            "tool": {"type": "string", "minLength": 1},
            "tool_category": category,
            "request_id": {"type": "string", "minLength": 1},
            "ts": {"type": "string", "format": "date-time"},
            "status": {"enum": ["ok", "error"]},
            "meta": {},
            "data": {},
            "error": parsed(TOOL_ERROR),
        },
    })
}

/// A response with all required parts of its category: not an error, not "unchanged", not an expired wait, and not the
/// form with several tasks.
fn complete_response(required: &Value) -> Value {
    let mut absent = vec![json!({"properties": {"status": {"const": "error"}}})];
    for flag in ["not_modified", "wait_expired", "partial"] {
        absent.push(json!({"properties": {"meta": {"required": [flag]}}}));
    }
    if let Some(key) = required.get("unless_data_has") {
        absent.push(json!({"properties": {"data": {"required": [key]}}}));
    }
    json!({"not": {"anyOf": absent}})
}

fn required_parts(required: &Value) -> Value {
    let mut properties = Map::new();
    for part in ["meta", "data"] {
        if let Some(keys) = required.get(part) {
            properties.insert(part.into(), json!({"required": keys}));
        }
    }
    json!({"properties": properties})
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
