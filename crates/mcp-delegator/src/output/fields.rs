//! `--fields a,b.c`: selects parts of the data.
//!
//! Paths descend into lists (`commands.path` is the path of every command). They are checked against the
//! command's output schema before it runs, because an invalid argument must not cause a side effect.

use delegator_domain::similar_names;
use serde_json::{Map, Value};

use crate::error::Problem;

/// Problems for paths that do not exist in the schema, with the nearest name.
pub fn unknown(paths: &[String], schema: &Value) -> Vec<Problem> {
    paths.iter().filter_map(|path| unknown_field(path, schema)).collect()
}

fn unknown_field(path: &str, schema: &Value) -> Option<Problem> {
    let problem = |message: String| Problem::invalid("--fields", message).value(path.into());
    let mut level = schema;
    for name in path.split('.') {
        let here = resolve(schema, level);
        let Some(properties) = here.get("properties").and_then(Value::as_object) else {
            let message = || format!("a field of {path} is a scalar and has no fields");
            return is_scalar(here).then(|| problem(message()));
        };
        let Some(below) = properties.get(name) else {
            let is_open = here.get("additionalProperties").is_some_and(|of| of != &Value::Bool(false));
            let known = properties.keys().map(String::as_str);
            let suggestion = match similar_names::nearest(name, known.clone()) {
                Some(nearest) => format!("Did you mean {nearest}?"),
                None => format!("Known here: {}.", known.collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no field {path}");
            return (!is_open).then(|| problem(message).suggest(Some(suggestion)));
        };
        level = below;
    }
    None
}

fn is_scalar(schema: &Value) -> bool {
    let scalar = |kind: &Value| kind.as_str().is_some_and(|kind| !["object", "array"].contains(&kind));
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().all(scalar),
        Some(kind) => scalar(kind),
        None => false,
    }
}

/// The paths without a value in the data. An empty list matches every path.
pub fn absent<'a>(data: &Value, paths: &'a [String]) -> Vec<&'a str> {
    fn exists_in(value: &Value, path: &[&str]) -> bool {
        match (value, path) {
            (_, []) => true,
            (Value::Array(items), _) => items.is_empty() || items.iter().any(|item| exists_in(item, path)),
            (Value::Object(object), [name, rest @ ..]) => {
                object.get(*name).is_some_and(|inner| exists_in(inner, rest))
            }
            _ => false,
        }
    }
    paths
        .iter()
        .map(String::as_str)
        .filter(|path| !exists_in(data, &path.split('.').collect::<Vec<_>>()))
        .collect()
}

/// Follows references and list items to the object behind them.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(name) =
        schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"))
    {
        return resolve(root, &root["$defs"][name]);
    }
    match schema.get("items") {
        Some(items) => resolve(root, items),
        None => schema,
    }
}

/// The data with only these paths. A truncated text has its `…_truncated` facts with it.
pub fn project(data: &Value, paths: &[String]) -> Value {
    let split: Vec<Vec<&str>> = paths.iter().map(|path| path.split('.').collect()).collect();
    select(data, &split)
}

fn select(value: &Value, paths: &[Vec<&str>]) -> Value {
    if paths.iter().any(Vec::is_empty) {
        return value.clone();
    }
    match value {
        Value::Array(items) => items.iter().map(|item| select(item, paths)).collect(),
        Value::Object(object) => {
            let mut selected = Map::new();
            for (key, inner) in object {
                let below: Vec<Vec<&str>> =
                    paths.iter().filter(|path| path[0] == key).map(|path| path[1..].to_vec()).collect();
                let is_mark = || {
                    let marked = key.strip_suffix("_truncated");
                    marked.is_some_and(|text| paths.iter().any(|path| path.as_slice() == [text]))
                };
                if !below.is_empty() {
                    selected.insert(key.clone(), select(inner, &below));
                } else if is_mark() {
                    selected.insert(key.clone(), inner.clone());
                }
            }
            Value::Object(selected)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_paths_descend_into_lists() {
        let data = json!({"commands": [{"path": "a", "about": "x"}, {"path": "b"}], "version": "1"});
        assert_eq!(
            project(&data, &["commands.path".into()]),
            json!({"commands": [{"path": "a"}, {"path": "b"}]})
        );
        assert_eq!(project(&data, &["version".into()]), json!({"version": "1"}));
        let truncated = json!({"text": "a", "text_truncated": {"total_bytes": 9}, "n": 1});
        let expected = json!({"text": "a", "text_truncated": {"total_bytes": 9}});
        assert_eq!(project(&truncated, &["text".into()]), expected);
    }

    #[test]
    fn unknown_field_suggests_the_nearest_name() {
        let schema = json!({
            "properties": {"commands": {"items": {"$ref": "#/$defs/Command"}}},
            "$defs": {"Command": {"properties": {"path": {"type": "string"}}}}
        });
        assert!(unknown(&["commands.path".into()], &schema).is_empty());
        let problems = unknown(&["commands.pth".into()], &schema);
        assert_eq!(problems[0].suggestion.as_deref(), Some("Did you mean path?"));
    }
}
