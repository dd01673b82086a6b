//! Writes only the documented fields of a Codex exec event.
//!
//! Works on the text of the line: values are copied in their order; undocumented fields are dropped, and of a repeated
//! key the first value is written.

use crate::json::{Object, Text, Value, write};

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
pub(super) fn write_named_fields(line: &[u8], out: &mut Vec<u8>) {
    let event = Object::read(std::str::from_utf8(line).unwrap_or_default());
    let kind = event.text("type").unwrap_or_default();
    write_object(&event, out, &|key| top_rule(&kind.resolve(), key));
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

fn write_object(source: &Object<'_>, out: &mut Vec<u8>, rule: &dyn Fn(&str) -> Rule) {
    let mut written: Vec<Text<'_>> = Vec::new();
    let mut target = write::Object::open(out);
    for (key, value) in source.members() {
        let (key, Value::Whole(json, _)) = (Text::json(key), value) else { continue };
        if written.contains(&key) {
            continue;
        }
        let name = key.resolve();
        match rule(&name) {
            Rule::Drop => continue,
            Rule::CopyUnlessNull if value.is_null() => continue,
            Rule::Object(named) => target.with(&name, |out| write_named(value, out, named)),
            Rule::Objects(named) => target.with(&name, |out| match value.elements() {
                Some(elements) => {
                    let elements: Vec<_> = elements.collect();
                    write::array(out, &elements, |out, element| write_named(*element, out, named));
                }
                None => out.extend_from_slice(json.as_bytes()),
            }),
            Rule::Item if value.is_object() => target.with(&name, |out| {
                let item = Object::read(json);
                let kind = item.text("type").unwrap_or_default();
                write_object(&item, out, &|key| item_rule(&kind.resolve(), key));
            }),
            // An item that is not an object is copied.
            Rule::Copy | Rule::CopyUnlessNull | Rule::Item => target.raw(&name, json),
        }
        drop(name);
        written.push(key);
    }
    target.close();
}

/// Writes the named fields of an object; any other value is copied.
fn write_named(value: Value<'_>, out: &mut Vec<u8>, named: &[&str]) {
    let rule = |key: &str| if named.contains(&key) { Rule::Copy } else { Rule::Drop };
    match (value.object(), value) {
        (Some(object), _) => write_object(&object, out, &rule),
        (None, Value::Whole(json, _) | Value::Partial(json)) => out.extend_from_slice(json.as_bytes()),
    }
}
