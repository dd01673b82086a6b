//! The MCP tool definition of a command.
//!
//! Models read tool lists on every turn, so the definition is small: what is needed in nine calls of ten is a property
//! with a one-line description; the rest lives in one `options` object whose keys its description lists. Defaults and
//! ranges stand in the text too, because some hosts strip them from schemas.

use serde_json::{Map, Value, json};

use super::{CommandSpec, Danger, InputSchema, Property, PropertyType};
use crate::cli::globals::Format;

/// The definition as `tools/list` shows it.
pub fn tool_definition(spec: &CommandSpec, prefix: &str, default_format: Format) -> Value {
    json!({
        "name": spec.tool_name(prefix),
        "description": description(spec),
        "inputSchema": input_schema(&spec.inputs(), default_format),
        "annotations": annotations(spec),
    })
}

pub fn annotations(spec: &CommandSpec) -> Value {
    let mut hints = Map::new();
    // What changes nothing destroys nothing; that a call changes something and is not idempotent is what MCP assumes.
    if spec.is_safe() {
        hints.insert("readOnlyHint".into(), true.into());
    } else {
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

fn input_schema(inputs: &InputSchema, default_format: Format) -> Value {
    let built = || inputs.properties.iter().filter(|property| !property.unbuilt && !property.unlisted);
    let mut properties: Map<String, Value> = built()
        .filter(|property| !property.advanced)
        .map(|property| (property.name.clone(), property_schema(property)))
        .collect();
    let advanced: Vec<&Property> = built().filter(|property| property.advanced).collect();
    if !advanced.is_empty() {
        properties.insert("options".into(), json!({"type": "object", "description": listed(&advanced)}));
    }
    let formats = ["markdown", "json"].map(|name| (name, name == default_format.name()));
    properties.insert("format".into(), json!({"type": "string", "description": choice_of(&formats)}));
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
        let is_off = property.schema.get("default") == Some(&Value::Bool(false));
        let off = is_off.then(|| OFF.to_owned());
        object.insert("description".into(), with_notes(property, off.into_iter().collect()).into());
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

/// What a switch is until it is turned on. On a command line that goes without saying.
const OFF: &str = "default false";

/// The description, with the range and the default spelled out where there are any.
pub fn with_bounds(property: &Property) -> String {
    with_notes(property, Vec::new())
}

fn with_notes(property: &Property, more: Vec<String>) -> String {
    noted(&property.description, &[notes(property), more].concat())
}

fn noted(words: &str, notes: &[String]) -> String {
    match notes {
        [] => words.to_owned(),
        notes => format!("{words} ({})", notes.join(", ")),
    }
}

fn notes(property: &Property) -> Vec<String> {
    let bound = |key: &str| property.schema.get(key);
    let mut notes = Vec::new();
    if let (Some(low), Some(high)) = (bound("minimum"), bound("maximum")) {
        notes.push(format!("{low}..{high}"));
    }
    if let (Some(low), Some(high), true) = (bound("minLength"), bound("maxLength"), property.told_length) {
        notes.push(format!("{low}..{high} chars"));
    }
    match property.default() {
        Some(Value::String(text)) => notes.push(format!("default {text}")),
        Some(value @ (Value::Bool(true) | Value::Number(_))) => notes.push(format!("default {value}")),
        _ => {}
    }
    notes
}

/// The keys of `options`, as short as they can be said: by kind. What has no kind is a text, or has a range.
fn listed(advanced: &[&Property]) -> String {
    let of = |label: &str, kinds: &[PropertyType]| {
        let keys: Vec<String> = advanced
            .iter()
            .filter(|property| kinds.contains(&property.kind))
            .map(|property| key(property))
            .collect();
        (!keys.is_empty()).then(|| format!("{label}{}", keys.join(", ")))
    };
    let groups = [
        of("", &[PropertyType::Text, PropertyType::Integer]),
        of(&format!("bools, {OFF}: "), &[PropertyType::Flag]),
        of("lists of text: ", &[PropertyType::List]),
        of("objects: ", &[PropertyType::Pairs, PropertyType::Object]),
    ];
    groups.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn key(property: &Property) -> String {
    let default = property.default();
    let choices: Vec<(&str, bool)> =
        property.choices().into_iter().map(|choice| (choice, default == Some(&choice.into()))).collect();
    match choices.as_slice() {
        [] if property.words => noted(&property.name, &["a command".to_owned()]),
        [] => noted(&property.name, &notes(property)),
        choices => format!("{} {}", property.name, choice_of(choices)),
    }
}

/// The choices, and which of them holds unless another is made.
fn choice_of(choices: &[(&str, bool)]) -> String {
    let words = choices.iter().map(|(name, is_default)| match is_default {
        true => format!("{name} (default)"),
        false => (*name).to_owned(),
    });
    words.collect::<Vec<_>>().join("|")
}
