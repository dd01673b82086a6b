//! Statements about reflection: one definition of each command for the command line and MCP.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use mcp_delegator::app::command_list::catalog;
use mcp_delegator::commands::version;
use mcp_delegator::output::envelopes::schema::{answer_schema, check};
use mcp_delegator::spec::formats::Envelope;
use serde_json::{Value, json};

use crate::assertions::{at, contains, equals, list, object, text};
use crate::client::{Client, V2025_11, result};
use crate::recorded::{Session, stage_with_agent};
use crate::row::{Section, differs, works};

static REFLECTED: LazyLock<Reflected> = LazyLock::new(record);

/// What the program states about its commands.
struct Reflected {
    /// The commands of the manifest.
    commands: Vec<Value>,
    /// The help of each command, on one line.
    helps: Vec<String>,
    /// The tools of a server with all toolsets.
    tools: Vec<Value>,
}

fn session() -> Session {
    let stage = stage_with_agent(&[json!({"message": "Done."}), json!({"turn_completed": {}})]);
    let toolsets = ["--toolsets", "local,cloud,registry,extra"];
    let client = Client::connect_with(&stage, V2025_11, &toolsets, json!({}));
    Session { stage, client }
}

fn record() -> Reflected {
    let mut session = session();
    let manifest = session.stage.run_json(&["manifest"]);
    let commands = list(&manifest, "/data/commands").to_vec();
    let help = |command: &Value| {
        let help =
            session.stage.run_json(&[words(&command["path"]).as_slice(), &["--help", "--json"]].concat());
        text(&help, "/data/text").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let helps = commands.iter().map(help).collect();
    let tools = list(&result(session.client.request("tools/list", json!({}))), "/tools").to_vec();
    Reflected { commands, helps, tools }
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Asserts something about every input of every command that `--help` shows: the command, its help, the name and the
/// schema of the input.
#[track_caller]
fn every_input(check: fn(&Value, &str, &str, &Value)) {
    assert_eq!(REFLECTED.commands.len(), 74);
    for (command, help) in REFLECTED.commands.iter().zip(&REFLECTED.helps) {
        for (name, schema) in command["input_schema"]["properties"].as_object().unwrap() {
            if !["format", "options"].contains(&name.as_str()) {
                check(command, help, name, schema);
            }
        }
    }
}

/// How help and tool list write a default; `None` if there is none, or if it is false.
fn default_text(schema: &Value) -> Option<String> {
    match &schema["default"] {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(_) => Some(words(&schema["default"]).join(",")),
        other => Some(other.to_string()),
    }
}

/// The standard names of the document.
const STANDARD_NAMES: [&str; 18] = [
    "id",
    "uuid",
    "name",
    "created_at",
    "updated_at",
    "deleted_at",
    "status",
    "health_status",
    "is_active",
    "is_deleted",
    "parent_id",
    "child_ids",
    "created_by",
    "updated_by",
    "version",
    "total_count",
    "active_count",
    "error_count",
];

/// Whether only the command line has an input: it overrides a safeguard, names a secret, or concerns a terminal.
fn is_for_people(command: &Value, input: &str) -> bool {
    match input {
        // Of `run` a client gives it after it has asked its user.
        "confirm" => command["name"] != "local.run",
        name => [
            "bundle",
            "database_url",
            "database_url_file",
            "detach",
            "drop",
            "include_only_copies",
            "include_restore_points",
            "no_pager",
            "open",
            "trust_clock",
            "watch",
        ]
        .contains(&name),
    }
}

/// The names of all properties that a schema declares, at any depth.
fn add_property_names(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(keywords) => {
            let declared = keywords.get("properties").and_then(Value::as_object);
            names.extend(declared.into_iter().flat_map(|declared| declared.keys().cloned()));
            keywords.values().for_each(|keyword| add_property_names(keyword, names));
        }
        Value::Array(items) => items.iter().for_each(|item| add_property_names(item, names)),
        _ => {}
    }
}

pub(crate) const SECTIONS: &[Section] = &[Section {
    heading: "Purpose: reflection into MCP tools",
    rows: &[
        works(
            79,
            "Command line and MCP have one definition of a command",
            "The tools in the manifest are those of `tools/list`, key for key, with all toolsets",
            || {
                assert!(REFLECTED.tools.len() > 15);
                let in_manifest: Vec<&Value> =
                    REFLECTED.commands.iter().filter_map(|command| command.get("mcp")).collect();
                let names = |tools: &[&Value]| -> BTreeSet<String> {
                    tools.iter().map(|tool| text(tool, "/name").to_owned()).collect()
                };
                let served: Vec<&Value> = REFLECTED.tools.iter().collect();
                assert_eq!(names(&in_manifest), names(&served));
                assert!(served.iter().all(|tool| in_manifest.contains(tool)));
            },
        ),
        works(
            80,
            "Every description of a command has the same inputs",
            "`schema NAME` and `--schema` print the inputs of the manifest, for every command",
            || {
                let session = session();
                for command in &REFLECTED.commands {
                    let by_name = session.stage.run_json(&["schema", text(command, "/name"), "--json"]);
                    equals(&by_name, "/data/input", command["input_schema"].clone());
                    let args = [words(&command["path"]).as_slice(), &["--schema", "--json"]].concat();
                    equals(&session.stage.run_json(&args), "/data/input", command["input_schema"].clone());
                }
            },
        ),
        works(
            81,
            "Flags, choices, ranges and required inputs of the manifest are those of `--help`",
            "Each input of each command: its flag, its choices, its range, and its place in the usage line if required",
            || {
                every_input(|command, help, name, schema| {
                    let flag = format!("--{}", name.replace('_', "-"));
                    assert!(help.contains(&format!(" {flag}")), "{flag}: {help}");
                    let choices = words(&schema["enum"]);
                    let choices = format!("[possible values: {}]", choices.join(", "));
                    assert!(choices.ends_with(": ]") || help.contains(&choices), "{name} {choices}: {help}");
                    if let (Some(low), Some(high)) = (schema.get("minimum"), schema.get("maximum")) {
                        assert!(help.contains(&format!("{low}..{high}")), "{name}: {help}");
                    }
                    let required = words(&command["input_schema"]["required"]).contains(&name);
                    let shown = match words(&command["positional"]).contains(&name) {
                        true => format!("<{}>", name.to_uppercase()),
                        false => format!("{flag} <"),
                    };
                    let usage = help.split_once("Usage: ").unwrap().1;
                    let usage =
                        usage.split(" Arguments: ").next().unwrap().split(" Options: ").next().unwrap();
                    // `<TASK|--task-file <FILE>>` or `<TASK_ID|--last>`: there is another way to give it.
                    let alternatives =
                        ["|--task-file <FILE>>", "|--last>"].map(|end| shown.replace('>', end));
                    let is_shown =
                        alternatives.iter().chain([&shown]).any(|shown| usage.contains(&format!(" {shown}")));
                    assert_eq!(is_shown, required, "{name}: {usage}");
                });
            },
        ),
        works(
            82,
            "Defaults of manifest, `--help` and tool list are equal",
            "Each default of each command is in its help and in its tool; the limits of tasks and calls are 300, 1200 and 50 s",
            || {
                every_input(|command, help, name, schema| {
                    let Some(default) = default_text(schema) else { return };
                    assert!(help.contains(&format!("default {default}")), "{name} {default}: {help}");
                    if let Some(tool) = REFLECTED.tools.iter().find(|tool| tool["name"] == command["tool"]) {
                        let properties = &tool["inputSchema"]["properties"];
                        let stated = properties[name]["description"].as_str();
                        let stated = stated.unwrap_or_else(|| text(properties, "/options/description"));
                        let forms = [format!("default {default}"), format!("{default} (default)")];
                        assert!(forms.iter().any(|form| stated.contains(form)), "{name}: {stated}");
                    }
                });
                let default = |command: &str, input: &str| {
                    let command = REFLECTED.commands.iter().find(|entry| entry["name"] == command).unwrap();
                    at(command, &format!("/input_schema/properties/{input}/default")).clone()
                };
                let limits = ["idle_timeout_sec", "hard_timeout_sec", "call_budget_sec"];
                let found: Vec<Value> = limits.iter().map(|input| default("local.run", input)).collect();
                assert_eq!(
                    (found, default("local.wait", "timeout_sec")),
                    (vec![json!(300), json!(1200), json!(50)], json!(50))
                );
            },
        ),
        works(
            83,
            "A tool takes what its schema declares",
            "Both formats of a tool's schema are accepted, and so are the defaults of its inputs",
            || {
                let mut session = session();
                let schema = session.json("_codex_schema", json!({"name": "local.exec"}));
                equals(&schema, "/data/input/properties/format/enum", json!(["markdown", "json"]));
                for format in ["markdown", "json"] {
                    let answer = session.client.call("_codex_local_status", json!({"format": format}));
                    assert_ne!(answer["isError"], true, "{answer}");
                }
                let exec = REFLECTED.commands.iter().find(|entry| entry["name"] == "local.exec").unwrap();
                let mut arguments = json!({"task": "x"});
                for (input, declared) in exec["input_schema"]["properties"].as_object().unwrap() {
                    if let Some(default) = declared.get("default").filter(|value| !value.is_null()) {
                        arguments[input] = default.clone();
                    }
                }
                equals(&session.json("_codex_local_exec", arguments), "/status", "ok");
            },
        ),
        works(
            84,
            "A reflected command is safe as a tool",
            "A tool that reads a transcript refuses a call without a source; the server answers the next call",
            || {
                let mut session = session();
                for tool in ["_codex_events_normalize", "_codex_events_summarize"] {
                    for arguments in [json!({}), json!({"source": "-"}), json!({"source": "/dev/stdin"})] {
                        equals(&session.json(tool, arguments), "/status", "error");
                    }
                }
                equals(&session.json("_codex_local_status", json!({})), "/status", "ok");
            },
        ),
        works(
            85,
            "The whole manifest can be read over MCP",
            "The cursors of `_codex_manifest` lead to every command once; no response is longer than 48,000 characters",
            || {
                let (mut session, mut found, mut arguments) = (session(), Vec::new(), json!({}));
                loop {
                    let page = session.json("_codex_manifest", arguments.clone());
                    assert!(page.to_string().chars().count() <= 48_000);
                    found.extend(list(&page, "/data/commands").iter().map(|entry| entry["name"].clone()));
                    match page["meta"].get("next_cursor") {
                        Some(cursor) => arguments["cursor"] = cursor.clone(),
                        None => break,
                    }
                }
                let all: Vec<Value> = REFLECTED.commands.iter().map(|entry| entry["name"].clone()).collect();
                assert_eq!(found, all);
            },
        ),
        works(
            86,
            "The shape of `data` in this envelope is published",
            "Answers of a list, a show and an action command validate against `schema NAME`, which requires their keys",
            || {
                let session = session();
                for (name, args, key) in [
                    ("config.show", &["config", "show"][..], "settings"),
                    ("local.status", &["local", "status"], "snapshot"),
                    ("cleanup-registry", &["cleanup-registry", "--dry-run"], "action"),
                ] {
                    let schema = session.stage.run_json(&["schema", name, "--json"]);
                    let schema = at(&schema, "/data/output/standard");
                    let validator = jsonschema::validator_for(schema).unwrap();
                    let run = session.stage.world.run([args, &["--envelope", "standard"]].concat());
                    let mut answer = run.document();
                    assert!(validator.is_valid(&answer), "{name}: {answer}");
                    answer["data"].as_object_mut().unwrap().shift_remove(key).unwrap();
                    assert!(!validator.is_valid(&answer), "{name} without {key}: {answer}");
                }
            },
        ),
        differs(
            87,
            "The standard names: `uuid`, `updated_at`, `deleted_at`, `health_status`, `is_active`, `is_deleted`, `created_by`, \
             `updated_by`, `version`, `active_count`, `error_count` and those above",
            "A name is used where there is such a thing: nothing is updated or deleted in place, and no answer names users",
            "Of the standard names the published schemas have `id`, `name`, `created_at`, `status`, `version` and \
             `total_count`, and no other; the creation of a task is `created_ts`, like its other times",
            || {
                let mut names = BTreeSet::new();
                for command in catalog().iter() {
                    for envelope in [Envelope::Standard, Envelope::Tool] {
                        add_property_names(&answer_schema(envelope, command).unwrap(), &mut names);
                    }
                }
                let used: Vec<&str> =
                    STANDARD_NAMES.into_iter().filter(|name| names.contains(*name)).collect();
                assert_eq!(used, ["id", "name", "created_at", "status", "version", "total_count"]);
                let is_creation = |name: &&String| name.starts_with("creat");
                let creations: Vec<&String> = names.iter().filter(is_creation).collect();
                assert_eq!(creations, ["created_at", "created_ts"]);
            },
        ),
        differs(
            88,
            "A deprecated option works, with the warning W_DEPRECATION_001 that names its replacement",
            "The warning is not built: no input is deprecated, and a former name that still works would never be replaced",
            "Each former name is refused, and the suggestion names the command: with exit code 13 and a redirect, or with 2 \
             if the command deletes something; no schema declares a deprecated input",
            || {
                let world = session().stage.world;
                let mut count = 0;
                for command in &REFLECTED.commands {
                    assert!(!command["input_schema"].to_string().contains("\"deprecated\""), "{command}");
                    for former in words(&command["former_names"]) {
                        count += 1;
                        let run = world.run([former, "--envelope", "standard"]);
                        let (answer, is_safe) = (run.document(), command["danger_level"] != "destructive");
                        assert_eq!(run.exit, Some(if is_safe { 13 } else { 2 }), "{run:?}");
                        let path = words(&command["path"]).join(" ");
                        contains(&answer, "/error/details/suggestion", &path);
                        contains(&answer, "/error/message", &format!("'{former}' is now '{path}'"));
                        let reason = answer.pointer("/error/details/redirect/reason");
                        assert_eq!(reason, is_safe.then_some(&json!("renamed")), "{answer}");
                    }
                }
                assert!(count >= 4, "{count} former names");
            },
        ),
        works(
            89,
            "An answer is validated before it is written: six keys, a boolean `success`, a time",
            "The check that precedes every answer finds a missing key, a text as `success`, and a time without its zone",
            || {
                let answer = session().stage.world.run(["version", "--envelope", "standard"]).document();
                let violations = |answer: &Value| check(Envelope::Standard, &version::SPEC, answer);
                assert_eq!(violations(&answer), Vec::<String>::new());
                for key in ["success", "timestamp", "command", "data", "error", "metadata"] {
                    let mut changed = answer.clone();
                    changed.as_object_mut().unwrap().shift_remove(key).unwrap();
                    assert!(!violations(&changed).is_empty(), "{changed}");
                }
                for (key, value) in [("success", "yes"), ("timestamp", "2024-01-01 00:00:00")] {
                    let mut changed = answer.clone();
                    changed[key] = json!(value);
                    assert!(!violations(&changed).is_empty(), "{changed}");
                }
            },
        ),
        differs(
            90,
            "The tools reflect the commands without loss",
            "The list of tools is read by a model in every session, so rarely used inputs are words in `options`; a few inputs \
             are for people only",
            "Every input of a command is a property of its tool or a word in the description of `options`, except twelve that \
             only the command line has; `_codex_schema` has the whole schema of the others",
            || {
                let mut session = session();
                for tool in &REFLECTED.tools {
                    let command =
                        REFLECTED.commands.iter().find(|entry| entry["tool"] == tool["name"]).unwrap();
                    let properties = at(tool, "/inputSchema/properties");
                    let options = properties["options"]["description"].as_str().unwrap_or_default();
                    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
                    let options: BTreeSet<&str> = options.split(|letter| !is_word(letter)).collect();
                    let schema = session.json("_codex_schema", json!({"name": command["name"]}));
                    for (name, declared) in object(command, "/input_schema/properties") {
                        let is_listed = properties.get(name).is_some() || options.contains(name.as_str());
                        assert_eq!(is_listed, !is_for_people(command, name), "{name} of {tool}");
                        let served = schema.pointer(&format!("/data/input/properties/{name}"));
                        // Over MCP they list the formats of tools, and the modes that the configuration permits.
                        if name != "format" && name != "mode" {
                            assert_eq!(served, is_listed.then_some(declared), "{name} of {tool}");
                        }
                    }
                    let required = words(&tool["inputSchema"]["required"]);
                    let declared = words(&command["input_schema"]["required"]);
                    assert!(declared.iter().all(|name| required.contains(name)), "{tool}");
                }
            },
        ),
    ],
}];
