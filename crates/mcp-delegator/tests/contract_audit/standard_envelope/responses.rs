//! Statements about responses.

use serde_json::{Value, json};

use crate::assertions::{at, boolean, contains, equals, integer, list, number, object, text, time};
use crate::recorded::{STANDARD_ANSWERS, UNKNOWN_TASK};
use crate::row::{Section, differs, not_testable, works};

#[track_caller]
fn every_success(check: fn(&Value)) {
    STANDARD_ANSWERS.successes().into_iter().for_each(check);
}

#[track_caller]
fn every_failure(check: fn(&Value)) {
    STANDARD_ANSWERS.failures().into_iter().for_each(check);
}

/// The item of a target in the partial answer.
fn item(success: bool) -> &'static Value {
    let results = list(&STANDARD_ANSWERS.partial, "/data/results");
    results.iter().find(|item| item["success"] == success).unwrap()
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "1. Root structure",
        rows: &[
            works(1, "A success has `success: true`", "`success` of every success", || {
                every_success(|answer| equals(answer, "/success", true));
            }),
            works(2, "A success has a `timestamp`", "It is a time", || {
                every_success(|answer| {
                    time(answer, "/timestamp");
                });
            }),
            works(3, "A success has the `command`", "Its name with underscores", || {
                equals(&STANDARD_ANSWERS.wait, "/command", "local_wait");
                equals(&STANDARD_ANSWERS.dry_run, "/command", "cleanup_registry");
            }),
            works(4, "A success has `data`", "It is an object", || {
                every_success(|answer| {
                    object(answer, "/data");
                });
            }),
            works(5, "A success has `error: null`", "`error` of every success", || {
                every_success(|answer| equals(answer, "/error", Value::Null));
            }),
            works(6, "A success has `metadata`", "It is an object, and there is no other key", || {
                every_success(|answer| {
                    object(answer, "/metadata");
                    assert_eq!(object(answer, "").len(), 6, "{answer}");
                });
            }),
            works(7, "`metadata.version`", "The version of the program", || {
                every_success(|answer| equals(answer, "/metadata/version", "3.6.0"));
            }),
            works(8, "`metadata.execution_time`", "A number of seconds", || {
                every_success(|answer| assert!(number(answer, "/metadata/execution_time") >= 0.0));
            }),
            works(9, "`metadata.warnings`", "A list, also in failures", || {
                every_success(|answer| {
                    list(answer, "/metadata/warnings");
                });
                every_failure(|answer| {
                    list(answer, "/metadata/warnings");
                });
            }),
            works(10, "A failure has `success: false` and `data: null`", "Both in every failure", || {
                every_failure(|answer| {
                    equals(answer, "/success", false);
                    equals(answer, "/data", Value::Null);
                });
            }),
            works(
                11,
                "`error.type`",
                "The type of each failure; its code has the category of the type",
                || {
                    let found: Vec<&str> = STANDARD_ANSWERS
                        .failures()
                        .map(|answer| {
                            let kind = text(answer, "/error/type");
                            let category =
                                kind.strip_suffix("Error").unwrap().replace("uration", "").to_uppercase();
                            contains(answer, "/error/code", &format!("E_{category}_"));
                            kind
                        })
                        .to_vec();
                    let expected = [
                        "ValidationError",
                        "ValidationError",
                        "ConfigurationError",
                        "NotFoundError",
                        "NotFoundError",
                        "ValidationError",
                        "ConflictError",
                    ];
                    assert_eq!(found, expected);
                },
            ),
            works(
                12,
                "`error.message`",
                "It names the input, the task, the schema or the environment",
                || {
                    let named = ["mode", "--brightness", "zero", UNKNOWN_TASK, "nope", "frobnicate", "site"];
                    for (answer, name) in STANDARD_ANSWERS.failures().into_iter().zip(named) {
                        contains(answer, "/error/message", name);
                    }
                },
            ),
            works(13, "`error.details`", "An object with the kind of the error", || {
                let found = STANDARD_ANSWERS.failures().map(|answer| text(answer, "/error/details/kind"));
                let expected = ["usage", "usage", "config", "not_found", "not_found", "usage", "conflict"];
                assert_eq!(found, expected);
            }),
            works(14, "`details.field`", "The input, the flag and the configuration key", || {
                equals(&STANDARD_ANSWERS.bad_mode, "/error/details/field", "mode");
                equals(&STANDARD_ANSWERS.bad_flag, "/error/details/field", "--brightness");
                equals(&STANDARD_ANSWERS.bad_config, "/error/details/field", "max_concurrent");
            }),
            works(
                15,
                "`details.value`",
                "The refused value of an input, a flag and the configuration",
                || {
                    equals(&STANDARD_ANSWERS.bad_mode, "/error/details/value", "wild");
                    equals(&STANDARD_ANSWERS.bad_flag, "/error/details/value", "--brightness");
                    equals(&STANDARD_ANSWERS.bad_config, "/error/details/value", "zero");
                },
            ),
            works(
                16,
                "`details.suggestion`",
                "The permitted values, and what to change; each error about an input has one",
                || {
                    for answer in &STANDARD_ANSWERS.bad_inputs {
                        text(answer, "/error/details/field");
                        text(answer, "/error/details/suggestion");
                        for problem in list(answer, "/error/details/problems") {
                            text(problem, "/suggestion");
                        }
                    }
                    contains(&STANDARD_ANSWERS.bad_mode, "/error/details/suggestion", "Use one of read-only");
                    contains(&STANDARD_ANSWERS.bad_flag, "/error/details/suggestion", "--help");
                    contains(
                        &STANDARD_ANSWERS.bad_config,
                        "/error/details/suggestion",
                        "Set MCP_DELEGATOR_MAX_CONCURRENT to a whole number",
                    );
                },
            ),
            works(17, "`error.code`", "`E_`, the category and three digits", || {
                every_failure(|answer| {
                    let code = text(answer, "/error/code");
                    assert!(code.starts_with("E_") && code.is_char_boundary(code.len() - 3), "{code}");
                    assert!(code[code.len() - 3..].parse::<u16>().is_ok(), "{code}");
                });
            }),
        ],
    },
    Section {
        heading: "2. Data types",
        rows: &[
            works(19, "Numbers have no quotes", "Counts are JSON numbers", || {
                assert!(integer(&STANDARD_ANSWERS.settings, "/data/total_count") > 7);
            }),
            works(20, "Booleans are `true` and `false`", "`success` of an item", || {
                assert!(boolean(item(true), "/success") && !boolean(item(false), "/success"));
            }),
            works(21, "Null is `null`", "`error` of a success", || {
                equals(&STANDARD_ANSWERS.wait, "/error", Value::Null);
            }),
            works(22, "Times are ISO 8601 with a time zone", "They end with Z", || {
                every_success(|answer| assert!(text(answer, "/timestamp").ends_with('Z')));
            }),
            works(25, "Lists are never null", "The lists of an empty answer", || {
                assert!(list(&STANDARD_ANSWERS.no_environments, "/data/environments").is_empty());
                assert!(list(&STANDARD_ANSWERS.cancelled_nothing, "/data/result/results").is_empty());
            }),
        ],
    },
    Section {
        heading: "3. Field names",
        rows: &[
            differs(
                28,
                "`id`, `uuid`, `name`",
                "A task has `task_id`, as the tool envelope defines",
                "`id` and `name` of an environment, `task_id` of a task",
                || {
                    equals(&STANDARD_ANSWERS.environment_added, "/data/result/environment/id", "site");
                    equals(&STANDARD_ANSWERS.environment_added, "/data/result/environment/name", "Site");
                    contains(&STANDARD_ANSWERS.wait, "/data/task/task_id", "T-local-");
                },
            ),
            works(29, "`created_at`", "The time at which an environment was added", || {
                time(&STANDARD_ANSWERS.environment_added, "/data/result/environment/created_at");
            }),
            differs(
                30,
                "`status`",
                "A task has `state`, as the tool envelope defines",
                "`state` of a task",
                || equals(&STANDARD_ANSWERS.wait, "/data/task/state", "completed"),
            ),
            differs(
                32,
                "`parent_id`, `child_ids`",
                "The names tell which relation it is: an attempt of a group, or a retry of a task",
                "`group_id` of an attempt, `attempts` of a group with their ids, `retry_of` of a retried task",
                || {
                    let (group, attempt) = (&STANDARD_ANSWERS.group, &STANDARD_ANSWERS.attempt);
                    let id = text(attempt, "/data/task/task_id");
                    equals(attempt, "/data/task/group_id", text(group, "/data/group/group_id"));
                    let attempts = list(group, "/data/group/attempts");
                    let numbers: Vec<&Value> = attempts.iter().map(|attempt| &attempt["attempt"]).collect();
                    assert_eq!(numbers, [1, 2]);
                    assert!(attempts.iter().any(|attempt| attempt["task_id"] == id), "{group}");
                    equals(&STANDARD_ANSWERS.retry, "/metadata/retry_of", id);
                },
            ),
        ],
    },
    Section {
        heading: "4. Shapes",
        rows: &[
            works(34, "A list has an array with a plural name", "`settings`, `tasks`", || {
                assert_eq!(list(&STANDARD_ANSWERS.settings, "/data/settings").len(), 7);
                assert_eq!(list(&STANDARD_ANSWERS.several, "/data/tasks").len(), 2);
            }),
            works(35, "A list has `total_count`", "The number of all items", || {
                equals(&STANDARD_ANSWERS.several, "/data/total_count", 2);
            }),
            works(36, "A list has `filtered_count`", "The number of items that match", || {
                equals(&STANDARD_ANSWERS.several, "/data/filtered_count", 2);
            }),
            works(37, "A list has `page`", "The first is 1", || {
                equals(&STANDARD_ANSWERS.settings, "/data/page", 1);
            }),
            works(38, "A list has `page_size`", "The requested or default size, whatever the items", || {
                equals(&STANDARD_ANSWERS.settings, "/data/page_size", 7);
                equals(&STANDARD_ANSWERS.several, "/data/page_size", 1000);
                equals(&STANDARD_ANSWERS.no_environments, "/data/page_size", 1000);
            }),
            works(39, "Several resources have the shape of a list", "A wait for two tasks", || {
                contains(&STANDARD_ANSWERS.several, "/data/tasks/1/task_id", "T-local-");
                assert!(STANDARD_ANSWERS.several["data"].get("task").is_none());
            }),
            works(
                40,
                "One resource is an object with a singular name",
                "The answers about a task, its log, a group and the notifications have one key, `task`, `log`, `group` and \
                 `delivery`",
                || {
                    let answers = &STANDARD_ANSWERS;
                    for (answer, name, field) in [
                        (&answers.wait, "task", "state"),
                        (&answers.log, "log", "task_id"),
                        (&answers.group, "group", "group_id"),
                        (&answers.notifications, "delivery", "channels"),
                    ] {
                        assert!(object(answer, "/data").keys().eq([name]), "{answer}");
                        at(answer, &format!("/data/{name}/{field}"));
                    }
                },
            ),
            works(41, "An action has `action`", "Its name", || {
                equals(&STANDARD_ANSWERS.environment_added, "/data/action", "environment_added");
            }),
            works(42, "An action has `result`", "The environment that was added, with its values", || {
                let added = at(&STANDARD_ANSWERS.environment_added, "/data/result/environment");
                for (field, value) in [("id", "site"), ("repository", "https://h/o/n"), ("tech_stack", "go")]
                {
                    equals(added, &format!("/{field}"), value);
                }
            }),
            works(43, "An action has `duration`", "The seconds of `execution_time`", || {
                let added = &STANDARD_ANSWERS.environment_added;
                assert!(number(added, "/data/duration") > 0.0);
                equals(added, "/data/duration", at(added, "/metadata/execution_time").clone());
            }),
            works(44, "An action has `message`", "What was done, would be done, or that nothing was", || {
                equals(&STANDARD_ANSWERS.environment_added, "/data/message", "site was added");
                contains(&STANDARD_ANSWERS.dry_run, "/data/message", "Would clean 0 stuck tasks");
                equals(&STANDARD_ANSWERS.cancelled_nothing, "/data/message", "No task to cancel");
                let id = text(&STANDARD_ANSWERS.run, "/data/result/task_id");
                contains(&STANDARD_ANSWERS.run, "/data/message", id);
                contains(&STANDARD_ANSWERS.run, "/data/message", "completed");
                let [paused, again] = &STANDARD_ANSWERS.queue_paused;
                contains(paused, "/data/message", "The queue is paused");
                contains(again, "/data/message", "The queue is already paused");
            }),
        ],
    },
    Section {
        heading: "5. Errors",
        rows: &[
            works(45, "ValidationError", "An invalid value", || {
                equals(&STANDARD_ANSWERS.bad_mode, "/error/type", "ValidationError");
            }),
            works(46, "NotFoundError", "An unknown task", || {
                equals(&STANDARD_ANSWERS.unknown_task, "/error/type", "NotFoundError");
            }),
            works(47, "ConflictError", "An environment that exists", || {
                equals(&STANDARD_ANSWERS.environment_exists, "/error/type", "ConflictError");
            }),
            works(50, "ConfigurationError", "An invalid setting", || {
                equals(&STANDARD_ANSWERS.bad_config, "/error/type", "ConfigurationError");
            }),
            works(53, "E_VALIDATION_001", "An unknown command", || {
                equals(&STANDARD_ANSWERS.unknown_command, "/error/code", "E_VALIDATION_001");
            }),
            works(54, "E_NOTFOUND_001", "An unknown schema", || {
                equals(&STANDARD_ANSWERS.unknown_schema, "/error/code", "E_NOTFOUND_001");
            }),
            works(55, "E_CONFLICT_001", "An environment that exists", || {
                equals(&STANDARD_ANSWERS.environment_exists, "/error/code", "E_CONFLICT_001");
            }),
            works(58, "E_CONFIG_001", "An invalid setting", || {
                equals(&STANDARD_ANSWERS.bad_config, "/error/code", "E_CONFIG_001");
            }),
            not_testable(60, "E_INTERNAL_001", "Only a bug in the program provokes it"),
        ],
    },
    Section {
        heading: "6. Special cases",
        rows: &[
            works(61, "An empty list is an empty array with `total_count: 0`", "Both", || {
                equals(&STANDARD_ANSWERS.no_environments, "/data/environments", json!([]));
                equals(&STANDARD_ANSWERS.no_environments, "/data/total_count", 0);
            }),
            works(62, "An empty list has a `message`", "Its text", || {
                equals(&STANDARD_ANSWERS.no_environments, "/data/message", "No environments found");
            }),
            works(63, "Partial success: `total_operations`", "All three items", || {
                equals(&STANDARD_ANSWERS.partial, "/data/total_operations", 3);
            }),
            works(64, "Partial success: `successful`", "The running task", || {
                equals(&STANDARD_ANSWERS.partial, "/data/successful", 1);
            }),
            works(65, "Partial success: `failed`", "The ended and the unknown task", || {
                equals(&STANDARD_ANSWERS.partial, "/data/failed", 2);
            }),
            works(66, "Partial success: `partial_success`", "It is true, and so is `success`", || {
                equals(&STANDARD_ANSWERS.partial, "/data/partial_success", true);
                equals(&STANDARD_ANSWERS.partial, "/success", true);
            }),
            works(67, "`results`: target, success, and result or error", "Every item", || {
                equals(item(true), "/result/state", "cancelled");
                equals(item(false), "/error/code", "WRONG_STATE");
                let last = at(&STANDARD_ANSWERS.partial, "/data/results/2");
                equals(last, "/target", UNKNOWN_TASK);
                equals(last, "/error/code", "TASK_NOT_FOUND");
            }),
            works(
                68,
                "Warnings are objects with `code` and `message`",
                "That of the partial success",
                || {
                    equals(&STANDARD_ANSWERS.partial, "/metadata/warnings/0/code", "W_PARTIAL_001");
                    let message = "Some items failed; the others succeeded.";
                    equals(&STANDARD_ANSWERS.partial, "/metadata/warnings/0/message", message);
                },
            ),
        ],
    },
];
