//! Statements about the JSON text of an answer, and the document's own checks of it.

use std::sync::LazyLock;

use delegator_testkit::program::World;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::PROGRAM;
use crate::assertions::{absent, at, equals, number, object, text, time};
use crate::row::{Section, differs, works};

/// Answers of several commands in the standard envelope, failures included.
static ANSWERS: LazyLock<Vec<Answer>> = LazyLock::new(record);

struct Answer {
    args: &'static [&'static str],
    text: String,
    value: Value,
}

const CALLS: [&[&str]; 8] = [
    &["config", "show"],
    &["manifest", "--limit", "2"],
    &["schema"],
    &["local", "status"],
    &["cloud", "list-environments"],
    &["version"],
    &["cleanup-registry", "--dry-run"],
    &["local", "exec", "x", "--mode", "nonsense"],
];

fn record() -> Vec<Answer> {
    let world = world();
    let run = |args: &'static [&'static str]| {
        let run = world.run([args, &["--envelope", "standard"]].concat());
        Answer { args, text: run.stdout.clone(), value: run.document() }
    };
    CALLS.into_iter().map(run).collect()
}

fn world() -> World {
    let world = World::new(PROGRAM);
    let environments =
        json!({"env_a": {"name": "Größe ✓", "repoUrl": "https://github.com/me/art", "stack": "node"}});
    world.write("home/.config/mcp-delegator/environments.json", &environments.to_string());
    world
}

/// Asserts something about the text and the value of every answer.
#[track_caller]
fn every_answer(check: fn(&str, &Value)) {
    assert_eq!(ANSWERS.len(), CALLS.len());
    for answer in ANSWERS.iter() {
        check(&answer.text, &answer.value);
    }
}

/// The text that the document's own function returns: indentation 2, sorted keys, no ASCII escapes, separators
/// `,` and `: `.
fn formatted(value: &Value, depth: usize) -> String {
    let (outer, inner) = ("  ".repeat(depth), "  ".repeat(depth + 1));
    let lines = |lines: Vec<String>, open: char, close: char| match lines.is_empty() {
        true => format!("{open}{close}"),
        false => format!("{open}\n{inner}{}\n{outer}{close}", lines.join(&format!(",\n{inner}"))),
    };
    match value {
        Value::Array(items) => lines(items.iter().map(|item| formatted(item, depth + 1)).collect(), '[', ']'),
        Value::Object(entries) => {
            let mut keys: Vec<&String> = entries.keys().collect();
            keys.sort();
            let entry = |key: &String| format!("{}: {}", json!(key), formatted(&entries[key], depth + 1));
            lines(keys.into_iter().map(entry).collect(), '{', '}')
        }
        scalar => scalar.to_string(),
    }
}

fn each_object(value: &Value, check: &dyn Fn(&Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_object(item, check)),
        Value::Object(entries) => {
            check(entries);
            entries.values().for_each(|entry| each_object(entry, check));
        }
        _ => {}
    }
}

