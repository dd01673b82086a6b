//! Converts an input type into the flat JSON Schema used by the command line, MCP and the validator.
//!
//! schemars describes the Rust type; MCP clients need less: no `null` beside a type, no integer formats, no
//! `$ref`, no unknown keys. The field of an input may have [`Marker`]s (`x-markers`) that control how the
//! command line and the MCP tool offer it; they never appear in a published schema. A `default` is the
//! built-in one, also where the configuration can set another. Validation never fills it in.

use std::borrow::Cow;

use delegator_config::Settings;
use delegator_domain::task::Mode;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::spec::output_schema::remove_null;
use crate::spec::{Category, CommandSpec, Surface, Toolset};

/// The input that selects a sandbox mode.
pub const MODE: &str = "mode";

pub fn schema_of<I: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<I>()
}

/// Type of an input; it decides how the value is written on a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyType {
    Flag,
    Integer,
    Text,
    /// Repeatable, or one JSON array.
    List,
    /// Repeatable `key=value`, or one JSON object.
    Pairs,
    /// A JSON object, or the path of a file that contains one.
    Object,
}

/// How the command line and the MCP tool offer an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Marker {
    /// It may also be given by position on the command line.
    Positional,
    /// A text: on the command line the value `-` means standard input, and `--NAME-file` names a file.
    Stdin,
    /// Besides, `--stdin` means standard input.
    StdinFlag,
    /// A file to read. The command line reads standard input for `-` or no value; a tool call requires a
    /// value.
    Source,
    /// Rarely needed: the MCP tool takes it in the `options` object.
    Advanced,
    /// The description states the allowed length.
    ShowsLength,
    /// The name explains the rest: the MCP tool states only range and default, if there are any.
    SelfExplanatory,
    /// A path, or a list of paths: absolute in a tool call; the command line resolves relative ones.
    Path,
    /// A name of earlier versions, which is still accepted.
    FormerName(Cow<'static, str>),
    /// The list input that takes the values if several are given by position.
    Several(Cow<'static, str>),
    /// A command: one string for a shell, or a list of a program and its arguments.
    Command,
    /// One name, or a list of names in order of preference.
    Names,
    /// A task text, or an object that describes a task.
    Follower,
    /// Several pairs or list entries may be given in one flag, separated by commas; no value contains one.
    CommaSeparated,
    /// The user's consent on the command line; a tool call has no such input.
    Consent,
    /// The sandbox mode of a new task: `default_mode` of the configuration, if it is not given.
    DefaultMode,
    /// Only for the user on the command line: refused over MCP and absent from the tool's schema.
    CommandLineOnly,
}

/// What the configuration changes in the input that selects a sandbox mode.
#[derive(Debug, Clone, Copy)]
pub struct ModeSettings {
    /// No mode above this one is offered.
    pub max: Mode,
    /// The mode of a task that names none.
    pub default: Mode,
}

impl From<&Settings> for ModeSettings {
    fn from(settings: &Settings) -> ModeSettings {
        ModeSettings { max: settings.max_mode, default: settings.default_mode() }
    }
}

#[derive(Debug, Clone)]
pub struct Property {
    pub name: String,
    pub description: String,
    pub kind: PropertyType,
    pub required: bool,
    pub markers: Vec<Marker>,
    /// The schema of the value, without description and markers.
    pub schema: Value,
}

impl Property {
    pub fn has(&self, marker: &Marker) -> bool {
        self.markers.contains(marker)
    }

    /// The list input that takes the values if several are given by position.
    pub fn several(&self) -> Option<&str> {
        self.markers.iter().find_map(|marker| match marker {
            Marker::Several(list) => Some(list.as_ref()),
            _ => None,
        })
    }

    /// A name of earlier versions, which is still accepted.
    pub fn former_name(&self) -> Option<&str> {
        self.markers.iter().find_map(|marker| match marker {
            Marker::FormerName(name) => Some(name.as_ref()),
            _ => None,
        })
    }

    /// Whether it names an object by its id: a malformed one is `INVALID_ID`.
    pub fn is_id(&self) -> bool {
        self.name.ends_with("_id") || self.name == "task_ids"
    }

    pub fn choices(&self) -> Vec<&str> {
        let values =
            self.schema.get("enum").or_else(|| self.schema.get("items").and_then(|items| items.get("enum")));
        values
            .and_then(Value::as_array)
            .map(|values| values.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }

    pub fn default(&self) -> Option<&Value> {
        self.schema.get("default")
    }

    /// The input without the modes above `max_mode`.
    pub fn limited_to(&self, max_mode: Mode) -> Property {
        let modes = ModeSettings { max: max_mode, default: Mode::default() };
        Property { schema: self.published_schema(modes), ..self.clone() }
    }

    /// The schema for callers: without the modes above the limit, and with the configured default.
    pub fn published_schema(&self, modes: ModeSettings) -> Value {
        let mut schema = self.schema.clone();
        if self.has(&Marker::DefaultMode) {
            schema["default"] = modes.default.name().into();
        }
        if let (MODE, Some(Value::Array(names))) = (self.name.as_str(), schema.get_mut("enum")) {
            let is_permitted = |mode: Mode| mode <= modes.max;
            names.retain(|name| name.as_str().and_then(Mode::from_name).is_none_or(is_permitted));
        }
        schema
    }

    /// A value of the right type, in place of one that is missing or refused.
    pub fn placeholder(&self) -> Value {
        match self.kind {
            PropertyType::Flag => false.into(),
            PropertyType::Integer => self.schema.get("minimum").cloned().unwrap_or(0.into()),
            PropertyType::Text => self.choices().first().copied().unwrap_or_default().into(),
            PropertyType::List => json!([]),
            PropertyType::Pairs | PropertyType::Object => json!({}),
        }
    }

    pub fn is_accepted_on(&self, surface: Surface) -> bool {
        surface == Surface::CommandLine || !(self.has(&Marker::CommandLineOnly) || self.has(&Marker::Consent))
    }

    pub fn is_required_on(&self, surface: Surface) -> bool {
        self.required || (surface == Surface::Server && self.has(&Marker::Source))
    }

    /// The long name of the flag that names a file with the value: `--task-file`.
    pub fn file_flag(&self) -> String {
        format!("{}-file", self.flag())
    }

    /// The flag's long name: `working_dir` is `--working-dir`.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    pub fn short_flag(&self) -> Option<char> {
        SHORT_FLAGS.iter().find(|(name, _)| *name == self.name).map(|(_, letter)| *letter)
    }
}

#[derive(Debug, Clone)]
pub struct InputSchema {
    pub properties: Vec<Property>,
    /// Which of the inputs a call must have, if `required` cannot express it: clients refuse `anyOf` at the
    /// top level.
    rule: Option<String>,
}

/// The letters that the command line accepts for inputs of these names.
const SHORT_FLAGS: [(&str, char); 8] = [
    ("agent", 'a'),
    ("attempts", 'n'),
    ("confirm", 'y'),
    ("confirm_destructive", 'y'),
    ("follow", 'f'),
    ("verify", 't'),
    ("working_dir", 'C'),
    ("yes", 'y'),
];

/// A flag of the command line that stands for one value of an input.
#[derive(Debug)]
pub struct ValueFlag {
    pub short: char,
    pub long: Option<&'static str>,
    pub input: &'static str,
    pub value: &'static str,
}

const VALUE_FLAGS: [ValueFlag; 2] = [
    ValueFlag { short: 'w', long: None, input: MODE, value: "workspace-write" },
    ValueFlag { short: 'W', long: Some("worktree"), input: "isolation", value: "worktree" },
];

/// What the flag `--last` stands for.
pub const LAST_HELP: &str = "The last submission in this directory or its git work tree, instead of an id: a task, a group or a chain";

impl InputSchema {
    pub fn of(spec: &CommandSpec) -> InputSchema {
        let mut root = (spec.input.schema)().to_value();
        strip_rust_details(&mut root);
        let required: Vec<String> = root
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        let properties = root.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let parse = |(name, schema): (String, Value)| {
            let is_required = required.contains(&name);
            let mut property = parse_property(name, schema, is_required);
            // In the tool list, only the inputs that a call needs take up space in a cloud tool for tasks:
            // the others are those of the local tool.
            let is_needed = property.required || spec.exactly_one_of.first() == Some(&property.name.as_str());
            let is_like_local = spec.toolset == Toolset::Cloud && spec.category != Category::RegistryInfo;
            if is_like_local && !is_needed {
                property.markers.push(Marker::Advanced);
            }
            property
        };
        let properties = properties.into_iter().map(parse).collect();
        InputSchema { properties, rule: spec.alternatives_rule() }
    }

    pub fn get(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// The name of the input that has this name or had it in earlier versions.
    pub fn present_name(&self, name: String) -> String {
        let renamed = self.properties.iter().find(|input| input.former_name() == Some(&name));
        renamed.map_or(name, |input| input.name.clone())
    }

    /// The input that names the task of a call, which `--last` can fill on the command line.
    pub fn task_input(&self) -> Option<&Property> {
        ["task_id", "task_ids", "source"].into_iter().find_map(|name| self.get(name))
    }

    /// Whether a required argument comes after this one by position.
    pub fn is_first_of_several(&self, input: &Property) -> bool {
        let is_other =
            |other: &Property| other.has(&Marker::Positional) && other.required && other.name != input.name;
        input.has(&Marker::Positional) && self.properties.iter().any(is_other)
    }

    /// The flags of the command line that stand for one value of an input.
    pub fn value_flags(&self) -> impl Iterator<Item = &'static ValueFlag> {
        let is_offered = |flag: &&ValueFlag| {
            self.get(flag.input).is_some_and(|input| input.choices().contains(&flag.value))
        };
        VALUE_FLAGS.iter().filter(is_offered)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(|property| property.name.as_str())
    }

    /// The published schema: the inputs, `options` and `format`, as far as calls of this surface may have
    /// them.
    pub fn published_schema(&self, surface: Surface, modes: ModeSettings) -> Value {
        let mut schema = self.to_value();
        self.insert_required(surface, &mut schema);
        // The help of the command line is the same for every configuration.
        let max = if surface == Surface::Server { modes.max } else { Mode::DangerFullAccess };
        let modes = ModeSettings { max, ..modes };
        if let Some(rule) = &self.rule {
            schema["description"] = rule.as_str().into();
        }
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| self.get(name).is_some_and(|input| input.is_accepted_on(surface)));
            for input in &self.properties {
                if let Some(schema) = properties.get_mut(&input.name) {
                    *schema = with_description(&input.published_schema(modes), &input.description);
                }
            }
            if self.properties.iter().any(|property| property.has(&Marker::Advanced)) {
                let description = "Rarely needed inputs may also be given in this object.";
                properties.insert("options".into(), json!({"type": "object", "description": description}));
            }
            let description = match surface {
                Surface::CommandLine => "Output format; the flag --format takes precedence.",
                Surface::Server => "Output format.",
            };
            let formats: Vec<&str> = surface.formats().iter().map(|format| format.name()).collect();
            let format = json!({"type": "string", "enum": formats, "description": description});
            properties.entry("format").or_insert(format);
        }
        schema
    }

    pub fn to_value(&self) -> Value {
        let properties: Map<String, Value> = self
            .properties
            .iter()
            .map(|property| {
                (property.name.clone(), with_description(&property.schema, &property.description))
            })
            .collect();
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        self.insert_required(Surface::CommandLine, &mut schema);
        schema
    }

    pub fn insert_required(&self, surface: Surface, schema: &mut Value) {
        let required = self.properties.iter().filter(|property| property.is_required_on(surface));
        let required: Vec<&str> = required.map(|property| property.name.as_str()).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
    }
}

