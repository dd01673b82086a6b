//! Status snapshots: running, queued and recently completed tasks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cloud_answer;
use crate::assertions::{absent, at, equals, integer, list, object, text, time};
use crate::recorded::{COMPLETED_COUNT, MANY, MANY_TASKS, OVERFULL, STATUS};
use crate::row::{Section, differs, works};

/// The names of all fields in an answer.
fn field_names<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.push(name);
                field_names(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| field_names(value, found)),
        _ => {}
    }
}

/// No snapshot has a field of one of these names.
#[track_caller]
fn no_field(names: &[&str]) {
    for status in [&STATUS.empty, &STATUS.idle, &STATUS.full] {
        let mut found = Vec::new();
        field_names(status, &mut found);
        assert!(found.contains(&"summary") && !found.iter().any(|name| names.contains(name)), "{found:?}");
    }
}

/// A list has all tasks, and in a smaller answer the first ones and the number of the others.
#[track_caller]
fn is_listed_as_far_as_it_fits(name: &str, state: &str) {
    let (all, truncated) = (&MANY_TASKS.status, &MANY_TASKS.truncated);
    assert_eq!(list(all, &format!("/data/{name}")).len(), MANY);
    absent(all, "/data/not_listed");
    let listed = list(truncated, &format!("/data/{name}")).len();
    assert!(listed < MANY, "{listed}");
    equals(truncated, &format!("/data/not_listed/{state}_count"), MANY - listed);
    equals(truncated, &format!("/data/summary/{state}"), MANY);
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Category 3: Status Snapshot",
        rows: &[
            works(
                96,
                "`_codex_local_status` reports on tasks",
                "`tool` and `tool_category` of the answer",
                || {
                    equals(&STATUS.full, "/tool", "_codex_local_status");
                    equals(&STATUS.full, "/tool_category", "status_snapshot");
                },
            ),
            works(97, "`_codex_cloud_status` reports on tasks", "A task of hosted Codex", || {
                equals(cloud_answer("_codex_cloud_status", "status_snapshot"), "/status", "ok");
            }),
            works(
                98,
                "The call does not block, and has no output",
                "It answers while tasks run, without a field for output",
                || {
                    equals(&STATUS.full, "/data/summary/running", 2);
                    no_field(&["output"]);
                },
            ),
            works(99, "The schema id is `codex/v3.6/status_snapshot/v1`", "`schema_id` of `status`", || {
                equals(&STATUS.full, "/schema_id", "codex/v3.6/status_snapshot/v1");
            }),
            works(
                100,
                "`meta.snapshot_ts` is when the snapshot was taken",
                "A time after the start of the running tasks, and before that of the answer",
                || {
                    let taken = time(&STATUS.full, "/meta/snapshot_ts");
                    assert!(time(&STATUS.full, "/data/tasks/1/started_ts") <= taken);
                    assert!(taken <= time(&STATUS.full, "/ts"));
                },
            ),
            works(101, "`meta.total` counts the tasks", "Running and queued tasks together", || {
                equals(&STATUS.full, "/meta/total", 4);
                equals(&STATUS.empty, "/meta/total", 0);
            }),
            works(102, "`summary.running` counts the running tasks", "2 of 2", || {
                equals(&STATUS.full, "/data/summary/running", 2);
            }),
            works(103, "`summary.queued` counts the queued tasks", "2 of 2", || {
                equals(&STATUS.full, "/data/summary/queued", 2);
            }),
            works(
                104,
                "`summary.recently_completed` counts the tasks that ended",
                "All of the last 24 hours, also those that are not listed",
                || equals(&STATUS.full, "/data/summary/recently_completed", COMPLETED_COUNT),
            ),
            works(
                105,
                "A task in `tasks` has `task_id`, `state` \"working\", `started_ts` and `elapsed_seconds`",
                "Each of the four, of a running task",
                || {
                    let task = at(&STATUS.full, "/data/tasks/1");
                    equals(task, "/task_id", text(&STATUS.running_ack, "/data/task_id"));
                    equals(task, "/state", "working");
                    let age = time(&STATUS.full, "/meta/snapshot_ts").as_second()
                        - time(task, "/started_ts").as_second();
                    let elapsed = integer(task, "/elapsed_seconds");
                    assert!((age - 1..=age + 1).contains(&elapsed), "{elapsed} of {age} s");
                },
            ),
            works(
                106,
                "`progress` has `percent`, `completed_steps`, `total_steps` and `current_activity`",
                "50, 1 of 2 and \"Running cargo test\", of an agent with a plan that runs a command",
                || {
                    let progress = at(&STATUS.full, "/data/tasks/1/progress");
                    equals(progress, "/percent", 50);
                    equals(progress, "/completed_steps", 1);
                    equals(progress, "/total_steps", 2);
                    equals(progress, "/current_activity", "Running cargo test");
                },
            ),
            works(107, "`progress` may be null", "It is null before the agent has written anything", || {
                equals(&STATUS.full, "/data/tasks/0/progress", Value::Null);
            }),
            works(
                108,
                "A task in `queue` has `task_id` and `position`, from 0",
                "Both queued tasks, in their order",
                || {
                    for (position, ack) in STATUS.queued_acks.iter().enumerate() {
                        let queued = at(&STATUS.full, &format!("/data/queue/{position}"));
                        equals(queued, "/task_id", text(ack, "/data/task_id"));
                        equals(queued, "/position", position);
                    }
                },
            ),
            works(
                109,
                "A task in `queue` has `estimated_start_ms`",
                "When the duration of other tasks is known: more than 0, and not before that of the task in front",
                || {
                    let start =
                        |place| integer(&STATUS.full, &format!("/data/queue/{place}/estimated_start_ms"));
                    assert!(start(0) > 0 && start(0) <= start(1), "{} and {}", start(0), start(1));
                },
            ),
            works(
                110,
                "A task in `recently_completed` has `task_id`, `state`, `duration_seconds` and `completed_ts`",
                "Each of the four, of every task listed",
                || {
                    for task in list(&STATUS.full, "/data/recently_completed") {
                        text(task, "/task_id");
                        equals(task, "/state", "completed");
                        assert!(integer(task, "/duration_seconds") >= 0);
                        time(task, "/completed_ts");
                    }
                },
            ),
        ],
    },
    Section {
        heading: "Conditional Output Rules",
        rows: &[
            works(111, "`summary` is always there", "Also before the first task", || {
                let expected = json!({"running": 0, "queued": 0, "recently_completed": 0});
                equals(&STATUS.empty, "/data/summary", expected);
            }),
            works(
                112,
                "`tasks` is there only if tasks run",
                "Absent before the first task and after the last",
                || {
                    absent(&STATUS.empty, "/data/tasks");
                    absent(&STATUS.idle, "/data/tasks");
                    assert_eq!(list(&STATUS.full, "/data/tasks").len(), 2);
                },
            ),
            works(113, "`queue` is there only if tasks are queued", "Absent without queued tasks", || {
                absent(&STATUS.empty, "/data/queue");
                absent(&STATUS.idle, "/data/queue");
                assert_eq!(list(&STATUS.full, "/data/queue").len(), 2);
            }),
            works(
                114,
                "`recently_completed` is there only if tasks have ended",
                "Absent before the first task, there after it",
                || {
                    absent(&STATUS.empty, "/data/recently_completed");
                    assert!(!list(&STATUS.idle, "/data/recently_completed").is_empty());
                },
            ),
            differs(
                115,
                "`tasks` shows all running tasks, without a limit",
                "Clients cut off MCP answers of more than about 50,000 characters",
                "52 of 52; in an answer of 8,192 bytes fewer, `not_listed` counts the others, and `summary` all",
                || is_listed_as_far_as_it_fits("tasks", "running"),
            ),
            differs(
                116,
                "`queue` shows all queued tasks, without a limit",
                "Clients cut off MCP answers of more than about 50,000 characters",
                "52 of 52, fewer in 8,192 bytes; of 452 over MCP as many as fit into 48,000 characters, and the cursors \
                 lead to each of them once",
                || {
                    is_listed_as_far_as_it_fits("queue", "queued");
                    let first = &MANY_TASKS.pages[0];
                    equals(first, "/data/summary/queued", MANY + OVERFULL);
                    let listed = list(first, "/data/queue").len();
                    equals(first, "/data/not_listed/queued_count", MANY + OVERFULL - listed);
                    assert!(MANY_TASKS.pages.iter().all(|page| page.to_string().chars().count() <= 48_000));
                    let queued =
                        MANY_TASKS.pages.iter().filter_map(|page| page["data"]["queue"].as_array()).flatten();
                    let ids: Vec<&str> = queued.map(|task| text(task, "/task_id")).collect();
                    assert_eq!(ids.len(), MANY + OVERFULL);
                    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
                },
            ),
            works(
                117,
                "`recently_completed` shows 5 tasks, or as many as `limit`",
                "5 of 7 by default, 6 with `limit` 6",
                || {
                    assert_eq!(list(&STATUS.full, "/data/recently_completed").len(), 5);
                    assert_eq!(list(&STATUS.limited, "/data/recently_completed").len(), 6);
                },
            ),
        ],
    },
    Section {
        heading: "Notes on status snapshots",
        rows: &[
            works(118, "There is no stdout or stderr", "No snapshot has a field of that name", || {
                no_field(&["stdout", "stderr"]);
            }),
            works(119, "There is no full output", "A task has no lines of output without `verbose`", || {
                no_field(&["output", "events", "last_lines"]);
                assert!(!object(&STATUS.full, "/data/tasks/1").is_empty());
            }),
            works(
                120,
                "`verbose` adds `last_lines`, at most 5 per task",
                "The last 5 lines of an agent that has written more",
                || {
                    let lines = list(&STATUS.verbose, "/data/tasks/1/last_lines");
                    assert_eq!(lines.len(), 5, "{lines:?}");
                    assert!(lines[4].as_str().unwrap().contains("cargo test"), "{lines:?}");
                },
            ),
        ],
    },
    Section {
        heading: "Conditional Output Reference",
        rows: &[works(
            160,
            "A status snapshot has the summary and the running tasks, with their last 5 lines if `verbose`",
            "The lines of a running task with `verbose`, and none without",
            || {
                assert!(!list(&STATUS.verbose, "/data/tasks/1/last_lines").is_empty());
                absent(&STATUS.full, "/data/tasks/1/last_lines");
            },
        )],
    },
    Section {
        heading: "Truncation Limits",
        rows: &[works(
            166,
            "`recently_completed`: the last 5 by completion time",
            "Five tasks, the newest first; tasks that ended earlier are not listed",
            || {
                let recent = list(&STATUS.full, "/data/recently_completed");
                let ended: Vec<_> = recent.iter().map(|task| time(task, "/completed_ts")).collect();
                assert!(ended.len() == 5 && ended.is_sorted_by(|newer, older| newer >= older), "{ended:?}");
                let sixth = time(&STATUS.limited, "/data/recently_completed/5/completed_ts");
                assert!(sixth <= ended[4], "{sixth}");
            },
        )],
    },
    Section {
        heading: "Example 3: Status Polling",
        rows: &[works(
            209,
            "`data.summary` can be read at once, `data.tasks` if it is there, each with `elapsed_seconds`",
            "The reads of the example, with and without tasks",
            || {
                for status in [&STATUS.empty, &STATUS.full] {
                    let running = integer(status, "/data/summary/running");
                    integer(status, "/data/summary/queued");
                    let tasks = status.pointer("/data/tasks").and_then(Value::as_array);
                    assert_eq!(tasks.map_or(0, Vec::len) as i64, running);
                    for task in tasks.into_iter().flatten() {
                        text(task, "/task_id");
                        integer(task, "/elapsed_seconds");
                    }
                }
            },
        )],
    },
];
