//! The struct and the key table agree.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde_json::{Map, Value, json};

use super::{AgentSettings, RepositorySettings, Settings};
use crate::keys::{self, Key, ValueKind};

/// Records the serde names of a struct's fields instead of deserializing it.
struct FieldNames<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.extend(fields);
        Err(Error::custom("only the names are needed"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

pub(crate) fn field_names<'de, T: Deserialize<'de>>() -> Vec<&'static str> {
    let mut names = Vec::new();
    assert!(T::deserialize(FieldNames(&mut names)).is_err());
    names
}

#[test]
fn the_structs_have_exactly_the_keys_of_the_table() {
    let names = keys::settings().map(|key| key.name);
    assert_eq!(field_names::<Settings>(), names.collect::<Vec<_>>());
    let fields = keys::fields_of("agents").map(|(field, _)| field);
    assert_eq!(field_names::<AgentSettings>(), fields.collect::<Vec<_>>());
    let fields = keys::fields_of("repositories").map(|(field, _)| field);
    assert_eq!(field_names::<RepositorySettings>(), fields.collect::<Vec<_>>());
}

/// Values at the edges of what a type accepts.
pub(crate) fn accepted(kind: &ValueKind) -> Vec<Value> {
    match kind {
        ValueKind::Bool => vec![json!(true)],
        ValueKind::Integer { min, max, .. } => vec![json!(min), json!(max)],
        ValueKind::Choice(choices) => choices.iter().map(|choice| json!(choice)).collect(),
        ValueKind::Text(_) | ValueKind::Path | ValueKind::Program => vec![json!("x")],
        ValueKind::Labels | ValueKind::Agents | ValueKind::Repositories => vec![json!({})],
        ValueKind::Choices(_) | ValueKind::Texts(_) | ValueKind::Paths | ValueKind::Command => {
            vec![json!(["x"])]
        }
    }
}

#[test]
fn every_accepted_value_has_its_type() {
    let defaults = |keys: &mut dyn Iterator<Item = (&'static str, &'static Key)>| -> Map<String, Value> {
        keys.map(|(name, key)| (name.to_owned(), key.default.value(1))).collect()
    };
    let settings = defaults(&mut keys::settings().map(|key| (key.name, key)));
    let mut agent = defaults(&mut keys::fields_of("agents"));
    agent.extend([("protocol".to_owned(), json!("plain")), ("command".to_owned(), json!(["x"]))]);
    for key in keys::KEYS {
        for value in accepted(&key.kind) {
            let mut settings = settings.clone();
            match key.name.split_once(">.") {
                None => drop(settings.insert(key.name.to_owned(), value.clone())),
                Some((entry, field)) if entry.starts_with("repositories") => {
                    let mut repository = json!({"worktree_setup": null, "worktree_copy": []});
                    repository[field] = value.clone();
                    settings["repositories"] = json!({ "/x": repository });
                }
                Some((_, field)) => {
                    let mut agent = agent.clone();
                    agent.insert(field.to_owned(), value.clone());
                    settings["agents"] = json!({ "x": agent });
                }
            }
            let read = serde_json::from_value::<Settings>(settings.into());
            assert!(read.is_ok(), "{} = {value}: {read:?}", key.name);
        }
    }
}