const KEYS: [&str; 6] = ["success", "timestamp", "command", "data", "error", "metadata"];

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Format validation",
        rows: &[
            works(
                69,
                "Answers are indented by two spaces",
                "Every answer is the text that the document's function returns",
                || {
                    every_answer(|text, value| assert_eq!(text.trim_end(), formatted(value, 0)));
                },
            ),
            works(
                70,
                "Keys are sorted",
                "The keys of every object of every answer, in the order of the text",
                || {
                    every_answer(|_, value| {
                        each_object(value, &|entries| assert!(entries.keys().is_sorted(), "{entries:?}"));
                    });
                },
            ),
            works(
                71,
                "UTF-8 is not escaped",
                "A name with umlauts is in the text as it is in the file",
                || {
                    let listed = ANSWERS.iter().find(|answer| answer.args[0] == "cloud").unwrap();
                    assert!(listed.text.contains("\"Größe ✓\""), "{}", listed.text);
                    every_answer(|text, _| assert!(!text.contains("\\u00"), "{text}"));
                },
            ),
            works(
                72,
                "The separators are a comma and a colon with a space",
                "No line of an answer ends in a space, and a space follows every colon after a key",
                || {
                    every_answer(|text, _| {
                        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
                        let keys = text.lines().filter(|line| line.trim_start().starts_with('"'));
                        assert!(
                            keys.filter(|line| line.contains("\":")).all(|line| line.contains("\": ")),
                            "{text}"
                        );
                    });
                },
            ),
            works(
                73,
                "`validate_json_response` accepts every answer",
                "The six keys, a boolean `success` and a `timestamp` in ISO 8601",
                || {
                    every_answer(|_, value| {
                        for key in KEYS {
                            at(value, &format!("/{key}"));
                        }
                        assert!(value["success"].is_boolean(), "{value}");
                        text(value, "/timestamp").parse::<Timestamp>().unwrap();
                    });
                },
            ),
        ],
    },
    Section {
        heading: "Migration examples",
        rows: &[works(
            74,
            "An answer about one thing has it under its name in `data`, with snake_case keys",
            "`local status` has the object `snapshot`, `error` null and a time with a zone; no key has capital letters",
            || {
                let status = ANSWERS.iter().find(|answer| answer.args == ["local", "status"]).unwrap();
                equals(&status.value, "/success", true);
                equals(&status.value, "/error", Value::Null);
                time(&status.value, "/timestamp");
                object(&status.value, "/data/snapshot/summary");
                absent(&status.value, "/status");
                let is_snake =
                    |key: &String| !key.contains(|letter: char| letter.is_uppercase() || letter == '-');
                each_object(&status.value, &|entries| assert!(entries.keys().all(is_snake), "{entries:?}"));
            },
        )],
    },
    Section {
        heading: "Testing JSON output",
        rows: &[
            works(
                75,
                "Every answer validates against the document's JSON Schema",
                "All answers, failures included",
                || {
                    every_answer(|_, value| {
                        let schema = json!({
                            "type": "object",
                            "required": KEYS,
                            "properties": {
                                "success": {"type": "boolean"},
                                "timestamp": {"type": "string", "format": "date-time"},
                                "command": {"type": "string"},
                                "data": {"type": ["object", "null"]},
                                "error": {"type": ["object", "null"]},
                                "metadata": {"type": "object"}
                            }
                        });
                        let validator =
                            jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
                        assert!(validator.is_valid(value), "{value}");
                    });
                },
            ),
            differs(
                76,
                "`--format json` prints this envelope",
                "On a pipe programs get the CLI envelope, one line; this one is for files and on request",
                "`--format json` prints the CLI envelope; `--envelope standard` and the file of `--output` have this one",
                || {
                    let world = world();
                    let plain = world.run(["version", "--format", "json"]).json();
                    assert!(plain["ok"].is_boolean() && plain.get("success").is_none(), "{plain}");
                    let standard =
                        world.run(["version", "--format", "json", "--envelope", "standard"]).document();
                    equals(&standard, "/success", true);
                    world.run(["version", "--output", "version.json"]);
                    let file = std::fs::read_to_string(world.project().join("version.json")).unwrap();
                    equals(&serde_json::from_str(&file).unwrap(), "/command", "version");
                },
            ),
            works(
                77,
                "`command` is the path of the command in snake_case",
                "`command` of every answer",
                || {
                    for answer in ANSWERS.iter() {
                        let is_name = |word: &&&str| !word.starts_with('-');
                        let path: Vec<&str> = answer.args.iter().take_while(is_name).copied().collect();
                        // The task text of `local exec` is an argument.
                        let name = path.join("_").replace('-', "_");
                        let name = name.strip_suffix("_x").unwrap_or(&name);
                        equals(&answer.value, "/command", name);
                    }
                },
            ),
            works(
                78,
                "`metadata.execution_time` is a number",
                "`execution_time` of every answer is at least 0",
                || {
                    every_answer(|_, value| assert!(number(value, "/metadata/execution_time") >= 0.0));
                },
            ),
        ],
    },
];
