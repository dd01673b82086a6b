//! From an input type to the one flat JSON Schema that every surface uses.
//!
//! schemars describes the Rust type; hosts and people need something plainer: no `null` beside a type, no integer
//! formats, nothing behind `$ref`, and no unknown keys. Properties may carry markers of ours (`x-…`) that say how a
//! surface offers them; they never leave in a published schema.
//!
//! | marker | meaning |
//! |---|---|
//! | `x-positional` | on the command line it may also be given by position |
//! | `x-stdin` | the value `-` means standard input |
//! | `x-advanced` | rarely needed: in the MCP tool it lives in the `options` object |
//! | `x-length` | callers make it up, so they are told how long it may be |
//! | `x-words` | a list that is a command: on the command line also as one text |
//! | `x-unbuilt` | settled, but not served yet |
//! | `x-command-line` | for the user alone: refused over MCP, and not in the tool's schema |
//! | `x-default` | what holds unless the configuration says otherwise |

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::CommandSpec;

pub fn schema_of<I: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<I>()
}

/// How a value is written on a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyType {
    Flag,
    Integer,
    Text,
    /// Repeatable; also as one JSON array.
    List,
    /// Repeatable `key=value`; also as one JSON object.
    Pairs,
    /// A JSON object, or the path of a file that holds one.
    Object,
}

#[derive(Debug, Clone)]
pub struct Property {
    pub name: String,
    pub description: String,
    pub kind: PropertyType,
    pub required: bool,
    pub positional: bool,
    pub stdin: bool,
    pub advanced: bool,
    pub unavailable: bool,
    pub command_line_only: bool,
    /// One text with spaces is split into words.
    pub is_argv: bool,
    /// Its length stands beside its description.
    pub shows_length: bool,
    /// A default that is not the input's own but the configuration's.
    pub configured_default: Option<Value>,
    /// The schema of the value, without our markers.
    pub schema: Value,
}

impl Property {
    pub fn choices(&self) -> Vec<&str> {
        let values =
            self.schema.get("enum").or_else(|| self.schema.get("items").and_then(|items| items.get("enum")));
        values
            .and_then(Value::as_array)
            .map(|values| values.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }

    /// What holds if the input is not given, where that can be said.
    pub fn default(&self) -> Option<&Value> {
        self.schema.get("default").or(self.configured_default.as_ref())
    }

    /// The flag's long name: `working_dir` is `--working-dir`.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// The inputs of one command, in declaration order.
#[derive(Debug, Clone)]
pub struct InputSchema {
    pub properties: Vec<Property>,
}

impl InputSchema {
    pub fn of(spec: &CommandSpec) -> InputSchema {
        let mut root = (spec.input)().to_value();
        strip_rust_details(&mut root);
        let required: Vec<String> = root
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        let properties = root.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let properties = properties
            .into_iter()
            .map(|(name, schema)| parse_property(&name, schema, required.contains(&name)))
            .collect();
        InputSchema { properties }
    }

    pub fn get(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(|property| property.name.as_str())
    }

    /// The schema as it is published: beside the inputs, what every call may carry.
    pub fn published_schema(&self) -> Value {
        let mut schema = self.to_value();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            if self.properties.iter().any(|property| property.advanced) {
                let description = "Any of the inputs that are rarely needed may stand in here instead.";
                properties.insert("options".into(), json!({"type": "object", "description": description}));
            }
            let description = "How the answer shall look; the flag --format wins.";
            let formats = json!({"type": "string", "enum": ["human", "markdown", "json", "jsonl"], "description": description});
            properties.entry("format").or_insert(formats);
        }
        schema
    }

    /// The schema inputs are validated against.
    pub fn to_value(&self) -> Value {
        let properties: Map<String, Value> = self
            .properties
            .iter()
            .map(|property| {
                (property.name.clone(), with_description(&property.schema, &property.description))
            })
            .collect();
        let required: Vec<&str> =
            self.properties.iter().filter(|property| property.required).map(|p| p.name.as_str()).collect();
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if let (false, Some(object)) = (required.is_empty(), schema.as_object_mut()) {
            object.insert("required".into(), json!(required));
        }
        schema
    }
}

fn with_description(schema: &Value, description: &str) -> Value {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".into(), description.into());
    }
    schema
}

fn parse_property(name: &str, mut schema: Value, required: bool) -> Property {
    let mut marker = |key: &str| {
        schema
            .as_object_mut()
            .and_then(|object| object.shift_remove(key))
            .is_some_and(|v| v == Value::Bool(true))
    };
    let (positional, stdin) = (marker("x-positional"), marker("x-stdin"));
    let (advanced, unavailable, is_argv) = (marker("x-advanced"), marker("x-unbuilt"), marker("x-words"));
    let (shows_length, command_line_only) = (marker("x-length"), marker("x-command-line"));
    let configured_default = schema.as_object_mut().and_then(|object| object.shift_remove("x-default"));
    let description = schema
        .as_object_mut()
        .and_then(|object| object.shift_remove("description"))
        .and_then(|text| text.as_str().map(one_line))
        .unwrap_or_default();
    let kind = property_type(&schema);
    let name = name.to_owned();
    Property {
        name,
        description,
        kind,
        required,
        positional,
        stdin,
        advanced,
        unavailable,
        command_line_only,
        is_argv,
        shows_length,
        configured_default,
        schema,
    }
}

/// Doc comments are wrapped for reading in the source; a description is one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn property_type(schema: &Value) -> PropertyType {
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => PropertyType::Flag,
        Some("integer") => PropertyType::Integer,
        Some("array") => PropertyType::List,
        Some("object") => match schema.get("additionalProperties").and_then(|of| of.get("type")) {
            Some(kind) if kind == "string" => PropertyType::Pairs,
            _ => PropertyType::Object,
        },
        _ => PropertyType::Text,
    }
}

/// Takes out what schemars says about the Rust type and no caller needs.
fn strip_rust_details(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(strip_rust_details),
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            remove_null_alternative(object);
            if object.get("default") == Some(&Value::Null) {
                object.shift_remove("default");
            }
            for key in ["format", "title", "$schema"] {
                if object.get(key).is_some_and(Value::is_string) {
                    object.shift_remove(key);
                }
            }
            object.values_mut().for_each(strip_rust_details);
        }
        _ => {}
    }
}

/// `anyOf: [X, null]` says "optional", which `required` says already.
fn remove_null_alternative(object: &mut Map<String, Value>) {
    let Some(Value::Array(options)) = object.get_mut("anyOf") else { return };
    options.retain(|option| option.get("type") != Some(&json!("null")));
    if let [only] = options.as_slice() {
        let only = only.as_object().cloned().unwrap_or_default();
        object.shift_remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}
