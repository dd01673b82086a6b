//! The MCP tool definition of a command.
//!
//! Models read the tool list on every turn, so a definition is small: frequently used inputs are properties
//! with a one-line description, which is only range and default if the name explains the rest; the others go
//! into one `options` object whose description lists the keys. Descriptions repeat defaults and ranges,
//! because some MCP clients remove them from schemas.

use serde_json::{Map, Value, json};

use crate::spec::formats::Format;
use crate::spec::input_schema::ModeSettings;
use crate::spec::{CommandSpec, Danger, InputSchema, Marker, Property, PropertyType, Surface};

/// What a server's configuration changes in its tool list.
#[derive(Debug, Clone)]
pub struct ToolListSettings {
    /// Prefix of the tool names.
    pub prefix: String,
    /// The format of responses to calls without `format`.
    pub default_format: Format,
    pub modes: ModeSettings,
    /// The agents that are installed, which an input for agents names.
    pub agents: Vec<String>,
}

pub fn tool_definition(spec: &CommandSpec, settings: &ToolListSettings) -> Value {
    json!({
        "name": spec.tool_name(&settings.prefix),
        "description": description(spec),
        "inputSchema": input_schema(&spec.inputs(), settings),
        "annotations": annotations(spec),
    })
}

/// The hints that differ from the defaults of MCP.
pub fn annotations(spec: &CommandSpec) -> Value {
    // The defaults of MCP: not read-only, destructive, not idempotent, open world. For a read-only tool,
    // destructive and idempotent mean nothing, and its world is not closed: it returns text of agents, which
    // may quote any source.
    let is_read_only = spec.is_safe();
    let hints = [
        ("readOnlyHint", true, is_read_only),
        ("destructiveHint", false, spec.danger == Danger::Mutating),
        ("idempotentHint", true, spec.idempotent && !is_read_only),
        ("openWorldHint", false, !spec.network && !is_read_only),
    ];
    let stated = hints.into_iter().filter(|(_, _, differs)| *differs);
    stated.map(|(hint, value, _)| (hint.to_owned(), Value::Bool(value))).collect()
}

fn description(spec: &CommandSpec) -> String {
    format!("{}. {}", spec.about, spec.full_details()).trim_end().to_owned()
}

fn input_schema(inputs: &InputSchema, settings: &ToolListSettings) -> Value {
    let is_offered = |property: &&Property| property.is_accepted_on(Surface::Server);
    let offered = || inputs.properties.iter().filter(is_offered);
    let mut properties: Map<String, Value> = offered()
        .filter(|property| !property.has(&Marker::Advanced))
        .map(|property| (property.name.clone(), property_schema(property, settings.modes)))
        .collect();
    let advanced: Vec<&Property> = offered().filter(|property| property.has(&Marker::Advanced)).collect();
    if !advanced.is_empty() {
        properties.insert(
            "options".into(),
            json!({"type": "object", "description": options_description(&advanced, settings)}),
        );
    }
    let is_default = |format: &Format| *format == settings.default_format;
    let formats: Vec<(&str, bool)> =
        Surface::Server.formats().iter().map(|format| (format.name(), is_default(format))).collect();
    properties.insert("format".into(), json!({"type": "string", "description": choices_text(&formats)}));
    let mut schema = json!({"type": "object", "properties": properties});
    inputs.insert_required(Surface::Server, &mut schema);
    schema
}

/// Type and description. Exact bounds are omitted: the validator checks them and the manifest lists them.
fn property_schema(property: &Property, modes: ModeSettings) -> Value {
    let property = &Property { schema: property.published_schema(modes), ..property.clone() };
    let mut schema = if property.has(&Marker::Command) {
        // Gemini refuses an input without a type, and clients refuse a list of types. All accept alternatives
        // of an input.
        json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    } else {
        type_keys_only(&property.schema)
    };
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".into(), tool_description(property).into());
    }
    schema
}

/// The description of a property in the tool list: range and default are part of it, what concerns only the
/// command line is not. If the name explains the rest, range and default are all of it.
fn tool_description(property: &Property) -> String {
    let text = property.description.split(COMMAND_LINE_CLAUSE).next().unwrap_or_default();
    let is_off = property.schema.get("default") == Some(&Value::Bool(false));
    let extra = [(is_off, DEFAULT_FALSE), (property.has(&Marker::Path), "absolute")];
    let extra = extra.into_iter().filter(|(applies, _)| *applies).map(|(_, note)| note.to_owned());
    let notes = [notes(property), extra.collect()].concat();
    let stated = text.split_once(" (").map(|(_, stated)| stated.trim_end_matches(')').to_owned());
    let all_notes: Vec<String> = stated.into_iter().chain(notes.iter().cloned()).collect();
    if property.has(&Marker::SelfExplanatory) && !all_notes.is_empty() {
        all_notes.join(", ")
    } else {
        append_notes(text, &notes)
    }
}

