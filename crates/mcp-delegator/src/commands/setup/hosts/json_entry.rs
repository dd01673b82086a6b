//! Adds or updates one entry in JSON text without reformatting it.
//!
//! The text is parsed to compute the expected value, and scanned to find the byte range to edit. The edited text must
//! parse to the expected value; otherwise the edit fails and the file stays unchanged.

use std::ops::Range;

use serde_json::Value;

use crate::commands::setup::hosts::{Edit, EntryError};

/// Sets `group.name` to `entry`. If the entry exists, only its command is updated.
pub fn upsert_entry(text: &str, group: &str, name: &str, entry: &Value) -> Result<Edit, EntryError> {
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
        Some(Value::Object(present)) => drop(present.insert("command".to_owned(), entry["command"].clone())),
        Some(_) => return Err(cannot_edit(format!("{group}.{name} is not an object"))),
        None => drop(servers.insert(name.to_owned(), entry.clone())),
    }
    if expected == before {
        return Ok(Edit::Unchanged);
    }
    let edited = edit_text(text, group, name, entry);
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

fn edit_text(text: &str, group: &str, name: &str, entry: &Value) -> Option<String> {
    let top = skip_blank(text.as_bytes(), 0);
    let Some(servers) = member_value(text, top, group) else {
        let inner = serde_json::json!({ name: entry });
        return insert_member(text, top, group, &inner);
    };
    let Some(present) = member_value(text, servers.start, name) else {
        return insert_member(text, servers.start, name, entry);
    };
    match member_value(text, present.start, "command") {
        Some(command) => {
            Some(format!("{}{}{}", &text[..command.start], entry["command"], &text[command.end..]))
        }
        None => insert_member(text, present.start, "command", &entry["command"]),
    }
}

/// Inserts a first member into the object that begins at `open`, indented like its neighbours.
fn insert_member(text: &str, open: usize, key: &str, value: &Value) -> Option<String> {
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

/// Byte range of a key's value in the object that begins at `open`. If a key is repeated, the last one counts.
fn member_value(text: &str, open: usize, key: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = skip_blank(bytes, open + 1);
    let mut found = None;
    while bytes.get(at) == Some(&b'"') {
        let end = end_of_value(bytes, at);
        let name: String = serde_json::from_str(text.get(at..end)?).ok()?;
        let begin = skip_blank(bytes, skip_blank(bytes, end) + 1);
        let end = end_of_value(bytes, begin);
        if name == key {
            found = Some(begin..end);
        }
        at = skip_blank(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at = skip_blank(bytes, at + 1);
        }
    }
    found
}

fn skip_blank(bytes: &[u8], from: usize) -> usize {
    let blank = bytes.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_whitespace());
    from + blank.count()
}

/// Offset after a value, in text that is valid JSON.
fn end_of_value(bytes: &[u8], begin: usize) -> usize {
    let (mut at, mut depth, mut in_text) = (begin, 0usize, false);
    while let Some(byte) = bytes.get(at) {
        match (in_text, byte) {
            (true, b'\\') => at += 1,
            (true, b'"') => in_text = false,
            (true, _) => {}
            (false, b'"') => in_text = true,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') if depth == 0 => return at,
            (false, b'}' | b']') => depth -= 1,
            (false, b',' | b' ' | b'\n' | b'\r' | b'\t') if depth == 0 => return at,
            (false, _) => {}
        }
        at += 1;
        if depth == 0 && !in_text && matches!(byte, b'"' | b'}' | b']') {
            return at;
        }
    }
    bytes.len()
}
