//! The npm package of types in `packages/types`: generated from the published schemas, compiled against recorded answers.

mod compiled;
mod converter;
mod package;
mod typed_answers;

use delegator_testkit::generated::{assert_up_to_date, workspace};
use mcp_delegator::spec::version::PRODUCT_VERSION;
use serde_json::{Value, json};

use crate::http_client::HttpServer;
use crate::recorded::stage_with_agent;
use crate::transcripts::run_events;
use compiled::Program;
use package::Published;
use typed_answers::{GUARDS, TypedAnswer};

/// One line of each type and form that document 001 has.
const EVENTS: [&str; 15] = [
    r#"{"type":"thread.started","thread_id":"t"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"output_tokens":3}}"#,
    r#"{"type":"turn.failed","error":{"message":"m"}}"#,
    r#"{"type":"error","message":"m"}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"t"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"t"}}"#,
    r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","status":"in_progress"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","exit_code":1,"status":"failed"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"file_change","changes":[{"path":"a","kind":"update"}],"status":"completed"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"mcp_tool_call","server":"s","tool":"t","status":"completed"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"web_search","query":"q"}}"#,
    r#"{"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[{"text":"t","completed":false}]}}"#,
    r#"{"type":"item.updated","item":{"id":"item_0","type":"todo_list","items":[]}}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"m"}}"#,
];

fn published() -> Published {
    let stage = stage_with_agent(&[]);
    let names = stage.world.run(["schema"]).stdout;
    let schemas = names.lines().map(|name| (name.to_owned(), stage.run_json(&["schema", name])));
    let server = HttpServer::start(&stage);
    let response = server.request("GET", "/api/v1/openapi.json", &server.default_headers(), "");
    Published { schemas: schemas.collect(), openapi: serde_json::from_str(&response.body).unwrap() }
}

#[test]
fn the_types_are_up_to_date() {
    let published = published();
    let manifest = json!({
        "name": "@mcp-delegator/types",
        "version": PRODUCT_VERSION,
        "description": "TypeScript types and guards for the JSON of mcp-delegator.",
        "license": "MIT",
        "repository": {"type": "git", "url": env!("CARGO_PKG_REPOSITORY"), "directory": "packages/types"},
        "type": "module",
        "exports": {".": {"types": "./index.d.ts", "default": "./index.js"}},
        "types": "./index.d.ts",
        "sideEffects": false,
        "files": ["index.d.ts", "index.js"],
    });
    let manifest = serde_json::to_string_pretty(&manifest).unwrap() + "\n";
    for (file, text) in [
        ("index.d.ts", published.declarations()),
        ("index.js", published.guards()),
        ("package.json", manifest),
    ] {
        assert_up_to_date(&format!("packages/types/{file}"), &text);
    }
}

/// Every recorded answer has its type and is accepted by the guard of its category alone. No answer with a wrong value or a
/// wrong key has its type, and no guard accepts one without a required part.
#[test]
fn recorded_answers_have_their_types_and_guards() {
    let answers = typed_answers::all();
    let mut program = Program::new(&GUARDS);
    for TypedAnswer { kind, value, .. } in &answers {
        program.declare(kind, value);
    }
    let wrong = typed_answers::wrong(&answers);
    assert!(wrong.len() > 200, "{} wrong answers", wrong.len());
    for (kind, value) in &wrong {
        program.declare_wrong(kind, value);
    }
    let first = |guard: &&str| answers.iter().find(|answer| answer.guard == Some(guard)).unwrap();
    let damaged: Vec<Value> = GUARDS.iter().map(first).flat_map(typed_answers::damaged).collect();
    assert!(damaged.len() > 100, "{} damaged answers", damaged.len());
    for value in &damaged {
        program.declare("unknown", value);
    }
    let accepted = program.compile_and_run();
    for (answer, guards) in answers.iter().zip(&accepted) {
        let expected: Vec<&str> = answer.guard.into_iter().collect();
        assert_eq!(*guards, expected, "{}: {}", answer.kind, answer.value);
    }
    for (value, guards) in damaged.iter().zip(&accepted[answers.len()..]) {
        assert!(guards.is_empty(), "{guards:?} accept {value}");
    }
}

#[test]
fn the_examples_of_the_pages_compile() {
    let mut program = Program::new(&GUARDS);
    for page in ["docs/typescript.md", "packages/types/README.md"] {
        let text = std::fs::read_to_string(workspace().join(page)).unwrap();
        let examples = text.split("```ts\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let count = examples.map(|example| program.add_file(example)).count();
        assert!(count > 0, "{page} has no example");
    }
    program.compile_and_run();
}

/// The schema of the events and `normalize --strict` accept the same lines, also after each value of a line was replaced or
/// left out.
#[test]
fn the_types_of_events_are_those_that_strict_output_has() {
    let validator = jsonschema::validator_for(&package::exec_events()).unwrap();
    let mut lines: Vec<Value> = Vec::new();
    for line in EVENTS {
        let event: Value = serde_json::from_str(line).unwrap();
        lines.extend(changed(&event).into_iter().filter(|line| !is_respelled(line)));
        lines.push(event);
    }
    // An id belongs to one item only.
    for (number, line) in lines.iter_mut().enumerate() {
        if let Some(id) = line.pointer_mut("/item/id").filter(|id| id.is_string()) {
            *id = format!("item_{number}").into();
        }
    }
    let text = |lines: &[&Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (valid, refused): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|line| validator.is_valid(line));
    assert!(refused.len() > 200, "{} lines are refused", refused.len());
    let run = run_events(&["normalize", "--strict"], &text(&lines.iter().collect::<Vec<_>>()));
    for (line, copied) in valid.iter().zip(run.stdout.lines()) {
        assert_eq!(copied, line.to_string());
    }
    assert_eq!(run.stdout, text(&valid));
}

/// A line with each of its values replaced by another one, and left out.
fn changed(line: &Value) -> Vec<Value> {
    let mut places = Vec::new();
    collect_places(line, String::new(), &mut places);
    let mut changed = Vec::new();
    for place in places {
        for value in [json!("no such value"), json!(-1), json!(true), json!({}), json!([]), Value::Null] {
            let mut line = line.clone();
            *line.pointer_mut(&place).unwrap() = value;
            changed.push(line);
        }
        let (parent, key) = place.rsplit_once('/').unwrap();
        let mut line = line.clone();
        match line.pointer_mut(parent).unwrap() {
            Value::Object(object) => drop(object.shift_remove(key)),
            Value::Array(items) => drop(items.remove(key.parse().unwrap())),
            _ => panic!("{place} is in nothing"),
        }
        changed.push(line);
    }
    changed
}

fn collect_places(value: &Value, place: String, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(key, inner)| (key.clone(), inner)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, inner)| (index.to_string(), inner)).collect()
        }
        _ => Vec::new(),
    };
    for (key, inner) in inner {
        collect_places(inner, format!("{place}/{key}"), found);
    }
    if !place.is_empty() {
        found.push(place);
    }
}

/// Whether strict output has the same event in another spelling: another id, no exit code instead of null, an error as an
/// object, a turn with its usage.
fn is_respelled(line: &Value) -> bool {
    let has_other_id = line.pointer("/item/id").and_then(Value::as_str).is_some_and(|id| id != "item_0");
    let has_null = line.pointer("/item/exit_code").is_some_and(Value::is_null);
    let has_no_usage = line["type"] == "turn.completed" && !line["usage"].is_object();
    let has_error_text = line["error"].is_string();
    has_other_id || has_null || has_no_usage || has_error_text
}
