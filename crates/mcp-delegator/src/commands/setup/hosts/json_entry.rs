//! Adds or updates one entry in JSON text; everything else in it stays, comments too.
//!
//! The parsed text gives the expected value, and the concrete syntax tree of `jsonc_parser` makes the edit.
//! The edited text must parse to the expected value; otherwise the edit fails and the file stays unchanged.

use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

use crate::commands::setup::hosts::{Edit, Entry, EntryError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Json,
    /// JSON with comments and trailing commas.
    JsonWithComments,
}

impl Syntax {
    pub fn parse(self, text: &str) -> Result<Value, EntryError> {
        let parsed = match self {
            Syntax::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
            Syntax::JsonWithComments => {
                parse_to_serde_value(text, &with_comments()).map_err(|error| error.to_string())
            }
        };
        parsed.map_err(|message| EntryError::Unreadable { format: "JSON", message })
    }
}

/// Everything else that `jsonc_parser` accepts by default would be an error in every client.
pub fn with_comments() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

pub fn read(document: &Value, group: &str, name: &str) -> Option<Entry> {
    let entry = document[group][name].as_object()?;
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    Some(Entry {
        command: entry.get("command").and_then(Value::as_str).map(str::to_owned),
        args: args.filter_map(Value::as_str).map(str::to_owned).collect(),
        approves_tools: false,
    })
}

/// Sets `group.name` to `entry`. If the entry exists, only the values of `replaced` are updated.
pub fn upsert_entry(
    text: &str,
    syntax: Syntax,
    [group, name]: [&str; 2],
    entry: &Value,
    replaced: &[&str],
) -> Result<Edit, EntryError> {
    let before = syntax.parse(text)?;
    let mut expected = before.clone();
    let Some(top) = expected.as_object_mut() else {
        return Err(cannot_edit("the file is not a JSON object"));
    };
    let servers = top.entry(group).or_insert_with(|| Value::Object(serde_json::Map::new()));
    let Some(servers) = servers.as_object_mut() else {
        return Err(cannot_edit(format!("{group} is not an object")));
    };
    match servers.get_mut(name) {
        Some(Value::Object(present)) if !present.contains_key("command") => {
            return Err(EntryError::WithoutCommand { entry: format!("{group}.{name}") });
        }
        Some(Value::Object(present)) => {
            present.extend(replaced.iter().map(|key| ((*key).to_owned(), entry[*key].clone())));
        }
        Some(_) => return Err(cannot_edit(format!("{group}.{name} is not an object"))),
        None => drop(servers.insert(name.to_owned(), entry.clone())),
    }
    if expected == before {
        return Ok(Edit::Unchanged);
    }
    let changed = |key: &&&str| before[group][name].get(**key) != Some(&entry[**key]);
    let replaced: Vec<&str> = replaced.iter().filter(changed).copied().collect();
    let edited = edit_text(text, [group, name], entry, &replaced);
    verified(edited, syntax, &expected, "the entry cannot be added without rewriting the file")
}

/// Removes an entry that starts a program; the other entries and all comments stay.
pub fn remove_entry(text: &str, syntax: Syntax, [group, name]: [&str; 2]) -> Result<Edit, EntryError> {
    let mut expected = syntax.parse(text)?;
    let Some(entry) = expected[group].get(name).cloned() else { return Ok(Edit::Unchanged) };
    if entry.get("command").is_none() {
        return Err(EntryError::WithoutCommand { entry: format!("{group}.{name}") });
    }
    expected[group].as_object_mut().map(|servers| servers.shift_remove(name));
    let removed = CstRootNode::parse(text, &with_comments()).ok().and_then(|root| {
        let servers = member(&root.object_value()?, group)?.object_value()?;
        member(&servers, name)?.remove();
        Some(root.to_string())
    });
    verified(removed, syntax, &expected, "the entry cannot be removed without rewriting the file")
}

/// The edited text, if it has the expected value; otherwise an error with this message.
pub fn verified(
    edited: Option<String>,
    syntax: Syntax,
    expected: &Value,
    message: &str,
) -> Result<Edit, EntryError> {
    match edited.filter(|text| syntax.parse(text).is_ok_and(|now| now == *expected)) {
        Some(text) => Ok(Edit::Changed(text)),
        None => Err(cannot_edit(message)),
    }
}

pub fn cannot_edit(message: impl Into<String>) -> EntryError {
    EntryError::CannotEdit { message: message.into() }
}

fn edit_text(text: &str, [group, name]: [&str; 2], entry: &Value, replaced: &[&str]) -> Option<String> {
    let root = CstRootNode::parse(text, &with_comments()).ok()?;
    let top = root.object_value()?;
    let servers = match member(&top, group) {
        Some(servers) => servers.object_value()?,
        None => top.append(group, CstInputValue::Object(Vec::new())).object_value()?,
    };
    match member(&servers, name) {
        None => drop(servers.append(name, input_value(entry))),
        Some(present) => {
            let present = present.object_value()?;
            for key in replaced {
                match member(&present, key) {
                    Some(value) => value.set_value(input_value(&entry[*key])),
                    None => drop(present.append(key, input_value(&entry[*key]))),
                }
            }
        }
    }
    Some(root.to_string())
}

/// The member of that name. If a name is repeated, the last one counts, as in `serde_json`.
fn member(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let is_named = |member: &CstObjectProp| {
        member.name().and_then(|found| found.decoded_value().ok()).is_some_and(|found| found == name)
    };
    object.properties().into_iter().rfind(is_named)
}

fn input_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input_value).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), input_value(value))).collect(),
        ),
    }
}
