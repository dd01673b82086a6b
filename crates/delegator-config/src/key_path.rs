//! The name of a setting as a user types it: a key, or one value in the table of another key, such as
//! `agents.NAME.env` or `labels.team`.

use serde_json::Value;
use toml::de::{DeTable, DeValue};
use toml_writer::{ToTomlValue, TomlStringBuilder};

use crate::keys::{self, Key, ValueKind};
use crate::node::{Shape, node_from_text};

/// A name that is no setting, and the setting that was probably meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no setting '{name}'")]
pub struct UnknownSetting {
    pub name: String,
    pub nearest: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct KeyPath {
    pub(crate) names: Vec<String>,
    /// The setting that is or contains the value.
    pub setting: &'static Key,
    kind: &'static ValueKind,
}

/// The value of a label.
const LABEL: ValueKind = ValueKind::Text(keys::TextFormat::Argument);

impl KeyPath {
    pub fn parse(name: &str) -> Result<KeyPath, UnknownSetting> {
        let unknown = || UnknownSetting { name: name.to_owned(), nearest: keys::nearest(name) };
        let names = names_in(name).ok_or_else(unknown)?;
        let setting = keys::find(&names.join(".")).or_else(|| keys::find(names.first()?));
        let setting = setting.ok_or_else(unknown)?;
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        let kind = match (&setting.kind, texts.as_slice()) {
            (kind @ (ValueKind::Agents | ValueKind::Repositories), [_] | [_, _]) => Some(kind),
            (ValueKind::Agents | ValueKind::Repositories, [table, _, field]) => {
                keys::fields_of(table).find(|(name, _)| name == field).map(|(_, key)| &key.kind)
            }
            (ValueKind::Labels, [_, _]) => Some(&LABEL),
            (kind, texts) => (texts.join(".") == setting.name).then_some(kind),
        };
        Ok(KeyPath { kind: kind.ok_or_else(unknown)?, names, setting })
    }

    /// The part of the value of the setting that this names; null if there is none.
    pub fn value_in(&self, setting: &Value) -> Value {
        let depth = self.setting.name.split('.').count();
        let found = self.names.iter().skip(depth).try_fold(setting, |value, name| value.get(name));
        found.cloned().unwrap_or_default()
    }

    /// A value as TOML. A text that is no value of this setting stays a text, which the check refuses.
    pub(crate) fn toml_of(&self, text: &str) -> String {
        let word = text.trim();
        if self.kind.is_list() && word.starts_with('[') && DeValue::parse(word).is_ok() {
            return word.to_owned();
        }
        match node_from_text(self.kind, text) {
            Ok(Some(node)) => to_toml(&node.shape),
            Ok(None) if self.kind.is_list() => "[]".to_owned(),
            Ok(None) => "{}".to_owned(),
            Err(_) => quote(text),
        }
    }
}

/// The names in a dotted key, which TOML allows to be quoted.
pub(crate) fn names_in(dotted: &str) -> Option<Vec<String>> {
    let text = format!("{dotted} = 0");
    let document = DeTable::parse(&text).ok()?;
    let (mut table, mut names) = (document.get_ref(), Vec::new());
    loop {
        let (name, value) = table.iter().next().filter(|_| table.len() == 1)?;
        names.push(name.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(names),
        }
    }
}

fn to_toml(shape: &Shape) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match shape {
        Shape::Bool(value) => value.to_string(),
        Shape::Integer { value: Some(number), .. } => number.to_string(),
        Shape::Integer { value: None, written: text } | Shape::Text(text) => quote(text),
        Shape::List(items) => format!("[{}]", list(items.iter().map(|item| to_toml(&item.shape)).collect())),
        Shape::Table(entries) => {
            let entry = |entry: &crate::node::Entry| {
                format!("{} = {}", quote(&entry.name), to_toml(&entry.node.shape))
            };
            format!("{{ {} }}", list(entries.iter().map(entry).collect()))
        }
        Shape::Other(name) => quote(name),
    }
}

fn quote(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}
