//! Statements about the types of events and items.

use serde_json::{Value, json};

use crate::assertions::{equals, object};
use crate::row::{Section, works};
use crate::transcripts::{
    EXAMPLE, converted, events, is_copied, is_left_out, item_is_copied, mapped, run_events, summary,
};

fn command_with_status(status: &str) -> String {
    format!(
        r#"{{"type":"item.completed","item":{{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","status":"{status}"}}}}"#
    )
}

fn patch(kind: &str, status: &str) -> String {
    format!(
        r#"{{"type":"item.completed","item":{{"id":"item_0","type":"file_change","changes":[{{"path":"a","kind":"{kind}"}}],"status":"{status}"}}}}"#
    )
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Introduction",
        rows: &[works(
            1,
            "The stream is one JSON object per line",
            "Every line of the normalised example is a JSON object",
            || {
                let events = converted(EXAMPLE);
                assert!(events.len() == 6 && events.iter().all(Value::is_object), "{events:?}");
            },
        )],
    },
    Section {
        heading: "Top-Level Event Envelope",
        rows: &[
            works(
                2,
                "`thread.started` is a top-level event",
                "Such a line is copied byte for byte, also with `--strict`",
                || is_copied(r#"{"type":"thread.started","thread_id":"t"}"#),
            ),
            works(
                3,
                "`turn.started` is a top-level event",
                "Such a line is copied byte for byte, also with `--strict`",
                || is_copied(r#"{"type":"turn.started"}"#),
            ),
            works(
                4,
                "`turn.completed` is a top-level event",
                "Such a line is copied byte for byte, also with `--strict`",
                || {
                    is_copied(
                        r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"output_tokens":3}}"#,
                    )
                },
            ),
            works(
                5,
                "`turn.failed` is a top-level event",
                "Such a line is copied byte for byte, also with `--strict`",
                || is_copied(r#"{"type":"turn.failed","error":{"message":"m"}}"#),
            ),
            works(
                6,
                "`item.started` is a top-level event",
                "Such a line is copied byte for byte, also with `--strict`",
                || {
                    is_copied(
                        r#"{"type":"item.started","item":{"id":"item_0","type":"web_search","query":"q"}}"#,
                    )
                },
            ),
            works(
                7,
                "`item.updated` is a top-level event",
                "Such a line is copied byte for byte, also with `--strict`",
                || {
                    is_copied(
                        r#"{"type":"item.updated","item":{"id":"item_0","type":"todo_list","items":[]}}"#,
                    )
                },
            ),
            works(
                8,
                "`item.completed` is a top-level event",
                "Such a line is copied byte for byte, also with `--strict`",
                || {
                    is_copied(
                        r#"{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"t"}}"#,
                    )
                },
            ),
            works(
                9,
                "`error` is a top-level event",
                "Such a line is copied byte for byte, also with `--strict`",
                || is_copied(r#"{"type":"error","message":"m"}"#),
            ),
            works(
                10,
                "`thread.started` is the first event",
                "It is also the first event of a normalised stream of the idle dialect, which has no threads",
                || {
                    for transcript in [EXAMPLE, "{\"type\":\"agent_message\",\"content\":\"hi\"}\n"] {
                        equals(&converted(transcript)[0], "/type", "thread.started");
                    }
                },
            ),
        ],
    },
    Section {
        heading: "Event Payloads (by `type`)",
        rows: &[
            works(11, "`thread.started` has `thread_id`, a string", "The summary names that thread", || {
                equals(
                    &summary(r#"{"type":"thread.started","thread_id":"t"}"#),
                    "/thread_info/thread_id",
                    "t",
                )
            }),
            works(12, "`turn.started` has no fields", "With `--strict`, a further field is dropped", || {
                equals(
                    &Value::Array(converted(r#"{"type":"turn.started","more":1}"#)),
                    "/0",
                    json!({"type": "turn.started"}),
                )
            }),
            works(13, "`turn.completed` has `usage`", "The summary has its token counts", || {
                let summary = summary(
                    r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"output_tokens":3}}"#,
                );
                equals(&summary, "/state", "completed");
                equals(&summary, "/thread_info/token_usage/output_tokens", 3);
            }),
            works(
                14,
                "`turn.failed` has `error` with `message`",
                "The summary is a failure with that message",
                || {
                    let summary = summary(r#"{"type":"turn.failed","error":{"message":"m"}}"#);
                    equals(&summary, "/state", "failed");
                    equals(&summary, "/error_message", "m");
                },
            ),
            works(15, "`error` has `message`", "The summary counts it as an error that was retried", || {
                equals(&summary(r#"{"type":"error","message":"m"}"#), "/transient_errors/0/message", "m")
            }),
            works(
                16,
                "`item.started`, `item.updated` and `item.completed` have `item`",
                "Such a line without an item is not written",
                || {
                    for event in ["item.started", "item.updated", "item.completed"] {
                        is_left_out(&format!(r#"{{"type":"{event}"}}"#), "unknown");
                    }
                },
            ),
        ],
    },
    Section {
        heading: "ThreadItem",
        rows: &[
            works(
                17,
                "An item is `id` beside the fields of its type",
                "An item of the example has exactly these keys",
                || {
                    let events = converted(EXAMPLE);
                    let keys: Vec<&String> = object(&events[4], "/item").keys().collect();
                    assert_eq!(keys, ["id", "type", "text"]);
                },
            ),
            works(
                18,
                "`id` is `item_N`, unique within the stream, one for each item",
                "Of two ids in an item, as Codex writes them into web searches, `item_N` remains, with and without `--strict`",
                || {
                    let line = r#"{"type":"item.completed","item":{"id":"item_3","type":"web_search","id":"ws_1","query":"q"}}"#;
                    let expected =
                        r#"{"type":"item.completed","item":{"id":"item_3","type":"web_search","query":"q"}}"#;
                    for args in [&["normalize"][..], &["normalize", "--strict"]] {
                        assert_eq!(run_events(args, line).stdout.trim_end(), expected);
                    }
                    let response = run_events(&["normalize", "--format", "json"], line).json();
                    equals(&response, "/data/events/0/item/id", "item_3");
                },
            ),
        ],
    },
    Section {
        heading: "ThreadItemDetails Variants",
        rows: &[
            works(
                19,
                "The type of an item is in `type`, in snake_case",
                "The item types of converted messages are in snake_case",
                || {
                    let events = mapped(&[
                        r#"{"type":"agent_message","message":"m"}"#,
                        r#"{"type":"web_search_end","call_id":"w","query":"q"}"#,
                    ]);
                    equals(&events[0], "/item/type", "agent_message");
                    equals(&events[1], "/item/type", "web_search");
                },
            ),
            works(
                20,
                "`agent_message` has `text`",
                "Such an item is copied byte for byte, also with `--strict`",
                || item_is_copied("item.completed", r#""type":"agent_message","text":"t""#),
            ),
            works(
                21,
                "`reasoning` has `text`",
                "Such an item is copied byte for byte, also with `--strict`",
                || item_is_copied("item.completed", r#""type":"reasoning","text":"t""#),
            ),
            works(
                22,
                "A `command_execution` in progress has `command`, `aggregated_output` and `status`, and no `exit_code`",
                "Such an item is copied byte for byte, also with `--strict`",
                || {
                    item_is_copied(
                        "item.started",
                        r#""type":"command_execution","command":"echo hello","aggregated_output":"","status":"in_progress""#,
                    )
                },
            ),
            works(
                23,
                "A finished `command_execution` also has `exit_code`",
                "Such an item is copied byte for byte, also with `--strict`",
                || {
                    item_is_copied(
                        "item.completed",
                        r#""type":"command_execution","command":"echo hello","aggregated_output":"hello\n","exit_code":0,"status":"completed""#,
                    )
                },
            ),
            works(
                24,
                "The status of a command is `in_progress`, `completed` or `failed`",
                "These are copied; with `--strict`, `declined` becomes `failed`, and any other value is left out",
                || {
                    for status in ["in_progress", "completed", "failed"] {
                        is_copied(&command_with_status(status));
                    }
                    equals(&converted(&command_with_status("declined"))[0], "/item/status", "failed");
                    is_left_out(&command_with_status("paused"), "invalid field");
                },
            ),
            works(
                25,
                "`file_change` has `changes`, each with `path` and `kind`, and `status`",
                "Such an item is copied byte for byte, also with `--strict`",
                || {
                    item_is_copied(
                        "item.completed",
                        r#""type":"file_change","changes":[{"path":"src/main.rs","kind":"update"}],"status":"completed""#,
                    )
                },
            ),
            works(
                26,
                "The status of a patch is `completed` or `failed`",
                "These are copied; with `--strict`, a patch in progress is left out",
                || {
                    for status in ["completed", "failed"] {
                        is_copied(&patch("add", status));
                    }
                    is_left_out(&patch("add", "in_progress"), "patch in progress");
                },
            ),
            works(
                27,
                "The kind of a change is `add`, `delete` or `update`",
                "These are copied, and the summary lists the files by kind",
                || {
                    for (kind, list) in [("add", "added"), ("delete", "deleted"), ("update", "modified")] {
                        is_copied(&patch(kind, "completed"));
                        let summary = summary(&patch(kind, "completed"));
                        equals(&summary, &format!("/file_operations/{list}_files/0"), "a");
                    }
                },
            ),
            works(
                28,
                "`mcp_tool_call` has `server`, `tool` and `status`",
                "Such an item is copied byte for byte, also with `--strict`",
                || {
                    item_is_copied(
                        "item.started",
                        r#""type":"mcp_tool_call","server":"my-server","tool":"do_thing","status":"in_progress""#,
                    )
                },
            ),
            works(
                29,
                "The status of a call is `in_progress`, `completed` or `failed`",
                "These are copied; with `--strict`, any other value is left out",
                || {
                    let call = |status: &str| {
                        format!(
                            r#"{{"type":"item.completed","item":{{"id":"item_0","type":"mcp_tool_call","server":"s","tool":"t","status":"{status}"}}}}"#
                        )
                    };
                    for status in ["in_progress", "completed", "failed"] {
                        is_copied(&call(status));
                    }
                    is_left_out(&call("paused"), "invalid field");
                },
            ),
            works(
                30,
                "`web_search` has `query`",
                "Such an item is copied byte for byte, also with `--strict`",
                || item_is_copied("item.completed", r#""type":"web_search","query":"q""#),
            ),
            works(
                31,
                "`todo_list` has `items`, each with `text` and `completed`",
                "Such an item is copied byte for byte, also with `--strict`",
                || {
                    item_is_copied(
                        "item.started",
                        r#""type":"todo_list","items":[{"text":"step one","completed":false}]"#,
                    )
                },
            ),
            works(
                32,
                "An item `error` has `message`",
                "Such an item is copied byte for byte, also with `--strict`",
                || item_is_copied("item.completed", r#""type":"error","message":"m""#),
            ),
            works(
                33,
                "There are eight item types and no others",
                "With `--strict`, an item of another type is left out and counted; without, it is copied and marked",
                || {
                    let line = r#"{"type":"item.completed","item":{"id":"item_0","type":"collab_tool_call","tool":"wait"}}"#;
                    is_left_out(line, "unknown item");
                    let marked = events(&run_events(&["normalize"], line)).remove(0);
                    equals(&marked, "/item/tool", "wait");
                    equals(&marked, "/mcp_delegator_nonstandard", "unknown_item");
                },
            ),
        ],
    },
    Section {
        heading: "Usage",
        rows: &[
            works(
                34,
                "Usage is three signed 64-bit integers",
                "The largest and negative numbers are copied; with `--strict`, further counts are dropped",
                || {
                    let usage =
                        r#""input_tokens":9223372036854775807,"cached_input_tokens":-1,"output_tokens":0"#;
                    is_copied(&format!(r#"{{"type":"turn.completed","usage":{{{usage}}}}}"#));
                    let more = r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"output_tokens":3,"reasoning_output_tokens":4}}"#;
                    assert_eq!(object(&converted(more)[0], "/usage").len(), 3);
                },
            ),
            works(35, "Usage is emitted in `turn.completed`", "The last event of the example has it", || {
                equals(&converted(EXAMPLE)[5], "/usage/input_tokens", 123)
            }),
        ],
    },
];
