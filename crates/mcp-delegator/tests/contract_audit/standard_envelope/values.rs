//! Values and names of fields.

use serde_json::{Value, json};

use crate::assertions::{at, equals, integer, list, object, text};
use crate::recorded::{MESSAGE, STANDARD_ANSWERS, STANDARD_FIELDS};
use crate::row::{Section, differs, works};

/// Booleans whose names the documents define.
/// `value` and `default` are those of a setting, of whatever type it has.
const DEFINED_BOOLEANS: [&str; 8] =
    ["accepted", "default", "dry_run", "included", "partial_success", "success", "truncated", "value"];

/// The fields of all recorded answers, at any depth. Counts by the type of an event have its name as key.
fn fields() -> Vec<(&'static str, &'static Value)> {
    let (answers, mut found) = (&STANDARD_ANSWERS, Vec::new());
    for answer in [&answers.successes()[..], &answers.failures(), &STANDARD_FIELDS.all()].concat() {
        add_fields(answer, &mut found);
    }
    found
}

fn add_fields(value: &'static Value, found: &mut Vec<(&'static str, &'static Value)>) {
    for (name, field) in value.as_object().into_iter().flatten() {
        found.push((name, field));
        if name != "by_type" {
            add_fields(field, found);
        }
    }
    value.as_array().into_iter().flatten().for_each(|item| add_fields(item, found));
}

/// Asserts that a number is written with a fraction.
#[track_caller]
fn is_float(answer: &Value, pointer: &str) {
    assert!(at(answer, pointer).is_f64(), "{pointer} is {}", at(answer, pointer));
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "2. Data types",
        rows: &[
            works(
                18,
                "Strings are UTF-8",
                "A message with characters of up to four bytes, not escaped",
                || {
                    equals(&STANDARD_FIELDS.run, "/data/result/final_message", MESSAGE);
                    assert!(STANDARD_FIELDS.run_text.contains(MESSAGE), "{}", STANDARD_FIELDS.run_text);
                },
            ),
            differs(
                23,
                "Durations are seconds as floats",
                "The fields of the tool envelope keep its names and units",
                "`duration` of an action and `execution_time` are floats; `duration_ms` and the `duration` of a task \
                 are integers",
                || {
                    is_float(&STANDARD_FIELDS.run, "/data/duration");
                    for answer in STANDARD_ANSWERS.successes() {
                        is_float(answer, "/metadata/execution_time");
                    }
                    assert!(integer(&STANDARD_FIELDS.wait, "/metadata/duration_ms") > 0);
                    assert!(integer(&STANDARD_FIELDS.wait, "/data/task/metadata/duration") >= 0);
                },
            ),
            differs(
                24,
                "Paths are absolute",
                "The tool envelope lists files relative to the project, so each task has its absolute `working_dir`",
                "`working_dir` in every answer about a task; a changed file is relative to it",
                || {
                    let (answers, project) = (&STANDARD_FIELDS, STANDARD_FIELDS.project.as_str());
                    assert!(project.starts_with('/'), "{project}");
                    equals(&answers.acknowledgement, "/data/result/working_dir", project);
                    equals(&answers.run, "/data/result/working_dir", project);
                    equals(&answers.wait, "/data/task/working_dir", project);
                    equals(&answers.status, "/data/snapshot/recently_completed/0/working_dir", project);
                    for task in list(&STANDARD_ANSWERS.several, "/data/tasks") {
                        assert!(text(task, "/working_dir").starts_with('/'), "{task}");
                    }
                    equals(
                        &answers.wait,
                        "/data/task/metadata/file_operations/added_files",
                        json!(["docs/new.txt"]),
                    );
                },
            ),
            differs(
                26,
                "Required objects are never null",
                "Null is the answer where nothing is known: an empty object would state that there is something",
                "The objects of every answer exist; without an error `error_context` is null, without a report of \
                 the agent `token_usage`",
                || {
                    for answer in STANDARD_FIELDS.all() {
                        assert!(
                            !object(answer, "/data").is_empty() && !object(answer, "/metadata").is_empty()
                        );
                    }
                    object(&STANDARD_FIELDS.wait, "/data/task/metadata/thread_info/token_usage");
                    equals(&STANDARD_FIELDS.wait, "/data/task/metadata/error_context", Value::Null);
                    equals(
                        &STANDARD_FIELDS.transcript,
                        "/data/transcript/thread_info/token_usage",
                        Value::Null,
                    );
                },
            ),
        ],
    },
    Section {
        heading: "3. Field names",
        rows: &[
            works(27, "Names are in snake_case", "Every field of all recorded answers", || {
                let is_snake_case = |name: &str| {
                    name.starts_with(|first: char| first.is_ascii_lowercase())
                        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                };
                let others: Vec<_> = fields().into_iter().filter(|(name, _)| !is_snake_case(name)).collect();
                assert!(others.is_empty(), "{others:?}");
            }),
            works(
                31,
                "Booleans are `is_*`",
                "`is_paused`; every other boolean is `is_*`, `has_*` or a name that a document defines",
                || {
                    equals(&STANDARD_FIELDS.queue_paused, "/data/result/is_paused", true);
                    let is_named = |name: &str| {
                        name.starts_with("is_")
                            || name.starts_with("has_")
                            || DEFINED_BOOLEANS.contains(&name)
                    };
                    let others: Vec<_> = fields()
                        .into_iter()
                        .filter(|(name, field)| field.is_boolean() && !is_named(name))
                        .collect();
                    assert!(others.is_empty(), "{others:?}");
                },
            ),
            works(33, "Counts are `*_count`", "Counts of a list, of the queue and of a transcript", || {
                equals(&STANDARD_ANSWERS.several, "/data/total_count", 2);
                equals(&STANDARD_FIELDS.queue_paused, "/data/result/queued_count", 0);
                let transcript = at(&STANDARD_FIELDS.transcript, "/data/transcript");
                equals(transcript, "/counts/event_count", 3);
                equals(transcript, "/commands/finished_count", 0);
                equals(transcript, "/mcp_calls/finished_count", 1);
                equals(transcript, "/mcp_calls/failed_count", 1);
            }),
        ],
    },
];
