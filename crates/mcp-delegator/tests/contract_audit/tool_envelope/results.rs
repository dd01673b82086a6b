//! Result sets: everything about a task that has ended.

use serde_json::{Value, json};

use super::cloud_answer;
use super::wait::halves;
use crate::assertions::{absent, at, contains, equals, integer, list, text, time};
use crate::recorded::{COMPLETED, FAILED, LONG_OUTPUT, TIMED_OUT};
use crate::row::{Section, works};

/// The error of the failed task.
fn error_context() -> &'static Value {
    at(&FAILED.results, "/data/metadata/error_context")
}

/// A stream of the task that filled both is truncated to its half of the budget.
#[track_caller]
fn is_truncated_to_32_kb(pointer: &str) {
    let (first, last) = halves(&LONG_OUTPUT.both_streams, pointer);
    let size = text(&LONG_OUTPUT.both_streams, pointer).len();
    assert!(size <= 32_768 && size > 32_000, "{size} bytes");
    assert!(first.len().abs_diff(last.len()) <= 160, "{} and {} bytes", first.len(), last.len());
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Category 4: Result Set",
        rows: &[
            works(
                121,
                "`_codex_local_results` reports a task",
                "`tool` and `tool_category` of the answer",
                || {
                    equals(&COMPLETED.results, "/tool", "_codex_local_results");
                    equals(&COMPLETED.results, "/tool_category", "result_set");
                },
            ),
            works(122, "`_codex_cloud_results` reports a task", "A task of hosted Codex", || {
                equals(cloud_answer("_codex_cloud_results", "result_set"), "/status", "ok");
            }),
            works(123, "The schema id is `codex/v3.6/result_set/v1`", "`schema_id` of `results`", || {
                equals(&COMPLETED.results, "/schema_id", "codex/v3.6/result_set/v1");
            }),
            works(124, "`meta.count` is the number of tasks", "1 for one task", || {
                equals(&COMPLETED.results, "/meta/count", 1);
            }),
            works(
                125,
                "`data.duration_seconds` is how long the task took",
                "The same number of seconds as `metadata.duration`; at least the limit of a task that was stopped",
                || {
                    let duration = integer(&TIMED_OUT.idle_results, "/data/duration_seconds");
                    assert!(duration >= 1);
                    equals(&TIMED_OUT.idle_results, "/data/metadata/duration", duration);
                },
            ),
            works(126, "`data.completed_ts` is when the task ended", "The same time as in `wait`", || {
                time(&COMPLETED.results, "/data/completed_ts");
                let waited = text(&COMPLETED.wait, "/meta/completed_ts");
                equals(&COMPLETED.results, "/data/completed_ts", waited);
            }),
            works(127, "Completed: `metadata.error_context` is null", "It is null", || {
                equals(&COMPLETED.results, "/data/metadata/error_context", Value::Null);
            }),
            works(128, "`metadata.task_status` is the state", "Equal to `data.state`, of two tasks", || {
                equals(&COMPLETED.results, "/data/metadata/task_status", "completed");
                equals(&FAILED.results, "/data/metadata/task_status", "failed");
            }),
            works(
                129,
                "`data.output` is excluded: `included`, `reason`, `truncated`, `max_bytes` 0",
                "`data.output` of a completed task, exactly",
                || {
                    let expected = json!({"included": false, "truncated": false, "max_bytes": 0,
                        "reason": "Output excluded by default (use include_output=true)"});
                    equals(&COMPLETED.results, "/data/output", expected);
                },
            ),
            works(
                130,
                "`data.events` is excluded: `included`, `count`, `reason`",
                "`data.events` of a completed task, with the number of its events",
                || {
                    let count = list(&COMPLETED.results_with_events, "/data/events/items").len();
                    let expected = json!({"included": false, "count": count,
                        "reason": "Events excluded by default (use include_events=true)"});
                    equals(&COMPLETED.results, "/data/events", expected);
                },
            ),
        ],
    },
    Section {
        heading: "With Errors",
        rows: &[
            works(
                131,
                "A failed task: `status` \"ok\" and `state` \"failed\"",
                "Both, of a failed task",
                || {
                    equals(&FAILED.results, "/status", "ok");
                    equals(&FAILED.results, "/data/state", "failed");
                },
            ),
            works(
                132,
                "`data.summary` says why the task failed",
                "\"Failed: \" and the agent's last error",
                || {
                    equals(&FAILED.results, "/data/summary", "Failed: I could not fix it.");
                },
            ),
            works(
                133,
                "Without a changed file `lines_changed` is 0",
                "Empty lists and 0, of a failed task outside of git",
                || {
                    let files = at(&FAILED.results, "/data/metadata/file_operations");
                    for key in ["modified_files", "added_files", "deleted_files"] {
                        equals(files, &format!("/{key}"), json!([]));
                    }
                    equals(files, "/lines_changed", 0);
                },
            ),
            works(
                134,
                "`error_context.error_message` is the error",
                "That of the stack trace in a command's output",
                || {
                    equals(error_context(), "/error_message", "Cannot read property 'name' of null");
                },
            ),
            works(
                135,
                "`error_context.error_type` is its type",
                "\"TypeError\" from the stack trace in a command's output",
                || {
                    equals(error_context(), "/error_type", "TypeError");
                },
            ),
            works(
                136,
                "`error_context.failed_files` lists files",
                "The file of the stack trace in a command's output",
                || {
                    equals(error_context(), "/failed_files", json!(["src/crud/workspace.service.ts"]));
                },
            ),
            works(
                137,
                "`error_context.error_locations` has `file`, `line` and `column`",
                "The one place in the stack trace in a command's output, with that command",
                || {
                    assert_eq!(list(error_context(), "/error_locations").len(), 1);
                    let place = at(error_context(), "/error_locations/0");
                    equals(place, "/file", "src/crud/workspace.service.ts");
                    equals(place, "/line", 42);
                    equals(place, "/column", 15);
                    equals(place, "/command", "PATH=bin:$PATH node src/main.js");
                },
            ),
            works(
                138,
                "`error_context.suggestions` are next steps",
                "The place in the file, with the error",
                || {
                    let place =
                        "Look at src/crud/workspace.service.ts:42: \"Cannot read property 'name' of null\"";
                    equals(error_context(), "/suggestions", json!([place]));
                },
            ),
            works(
                139,
                "The output has `stdout`, `stderr`, `truncated` and `max_bytes` 65536",
                "Both streams of a failed task in full",
                || {
                    let output = at(&FAILED.results, "/data/output");
                    contains(output, "/stdout", "turn.failed");
                    contains(output, "/stderr", "the last line on stderr");
                    equals(output, "/truncated", false);
                    equals(output, "/max_bytes", 65_536);
                },
            ),
        ],
    },
    Section {
        heading: "Output Inclusion Rules",
        rows: &[
            works(
                140,
                "Completed: output is excluded",
                "`included` is false, and there is no stdout",
                || {
                    equals(&COMPLETED.results, "/data/output/included", false);
                    absent(&COMPLETED.results, "/data/output/stdout");
                },
            ),
            works(
                141,
                "Failed: output is always included",
                "`included` is true without a request for it",
                || {
                    equals(&FAILED.results, "/data/output/included", true);
                },
            ),
            works(
                142,
                "Timeout: partial output is always included",
                "`included` is true, with what the agent wrote until then",
                || {
                    equals(&TIMED_OUT.idle_results, "/data/output/included", true);
                    contains(&TIMED_OUT.idle_results, "/data/output/stdout", "Working on it.");
                },
            ),
            works(143, "`include_output` includes the output", "Of a completed task", || {
                equals(&COMPLETED.results_with_output, "/data/output/included", true);
                contains(&COMPLETED.results_with_output, "/data/output/stdout", "turn.completed");
            }),
            works(
                144,
                "`include_events` includes the events",
                "The lines of the agent; an item with two ids has the first one",
                || {
                    let events = list(&COMPLETED.results_with_events, "/data/events/items");
                    equals(&events[0], "/type", "thread.started");
                    let search = events.iter().find(|event| event["item"]["type"] == "web_search").unwrap();
                    equals(search, "/item/id", "item_4");
                },
            ),
            works(
                145,
                "`max_output_bytes` limits the output; 65536 by default",
                "65536 when not given, 4096 when given",
                || {
                    equals(&COMPLETED.results_with_output, "/data/output/max_bytes", 65_536);
                    equals(&LONG_OUTPUT.small, "/data/output/max_bytes", 4_096);
                    let streams = ["/data/output/stdout", "/data/output/stderr"];
                    let size: usize =
                        streams.iter().map(|stream| text(&LONG_OUTPUT.small, stream).len()).sum();
                    assert!(size <= 4_096, "{size}");
                },
            ),
        ],
    },
    Section {
        heading: "Conditional Output Reference",
        rows: &[works(
            161,
            "A result set has metadata and summary; output on an error or with `include_output`; events with \
             `include_events`",
            "Without options, output of a failed task only, and no events",
            || {
                equals(&FAILED.results, "/data/output/included", true);
                equals(&COMPLETED.results, "/data/output/included", false);
                for (answer, included) in [
                    (&FAILED.results, false),
                    (&COMPLETED.results, false),
                    (&COMPLETED.results_with_events, true),
                ] {
                    equals(answer, "/data/events/included", included);
                }
            },
        )],
    },
    Section {
        heading: "Truncation Limits",
        rows: &[
            works(
                163,
                "`output.stdout`: 32768 bytes, the first and the last 16 KB",
                "32,768 bytes in two equal parts, when both streams are longer",
                || is_truncated_to_32_kb("/data/output/stdout"),
            ),
            works(
                164,
                "`output.stderr`: 32768 bytes, the first and the last 16 KB",
                "32,768 bytes in two equal parts, when both streams are longer",
                || is_truncated_to_32_kb("/data/output/stderr"),
            ),
            works(165, "`events`: the last 50", "50 of more than 60, which end with the last one", || {
                let events = at(&LONG_OUTPUT.events, "/data/events");
                assert!(integer(events, "/count") > 60);
                let items = list(events, "/items");
                assert_eq!(items.len(), 50);
                equals(&items[49], "/type", "turn.completed");
            }),
        ],
    },
];