fn type_keys_only(schema: &Value) -> Value {
    let mut reduced = Map::new();
    for key in ["type", "enum", "items"] {
        if let Some(value) = schema.get(key) {
            reduced.insert(key.into(), if key == "items" { type_keys_only(value) } else { value.clone() });
        }
    }
    Value::Object(reduced)
}

/// Default of a boolean input. The command line help omits it.
const DEFAULT_FALSE: &str = "default false";

/// Begins the last clause of a description, if it concerns only the command line.
const COMMAND_LINE_CLAUSE: &str = "; CLI:";

/// The description on the command line, followed by range and default in parentheses.
pub fn description_with_bounds(property: &Property) -> String {
    append_notes(&property.description.replace(COMMAND_LINE_CLAUSE, ";"), &notes(property))
}

fn append_notes(text: &str, notes: &[String]) -> String {
    match notes {
        [] => text.to_owned(),
        // One pair of parentheses, also if the description states a default that is not a value.
        notes => match text.strip_suffix(')') {
            Some(open) => format!("{open}, {})", notes.join(", ")),
            None => format!("{text} ({})", notes.join(", ")),
        },
    }
}

fn notes(property: &Property) -> Vec<String> {
    let bound = |key: &str| property.schema.get(key);
    let mut notes = Vec::new();
    if let (Some(low), Some(high)) = (bound("minimum"), bound("maximum")) {
        notes.push(format!("{low}..{high}"));
    }
    if let (Some(low), Some(high), true) =
        (bound("minLength"), bound("maxLength"), property.has(&Marker::ShowsLength))
    {
        notes.push(format!("{low}..{high} chars"));
    }
    match property.default() {
        Some(Value::String(text)) => notes.push(format!("default {text}")),
        Some(value @ (Value::Bool(true) | Value::Number(_))) => notes.push(format!("default {value}")),
        Some(Value::Array(items)) if !items.is_empty() => {
            let names: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            notes.push(format!("default {}", names.join(",")));
        }
        _ => {}
    }
    notes
}

/// The keys of `options`, grouped by type and separated by spaces to save tokens. The first group has no
/// label: strings, and integers with a range.
fn options_description(advanced: &[&Property], settings: &ToolListSettings) -> String {
    let group = |label: &str, kinds: &[PropertyType]| {
        let keys: Vec<String> = advanced
            .iter()
            .filter(|property| kinds.contains(&property.kind))
            .map(|property| option_entry(property, settings))
            .collect();
        (!keys.is_empty()).then(|| format!("{label}{}", keys.join(" ")))
    };
    let groups = [
        group("", &[PropertyType::Text, PropertyType::Integer]),
        group("false: ", &[PropertyType::Flag]),
        group("lists: ", &[PropertyType::List]),
        group("objects: ", &[PropertyType::Pairs, PropertyType::Object]),
    ];
    let groups: Vec<String> = groups.into_iter().flatten().collect();
    format!("also at top level; {}", groups.join("; "))
}

fn option_entry(property: &Property, settings: &ToolListSettings) -> String {
    if property.has(&Marker::Names) && !settings.agents.is_empty() {
        return append_notes(&property.name, &settings.agents);
    }
    let default = property.default();
    let choices: Vec<(&str, bool)> =
        property.choices().into_iter().map(|choice| (choice, default == Some(&choice.into()))).collect();
    match choices.as_slice() {
        [] if property.has(&Marker::Command) => append_notes(&property.name, &["a command".to_owned()]),
        [] => append_notes(&property.name, &notes(property)),
        choices => format!("{}={}", property.name, choices_text(choices)),
    }
}

/// The choices separated by `|`, the default marked.
fn choices_text(choices: &[(&str, bool)]) -> String {
    let names = choices
        .iter()
        .map(|(name, is_default)| if *is_default { format!("{name} (default)") } else { (*name).to_owned() });
    names.collect::<Vec<_>>().join("|")
}
