//! Checked values, and their JSON form.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::keys::{DefaultValue, Key, ValueKind};

/// A value that has passed the check of its key. The [`ValueKind`] of the key determines the variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Bool(bool),
    Integer(u64),
    Text(String),
    List(Vec<String>),
    Path(PathBuf),
    Paths(Vec<PathBuf>),
    Labels(BTreeMap<String, String>),
    Agents(BTreeMap<String, Agent>),
}

/// One configured agent: every field that is set or has a default, by the field's own name.
pub type Agent = BTreeMap<&'static str, Value>;

impl Value {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[String]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<u64> {
        match self {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_paths(&self) -> Option<&[PathBuf]> {
        match self {
            Value::Paths(paths) => Some(paths),
            _ => None,
        }
    }

    /// The value as JSON. Bytes of a path that are not UTF-8 are replaced.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        let path_json = |path: &PathBuf| Json::from(path.to_string_lossy());
        match self {
            Value::Bool(value) => Json::from(*value),
            Value::Integer(value) => Json::from(*value),
            Value::Text(text) => Json::from(text.as_str()),
            Value::List(items) => Json::from(items.as_slice()),
            Value::Path(path) => path_json(path),
            Value::Paths(paths) => paths.iter().map(path_json).collect(),
            Value::Labels(labels) => {
                labels.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
            }
            Value::Agents(agents) => agents
                .iter()
                .map(|(name, agent)| {
                    let fields: serde_json::Map<_, _> =
                        agent.iter().map(|(field, value)| ((*field).to_owned(), value.to_json())).collect();
                    (name.clone(), Json::Object(fields))
                })
                .collect(),
        }
    }

    /// Position of the value in the order that defines "lower"; `None` for types without an order.
    pub(crate) fn rank(&self, kind: &ValueKind) -> Option<u64> {
        match (self, kind) {
            (Value::Integer(number), _) => Some(*number),
            (Value::Text(text), ValueKind::Choice(ascending)) => {
                ascending.iter().position(|choice| choice == text).and_then(|at| u64::try_from(at).ok())
            }
            _ => None,
        }
    }
}

/// The default of a key on a machine with this many cores.
pub(crate) fn default_value(key: &Key, cores: usize) -> Option<Value> {
    Some(match key.default {
        DefaultValue::Unset(_) | DefaultValue::Required => return None,
        DefaultValue::Bool(value) => Value::Bool(value),
        DefaultValue::Integer(number) => Value::Integer(number),
        DefaultValue::Text(text) if matches!(key.kind, ValueKind::Program) => {
            Value::Path(PathBuf::from(text))
        }
        DefaultValue::Text(text) => Value::Text(text.to_owned()),
        DefaultValue::List(items) if matches!(key.kind, ValueKind::Paths) => {
            Value::Paths(items.iter().map(PathBuf::from).collect())
        }
        DefaultValue::List(items) => Value::List(items.iter().map(|item| (*item).to_owned()).collect()),
        DefaultValue::EmptyTable if matches!(key.kind, ValueKind::Agents) => Value::Agents(BTreeMap::new()),
        DefaultValue::EmptyTable => Value::Labels(BTreeMap::new()),
        DefaultValue::Cores => Value::Integer(u64::try_from(cores).unwrap_or(u64::MAX).max(2)),
    })
}
