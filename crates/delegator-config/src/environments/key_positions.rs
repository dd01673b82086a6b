//! Locates the keys of a JSON object of objects in its text.
//!
//! `serde_json` discards positions, and of two equal keys it discards one. This module records the keys of the first two
//! levels of text that is known to be valid JSON; it ignores values.

use jsonc_parser::ast::{self, ObjectProp};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// A key of the first or second level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPosition {
    /// The key of the first level, followed by that of the second level, if any.
    pub(crate) path: Vec<String>,
    /// Byte offset of the key.
    pub(crate) at: usize,
}

/// All keys of the first two levels, in the order of the text.
pub(crate) fn key_positions(text: &str) -> Vec<KeyPosition> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let Some(ast::Value::Object(top)) = parsed.ok().and_then(|parsed| parsed.value) else {
        return Vec::new();
    };
    let mut positions = Vec::new();
    for entry in &top.properties {
        positions.push(KeyPosition { path: vec![name(entry)], at: entry.start() });
        let fields = entry.value.as_object().map(|object| object.properties.as_slice()).unwrap_or_default();
        let to_position =
            |field: &ObjectProp<'_>| KeyPosition { path: vec![name(entry), name(field)], at: field.start() };
        positions.extend(fields.iter().map(to_position));
    }
    positions
}

fn name(property: &ObjectProp<'_>) -> String {
    property.name.as_str().to_owned()
}
