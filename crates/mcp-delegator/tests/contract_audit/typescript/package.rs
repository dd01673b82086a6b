//! The npm package of types: what its files contain.
//!
//! ```text
//! schemas that the program prints ─▶ Module (declarations) ─ converter ─▶ index.d.ts
//!                                 └▶ required keys and their types ─────▶ index.js (guards)
//! ```

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::converter::{Module, list, type_name};
use crate::recorded::CATEGORIES;

const EXEC_EVENTS: &str = include_str!("exec_events.json");
const GUARDS: &str = include_str!("guards.js");
const ENVELOPES: &str = include_str!("envelopes.d.ts");

/// The schema of the events of document 001, with its types in `$defs`.
pub(super) fn exec_events() -> Value {
    json!({"$ref": "#/$defs/ThreadEvent", "$defs": serde_json::from_str::<Value>(EXEC_EVENTS).unwrap()})
}

/// What the program publishes.
pub(super) struct Published {
    /// What `schema NAME` prints, by name.
    pub(super) schemas: BTreeMap<String, Value>,
    pub(super) openapi: Value,
}

impl Published {
    fn schema(&self, name: &str) -> &Value {
        self.schemas.get(name).unwrap_or_else(|| panic!("no schema {name}"))
    }

    /// The version of the tool envelope.
    fn version(&self) -> &str {
        self.schema("error")["properties"]["version"]["const"].as_str().unwrap()
    }

    /// The content of `index.d.ts`.
    pub(super) fn declarations(&self) -> String {
        let mut module = Module::default();
        self.declare_tool_envelopes(&mut module);
        self.declare_cli_envelope(&mut module);
        self.declare_standard_envelope(&mut module);
        for (name, schema) in exec_events()["$defs"].as_object().unwrap() {
            module.declare(name, schema.clone());
        }
        self.declare_commands(&mut module);
        self.declare_api(&mut module);
        let guards = CATEGORIES.map(|category| {
            let (name, kind) = (type_name(category), format!("Complete{}", type_name(category)));
            format!(
                "\n/** An answer of the category `{category}`. It may lack keys: with selected fields, after an expired wait, or truncated. */\n\
                 export type {name}Answer = ToolAnswer<\"{category}\", {name}Meta, {name}Data>;\n\
                 /** An answer of the category `{category}` without an error and with all keys. */\n\
                 export type {kind} = ToolSuccess<\"{category}\", {name}Meta, {name}Data>;\n\
                 /** Checks the envelope, and that each required key of `meta` and `data` has a value of its type. */\n\
                 export function is{name}(answer: unknown): answer is {kind};\n"
            )
        });
        let head = "// Written by crates/mcp-delegator/tests/contract_audit from the published schemas: `just update-generated`.\n";
        let envelopes = ENVELOPES.replace("VERSION", self.version());
        format!("{head}\n{envelopes}{}{}", guards.concat(), module.text())
    }

    /// The content of `index.js`.
    pub(super) fn guards(&self) -> String {
        let required = CATEGORIES.map(|category| {
            let (meta, data) = parts(self.schema(category));
            let required = json!({"meta": required_types(&meta), "data": required_types(&data)});
            format!("  {category}: {required},\n")
        });
        let text = GUARDS
            .replace("VERSION", self.version())
            .replace("REQUIRED_TYPES", &format!("{{\n{}}}", required.concat()));
        let exported = CATEGORIES.map(|category| {
            let name = type_name(category);
            format!("\nexport const is{name} = (answer) => isComplete(answer, \"{category}\");\n")
        });
        text + &exported.concat()
    }

    fn declare_tool_envelopes(&self, module: &mut Module) {
        let error = self.schema("error");
        module.declare("ToolCategory", error["properties"]["tool_category"].clone());
        let mut json_error = error["properties"]["error"].clone();
        json_error["description"] = "Why a call failed.".into();
        module.declare("JsonError", json_error);
        for category in CATEGORIES {
            let (mut meta, mut data) = parts(self.schema(category));
            meta["description"] = format!("`meta` of the category `{category}`.").into();
            data["description"] = format!("`data` of the category `{category}`.").into();
            if category == "wait_result" {
                module.declare("EnhancedMetadata", data["properties"]["metadata"].clone());
            }
            let is_open = category == "registry_info";
            module.declare(&format!("{}Meta", type_name(category)), open(meta));
            module.declare(&format!("{}Data", type_name(category)), if is_open { open(data) } else { data });
        }
    }

    fn declare_cli_envelope(&self, module: &mut Module) {
        let answer = &self.schema("version")["output"]["cli"];
        let definitions = &answer["definitions"];
        let mut meta = definitions["ResponseMeta"].clone();
        let own = definitions["Meta"]["properties"].as_object().unwrap().clone();
        let properties = meta["properties"].as_object_mut().unwrap();
        for (key, schema) in own {
            let description = properties.get(&key).and_then(|contract| contract.get("description").cloned());
            let entry = properties.entry(key).or_insert(Value::Null);
            *entry = schema;
            entry["description"] = description.unwrap_or_default();
        }
        let required = meta["required"].as_array_mut().unwrap();
        required.extend(list(&definitions["Meta"], "required").iter().cloned());
        meta["description"] = "`meta` of the CLI envelope.".into();
        module.declare("ResponseMeta", meta);
        module.declare("ErrorDetail", definitions["ErrorDetail"].clone());
        module.declare("Redirect", definitions["Redirect"].clone());
        let mut envelope = answer.clone();
        envelope["properties"]["data"] = parameter_or_null(&answer["properties"]["data"]);
        let [rule, data_rule] = [1, 2].map(|index| &answer["allOf"][index]);
        envelope["allOf"] = json!([rule]);
        envelope["allOf"][0]["else"]["properties"]["data"] = data_rule["else"]["properties"]["data"].clone();
        envelope["description"] = "What a command prints in a pipe. `data` of a success is null if the caller has it already (`meta.not_modified`).".into();
        module.declare("ResponseEnvelope<T = unknown>", envelope);
    }