fn with_description(schema: &Value, description: &str) -> Value {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".into(), description.into());
    }
    schema
}

fn parse_property(name: String, mut schema: Value, required: bool) -> Property {
    let mut take = |key: &str| schema.as_object_mut().and_then(|object| object.shift_remove(key));
    let markers = take("x-markers").and_then(|markers| serde_json::from_value(markers).ok());
    let description = take("description").and_then(|text| text.as_str().map(one_line));
    Property {
        name,
        description: description.unwrap_or_default(),
        kind: property_type(&schema),
        required,
        markers: markers.unwrap_or_default(),
        schema,
    }
}

/// Joins the lines of a wrapped doc comment: a description is one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn property_type(schema: &Value) -> PropertyType {
    if schema.get("items").is_some() {
        return PropertyType::List;
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => PropertyType::Flag,
        Some("integer") => PropertyType::Integer,
        Some("object") => match schema.get("additionalProperties").and_then(|of| of.get("type")) {
            Some(kind) if kind == "string" => PropertyType::Pairs,
            _ => PropertyType::Object,
        },
        _ => PropertyType::Text,
    }
}

/// Removes details of the Rust type that callers do not need: `null` types, integer formats and titles.
fn strip_rust_details(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(strip_rust_details),
        Value::Object(object) => {
            remove_null(object);
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

/// Replaces `anyOf: [X, null]` by `X`: `required` already states that the input is optional.
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
