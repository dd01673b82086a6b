//! Values and names of fields.

use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::assertions::{at, boolean, equals, integer, object, text};
use crate::recorded::STANDARD_ANSWERS;
use crate::row::{Section, differs, works};

/// A task that adds a file, in the standard envelope.
fn changed_file() -> Value {
    let steps = successful_turn(&[json!({"write_file": {"path": "new.txt", "text": "x"}})]);
    Stage::with_script(PROGRAM, steps).run_json(&["local", "run", "x", "--envelope", "standard"])
}

/// Asserts that all names of fields in an answer are in `snake_case`.
#[track_caller]
fn snake_case(value: &Value) {
    let is_snake = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            assert!(name.chars().all(is_snake), "{name}");
            snake_case(value);
        }),
        Value::Array(values) => values.iter().for_each(snake_case),
        _ => {}
    }
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "2. Data types",
        rows: &[
            works(18, "Strings are UTF-8", "A name with umlauts, not escaped", || {
                let stage = Stage::with_shell_agent(PROGRAM, "");
                let add = ["env", "add", "site", "--name", "Größe", "--repo-url", "https://h/o/n"];
                let run = stage.world.run([&add[..], &["--stack", "go", "--envelope", "standard"]].concat());
                assert!(run.stdout.contains("\"Größe\""), "{run:?}");
            }),
            differs(
                23,
                "Durations are seconds as a float",
                "The tool envelope defines integers for the durations of tasks",
                "`execution_time` and `duration` of an action are floats; `duration` of a task is an integer",
                || {
                    let added = &STANDARD_ANSWERS.environment_added;
                    assert!(at(added, "/metadata/execution_time").is_f64(), "{added}");
                    assert!(at(added, "/data/duration").is_f64(), "{added}");
                    integer(&STANDARD_ANSWERS.wait, "/data/task/metadata/duration");
                },
            ),
            differs(
                24,
                "Paths are absolute",
                "The tool envelope lists files relative to the directory of the task",
                "`working_dir` of a task is absolute; its files are relative to it",
                || {
                    let answer = changed_file();
                    assert!(text(&answer, "/data/result/working_dir").starts_with('/'), "{answer}");
                    let added = "/data/result/metadata/file_operations/added_files";
                    equals(&answer, added, json!(["new.txt"]));
                },
            ),
            differs(
                26,
                "Required objects are never null",
                "Null means that something is unknown or did not happen, as the tool envelope shows",
                "`metadata` of a task is an object; its `error_context` is null when there was no error",
                || {
                    object(&STANDARD_ANSWERS.wait, "/data/task/metadata");
                    equals(&STANDARD_ANSWERS.wait, "/data/task/metadata/error_context", Value::Null);
                },
            ),
        ],
    },
    Section {
        heading: "3. Field names",
        rows: &[
            works(27, "Names are in `snake_case`", "All names in successes and failures", || {
                STANDARD_ANSWERS.successes().into_iter().for_each(snake_case);
                STANDARD_ANSWERS.failures().into_iter().for_each(snake_case);
            }),
            works(31, "Own booleans are named `is_*`", "`is_paused` of the queue", || {
                let stage = Stage::with_shell_agent(PROGRAM, "");
                let answer = stage.run_json(&["queue", "pause", "--envelope", "standard"]);
                assert!(boolean(&answer, "/data/result/is_paused"), "{answer}");
            }),
            works(
                33,
                "Own counts are named `*_count`",
                "`total_count` of a list, `queued_count` of the queue",
                || {
                    assert!(integer(&STANDARD_ANSWERS.settings, "/data/total_count") > 0);
                    let stage = Stage::with_shell_agent(PROGRAM, "");
                    let answer = stage.run_json(&["queue", "pause", "--envelope", "standard"]);
                    equals(&answer, "/data/result/queued_count", 0);
                    equals(&answer, "/data/result/running_count", 0);
                },
            ),
        ],
    },
];