    fn declare_standard_envelope(&self, module: &mut Module) {
        let mut envelope = self.schema("standard").clone();
        let metadata =
            std::mem::replace(&mut envelope["properties"]["metadata"], json!({"$ref": "StandardMetadata"}));
        let mut metadata = open(metadata);
        metadata["description"] = "`metadata` of the standard envelope.".into();
        module.declare("StandardMetadata", metadata);
        envelope["properties"]["data"] = parameter_or_null(&envelope["properties"]["data"]);
        envelope["description"] = "What a command writes into a file.".into();
        module.declare("StandardEnvelope<T = unknown>", envelope);
    }

    fn declare_commands(&self, module: &mut Module) {
        let commands = self.schemas.iter().filter_map(|(name, schema)| {
            Some((name.clone(), undescribed(schema.pointer("/output/cli/definitions/Data")?)))
        });
        let description = "The `data` of each command in the CLI envelope: `ResponseEnvelope<CommandData[\"local.status\"]>`.";
        module.declare("CommandData", record(commands.collect(), description));
    }

    fn declare_api(&self, module: &mut Module) {
        for (name, schema) in self.openapi["components"]["schemas"].as_object().unwrap() {
            module.declare(name, schema.clone());
        }
        let mut operations = Map::new();
        for (path, methods) in self.openapi["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                operations.insert(format!("{} {path}", method.to_uppercase()), operation_type(operation));
            }
        }
        let description = "The inputs of each request of the HTTP API, and the `data` of its answer: `ResponseEnvelope<Api[\"GET /api/v1/tasks\"][\"data\"]>`. A failure is a `Problem`.";
        module.declare("Api", record(operations, description));
    }
}

/// A schema of data without its description, which is that of one part of it.
fn undescribed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema.as_object_mut().unwrap().shift_remove("description");
    schema
}

/// An object with exactly these keys.
fn record(properties: Map<String, Value>, description: &str) -> Value {
    let required: Vec<Value> = properties.keys().cloned().map(Value::from).collect();
    json!({"description": description, "type": "object", "properties": properties, "required": required})
}

/// An object to which each command adds keys of its own.
fn open(mut schema: Value) -> Value {
    schema["additionalProperties"] = true.into();
    schema
}

/// `meta` and `data` of a category, with the keys that a complete answer has.
fn parts(schema: &Value) -> (Value, Value) {
    let (mut meta, mut data) = (schema["properties"]["meta"].clone(), schema["$defs"]["Data"].clone());
    let complete = &schema["allOf"][2]["then"]["properties"];
    for (part, name) in [(&mut meta, "meta"), (&mut data, "data")] {
        let mut required = list(part, "required").to_vec();
        required.extend(
            list(&complete[name], "required")
                .iter()
                .filter(|key| !list(part, "required").contains(key))
                .cloned(),
        );
        part["required"] = required.into();
    }
    (meta, data)
}

fn parameter_or_null(data: &Value) -> Value {
    json!({"description": data["description"], "anyOf": [{"$ref": "T"}, {"type": "null"}]})
}

fn operation_type(operation: &Value) -> Value {
    let mut parts = Map::new();
    let parameters = list(operation, "parameters");
    let query: Vec<&Value> = parameters.iter().filter(|parameter| parameter["in"] == "query").collect();
    if !query.is_empty() {
        let properties: Map<String, Value> = query
            .iter()
            .map(|parameter| {
                let mut schema = parameter["schema"].clone();
                schema["description"] = parameter["description"].clone();
                (parameter["name"].as_str().unwrap().to_owned(), schema)
            })
            .collect();
        let required: Vec<&Value> =
            query.iter().filter(|parameter| parameter["required"] == true).map(|one| &one["name"]).collect();
        parts.insert(
            "query".into(),
            json!({"type": "object", "properties": properties, "required": required}),
        );
    }
    let content = |at: &str| operation.pointer(at).cloned();
    parts.extend(content("/requestBody/content/application~1json/schema").map(|body| ("body".into(), body)));
    let answer = "/responses/200/content/application~1json/schema/properties/data";
    parts.extend(content(answer).map(|data| ("data".into(), undescribed(&data))));
    let mut operation_type = record(parts, "");
    operation_type["description"] = operation["summary"].clone();
    operation_type
}

/// The types of the required keys: `{"task_id": ["string"]}`.
fn required_types(schema: &Value) -> Value {
    let types = list(schema, "required").iter().map(|key| {
        let key = key.as_str().unwrap();
        (key.to_owned(), types(&schema["properties"][key]).into())
    });
    types.collect::<Map<String, Value>>().into()
}

/// The names of the JSON types that a schema permits.
fn types(schema: &Value) -> Vec<&str> {
    let alternatives: Vec<&str> =
        ["anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key)).flat_map(types).collect();
    match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if !alternatives.is_empty() => alternatives,
        _ if schema.get("enum").is_some() => vec!["string"],
        _ => panic!("no types in {schema}"),
    }
}
