//! The OpenAPI 3.1 document of the HTTP API, from the routes and the types of the commands.

use serde_json::{Map, Value, json};

use crate::commands::sign_in::Scope;
use crate::mcp::api::problem::{self, ProblemDocument};
use crate::mcp::api::queries::tasks::TaskList;
use crate::mcp::api::routes::{self, BASE, CONFIRM, Call, Route, Target};
use crate::mcp::api::session;
use crate::mcp::api::stream::{ChangeData, TaskEvent};
use crate::spec::input_schema::{InputSchema, Marker, ModeSettings, PropertyType};
use crate::spec::version::PRODUCT_VERSION;
use crate::spec::{CommandSpec, Surface, output_schema};

/// Inputs of tool calls that concern their text.
const NOT_IN_THE_API: [&str; 2] = ["format", "options"];

pub(super) fn document(modes: ModeSettings) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all() {
        let path = paths.entry(format!("{BASE}{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route, modes);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "mcp-delegator",
            "version": PRODUCT_VERSION,
            "description": "Look at tasks and act on them. Answers are the CLI envelope of the command behind the path, errors are problem documents. Scopes: read, answer (also send, answer and mark as read), write (everything).",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "mcp-delegator-PORT",
                    "description": "The session of a browser. A POST also needs the headers Origin and X-CSRF-Token.",
                },
            },
            "schemas": {
                "Problem": output_schema::<ProblemDocument>(),
                "Snapshot": output_schema::<TaskList>(),
                "Change": output_schema::<ChangeData>(),
                "TaskEvent": output_schema::<TaskEvent>(),
            },
        },
    })
}

fn operation(route: &Route, modes: ModeSettings) -> Value {
    let mut operation = match &route.target {
        Target::Command(call) => command(route, call, modes),
        Target::Stream => stream(),
        Target::SignOut => json!({
            "operationId": "postSessionEnd",
            "summary": "End the session of the caller",
            "responses": {"200": {"description": "It has ended", "content": {"application/json": {"schema": {"type": "object"}}}}},
        }),
        Target::Session => json!({
            "operationId": "getSession",
            "summary": session::SPEC.about,
            "responses": {"200": {
                "description": "The CLI envelope",
                "content": {"application/json": {"schema": envelope(&session::SPEC)}},
            }},
        }),
        Target::OpenApi => json!({
            "operationId": "getOpenapi",
            "summary": "This document",
            "responses": {"200": {"description": "OpenAPI 3.1", "content": {"application/json": {"schema": {"type": "object"}}}}},
        }),
    };
    operation["x-scope"] = route.scope.name().into();
    operation["responses"]["default"] = json!({
        "description": "Why the request failed",
        "content": {problem::MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    });
    if route.scope != Scope::Read {
        operation["description"] = format!("Needs the scope {}.", route.scope.name()).into();
    }
    operation
}

fn command(route: &Route, call: &Call, modes: ModeSettings) -> Value {
    let is_get = route.method == http::Method::GET;
    let inputs = InputSchema::of(call.spec);
    let mut schema = inputs.published_schema(Surface::Server, modes);
    let mut properties = take_object(&mut schema, "properties");
    let in_path = call.id.and_then(|id| properties.shift_remove(id));
    properties.retain(|name, _| !NOT_IN_THE_API.contains(&name.as_str()));
    let required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    let required: Vec<Value> =
        required.into_iter().filter(|name| name.as_str() != call.id && name != "format").collect();
    let mut parameters: Vec<Value> = Vec::new();
    if let Some(mut schema) = in_path {
        // The path has one id also where the command takes several.
        if let Some(item) = schema.get_mut("items") {
            schema = item.take();
        }
        schema["type"] = "string".into();
        parameters.push(json!({"name": "id", "in": "path", "required": true, "schema": schema}));
    }
    if let Some(check) = call.check {
        let about = "Report what would happen; change nothing";
        parameters.push(parameter("check", about, json!({"type": "boolean"}), false));
        properties.shift_remove(check);
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": call.spec.about,
        "responses": {"200": {
            "description": "The CLI envelope of the command",
            "content": {"application/json": {"schema": envelope(call.spec)}},
        }},
    });
    if is_get {
        for (name, schema) in properties {
            let is_pairs = inputs.get(&name).is_some_and(|input| input.kind == PropertyType::Pairs);
            // A pair is written as `key=value`.
            let schema = if is_pairs {
                json!({"type": "array", "items": {"type": "string", "pattern": "^[^=]+="}})
            } else {
                schema
            };
            let is_required = required.contains(&Value::from(name.as_str()));
            parameters.push(parameter(&name, "", schema, is_required));
        }
    } else {
        if let Some(confirm) = inputs.get(CONFIRM).filter(|input| input.has(&Marker::Consent)) {
            properties.insert(CONFIRM.to_owned(), confirm.schema.clone());
        }
        let body = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        operation["requestBody"] = json!({
            "required": !required.is_empty(),
            "content": {"application/json": {"schema": body}},
        });
    }
    operation["parameters"] = parameters.into();
    operation
}

fn parameter(name: &str, about: &str, mut schema: Value, is_required: bool) -> Value {
    let own = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
    let about = own.unwrap_or_else(|| about.into());
    json!({"name": name, "in": "query", "description": about, "required": is_required, "schema": schema})
}

/// The envelope of a success.
fn envelope(spec: &CommandSpec) -> Value {
    json!({
        "type": "object",
        "required": ["ok", "data", "error", "warnings", "meta"],
        "properties": {
            "ok": {"const": true},
            "data": (spec.output)(),
            "error": {"type": "null"},
            "warnings": {"type": "array", "items": {"type": "string"}},
            "meta": {"type": "object"},
        },
    })
}

fn stream() -> Value {
    let query = |name, about, schema| parameter(name, about, schema, false);
    json!({
        "operationId": "getStream",
        "summary": "Follow all tasks, and the events of one",
        "parameters": [
            query("task", "Also send the events of this task", json!({"type": "string", "minLength": 1})),
            query("from", "Number of the first event of the task", json!({"type": "integer", "minimum": 1})),
            {
                "name": "Last-Event-ID", "in": "header", "required": false, "schema": {"type": "string"},
                "description": "The id of the last change that the reader knows",
            },
        ],
        "responses": {"200": {
            "description": "Server-sent events: snapshot (Snapshot), change (Change), gap (changes are lost, a snapshot follows), task_event (TaskEvent), ping",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }},
    })
}

/// `postTasksByIdApply`
fn operation_id(route: &Route) -> String {
    let words = route.path.split('/').filter(|word| !word.is_empty());
    let name = words.map(|word| match word {
        "{id}" => "ById".to_owned(),
        word => word[..1].to_uppercase() + &word[1..],
    });
    std::iter::once(route.method.as_str().to_lowercase()).chain(name).collect()
}

fn take_object(schema: &mut Value, key: &str) -> Map<String, Value> {
    match schema[key].take() {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
