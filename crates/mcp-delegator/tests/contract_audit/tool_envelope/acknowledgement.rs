//! Execution acknowledgements: the answers of the tools that start tasks.

use super::cloud_answer;
use crate::assertions::{absent, boolean, contains, equals, integer, one_of, text, time};
use crate::recorded::{COMPLETED, STATUS};
use crate::row::{Section, differs, works};

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Category 1: Execution Acknowledgment",
        rows: &[
            works(
                51,
                "`_codex_local_run`, `_codex_local_exec` and `_codex_local_resume` acknowledge a task",
                "The answer of each is an accepted task",
                || {
                    for answer in [&COMPLETED.ack, &COMPLETED.background_run, &COMPLETED.resume] {
                        equals(answer, "/tool_category", "execution_ack");
                        equals(answer, "/data/accepted", true);
                    }
                    equals(&COMPLETED.ack, "/tool", "_codex_local_exec");
                    equals(&COMPLETED.background_run, "/tool", "_codex_local_run");
                    equals(&COMPLETED.resume, "/tool", "_codex_local_resume");
                },
            ),
            works(52, "`_codex_cloud_submit` acknowledges a task", "A task of hosted Codex", || {
                equals(cloud_answer("_codex_cloud_submit", "execution_ack"), "/status", "ok");
            }),
            works(
                53,
                "The task id comes at once",
                "`exec` answers with the id while the agent still works",
                || {
                    text(&STATUS.running_ack, "/data/task_id");
                    equals(&STATUS.running_ack, "/data/state", "working");
                },
            ),
            works(54, "The schema id is `codex/v3.6/execution_ack/v1`", "`schema_id` of `exec`", || {
                equals(&COMPLETED.ack, "/schema_id", "codex/v3.6/execution_ack/v1");
            }),
            works(
                55,
                "`meta.queue_position`: 0 means that the task runs",
                "0 for a task that runs, 1 and 2 for the next two",
                || {
                    equals(&STATUS.running_ack, "/meta/queue_position", 0);
                    equals(&STATUS.queued_acks[0], "/meta/queue_position", 1);
                    equals(&STATUS.queued_acks[1], "/meta/queue_position", 2);
                },
            ),
            works(
                56,
                "`meta.estimated_start_ms`: milliseconds until the start",
                "More than 0 for a queued task when the duration of others is known; absent without any history",
                || {
                    // Each counts from its own answer, so that of a later task may be smaller.
                    for ack in &STATUS.queued_acks {
                        assert!(integer(ack, "/meta/estimated_start_ms") > 0, "{ack}");
                    }
                    absent(&COMPLETED.ack, "/meta/estimated_start_ms");
                },
            ),
            works(
                57,
                "`data.task_id` is unique",
                "`T-local-` and 10 characters of Crockford base32, different for each task",
                || {
                    const ALPHABET: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
                    let ids =
                        [&COMPLETED.ack, &COMPLETED.background_run].map(|ack| text(ack, "/data/task_id"));
                    assert_ne!(ids[0], ids[1]);
                    let digits = ids[0].strip_prefix("T-local-").unwrap();
                    assert!(digits.len() == 10 && digits.bytes().all(|byte| ALPHABET.contains(&byte)));
                },
            ),
            works(
                58,
                "`data.thread_id` is the thread of the agent",
                "The thread that the agent reports, also in `resume` of its task; absent while the task is queued",
                || {
                    let thread = text(&COMPLETED.ack, "/data/thread_id");
                    equals(&COMPLETED.wait, "/data/metadata/thread_info/thread_id", thread);
                    equals(&COMPLETED.resume, "/data/thread_id", thread);
                    absent(&STATUS.queued_acks[0], "/data/thread_id");
                },
            ),
            works(
                59,
                "`data.accepted` says that the task will run",
                "true for running and queued tasks",
                || {
                    equals(&STATUS.running_ack, "/data/accepted", true);
                    equals(&STATUS.queued_acks[1], "/data/accepted", true);
                },
            ),
            works(
                60,
                "`data.capability` is \"background\" or \"foreground\"",
                "\"foreground\" for a `run` that waits for its task, else \"background\"",
                || {
                    equals(&COMPLETED.run, "/data/capability", "foreground");
                    equals(&COMPLETED.background_run, "/data/capability", "background");
                    equals(&COMPLETED.ack, "/data/capability", "background");
                },
            ),
            works(
                61,
                "`data.expected_duration` is a readable estimate",
                "A number of seconds when the duration of another task is known; absent without any history",
                || {
                    contains(&COMPLETED.later_ack, "/data/expected_duration", "second");
                    absent(&COMPLETED.ack, "/data/expected_duration");
                },
            ),
            works(
                62,
                "`data.started_at` is a time",
                "The time when the task was accepted, before that of the answer; also of a queued task",
                || {
                    for ack in [&STATUS.running_ack, &STATUS.queued_acks[0]] {
                        assert!(time(ack, "/data/started_at") <= time(ack, "/ts"), "{ack}");
                    }
                },
            ),
            works(63, "There is no stdout or stderr", "No field of an acknowledgement is one", || {
                for answer in [&COMPLETED.ack, &COMPLETED.background_run, &COMPLETED.resume] {
                    let text = answer.to_string();
                    assert!(!text.contains("stdout") && !text.contains("stderr"), "{answer}");
                    absent(answer, "/data/output");
                }
            }),
            works(64, "`run` may include `thread_id`", "The thread, in background and foreground", || {
                text(&COMPLETED.background_run, "/data/thread_id");
                text(&COMPLETED.run, "/data/thread_id");
            }),
            works(
                65,
                "The capability of a cloud task is always \"background\"",
                "A task of hosted Codex",
                || {
                    equals(
                        cloud_answer("_codex_cloud_submit", "execution_ack"),
                        "/data/capability",
                        "background",
                    );
                },
            ),
        ],
    },
    Section {
        heading: "Conditional Output Reference",
        rows: &[differs(
            158,
            "An acknowledgement has the task id only",
            "A `run` that waits for its task has the result at hand, and saves the caller a call",
            "No result in the answers of `exec`; state, summary and final message in that of a waiting `run`",
            || {
                for key in ["summary", "metadata", "output", "events", "final_message"] {
                    absent(&COMPLETED.ack, &format!("/data/{key}"));
                }
                equals(&COMPLETED.run, "/data/state", "completed");
                equals(&COMPLETED.run, "/data/final_message", "All done.");
                text(&COMPLETED.run, "/data/summary");
            },
        )],
    },
    Section {
        heading: "TypeScript Interfaces",
        rows: &[works(
            192,
            "`ExecutionAckData`: `task_id`, `thread_id?`, `accepted`, `capability`, `expected_duration?`, `started_at`",
            "The types of these fields, in the answers of `exec`, `run` and `resume`",
            || {
                for ack in [&COMPLETED.ack, &COMPLETED.later_ack, &COMPLETED.run, &COMPLETED.resume] {
                    text(ack, "/data/task_id");
                    // A call that does not wait for the task has it only if the agent announces it in time.
                    if ack["data"]["capability"] == "foreground" || ack["data"].get("thread_id").is_some() {
                        text(ack, "/data/thread_id");
                    }
                    boolean(ack, "/data/accepted");
                    one_of(ack, "/data/capability", &["background", "foreground"]);
                    time(ack, "/data/started_at");
                }
                text(&COMPLETED.later_ack, "/data/expected_duration");
            },
        )],
    },
];
