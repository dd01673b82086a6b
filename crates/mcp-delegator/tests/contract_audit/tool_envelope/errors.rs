//! Errors: their fields, their codes, and the timeout.

use serde_json::{Value, json};

use crate::assertions::{absent, at, boolean, contains, equals, integer, list, object, text};
use crate::recorded::{CLOUD, FAILED, REFUSALS, TIMED_OUT, stage_with_agent};
use crate::row::{Section, differs, not_testable, works};

/// One error of each code.
fn errors() -> [(&'static str, &'static Value); 6] {
    [
        ("TIMEOUT", &TIMED_OUT.idle_run),
        ("VALIDATION", &REFUSALS.invalid_mode),
        ("TOOL_ERROR", &FAILED.run),
        ("NOT_FOUND", &REFUSALS.unknown_task),
        ("UNSUPPORTED", &CLOUD["_codex_cloud_cancel"]),
        ("INTERNAL", &REFUSALS.status_without_disk),
    ]
}

#[track_caller]
fn is_error(answer: &Value, code: &str, retryable: bool) {
    equals(answer, "/status", "error");
    equals(answer, "/error/code", code);
    equals(answer, "/error/retryable", retryable);
}

/// The value of a setting without configuration.
#[track_caller]
fn default_setting(key: &str) -> Value {
    let shown = stage_with_agent(&[]).run_json(&["config", "show"]);
    let setting = list(&shown, "/data/settings").iter().find(|setting| setting["key"] == key);
    let setting = setting.unwrap_or_else(|| panic!("no setting {key}"));
    equals(setting, "/source", "default");
    setting["value"].clone()
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Error Object Structure",
        rows: &[
            works(
                18,
                "`error.code` is TIMEOUT, VALIDATION, TOOL_ERROR, NOT_FOUND, UNSUPPORTED or INTERNAL",
                "Each of the six codes, in an answer to a call that causes it",
                || errors().into_iter().for_each(|(code, answer)| equals(answer, "/error/code", code)),
            ),
            works(
                19,
                "`error.message` is a readable text",
                "A sentence in an error of each code, four of them word for word",
                || {
                    errors().into_iter().for_each(|(_, answer)| {
                        assert!(text(answer, "/error/message").contains(' '), "{answer}");
                    });
                    for (answer, sentence) in [
                        (&TIMED_OUT.idle_run, "Task exceeded idle timeout (1 second with no output)."),
                        (&REFUSALS.invalid_mode, "mode: must be one of read-only"),
                        (&FAILED.run, "The agent reported an error."),
                        (&REFUSALS.unknown_task, "There is no task T-local-0000000000."),
                    ] {
                        contains(answer, "/error/message", sentence);
                    }
                },
            ),
            works(
                20,
                "`details.exit_code` is that of the agent",
                "1, for an agent that exits with 1",
                || {
                    equals(&FAILED.run, "/error/details/exit_code", 1);
                },
            ),
            works(
                21,
                "`details.stderr_tail` is the end of what the agent wrote to stderr",
                "It ends with the last line, and has 1,024 bytes of a longer stderr",
                || {
                    let tail = text(&FAILED.run, "/error/details/stderr_tail");
                    assert!(tail.ends_with("\nthe last line on stderr\n"), "{tail}");
                    assert_eq!(tail.len(), 1_024);
                },
            ),
            works(22, "`details.file` is where the error is", "The file in a stack trace", || {
                equals(&FAILED.run, "/error/details/file", "src/crud/workspace.service.ts");
            }),
            works(23, "`details.line` is where the error is", "The line in a stack trace", || {
                equals(&FAILED.run, "/error/details/line", 42);
            }),
            works(24, "`details.column` is where the error is", "The column in a stack trace", || {
                equals(&FAILED.run, "/error/details/column", 15);
            }),
            works(25, "`error.retryable` is a boolean", "A boolean in an error of each code", || {
                errors().into_iter().for_each(|(_, answer)| {
                    boolean(answer, "/error/retryable");
                });
            }),
            works(
                26,
                "`error.duration_ms` is how long the call took",
                "An integer in an error of each code; at least a second after an idle limit of one second",
                || {
                    errors().into_iter().for_each(|(_, answer)| {
                        assert!(integer(answer, "/error/duration_ms") >= 0, "{answer}");
                    });
                    assert!(integer(&TIMED_OUT.idle_run, "/error/duration_ms") >= 1_000);
                },
            ),
        ],
    },
    Section {
        heading: "Error Codes",
        rows: &[
            works(
                27,
                "TIMEOUT: after five minutes without activity",
                "The default of the idle limit is 300 s; a limit of one second causes TIMEOUT",
                || {
                    assert_eq!(default_setting("idle_timeout_sec"), 300);
                    equals(&TIMED_OUT.idle_run, "/error/code", "TIMEOUT");
                },
            ),
            works(
                28,
                "TIMEOUT: after twenty minutes in all",
                "The default of the hard limit is 1200 s; a limit of one second causes TIMEOUT",
                || {
                    assert_eq!(default_setting("hard_timeout_sec"), 1200);
                    equals(&TIMED_OUT.hard_run, "/error/code", "TIMEOUT");
                },
            ),
            works(
                29,
                "TIMEOUT may be retryable",
                "It is not: the task may have had effects, and the same limit would stop it again",
                || {
                    is_error(&TIMED_OUT.idle_run, "TIMEOUT", false);
                    is_error(&TIMED_OUT.hard_run, "TIMEOUT", false);
                },
            ),
            works(
                30,
                "VALIDATION: a bad task text, an invalid mode and so on",
                "A blank task, an unknown mode, and all problems of a call together",
                || {
                    equals(&REFUSALS.blank_task, "/error/details/problems/0/field", "task");
                    equals(&REFUSALS.invalid_mode, "/error/details/problems/0/field", "mode");
                    is_error(&REFUSALS.several_problems, "VALIDATION", false);
                    let problems = list(&REFUSALS.several_problems, "/error/details/problems");
                    let fields: Vec<&str> = problems.iter().map(|problem| text(problem, "/field")).collect();
                    for field in ["tsk", "task", "mode", "working_dir"] {
                        assert!(fields.contains(&field), "{field} is not in {fields:?}");
                    }
                },
            ),
            differs(
                31,
                "VALIDATION is not retryable",
                "A call that comes too early succeeds later without a change",
                "Invalid input is not retryable; `results` of a running task is",
                || {
                    is_error(&REFUSALS.blank_task, "VALIDATION", false);
                    is_error(&REFUSALS.early_results, "VALIDATION", true);
                    equals(&REFUSALS.early_results, "/error/details/kind", "wrong_state");
                },
            ),
            works(
                32,
                "TOOL_ERROR: the agent exits with an error or crashes",
                "An agent that fails its turn, one that exits with 3, and one that is killed (137)",
                || {
                    for (answer, exit_code) in
                        [(&FAILED.run, 1), (&FAILED.run_exit, 3), (&FAILED.run_killed, 137)]
                    {
                        is_error(answer, "TOOL_ERROR", false);
                        equals(answer, "/error/details/exit_code", exit_code);
                    }
                },
            ),
            works(
                33,
                "TOOL_ERROR may be retryable",
                "A rate limit of the model is; an exit after a log line with \"429\" in its time is not",
                || {
                    is_error(&FAILED.run_rate_limited, "TOOL_ERROR", true);
                    equals(&FAILED.run_rate_limited, "/error/details/failure_kind", "rate_limit");
                    is_error(&FAILED.run_after_log_line, "TOOL_ERROR", false);
                    equals(&FAILED.run_after_log_line, "/error/details/failure_kind", "agent_exit");
                },
            ),
            works(
                34,
                "NOT_FOUND: the task does not exist",
                "`results` and `cancel` of an unknown task",
                || {
                    for answer in [&REFUSALS.unknown_task, &REFUSALS.cancel_of_unknown_task] {
                        equals(answer, "/error/code", "NOT_FOUND");
                    }
                },
            ),
            works(
                35,
                "NOT_FOUND: the thread does not exist",
                "`resume` of an unknown thread, which starts nothing",
                || {
                    equals(&REFUSALS.unknown_thread, "/error/code", "NOT_FOUND");
                    equals(&REFUSALS.status, "/meta/total", 0);
                    equals(&REFUSALS.status, "/data/summary/recently_completed", 0);
                },
            ),
            works(36, "NOT_FOUND is not retryable", "Of an unknown task and an unknown thread", || {
                is_error(&REFUSALS.unknown_task, "NOT_FOUND", false);
                is_error(&REFUSALS.unknown_thread, "NOT_FOUND", false);
            }),
            works(
                37,
                "UNSUPPORTED: a feature is not available; not retryable",
                "The cancellation of a task of hosted Codex, and a task when no agent is installed",
                || {
                    is_error(&CLOUD["_codex_cloud_cancel"], "UNSUPPORTED", false);
                    is_error(&REFUSALS.missing_agent, "UNSUPPORTED", false);
                },
            ),
            not_testable(38, "UNSUPPORTED: background tasks on Windows", "there is no build for Windows"),
            works(39, "INTERNAL: an error of the server", "A server that can write no file", || {
                equals(&REFUSALS.status_without_disk, "/error/code", "INTERNAL");
                equals(&REFUSALS.exec_without_disk, "/error/code", "INTERNAL");
            }),
            differs(
                40,
                "INTERNAL is retryable",
                "After an error while a task was started it is unknown whether the task exists",
                "Retryable for a call that only reads, not for one that starts a task",
                || {
                    is_error(&REFUSALS.status_without_disk, "INTERNAL", true);
                    is_error(&REFUSALS.exec_without_disk, "INTERNAL", false);
                },
            ),
        ],
    },
    Section {
        heading: "Timeout Error",
        rows: &[
            differs(
                41,
                "A timeout is the error of the exec tool",
                "`exec` has answered long before; `run` waits for the task, and `wait` and `results` report its state",
                "`run` answers with the error, in the category and with the schema id of an acknowledgement",
                || {
                    equals(&TIMED_OUT.idle_run, "/status", "error");
                    equals(&TIMED_OUT.idle_run, "/tool", "_codex_local_run");
                    equals(&TIMED_OUT.idle_run, "/tool_category", "execution_ack");
                    equals(&TIMED_OUT.idle_run, "/schema_id", "codex/v3.6/execution_ack/v1");
                    equals(&TIMED_OUT.idle_wait, "/data/state", "timeout");
                },
            ),
            differs(
                42,
                "`meta` is empty",
                "Warnings, and that an answer was truncated, concern errors as well",
                "`meta` is `{}` if there is nothing to warn about; of an agent that wrote 200,000 bytes it has the \
                 warning W_TRUNCATION_001, and the sizes",
                || {
                    equals(&TIMED_OUT.idle_run, "/meta", json!({}));
                    equals(&TIMED_OUT.long_run, "/meta/warnings/0/code", "W_TRUNCATION_001");
                    equals(&TIMED_OUT.long_run, "/meta/truncated", true);
                    equals(&TIMED_OUT.long_run, "/meta/max_characters", 48_000);
                    assert!(integer(&TIMED_OUT.long_run, "/meta/original_size") > 65_536);
                },
            ),
            works(
                43,
                "The message names the idle timeout and its length",
                "\"Task exceeded idle timeout (1 second with no output).\", as in the example with another length",
                || {
                    let message = "Task exceeded idle timeout (1 second with no output).";
                    equals(&TIMED_OUT.idle_run, "/error/message", message);
                    equals(&TIMED_OUT.idle_run, "/error/details/limit_seconds", 1);
                },
            ),
            works(44, "`details.timeout_type` is the kind of limit", "\"idle\" and \"hard\"", || {
                equals(&TIMED_OUT.idle_run, "/error/details/timeout_type", "idle");
                equals(&TIMED_OUT.hard_run, "/error/details/timeout_type", "hard");
            }),
            differs(
                45,
                "`details.elapsed_seconds` is five seconds more than the limit",
                "An agent that ends at the first signal needs no time to be killed; the example assumes the longest",
                "The seconds since the start, at least the limit, beside `limit_seconds` and `idle_seconds`",
                || {
                    let elapsed = integer(&TIMED_OUT.idle_run, "/error/details/elapsed_seconds");
                    let idle = integer(&TIMED_OUT.idle_run, "/error/details/idle_seconds");
                    let limit = integer(&TIMED_OUT.idle_run, "/error/details/limit_seconds");
                    assert!(limit <= idle && idle <= elapsed, "{limit}, {idle}, {elapsed}");
                },
            ),
            works(
                46,
                "`partial_results.last_events` are the last events of the agent",
                "The list ends with the agent's last message",
                || {
                    let events = list(&TIMED_OUT.idle_run, "/error/details/partial_results/last_events");
                    let last = events.last().unwrap();
                    equals(last, "/type", "item.completed");
                    equals(last, "/item/text", "Working on it.");
                },
            ),
            differs(
                47,
                "Events have `turnId` and `itemId`",
                "Codex writes no such fields; its events are passed on unchanged",
                "`turn.started` has no other field, and the id of an item is `item.id`",
                || {
                    let events = at(&TIMED_OUT.idle_run, "/error/details/partial_results/last_events");
                    equals(events, "/1", json!({"type": "turn.started"}));
                    equals(events, "/2/item/id", "item_0");
                    absent(events, "/2/itemId");
                },
            ),
            differs(
                48,
                "`partial_results.last_output` is the last 64 KB of stdout and stderr",
                "Clients cut off MCP answers of more than about 50,000 characters",
                "The ends of both streams: 65,536 bytes on the command line, over MCP what fits into 48,000 characters",
                || {
                    let pointer = "/error/details/partial_results/last_output";
                    contains(&TIMED_OUT.idle_run, pointer, "Working on it.");
                    contains(&TIMED_OUT.idle_run, pointer, "the agent's own words");
                    let on_command_line = "/data/metadata/error_context/partial_results/last_output";
                    for (answer, pointer, sizes) in [
                        (&TIMED_OUT.long_cli_results, on_command_line, 65_000..=65_536),
                        (&TIMED_OUT.long_run, pointer, 36_000..=48_000),
                    ] {
                        contains(answer, pointer, "The end of stdout.");
                        let output = text(answer, pointer);
                        assert!(output.ends_with("the end of stderr\n"), "{output}");
                        assert!(sizes.contains(&output.len()), "{} bytes", output.len());
                    }
                    assert!(TIMED_OUT.long_run.to_string().chars().count() <= 48_000);
                },
            ),
            works(49, "A timeout is not retryable", "`retryable` is false", || {
                equals(&TIMED_OUT.idle_run, "/error/retryable", false);
            }),
            works(
                50,
                "`duration_ms` is the time in milliseconds",
                "It is at least the limit, and agrees with `elapsed_seconds`",
                || {
                    let duration = integer(&TIMED_OUT.hard_run, "/error/duration_ms");
                    let elapsed = integer(&TIMED_OUT.hard_run, "/error/details/elapsed_seconds");
                    assert!(duration >= 1_000 && duration >= elapsed * 1_000, "{duration}, {elapsed}");
                },
            ),
        ],
    },
    Section {
        heading: "Overview",
        rows: &[works(
            6,
            "Errors are structured, timeouts included",
            "Code, message, details and retryable of each error; kind of limit and partial results of a timeout",
            || {
                for (_, answer) in errors() {
                    let keys: Vec<&String> = object(answer, "/error").keys().collect();
                    assert_eq!(keys, ["code", "message", "details", "retryable", "duration_ms"]);
                }
                object(&TIMED_OUT.idle_run, "/error/details/partial_results");
            },
        )],
    },
    Section {
        heading: "Truncation Limits",
        rows: &[works(
            167,
            "`error.details.stderr_tail`: the last 1 KB",
            "1,024 bytes of a longer stderr",
            || {
                assert_eq!(text(&FAILED.run, "/error/details/stderr_tail").len(), 1_024);
            },
        )],
    },
    Section {
        heading: "Timeout Detection",
        rows: &[
            works(
                188,
                "Idle timeout: code, message, `timeout_type`, `elapsed_seconds`, `partial_results`",
                "All of them, of a task without activity for a second",
                || {
                    is_error(&TIMED_OUT.idle_run, "TIMEOUT", false);
                    contains(&TIMED_OUT.idle_run, "/error/message", "Task exceeded idle timeout");
                    let details = at(&TIMED_OUT.idle_run, "/error/details");
                    equals(details, "/timeout_type", "idle");
                    integer(details, "/elapsed_seconds");
                    list(details, "/partial_results/last_events");
                    text(details, "/partial_results/last_output");
                },
            ),
            works(
                189,
                "Hard timeout: code, message, `timeout_type`, `elapsed_seconds`",
                "All of them, of an active task that takes more than a second",
                || {
                    is_error(&TIMED_OUT.hard_run, "TIMEOUT", false);
                    contains(&TIMED_OUT.hard_run, "/error/message", "Task exceeded hard timeout");
                    equals(&TIMED_OUT.hard_run, "/error/details/timeout_type", "hard");
                    assert!(integer(&TIMED_OUT.hard_run, "/error/details/elapsed_seconds") >= 1);
                },
            ),
        ],
    },
    Section {
        heading: "Example 2: Error Handling",
        rows: &[works(
            208,
            "`status`, `error.code`, `error.message`, `error.retryable`, and `details.partial_results` of a timeout",
            "The reads of the example, of an error of each code",
            || {
                for (code, answer) in errors() {
                    equals(answer, "/status", "error");
                    text(answer, "/error/message");
                    boolean(answer, "/error/retryable");
                    let has_partial_results = answer.pointer("/error/details/partial_results").is_some();
                    assert_eq!(has_partial_results, code == "TIMEOUT", "{answer}");
                }
            },
        )],
    },
];
