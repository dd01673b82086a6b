//! Configuration keys and their single table.
//!
//! Everything that depends on a key is derived from its entry in [`KEYS`]: how a value is checked, its
//! default, whether a project may set it, the names of its variable and flag, and its row in the reference.
//! To add a key, add an entry; nothing else in this crate lists keys.

mod key;
mod table;
mod text_format;

use delegator_domain::similar_names;
use serde_json::Value;

pub(crate) use key::flag_name;
pub use key::{DefaultValue, Key, ProjectRight, Scope, VARIABLE_PREFIX, ValueKind};
pub use table::KEYS;
pub use text_format::TextFormat;
pub(crate) use text_format::has_password;

/// All keys except the fields of agents and repositories, in table order.
pub(crate) fn settings() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.is_setting())
}

/// The fields of an entry of a table (`agents` or `repositories`), by their own names, in table order.
pub(crate) fn fields_of(table: &str) -> impl Iterator<Item = (&'static str, &'static Key)> + Clone {
    KEYS.iter().filter_map(move |key| {
        let (entry, field) = key.name.split_once(">.")?;
        entry.starts_with(table).then_some((field, key))
    })
}

/// The default of a setting that has a fixed one, for the description of an input with the same meaning.
pub fn built_in_default(name: &str) -> Option<Value> {
    find(name).map(|key| key.default.value(0)).filter(|default| !default.is_null())
}

pub(crate) fn find(name: &str) -> Option<&'static Key> {
    settings().find(|key| key.name == name)
}

/// Whether `name` is a section, that is, whether [`KEYS`] contains `name.…`.
pub(crate) fn is_section(name: &str) -> bool {
    settings().any(|key| key.name.split_once('.').is_some_and(|(section, _)| section == name))
}

/// The key probably meant by an unknown name: one with a similar name, or the same name in a section.
pub(crate) fn nearest(typed: &str) -> Option<&'static str> {
    let own_name = |key: &'static Key| key.name.rsplit('.').next().unwrap_or(key.name);
    similar_names::nearest(typed, settings().map(|key| key.name))
        .or_else(|| settings().find(|key| own_name(key) == typed).map(|key| key.name))
}

#[cfg(test)]
mod tests;
