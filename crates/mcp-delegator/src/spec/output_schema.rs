//! The published schema of an output type.
//!
//! It describes what is written: a key that is always written is required, and a key that may be absent is
//! never null. The marker `x-optional` on a field is for the exceptions: it may be absent, or null if its
//! type allows it. The published contract has such keys, and a flattened optional part has them for each of
//! its values that may be null.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

pub fn output_schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(state_presence))
        .into_generator()
        .into_root_schema_for::<T>()
}

fn state_presence(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    // `uint64` and the like describe the Rust type.
    if object.get("format").is_some_and(|format| format != "date-time") {
        object.shift_remove("format");
    }
    let mut required = match object.shift_remove("required") {
        Some(Value::Array(required)) => required,
        _ => Vec::new(),
    };
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, property) in properties {
            let Some(property) = property.as_object_mut() else { continue };
            if property.shift_remove("x-optional").is_some() {
                required.retain(|key| key != name);
            } else if !required.iter().any(|key| key == name) {
                remove_null(property);
            }
        }
    }
    if !required.is_empty() {
        object.insert("required".into(), required.into());
    }
}

pub(super) fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}
