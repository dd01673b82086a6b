//! The published schemas of the envelopes.
//!
//! The CLI envelope is a file given by its contract, in `schemas/`. The others are generated from their
//! types; the tool envelope has one schema per category.

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::output::data::acknowledgement::{AckFacts, ExecutionAck};
use crate::output::data::registry::{RegistryFacts, RegistryInfo};
use crate::output::data::status::{StatusFacts, StatusSnapshot};
use crate::output::data::task::{ResultFacts, ResultSet, ResultsData, TaskResult, WaitData, WaitFacts};
use crate::output::envelopes::standard::StandardEnvelope;
use crate::output::envelopes::tool::{OMITTED_IF_EMPTY, ToolEnvelope};
use crate::spec::{Category, output_schema};

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

/// The tool envelope of a category with this data.
pub fn tool_with(category: Category, id: &str, data: Value) -> Value {
    let mut schema = match category {
        Category::ExecutionAck => envelope::<AckFacts>(id),
        Category::WaitResult => envelope::<WaitFacts>(id),
        Category::StatusSnapshot => envelope::<StatusFacts>(id),
        Category::ResultSet => envelope::<ResultFacts>(id),
        Category::RegistryInfo => envelope::<RegistryFacts>(id),
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

/// The error form, for any category.
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
