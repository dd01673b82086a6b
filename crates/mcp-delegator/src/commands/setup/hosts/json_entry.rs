//! Adds or updates one entry in JSON text without reformatting it.
//!
//! `serde_json` parses the text to compute the expected value, and `jsonc_parser` finds the byte range to edit. The
//! edited text must parse to the expected value; otherwise the edit fails and the file stays unchanged.

use jsonc_parser::ast::{self, Object};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use crate::commands::setup::hosts::{Edit, Entry, EntryError};

/// The entry `group.name`, if there is one.
pub fn read(text: &str, group: &str, name: &str) -> Result<Option<Entry>, EntryError> {
    let document = parse(text)?;
    let entry = document[group][name].as_object();
    Ok(entry.map(|entry| {
        let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
        Entry {
            command: entry.get("command").and_then(Value::as_str).map(str::to_owned),
            args: args.filter_map(Value::as_str).map(str::to_owned).collect(),
            approves_tools: false,
        }
    }))
}

/// Sets `group.name` to `entry`. Of an entry that exists only the values of `replaced` are updated.
pub fn upsert_entry(
    text: &str,
    group: &str,
    name: &str,
    entry: &Value,
    replaced: &[&str],
) -> Result<Edit, EntryError> {
    let before: Value = parse(text)?;
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
    let edited = edit_text(text, group, name, entry, replaced);
    match edited.filter(|text| parse(text).is_ok_and(|now| now == expected)) {
        Some(text) => Ok(Edit::Changed(text)),
        None => Err(cannot_edit("the entry cannot be added without rewriting the file")),
    }
}

fn parse(text: &str) -> Result<Value, EntryError> {
    serde_json::from_str(text)
        .map_err(|error| EntryError::Unreadable { format: "JSON", message: error.to_string() })
}

fn cannot_edit(message: impl Into<String>) -> EntryError {
    EntryError::CannotEdit { message: message.into() }
}

fn edit_text(text: &str, group: &str, name: &str, entry: &Value, replaced: &[&str]) -> Option<String> {
    let is_present = |text: &str| parse(text).is_ok_and(|value| value[group][name].is_object());
    if !is_present(text) {
        return insert_entry(text, group, name, entry);
    }
    replaced.iter().try_fold(text.to_owned(), |text, key| set_value(&text, [group, name], key, &entry[*key]))
}

fn insert_entry(text: &str, group: &str, name: &str, entry: &Value) -> Option<String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    let top = parsed.value.as_ref()?.as_object()?;
    let Some(servers) = member_value(top, group) else {
        return insert_member(text, top, group, &serde_json::json!({ name: entry }));
    };
    insert_member(text, servers.as_object()?, name, entry)
}

/// Replaces or adds one value of the object at `path`.
fn set_value(text: &str, path: [&str; 2], key: &str, value: &Value) -> Option<String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    let top = parsed.value.as_ref()?.as_object()?;
    let object = path.iter().try_fold(top, |object, name| member_value(object, name)?.as_object())?;
    match member_value(object, key) {
        Some(present) if parse(&text[present.start()..present.end()]).ok().as_ref() == Some(value) => {
            Some(text.to_owned())
        }
        Some(present) => Some(format!("{}{value}{}", &text[..present.start()], &text[present.end()..])),
        None => insert_member(text, object, key, value),
    }
}

/// The value of a key. If a key is repeated, the last one counts, as in `serde_json`.
fn member_value<'a, 'b>(object: &'b Object<'a>, key: &str) -> Option<&'b ast::Value<'a>> {
    object.properties.iter().rfind(|member| member.name.as_str() == key).map(|member| &member.value)
}

/// Inserts a first member into the object, indented like its neighbours.
fn insert_member(text: &str, object: &Object<'_>, key: &str, value: &Value) -> Option<String> {
    let open = object.start();
    let after_brace = text.get(open + 1..)?;
    let blank = &after_brace[..after_brace.len() - after_brace.trim_start().len()];
    let is_empty = after_brace.trim_start().starts_with('}');
    let depth = indent_before(text, open);
    let (gap, end) = match (blank.rfind('\n'), is_empty) {
        (Some(line), false) => (format!("\n{}", &blank[line + 1..]), ",".to_owned()),
        (None, false) => (String::new(), ",".to_owned()),
        (_, true) => (format!("\n{depth}  "), format!("\n{depth}")),
    };
    let key = Value::from(key);
    let value = match gap.strip_prefix('\n') {
        Some(indent) => serde_json::to_string_pretty(value).ok()?.replace('\n', &format!("\n{indent}")),
        None => value.to_string(),
    };
    let space = if gap.is_empty() { "" } else { " " };
    let rest = if is_empty { after_brace.trim_start() } else { after_brace };
    Some(format!("{}{gap}{key}:{space}{value}{end}{rest}", &text[..=open]))
}

/// Indentation of the line that contains the offset.
fn indent_before(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
    &line[..line.len() - line.trim_start().len()]
}
