//! Writes the TypeScript type of a JSON Schema.
//!
//! Covers the keywords of the published schemas and panics at any other, so that none is lost unnoticed. A keyword that only
//! bounds a value, such as `minimum`, has no counterpart and is left out. An object that occurs in several places becomes an
//! interface, named after the key under which it first occurs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Keywords without a counterpart among types. `allOf` has rules, which [`variants`] reads.
const NOT_TYPES: [&str; 21] = [
    "$defs",
    "$id",
    "$schema",
    "allOf",
    "default",
    "definitions",
    "description",
    "format",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "propertyNames",
    "title",
    "uniqueItems",
    "writeOnly",
    "x-markers",
];
const TYPES: [&str; 10] = [
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "enum",
    "items",
    "oneOf",
    "properties",
    "required",
    "type",
];

/// Names that say nothing, or that JavaScript has.
const POOR_NAMES: [&str; 10] =
    ["Body", "Data", "Error", "File", "Item", "Notification", "Option", "Query", "Result", "Worker"];

/// The declarations of a module, in order.
#[derive(Default)]
pub(super) struct Module {
    declarations: Vec<Declaration>,
}

#[derive(Clone)]
struct Declaration {
    /// With its parameters, such as `JsonEnvelope<T>`.
    name: String,
    schema: Value,
}

impl Module {
    /// Declares the type of a schema. A `$ref` in it is the name of another declaration or of a parameter.
    pub(super) fn declare(&mut self, name: &str, schema: Value) {
        self.declarations.push(Declaration { name: name.to_owned(), schema });
    }

    pub(super) fn text(&self) -> String {
        let shared = self.shared();
        let names =
            shared.iter().map(|(form, declaration)| (form.clone(), declaration.name.clone())).collect();
        let writer = Writer { names };
        let mut extracted: Vec<&Declaration> = shared.values().collect();
        extracted.retain(|declaration| !self.declarations.iter().any(|own| own.name == declaration.name));
        extracted.sort_by_key(|declaration| &declaration.name);
        self.declarations.iter().chain(extracted).map(|declaration| writer.declaration(declaration)).collect()
    }

    /// The objects that are declared, and those that occur more than once, by their form.
    fn shared(&self) -> BTreeMap<String, Declaration> {
        let mut shared = BTreeMap::new();
        let mut places: Vec<(String, Vec<String>, &Value)> = Vec::new();
        for declaration in &self.declarations {
            let Declaration { name, schema } = declaration;
            if is_interface(schema) && !name.contains('<') {
                shared.entry(form(schema)).or_insert_with(|| declaration.clone());
            }
            visit(schema, &[name.split('<').next().unwrap().to_owned()], &mut |path, schema| {
                places.push((form(schema), path.to_vec(), schema));
            });
        }
        let mut names: Vec<String> = self.declarations.iter().map(|one| one.name.clone()).collect();
        names.extend(POOR_NAMES.map(str::to_owned));
        for (index, (form, path, schema)) in places.iter().enumerate() {
            let occurs_again = places[index + 1..].iter().any(|(other, ..)| other == form);
            if !occurs_again || shared.contains_key(form) {
                continue;
            }
            // The shortest end of the path that no other type has.
            let mut ends = (0..path.len()).rev().map(|start| path[start..].concat());
            let name =
                ends.find(|name| !names.contains(name)).unwrap_or_else(|| panic!("no name for {schema}"));
            names.push(name.clone());
            let mut schema = (*schema).clone();
            schema["type"] = "object".into();
            shared.insert(form.clone(), Declaration { name, schema });
        }
        shared
    }
}

/// Calls back with every object below a schema that has properties, and with the names of the keys that lead to it.
fn visit<'s>(schema: &'s Value, path: &[String], found: &mut dyn FnMut(&[String], &'s Value)) {
    let Some(object) = schema.as_object() else { return };
    if path.len() > 1 && is_interface(schema) {
        found(path, schema);
    }
    for (key, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        visit(property, &[path, &[type_name(key)]].concat(), found);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get(key) {
            let mut path = path.to_vec();
            if let Some(last) = path.last_mut() {
                *last = singular(last);
            }
            visit(inner, &path, found);
        }
    }
    for inner in ["anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key)) {
        visit(inner, path, found);
    }
}

