//! The MCP tool definition of a command.
//!
//! Models read tool lists on every turn, so the definition is small: what is needed in nine calls of ten is a property
//! with a one-line description; the rest lives in one `options` object whose keys its description lists. Defaults and
//! ranges stand in the text too, because some hosts strip them from schemas.

use serde_json::{Map, Value, json};

use super::{CommandSpec, Danger, InputSchema, Property, PropertyType};

/// What stands before the keys of `options`.
pub const OPTIONS_LIST: &str = "More: ";

/// The definition as `tools/list` shows it.
pub fn tool_definition(spec: &CommandSpec, prefix: &str) -> Value {
    json!({
        "name": spec.tool_name(prefix),
        "description": description(spec),
        "inputSchema": input_schema(&spec.inputs()),
        "annotations": annotations(spec),
    })
}

pub fn annotations(spec: &CommandSpec) -> Value {
    let read_only = spec.is_safe();
    let mut hints = Map::new();
    hints.insert("readOnlyHint".into(), read_only.into());
    // What changes nothing destroys nothing; that a call is not idempotent is what MCP assumes anyway.
    if !read_only {
        hints.insert("destructiveHint".into(), (spec.danger == Danger::Destructive).into());
    }
    if spec.idempotent {
        hints.insert("idempotentHint".into(), true.into());
    }
    hints.insert("openWorldHint".into(), spec.network.into());
    Value::Object(hints)
}

fn description(spec: &CommandSpec) -> String {
    match spec.details {
        "" => format!("{}.", spec.about),
        details => format!("{}. {details}", spec.about),
    }
}

fn input_schema(inputs: &InputSchema) -> Value {
    let built = || inputs.properties.iter().filter(|property| !property.unbuilt);
    let mut properties: Map<String, Value> = built()
        .filter(|property| !property.advanced)
        .map(|property| (property.name.clone(), property_schema(property)))
        .collect();
    let advanced: Vec<&Property> = built().filter(|property| property.advanced).collect();
    if !advanced.is_empty() {
        let keys: Vec<String> = advanced.iter().map(|property| brief(property)).collect();
        properties.insert(
            "options".into(),
            json!({"type": "object", "description": format!("{OPTIONS_LIST}{}", keys.join(", "))}),
        );
    }
    properties.insert("format".into(), json!({"type": "string", "enum": ["markdown", "json"]}));
    let required: Vec<&str> = built().filter(|p| p.required).map(|p| p.name.as_str()).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if let (false, Some(object)) = (required.is_empty(), schema.as_object_mut()) {
        object.insert("required".into(), json!(required));
    }
    schema
}

/// The type and the words; the exact bounds are checked here and told in the manifest.
fn property_schema(property: &Property) -> Value {
    let mut schema = bare(&property.schema);
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".into(), with_bounds(property).into());
    }
    schema
}

fn bare(schema: &Value) -> Value {
    let mut kept = Map::new();
    for key in ["type", "enum", "items"] {
        if let Some(value) = schema.get(key) {
            kept.insert(key.into(), if key == "items" { bare(value) } else { value.clone() });
        }
    }
    Value::Object(kept)
}

/// The description, with the default and the range spelled out where the schema has them.
pub fn with_bounds(property: &Property) -> String {
    let mut notes = Vec::new();
    match property.default() {
        Some(Value::String(text)) => notes.push(format!("default {text}")),
        // That a switch is off until it is turned on needs no words.
        Some(value @ (Value::Bool(true) | Value::Number(_))) => notes.push(format!("default {value}")),
        _ => {}
    }
    if let (Some(low), Some(high)) = (property.schema.get("minimum"), property.schema.get("maximum")) {
        notes.push(format!("{low}..{high}"));
    }
    match notes.as_slice() {
        [] => property.description.clone(),
        notes => format!("{} ({})", property.description, notes.join(", ")),
    }
}

/// One key of `options`, as short as it can be said: a key without a type is a text.
fn brief(property: &Property) -> String {
    let kind = match (property.choices().as_slice(), property.kind) {
        ([], PropertyType::Text) => return property.name.clone(),
        ([], PropertyType::Flag) => "bool".to_owned(),
        ([], PropertyType::Integer) => "int".to_owned(),
        ([], PropertyType::List) => "list".to_owned(),
        ([], PropertyType::Pairs | PropertyType::Object) => "object".to_owned(),
        (choices, _) => choices.join("|"),
    };
    format!("{} {kind}", property.name)
}
