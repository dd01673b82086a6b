//! Values as a source wrote them, before they are checked.
//!
//! TOML, JSON and the plain text of variables and flags are all converted to [`Node`], so that there is one
//! check and all sources accept the same values.

use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::keys::ValueKind;
use crate::problem::{escaped, quoted};

/// A written value and, if it is from a file, its byte offset.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: Option<usize>,
    pub(crate) shape: Shape,
}

/// The `value` of a number that is too large is absent. `Other` is a type that no key accepts, by name.
#[derive(Debug)]
pub(crate) enum Shape {
    Bool(bool),
    Integer { value: Option<i64>, written: String },
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
    Other(&'static str),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Byte offset of the name, if the entry is from a file.
    pub(crate) at: Option<usize>,
    pub(crate) node: Node,
}

impl Shape {
    /// Description for the "found …" part of a message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Shape::Bool(value) => value.to_string(),
            Shape::Integer { written, .. } => quoted(written),
            Shape::Text(_) => "text".to_owned(),
            Shape::List(_) => "a list".to_owned(),
            Shape::Table(_) => "a table".to_owned(),
            Shape::Other(name) => (*name).to_owned(),
        }
    }

    /// The value for a report, if it is a single one.
    pub(crate) fn to_value(&self) -> Option<Value> {
        match self {
            Shape::Bool(value) => Some((*value).into()),
            Shape::Integer { value: Some(number), .. } => Some((*number).into()),
            Shape::Integer { value: None, written: text } | Shape::Text(text) => Some(escaped(text).into()),
            Shape::List(_) | Shape::Table(_) | Shape::Other(_) => None,
        }
    }
}

pub(crate) fn entries_from_toml(table: &DeTable<'_>) -> Vec<Entry> {
    let entry = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let name: &Spanned<std::borrow::Cow<'_, str>> = name;
        Entry { name: name.get_ref().to_string(), at: Some(name.span().start), node: node_from_toml(value) }
    };
    table.iter().map(entry).collect()
}

fn node_from_toml(value: &Spanned<DeValue<'_>>) -> Node {
    let shape = match value.get_ref() {
        DeValue::String(text) => Shape::Text(text.to_string()),
        DeValue::Integer(number) => Shape::Integer {
            value: i64::from_str_radix(number.as_str(), number.radix()).ok(),
            written: number.to_string(),
        },
        DeValue::Float(_) => Shape::Other("a fraction"),
        DeValue::Boolean(value) => Shape::Bool(*value),
        DeValue::Datetime(_) => Shape::Other("a date or time"),
        DeValue::Array(items) => Shape::List(items.iter().map(node_from_toml).collect()),
        DeValue::Table(table) => Shape::Table(entries_from_toml(table)),
    };
    Node { at: Some(value.span().start), shape }
}

/// Parses JSON text. The offset of a field's value is that of the field.
pub(crate) fn node_from_json(text: &str) -> Result<Node, serde_json::Error> {
    // `jsonc_parser` keeps offsets and duplicate names, but also accepts more than JSON.
    serde_json::from_str::<serde_json::Value>(text)?;
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let value = parsed.ok().and_then(|parsed| parsed.value);
    Ok(value.map_or(Node { at: None, shape: Shape::Other("nothing") }, |value| node_from_ast(&value)))
}

fn node_from_ast(value: &ast::Value<'_>) -> Node {
    let shape = match value {
        ast::Value::NullKeyword(_) => Shape::Other("null"),
        ast::Value::BooleanLit(literal) => Shape::Bool(literal.value),
        ast::Value::NumberLit(literal) if literal.value.contains(['.', 'e', 'E']) => {
            Shape::Other("a fraction")
        }
        ast::Value::NumberLit(literal) => {
            Shape::Integer { value: literal.value.parse().ok(), written: literal.value.to_owned() }
        }
        ast::Value::StringLit(literal) => Shape::Text(literal.value.to_string()),
        ast::Value::Array(array) => Shape::List(array.elements.iter().map(node_from_ast).collect()),
        ast::Value::Object(object) => Shape::Table(object.properties.iter().map(entry_from_json).collect()),
    };
    Node { at: Some(value.start()), shape }
}

fn entry_from_json(field: &ast::ObjectProp<'_>) -> Entry {
    let at = Some(field.start());
    Entry { name: field.name.as_str().to_owned(), at, node: Node { at, ..node_from_ast(&field.value) } }
}

/// Parses the text of a variable or flag as the type of its key. An empty list or table means "not set"
/// (`Ok(None)`), because a variable cannot express that otherwise. The error is the text of the problem.
pub(crate) fn node_from_text(kind: &ValueKind, text: &str) -> Result<Option<Node>, String> {
    let word = text.trim();
    let shape = match kind {
        ValueKind::Bool => match word.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Shape::Bool(true),
            "false" | "0" | "no" | "off" => Shape::Bool(false),
            _ => {
                return Err(format!(
                    "expected true or false (or 1/0, yes/no, on/off), found {}",
                    quoted(word)
                ));
            }
        },
        ValueKind::Integer { .. } => {
            let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!("expected {kind}, found {}", quoted(word)));
            }
            Shape::Integer { value: word.parse().ok(), written: word.to_owned() }
        }
        ValueKind::Choice(_) => Shape::Text(word.to_owned()),
        _ if kind.is_list() => {
            let text_node = |item: &str| Node { at: None, shape: Shape::Text(item.to_owned()) };
            Shape::List(items(text).map(text_node).collect())
        }
        ValueKind::Labels => Shape::Table(items(text).map(label).collect::<Result<_, _>>()?),
        ValueKind::Agents | ValueKind::Repositories if word.is_empty() => Shape::Table(Vec::new()),
        ValueKind::Agents | ValueKind::Repositories => {
            let node = node_from_json(word).map_err(|error| format!("expected a JSON object: {error}"))?;
            return Ok(Some(node));
        }
        _ => Shape::Text(text.to_owned()),
    };
    let is_empty = match &shape {
        Shape::List(items) => items.is_empty(),
        Shape::Table(entries) => entries.is_empty(),
        _ => false,
    };
    Ok((!is_empty).then_some(Node { at: None, shape }))
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn label(item: &str) -> Result<Entry, String> {
    let (name, text) = item
        .split_once('=')
        .ok_or("expected labels as name=text, separated by commas; an item has no `=`")?;
    let node = Node { at: None, shape: Shape::Text(text.trim().to_owned()) };
    Ok(Entry { name: name.trim().to_owned(), at: None, node })
}