fn is_interface(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    properties > 1 && !schema.as_object().is_some_and(|object| object.contains_key("oneOf"))
}

/// `file_operations` is `FileOperations`.
pub(super) fn type_name(key: &str) -> String {
    let words = key.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_uppercase() + &word[1..].to_lowercase()).collect()
}

fn singular(name: &str) -> String {
    match name {
        _ if name.ends_with("ies") => format!("{}y", &name[..name.len() - 3]),
        _ if name.ends_with('s') && !name.ends_with("ss") => name[..name.len() - 1].to_owned(),
        _ => name.to_owned(),
    }
}

/// A schema without what makes no difference for its type, and without null.
fn form(schema: &Value) -> String {
    let mut schema = reduced(schema);
    schema["type"] = "object".into();
    schema.to_string()
}

fn reduced(schema: &Value) -> Value {
    let Some(keywords) = schema.as_object() else { return schema.clone() };
    let stated = keywords.iter().filter(|(key, _)| !NOT_TYPES.contains(&key.as_str()));
    let stated = stated.map(|(key, value)| {
        let value = match value {
            Value::Object(properties) if key == "properties" => {
                properties.iter().map(|(name, property)| (name.clone(), reduced(property))).collect()
            }
            Value::Array(members) if key.ends_with("Of") => members.iter().map(reduced).collect(),
            other if key == "items" || key == "additionalProperties" => reduced(other),
            other => other.clone(),
        };
        (key.clone(), value)
    });
    stated.collect::<Map<String, Value>>().into()
}

struct Writer {
    /// The names of shared objects, by their form.
    names: BTreeMap<String, String>,
}

impl Writer {
    fn declaration(&self, Declaration { name, schema }: &Declaration) -> String {
        let comment = comment(schema, "");
        let text = match variants(schema).as_slice() {
            [one] if is_plain_object(one) => format!("interface {name} {}", self.object(one, "")),
            [one] => format!("type {name} = {};", self.unshared(one, "")),
            several => {
                let members = several.iter().map(|one| format!("\n  | {}", self.unshared(one, "    ")));
                format!("type {name} ={};", members.collect::<String>())
            }
        };
        format!("\n{comment}export {text}\n")
    }

    fn of(&self, schema: &Value, indentation: &str) -> String {
        let name = if is_interface(schema) { self.names.get(&form(schema)) } else { None };
        match name {
            Some(name) if list(schema, "type").iter().any(|kind| kind == "null") => format!("{name} | null"),
            Some(name) => name.clone(),
            None => self.unshared(schema, indentation),
        }
    }

