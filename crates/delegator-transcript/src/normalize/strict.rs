//! Writes only the documented fields of a Codex exec event.
//!
//! Works on the text of the line: values are copied in their order; undocumented fields are dropped, and of a repeated
//! key the first value is written.

use crate::json::{Cursor, Scan, Text, write};

/// What to do with the value of a key.
enum Rule {
    /// Documented: copied.
    Copy,
    /// Documented, but dropped when null.
    CopyUnlessNull,
    /// Documented, an object with documented fields.
    Object(&'static [&'static str]),
    /// Documented, an array of such objects.
    Objects(&'static [&'static str]),
    /// An item.
    Item,
    Drop,
}

/// Appends the documented fields of an event, whose grammar has been checked.
pub(super) fn write_named_fields(line: &str, out: &mut Vec<u8>) {
    let kind = value_of(line, "type");
    // The line was parsed before, so parsing it again cannot fail.
    let _ = object(&mut Cursor::new(line), out, &|key| top_rule(&kind, key));
}

fn top_rule(kind: &str, key: &str) -> Rule {
    match (kind, key) {
        (_, "type") => Rule::Copy,
        ("thread.started", "thread_id") | ("error", "message") => Rule::Copy,
        ("turn.completed", "usage") => {
            Rule::Object(&["input_tokens", "cached_input_tokens", "output_tokens"])
        }
        ("turn.failed", "error") => Rule::Object(&["message"]),
        ("item.started" | "item.updated" | "item.completed", "item") => Rule::Item,
        _ => Rule::Drop,
    }
}

/// The same fields are written for translated events.
fn item_rule(kind: &str, key: &str) -> Rule {
    match (kind, key) {
        (_, "id" | "type") => Rule::Copy,
        ("agent_message" | "reasoning", "text") | ("error", "message") | ("web_search", "query") => {
            Rule::Copy
        }
        ("command_execution", "exit_code") => Rule::CopyUnlessNull,
        ("command_execution", "command" | "aggregated_output" | "status") => Rule::Copy,
        ("file_change", "changes") => Rule::Objects(&["path", "kind"]),
        ("todo_list", "items") => Rule::Objects(&["text", "completed"]),
        ("mcp_tool_call", "server" | "tool" | "status") | ("file_change", "status") => Rule::Copy,
        _ => Rule::Drop,
    }
}

/// The text of the first occurrence of a key.
fn value_of(object: &str, wanted: &str) -> String {
    let mut value = None;
    let _ = Cursor::new(object).object(|cursor, key| {
        match key.simple() {
            Some(key) if key == wanted && value.is_none() => value = cursor.text()?,
            _ => cursor.skip()?,
        }
        Ok(())
    });
    value.map(|text| text.resolve().into_owned()).unwrap_or_default()
}

fn object(cursor: &mut Cursor<'_>, out: &mut Vec<u8>, rule: &dyn Fn(&str) -> Rule) -> Scan<()> {
    let mut written: Vec<Text<'_>> = Vec::new();
    let mut target = write::Object::open(out);
    cursor.object(|cursor, key| {
        let value = cursor.raw()?;
        if written.contains(key) {
            return Ok(());
        }
        let name = key.resolve();
        match rule(&name) {
            Rule::Drop => return Ok(()),
            Rule::CopyUnlessNull if value == "null" => return Ok(()),
            Rule::Copy | Rule::CopyUnlessNull => target.raw(&name, value),
            Rule::Object(named) if value.starts_with('{') => {
                target.with(&name, |out| named_only(value, out, named));
            }
            Rule::Objects(named) if value.starts_with('[') => target.with(&name, |out| {
                let mut elements = Vec::new();
                let _ = Cursor::new(value).array(|cursor| {
                    elements.push(cursor.raw()?);
                    Ok(())
                });
                write::array(out, &elements, |out, element| named_only(element, out, named));
            }),
            Rule::Item if value.starts_with('{') => target.with(&name, |out| {
                let kind = value_of(value, "type");
                let _ = object(&mut Cursor::new(value), out, &|key| item_rule(&kind, key));
            }),
            // The value does not have the documented type: copied.
            Rule::Object(_) | Rule::Objects(_) | Rule::Item => target.raw(&name, value),
        }
        written.push(key.clone());
        Ok(())
    })?;
    target.close();
    Ok(())
}

fn named_only(value: &str, out: &mut Vec<u8>, named: &[&str]) {
    if !value.starts_with('{') {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    let rule = |key: &str| if named.contains(&key) { Rule::Copy } else { Rule::Drop };
    let _ = object(&mut Cursor::new(value), out, &rule);
}
