//! Wait results: the answers about a task that has ended.

use serde_json::{Value, json};

use super::cloud_answer;
use crate::assertions::{absent, at, boolean, contains, equals, integer, list, number, object, text, time};
use crate::recorded::{ADDED_COUNT, CANCELLED, COMPLETED, FAILED, LONG_OUTPUT, PROGRESS, STATUS, TIMED_OUT};
use crate::row::{Section, differs, works};

const TRUNCATED: &str = " [truncated] ";

/// The two halves of a truncated text.
#[track_caller]
pub(super) fn halves<'a>(answer: &'a Value, pointer: &str) -> (&'a str, &'a str) {
    text(answer, pointer).split_once(TRUNCATED).unwrap_or_else(|| panic!("{pointer} is not truncated"))
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Category 2: Wait Result",
        rows: &[
            works(
                66,
                "`_codex_local_wait` waits for a task",
                "`tool` and `tool_category` of the answer",
                || {
                    equals(&COMPLETED.wait, "/tool", "_codex_local_wait");
                    equals(&COMPLETED.wait, "/tool_category", "wait_result");
                },
            ),
            works(67, "`_codex_cloud_wait` waits for a task", "A task of hosted Codex", || {
                equals(cloud_answer("_codex_cloud_wait", "wait_result"), "/status", "ok");
            }),
            differs(
                68,
                "The call blocks until the task has ended",
                "Clients give up on a call after about a minute, so by default it returns after 50 s",
                "The answer has the end of a task that ended after the call; after `timeout_sec` it is \"working\" with \
                 `wait_expired`, and the task continues",
                || {
                    equals(&PROGRESS.answer, "/data/state", "completed");
                    assert!(time(&PROGRESS.answer, "/meta/completed_ts") >= PROGRESS.released);
                    equals(&PROGRESS.expired_wait, "/data/state", "working");
                    equals(&PROGRESS.expired_wait, "/meta/wait_expired", true);
                },
            ),
            works(69, "The schema id is `codex/v3.6/wait_result/v1`", "`schema_id` of `wait`", || {
                equals(&COMPLETED.wait, "/schema_id", "codex/v3.6/wait_result/v1");
            }),
            works(
                70,
                "`meta.started_ts` is when the task started",
                "A time after the acknowledgement",
                || {
                    let accepted = time(&COMPLETED.ack, "/data/started_at");
                    assert!(time(&COMPLETED.wait, "/meta/started_ts") >= accepted);
                },
            ),
            works(71, "`meta.completed_ts` is when the task ended", "A time after the start", || {
                let started = time(&COMPLETED.wait, "/meta/started_ts");
                assert!(time(&COMPLETED.wait, "/meta/completed_ts") >= started);
            }),
            works(
                72,
                "`meta.duration_ms` is the time of the whole execution",
                "`completed_ts` minus `started_ts`, to the millisecond",
                || {
                    for wait in [&COMPLETED.wait, &FAILED.wait, &TIMED_OUT.idle_wait] {
                        let took = time(wait, "/meta/completed_ts").as_millisecond()
                            - time(wait, "/meta/started_ts").as_millisecond();
                        equals(wait, "/meta/duration_ms", took);
                    }
                },
            ),
            works(
                73,
                "`meta.exit_code` is that of the agent",
                "0 of a completed task, 1 of a failed one",
                || {
                    equals(&COMPLETED.wait, "/meta/exit_code", 0);
                    equals(&FAILED.wait, "/meta/exit_code", 1);
                },
            ),
            works(74, "`data.task_id` is the task", "The id in the acknowledgement", || {
                equals(&COMPLETED.wait, "/data/task_id", text(&COMPLETED.ack, "/data/task_id"));
            }),
            differs(
                75,
                "`data.state` is \"completed\", \"failed\", \"cancelled\" or \"timeout\"",
                "A wait that expires tells whether the task runs or waits in the queue",
                "Each of the four, of a task that ended like that; \"working\" or \"queued\" after `timeout_sec`",
                || {
                    equals(&PROGRESS.expired_wait, "/data/state", "working");
                    equals(&STATUS.queued_wait, "/data/state", "queued");
                    equals(&STATUS.queued_wait, "/meta/wait_expired", true);
                    equals(&COMPLETED.wait, "/data/state", "completed");
                    equals(&FAILED.wait, "/data/state", "failed");
                    equals(&CANCELLED.wait, "/data/state", "cancelled");
                    equals(&TIMED_OUT.idle_wait, "/data/state", "timeout");
                },
            ),
            works(
                76,
                "`data.summary` is one readable line",
                "The changes and the tests; of an error with three lines only the first",
                || {
                    let summary = text(&COMPLETED.wait, "/data/summary");
                    assert!(
                        summary.starts_with("Modified 1 file") && summary.contains("47 tests"),
                        "{summary}"
                    );
                    equals(&FAILED.results_of_long_error, "/data/summary", "Failed: First line.");
                },
            ),
            works(
                77,
                "`data.metadata` is the full metadata",
                "It has the duration, the files, the tests and the thread",
                || {
                    let metadata = object(&COMPLETED.wait, "/data/metadata");
                    for key in ["duration", "file_operations", "test_results", "thread_info"] {
                        assert!(metadata.contains_key(key), "{key} is missing in {metadata:?}");
                    }
                },
            ),
            works(
                78,
                "`metadata.duration` is in seconds",
                "An integer, of a task with an idle limit of 1 s",
                || {
                    assert!(integer(&TIMED_OUT.idle_wait, "/data/metadata/duration") >= 1);
                },
            ),
            works(79, "`file_operations.modified_files` lists files", "The file that was modified", || {
                let modified = "/data/metadata/file_operations/modified_files";
                equals(&COMPLETED.wait, modified, json!(["src/api.ts"]));
            }),
            differs(
                80,
                "`file_operations.added_files` lists files",
                "Longer lists do not fit into an answer, and the names of a moved file are both needed",
                "The file that was added; of 2,100 files about 2,000 on the command line and fewer over MCP, with the number \
                 in `summary`; a renamed file is also in `deleted_files`, and `renamed_files` joins the two",
                || {
                    let added = "/data/metadata/file_operations/added_files";
                    equals(&COMPLETED.wait, added, json!(["tests/api.test.ts"]));
                    let files = at(&COMPLETED.many_files_cli, "/data/metadata/file_operations");
                    let listed = list(files, "/added_files");
                    assert!((1_990..=2_000).contains(&listed.len()), "{}", listed.len());
                    let not_listed = usize::try_from(integer(files, "/not_listed_count")).unwrap();
                    // The renamed file counts once, whether it has one name here or two.
                    assert!(
                        (ADDED_COUNT..=ADDED_COUNT + 2).contains(&(listed.len() + not_listed)),
                        "{not_listed}"
                    );
                    equals(files, "/deleted_files", json!(["tests/a.txt"]));
                    equals(files, "/renamed_files", json!([{"from": "tests/a.txt", "to": "tests/b.txt"}]));
                    assert!((100..2_000).contains(&list(&COMPLETED.many_files, added).len()));
                    contains(&COMPLETED.many_files, "/data/summary", "Added 2100 files and renamed 1");
                },
            ),
            works(81, "`file_operations.deleted_files` lists files", "The file that was deleted", || {
                let deleted = "/data/metadata/file_operations/deleted_files";
                equals(&COMPLETED.wait, deleted, json!(["gone.txt"]));
            }),
            differs(
                82,
                "`file_operations.lines_changed` is the number of changed lines",
                "Outside of git the former content of a changed file is not known",
                "5 in git, 2 of an added file outside of git, 0 without a change; a file modified outside of git is not \
                 counted, and `is_lines_changed_exact` is false",
                || {
                    for (answer, lines, is_exact) in [
                        (&COMPLETED.wait, 5, true),
                        (&FAILED.results_added, 2, true),
                        (&FAILED.results_unchanged, 0, true),
                        (&FAILED.results_modified, 0, false),
                        (&FAILED.results_lost, 0, false),
                    ] {
                        let files = at(answer, "/data/metadata/file_operations");
                        equals(files, "/lines_changed", lines);
                        equals(files, "/is_lines_changed_exact", is_exact);
                    }
                },
            ),
            works(
                83,
                "`test_results` has `passed`, `failed`, `skipped` and `failed_tests`",
                "The counts and the names of failed tests that the test command printed",
                || {
                    let results = "/data/metadata/test_results";
                    let passed = json!({"passed": 47, "failed": 0, "skipped": 0, "failed_tests": []});
                    equals(&COMPLETED.wait, results, passed);
                    let failed = json!({"passed": 2, "failed": 1, "skipped": 3,
                        "failed_tests": ["tests/test_api.py::test_name"]});
                    equals(&FAILED.results_tested, results, failed);
                },
            ),
            works(84, "`thread_info.thread_id` is the thread", "The thread in the acknowledgement", || {
                let thread = text(&COMPLETED.ack, "/data/thread_id");
                equals(&COMPLETED.wait, "/data/metadata/thread_info/thread_id", thread);
            }),
            works(
                85,
                "`thread_info.cache_hit_rate` is the cached part of the input",
                "0.93 of 11,160 cached of 12,000 tokens; null without token counts",
                || {
                    let rate = "/data/metadata/thread_info/cache_hit_rate";
                    assert_eq!(number(&COMPLETED.wait, rate), 0.93);
                    equals(&CANCELLED.wait, rate, Value::Null);
                },
            ),
            works(
                86,
                "`thread_info.token_usage` has three counts",
                "`input_tokens`, `cached_input_tokens` and `output_tokens` as the agent reported them",
                || {
                    let usage = at(&COMPLETED.wait, "/data/metadata/thread_info/token_usage");
                    equals(usage, "/input_tokens", 12_000);
                    equals(usage, "/cached_input_tokens", 11_160);
                    equals(usage, "/output_tokens", 3_500);
                },
            ),
            works(
                87,
                "`data.artifacts` lists files with `type`, `ref`, `size` and `sha256`",
                "The two files that exist after the task, with their size and digest",
                || {
                    assert_eq!(list(&COMPLETED.wait, "/data/artifacts").len(), 2);
                    let expected = json!({"type": "file", "ref": "src/api.ts", "size": 12, "sha256":
                        "bc85caa9b61bcf3a54ccfc800e2b0eda6c11fa5df4e0481c896d31cda2462eb2",
                        "attributed_to": "agent"});
                    equals(&COMPLETED.wait, "/data/artifacts/0", expected);
                },
            ),
        ],
    },
    Section {
        heading: "Output Inclusion Policy",
        rows: &[
            works(
                88,
                "Output is excluded by default: `included`, `reason`, `truncated`, `max_bytes` 0",
                "`data.output` of a completed task, exactly",
                || {
                    let expected = json!({"included": false, "truncated": false, "max_bytes": 0,
                        "reason": "Output excluded by default (use include_output=true)"});
                    equals(&COMPLETED.wait, "/data/output", expected);
                },
            ),
            works(
                89,
                "With `include_output`: `stdout`, `stderr`, `truncated`, `max_bytes` 65536",
                "Both streams of a completed task in full",
                || {
                    let output = at(&COMPLETED.wait_with_output, "/data/output");
                    equals(output, "/included", true);
                    assert!(text(output, "/stdout").contains("turn.completed"));
                    equals(output, "/stderr", "a warning of the agent\n");
                    equals(output, "/truncated", false);
                    equals(output, "/max_bytes", 65_536);
                },
            ),
            works(
                90,
                "Output that is too long: the first 32 KB, ` [truncated] `, the last 32 KB, and `original_size`",
                "Two equal halves with the marker between them, 65,536 bytes in all, of a longer stdout",
                || {
                    let output = at(&LONG_OUTPUT.stdout_only, "/data/output");
                    let (first, last) = halves(output, "/stdout");
                    assert!(first.len().abs_diff(last.len()) <= 160, "{} {}", first.len(), last.len());
                    let size = text(output, "/stdout").len();
                    assert!(size <= 65_536 && size > 65_000, "{size}");
                    assert!(
                        first.starts_with("{\"type\":\"thread.started\"") && last.contains("turn.completed")
                    );
                    assert!(boolean(output, "/truncated"));
                    equals(output, "/max_bytes", 65_536);
                    assert!(integer(output, "/original_size") > 250_000);
                },
            ),
            differs(
                91,
                "`max_bytes` is 65536 by default",
                "Clients cut off MCP answers of more than about 50,000 characters",
                "65536, and less when the answer would exceed 48,000 characters",
                || {
                    equals(&COMPLETED.wait_with_output, "/data/output/max_bytes", 65_536);
                    let applied = integer(&LONG_OUTPUT.default, "/data/output/max_bytes");
                    assert!(applied > 40_000 && applied < 48_000, "{applied}");
                    assert!(LONG_OUTPUT.default.to_string().chars().count() <= 48_000);
                },
            ),
        ],
    },
    Section {
        heading: "State Values",
        rows: &[
            differs(
                92,
                "Completed: `metadata.error_context` is absent",
                "The example of the results tool has null, and a field that is always there is simpler to read",
                "It is null",
                || equals(&COMPLETED.wait, "/data/metadata/error_context", Value::Null),
            ),
            works(
                93,
                "Failed: `metadata.error_context` has details",
                "The message of the error that the agent met",
                || {
                    let message = "/data/metadata/error_context/error_message";
                    equals(&FAILED.wait, message, "Cannot read property 'name' of null");
                },
            ),
            differs(
                94,
                "Cancelled: `metadata.error_context` is absent",
                "The example of the results tool has null, and a field that is always there is simpler to read",
                "It is null",
                || equals(&CANCELLED.wait, "/data/metadata/error_context", Value::Null),
            ),
            works(
                95,
                "Timeout: `metadata.error_context` has partial results",
                "`partial_results` with the last events and the last output, in `wait` and `results`",
                || {
                    for answer in [&TIMED_OUT.idle_wait, &TIMED_OUT.idle_results] {
                        let partial = at(answer, "/data/metadata/error_context/partial_results");
                        let last = list(partial, "/last_events").last().unwrap();
                        equals(last, "/item/text", "Working on it.");
                        assert!(text(partial, "/last_output").contains("the agent's own words"));
                    }
                    absent(&FAILED.wait, "/data/metadata/error_context/partial_results");
                },
            ),
        ],
    },
    Section {
        heading: "Overview",
        rows: &[works(
            4,
            "Answers are short: output only where it is needed, and truncated",
            "No output of a completed task; at most 48,000 characters with the output of one that wrote 250,000",
            || {
                absent(&COMPLETED.wait, "/data/output/stdout");
                assert!(COMPLETED.wait.to_string().len() < 4_000);
                let size = LONG_OUTPUT.default.to_string().chars().count();
                assert!(size > 40_000 && size <= 48_000, "{size}");
            },
        )],
    },
    Section {
        heading: "Conditional Output Reference",
        rows: &[works(
            159,
            "A wait result has metadata and summary, output with `include_output`, and never events",
            "`include_events` is refused, because `wait` has no such input",
            || {
                absent(&COMPLETED.wait_with_output, "/data/events");
                equals(&COMPLETED.wait_with_events, "/error/code", "VALIDATION");
                equals(&COMPLETED.wait_with_events, "/error/details/problems/0/field", "include_events");
            },
        )],
    },
    Section {
        heading: "Progress Notifications",
        rows: &[
            works(
                183,
                "Progress comes as MCP notifications, and the result as the answer of the call",
                "A notification arrives before the task ends, and the answer after it",
                || {
                    text(&PROGRESS.first, "/message");
                    equals(&PROGRESS.answer, "/data/state", "completed");
                },
            ),
            works(
                184,
                "Notifications and JSON answers coexist",
                "The answer of a call with notifications has the same form as that of one without",
                || {
                    let keys = |answer: &Value| object(answer, "/data").keys().cloned().collect::<Vec<_>>();
                    for key in keys(&PROGRESS.answer) {
                        assert!(keys(&COMPLETED.wait).contains(&key), "{key}");
                    }
                    equals(&PROGRESS.answer, "/schema_id", "codex/v3.6/wait_result/v1");
                },
            ),
            works(185, "`progressToken` identifies the call", "The token of the caller", || {
                equals(&PROGRESS.first, "/progressToken", PROGRESS.token);
            }),
            differs(
                186,
                "`progress` is a percentage of `total` 100",
                "Without a plan of the agent there is nothing to take a percentage of",
                "No total of 100 before the agent has a plan; 50 of 100 when it has completed one of two steps",
                || {
                    let total = PROGRESS.without_plan.get("total").and_then(Value::as_f64);
                    assert_ne!(total, Some(100.0), "{}", PROGRESS.without_plan);
                    assert!(!text(&PROGRESS.without_plan, "/message").contains('%'));
                    assert_eq!(number(&PROGRESS.with_percentage, "/total"), 100.0);
                    let progress = number(&PROGRESS.with_percentage, "/progress");
                    assert!((50.0..51.0).contains(&progress), "{progress}");
                },
            ),
            works(187, "`message` is a readable text", "It contains the percentage", || {
                text(&PROGRESS.first, "/message");
                contains(&PROGRESS.with_percentage, "/message", "50%");
            }),
        ],
    },
    Section {
        heading: "Metadata Extraction",
        rows: &[works(
            190,
            "The metadata is in `data.metadata` in JSON, and formatted text in Markdown",
            "The same files and tests in both",
            || {
                equals(&COMPLETED.wait, "/data/metadata/test_results/passed", 47);
                for part in ["src/api.ts", "tests/api.test.ts", "gone.txt", "47"] {
                    let markdown = &COMPLETED.wait_markdown;
                    assert!(markdown.contains(part), "{part} is not in {markdown}");
                }
            },
        )],
    },
    Section {
        heading: "TypeScript Interfaces",
        rows: &[works(
            193,
            "`WaitResultData`: `task_id`, `state`, `summary`, `metadata`, `artifacts?`, `output?`",
            "The types of these fields and of those in `artifacts` and `output`",
            || {
                for answer in [&COMPLETED.wait_with_output, &FAILED.wait, &LONG_OUTPUT.stdout_only] {
                    for key in ["task_id", "state", "summary"] {
                        text(answer, &format!("/data/{key}"));
                    }
                    object(answer, "/data/metadata");
                    for artifact in list(answer, "/data/artifacts") {
                        for key in ["type", "ref", "sha256"] {
                            text(artifact, &format!("/{key}"));
                        }
                        integer(artifact, "/size");
                    }
                    let output = at(answer, "/data/output");
                    boolean(output, "/included");
                    text(output, "/stdout");
                    boolean(output, "/truncated");
                    integer(output, "/max_bytes");
                }
                integer(&LONG_OUTPUT.stdout_only, "/data/output/original_size");
            },
        )],
    },
    Section {
        heading: "Example 1: Full Execution Workflow",
        rows: &[
            works(
                205,
                "`exec`, then `wait` with `data.task_id`, gives `data.state` \"completed\"",
                "The two calls of the example",
                || {
                    text(&COMPLETED.ack, "/data/thread_id");
                    equals(&COMPLETED.wait, "/data/task_id", text(&COMPLETED.ack, "/data/task_id"));
                    equals(&COMPLETED.wait, "/data/state", "completed");
                },
            ),
            works(
                206,
                "`metadata.file_operations.modified_files.length` can be read without a check",
                "A list, also of tasks that changed nothing, failed or were cancelled",
                || {
                    for (answer, count) in [(&COMPLETED.wait, 1), (&FAILED.wait, 0), (&CANCELLED.wait, 0)] {
                        let files = list(answer, "/data/metadata/file_operations/modified_files");
                        assert_eq!(files.len(), count);
                    }
                },
            ),
            differs(
                207,
                "`metadata.test_results.passed` can be read without a check",
                "0 would mean that tests ran and none passed; no test ran at all",
                "47 when tests ran; absent when none ran",
                || {
                    equals(&COMPLETED.wait, "/data/metadata/test_results/passed", 47);
                    absent(&FAILED.wait, "/data/metadata/test_results");
                },
            ),
        ],
    },
];