    fn unshared(&self, schema: &Value, indentation: &str) -> String {
        let Some(keywords) = schema.as_object() else {
            assert_eq!(*schema, true, "a schema that nothing satisfies has no type");
            return "unknown".to_owned();
        };
        for keyword in keywords.keys() {
            let is_known = NOT_TYPES.contains(&keyword.as_str()) || TYPES.contains(&keyword.as_str());
            assert!(is_known, "the keyword {keyword} has no TypeScript: {schema}");
        }
        let mut parts = Vec::new();
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            parts.push(reference.rsplit('/').next().unwrap().to_owned());
        }
        for alternatives in ["anyOf", "oneOf"].map(|key| list(schema, key)) {
            let members = alternatives.iter().map(|one| self.of(one, indentation)).collect();
            parts.extend(Some(union(members)).filter(|_| !alternatives.is_empty()));
        }
        if let Some(constant) = keywords.get("const") {
            parts.push(constant.to_string());
        } else if keywords.contains_key("enum") {
            parts.push(union(list(schema, "enum").iter().map(Value::to_string).collect()));
        } else if let Some(kind) = keywords.get("type") {
            let kinds = kind.as_array().cloned().unwrap_or_else(|| vec![kind.clone()]);
            let kinds = kinds.iter().filter_map(Value::as_str);
            let is_declared = |kind: &&str| *kind != "object" || parts.is_empty() || has_properties(schema);
            let members: Vec<String> =
                kinds.filter(is_declared).map(|kind| self.of_kind(kind, schema, indentation)).collect();
            parts.extend(Some(union(members)).filter(|members| !members.is_empty()));
        } else if has_properties(schema) {
            parts.push(self.object(schema, indentation));
        }
        match parts.as_slice() {
            [] => "unknown".to_owned(),
            [one] => one.clone(),
            several => several.iter().map(|part| in_brackets(part)).collect::<Vec<_>>().join(" & "),
        }
    }

    fn of_kind(&self, kind: &str, schema: &Value, indentation: &str) -> String {
        match kind {
            "integer" | "number" => "number".to_owned(),
            "array" => {
                let items = schema.get("items").unwrap_or(&Value::Bool(true));
                format!("{}[]", in_brackets(&self.of(items, indentation)))
            }
            "object" if has_properties(schema) => self.object(schema, indentation),
            "object" => {
                let values = schema.get("additionalProperties").filter(|values| values.is_object());
                let values =
                    values.map_or_else(|| "unknown".to_owned(), |values| self.of(values, indentation));
                format!("Record<string, {values}>")
            }
            "string" | "boolean" | "null" => kind.to_owned(),
            other => panic!("{other} is no type"),
        }
    }

    fn object(&self, schema: &Value, indentation: &str) -> String {
        let required = list(schema, "required");
        let inner = format!("{indentation}  ");
        let mut text = "{\n".to_owned();
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|name| name == key);
            let is_word = key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            let name = if is_word { key.clone() } else { json!(key).to_string() };
            let mark = if is_required { "" } else { "?" };
            let kind = self.of(property, &inner);
            text += &format!("{}{inner}{name}{mark}: {kind};\n", comment(property, &inner));
        }
        if schema.get("additionalProperties").is_some_and(|other| *other != false) {
            text += &format!("{inner}[key: string]: unknown;\n");
        }
        text + indentation + "}"
    }
}

pub(super) fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn has_properties(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty())
}

fn is_plain_object(schema: &Value) -> bool {
    has_properties(schema) && ["$ref", "anyOf", "oneOf"].iter().all(|key| schema.get(key).is_none())
}

fn union(members: Vec<String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for member in members {
        if !different.contains(&member) {
            different.push(member);
        }
    }
    different.join(" | ")
}

fn in_brackets(kind: &str) -> String {
    let is_compound = [" | ", " & "].iter().any(|operator| kind.contains(operator));
    if is_compound { format!("({kind})") } else { kind.to_owned() }
}

fn comment(schema: &Value, indentation: &str) -> String {
    match schema.get("description").and_then(Value::as_str) {
        None | Some("" | "A time in our JSON.") => String::new(),
        Some(text) => {
            let text = text.replace("*/", "* /").split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{indentation}/** {text} */\n")
        }
    }
}

/// The schemas of the two cases that a rule of a schema distinguishes by a flag: if `ok` is true, `error` is null.
fn variants(schema: &Value) -> Vec<Value> {
    let flag = |rule: &Value| {
        let conditions = rule.pointer("/if/properties")?.as_object()?;
        let (flag, condition) = conditions.iter().next().filter(|_| conditions.len() == 1)?;
        (condition["const"] == true).then(|| flag.clone())
    };
    let rule = list(schema, "allOf").iter().find_map(|rule| Some((flag(rule)?, rule)));
    match rule {
        None => vec![schema.clone()],
        Some((flag, rule)) => {
            vec![narrowed(schema, &rule["then"], &flag, true), narrowed(schema, &rule["else"], &flag, false)]
        }
    }
}

/// A schema with one value of the flag, and with the types that the rule states for it.
fn narrowed(schema: &Value, rule: &Value, flag: &str, value: bool) -> Value {
    let mut narrowed = schema.clone();
    narrowed["properties"][flag] = json!({"const": value});
    for (name, stated) in rule["properties"].as_object().into_iter().flatten() {
        let property = &mut narrowed["properties"][name];
        if stated["type"] == "null" {
            *property = json!({"type": "null"});
        }
        for alternatives in ["type", "oneOf", "anyOf"] {
            if let Some(members) = property.get_mut(alternatives).and_then(Value::as_array_mut) {
                members.retain(|member| member != "null" && member["type"] != "null");
            }
        }
    }
    narrowed
}
