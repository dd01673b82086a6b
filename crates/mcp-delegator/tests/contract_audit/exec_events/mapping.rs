//! Statements about the conversion of Codex's internal protocol.

use serde_json::{Value, json};

use crate::assertions::equals;
use crate::row::{Section, works};
use crate::transcripts::{mapped, protocol, run_events};

const SESSION: &str = r#"{"type":"session_configured","session_id":"67e55044","model":"m"}"#;
const STARTED: &str = r#"{"type":"task_started","model_context_window":1}"#;
const COMPLETE: &str = r#"{"type":"task_complete","last_agent_message":"x"}"#;
const BEGIN: &str =
    r#"{"type":"exec_command_begin","call_id":"c1","command":["bash","-lc","echo hi"],"cwd":"/"}"#;
const END: &str = r#"{"type":"exec_command_end","call_id":"c1","aggregated_output":"hi","exit_code":0}"#;
const CALL: &str = r#"{"type":"mcp_tool_call_begin","call_id":"m","invocation":{"server":"s","tool":"t","arguments":{"a":1}}}"#;
const PATCH: &str = r#"{"type":"patch_apply_begin","call_id":"p","auto_approved":true,"changes":{"a":{"add":{"content":"x"}},"b":{"delete":{"content":""}},"c":{"update":{"unified_diff":"","move_path":null}}}}"#;
const TOKENS: &str = r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20,"reasoning_output_tokens":5,"total_tokens":120}}}"#;
const ERROR: &str = r#"{"type":"error","message":"quota"}"#;

fn call_end(result: &str) -> String {
    format!(
        r#"{{"type":"mcp_tool_call_end","call_id":"m","invocation":{{"server":"s","tool":"t"}},"result":{result}}}"#
    )
}

fn patch_end(success: bool) -> String {
    format!(r#"{{"type":"patch_apply_end","call_id":"p","stdout":"","stderr":"","success":{success}}}"#)
}

fn plan(status: &str) -> String {
    format!(r#"{{"type":"plan_update","explanation":null,"plan":[{{"step":"one","status":"{status}"}}]}}"#)
}

#[track_caller]
fn are_ignored(kinds: &[&str]) {
    for kind in kinds {
        let message = format!(r#"{{"type":"{kind}","call_id":"x"}}"#);
        let run = run_events(&["normalize"], &protocol(&[&message]));
        assert_eq!(run.stdout, "", "{kind}");
        assert!(run.stderr.contains("1 ignored."), "{kind}: {}", run.stderr);
    }
}

pub(crate) const SECTIONS: &[Section] = &[Section {
    heading: "Mapping From Internal Protocol Events",
    rows: &[
        works(36, "`SessionConfigured` becomes `thread.started`", "It is the only event", || {
            assert_eq!(mapped(&[SESSION]), [json!({"type": "thread.started", "thread_id": "67e55044"})])
        }),
        works(37, "The thread id is the session id", "The id of the message is that of the event", || {
            equals(&mapped(&[SESSION])[0], "/thread_id", "67e55044")
        }),
        works(38, "`TaskStarted` becomes `turn.started`", "It is the only event", || {
            assert_eq!(mapped(&[STARTED]), [json!({"type": "turn.started"})])
        }),
        works(39, "`AgentMessage` becomes `item.completed` with an `agent_message`", "Type and text", || {
            assert_eq!(
                mapped(&[r#"{"type":"agent_message","message":"m"}"#]),
                [
                    json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "m"}})
                ]
            )
        }),
        works(40, "`AgentReasoning` becomes `item.completed` with a `reasoning`", "Type and text", || {
            assert_eq!(
                mapped(&[r#"{"type":"agent_reasoning","text":"m"}"#]),
                [
                    json!({"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "m"}})
                ]
            )
        }),
        works(
            41,
            "`ExecCommandBegin` becomes `item.started` with a `command_execution` in progress",
            "Event, type and status",
            || {
                let begin = &mapped(&[BEGIN])[0];
                equals(begin, "/type", "item.started");
                equals(begin, "/item/type", "command_execution");
                equals(begin, "/item/status", "in_progress");
            },
        ),
        works(
            42,
            "Begin and end of a command are joined by `call_id`",
            "Of two commands that end in another order, each end has the id and the command of its begin",
            || {
                let other = r#"{"type":"exec_command_begin","call_id":"c2","command":["ls"]}"#;
                let other_end =
                    r#"{"type":"exec_command_end","call_id":"c2","aggregated_output":"","exit_code":0}"#;
                let events = mapped(&[BEGIN, other, other_end, END]);
                equals(&events[2], "/item/id", "item_1");
                equals(&events[2], "/item/command", "ls");
                equals(&events[3], "/item/id", "item_0");
            },
        ),
        works(
            43,
            "`ExecCommandEnd` becomes `item.completed` with a `command_execution`",
            "The whole item",
            || {
                equals(
                    &mapped(&[BEGIN, END])[1],
                    "",
                    json!({"type": "item.completed", "item": {
    "id": "item_0", "type": "command_execution", "command": "bash -lc 'echo hi'",
    "aggregated_output": "hi", "exit_code": 0, "status": "completed"}}),
                )
            },
        ),
        works(
            44,
            "The status is `completed` for exit code 0, else `failed`",
            "Exit codes 0, 1 and -1",
            || {
                for (code, status) in [(0, "completed"), (1, "failed"), (-1, "failed")] {
                    let end = END.replace(r#""exit_code":0"#, &format!(r#""exit_code":{code}"#));
                    equals(&mapped(&[BEGIN, &end])[1], "/item/status", status);
                }
            },
        ),
        works(
            45,
            "The end of a command without a begin is skipped, with a warning",
            "Nothing is written, and stderr names the call",
            || {
                let run = run_events(&["normalize", "--strict"], &protocol(&[END]));
                assert_eq!(run.stdout, "");
                assert!(
                    run.stderr.contains("command_end_without_begin") && run.stderr.contains("c1"),
                    "{}",
                    run.stderr
                );
            },
        ),
        works(
            46,
            "`McpToolCallBegin` becomes `item.started` with an `mcp_tool_call` in progress",
            "The whole event",
            || {
                assert_eq!(
                    mapped(&[CALL]),
                    [json!({"type": "item.started", "item": {
        "id": "item_0", "type": "mcp_tool_call", "server": "s", "tool": "t", "status": "in_progress"}})]
                )
            },
        ),
        works(
            47,
            "`McpToolCallEnd` becomes `item.completed` with an `mcp_tool_call`",
            "Event, id and status",
            || {
                let end = &mapped(&[CALL, &call_end(r#"{"Ok":{"content":[]}}"#)])[1];
                equals(end, "/type", "item.completed");
                equals(end, "/item/id", "item_0");
                equals(end, "/item/status", "completed");
            },
        ),
        works(48, "A result that is an error is a failed call", "`Err`, and `Ok` with `isError`", || {
            for result in [r#"{"Err":"no"}"#, r#"{"Ok":{"content":[],"isError":true}}"#] {
                equals(&mapped(&[CALL, &call_end(result)])[1], "/item/status", "failed");
            }
        }),
        works(49, "The end of a call without a begin is emitted with a new id", "It has the next id", || {
            let events =
                mapped(&[r#"{"type":"agent_message","message":"m"}"#, &call_end(r#"{"Ok":{"content":[]}}"#)]);
            equals(&events[1], "/type", "item.completed");
            equals(&events[1], "/item/id", "item_1");
        }),
        works(50, "`PatchApplyBegin` has no immediate output", "No event", || {
            assert_eq!(mapped(&[PATCH]), [Value::Null; 0])
        }),
        works(51, "`PatchApplyEnd` becomes `item.completed` with a `file_change`", "Event and type", || {
            let events = mapped(&[PATCH, &patch_end(true)]);
            assert_eq!(events.len(), 1);
            equals(&events[0], "/type", "item.completed");
            equals(&events[0], "/item/type", "file_change");
        }),
        works(
            52,
            "The status of the patch is that of `success`",
            "`true` is completed, `false` failed",
            || {
                for (success, status) in [(true, "completed"), (false, "failed")] {
                    equals(&mapped(&[PATCH, &patch_end(success)])[0], "/item/status", status);
                }
            },
        ),
        works(
            53,
            "The changes are those of the begin: add, delete and update",
            "All three kinds, with their paths",
            || {
                equals(
                    &mapped(&[PATCH, &patch_end(true)])[0],
                    "/item/changes",
                    json!([
    {"path": "a", "kind": "add"}, {"path": "b", "kind": "delete"}, {"path": "c", "kind": "update"}]),
                )
            },
        ),
        works(54, "`WebSearchEnd` becomes `item.completed` with a `web_search`", "The whole event", || {
            assert_eq!(
                mapped(&[r#"{"type":"web_search_end","call_id":"w","query":"q"}"#]),
                [
                    json!({"type": "item.completed", "item": {"id": "item_0", "type": "web_search", "query": "q"}})
                ]
            )
        }),
        works(
            55,
            "The first `PlanUpdate` becomes `item.started` with a `todo_list`",
            "Event and items",
            || {
                let first = &mapped(&[STARTED, &plan("pending")])[1];
                equals(first, "/type", "item.started");
                equals(first, "/item/items", json!([{"text": "one", "completed": false}]));
            },
        ),
        works(
            56,
            "A later `PlanUpdate` of the turn becomes `item.updated` with the same id",
            "Event, id and items",
            || {
                let later = &mapped(&[STARTED, &plan("pending"), &plan("completed")])[2];
                equals(later, "/type", "item.updated");
                equals(later, "/item/id", "item_0");
                equals(later, "/item/items/0/completed", true);
            },
        ),
        works(
            57,
            "At the end of the turn, an open `todo_list` is completed",
            "`item.completed` comes before the end of the turn",
            || {
                let events = mapped(&[STARTED, &plan("pending"), COMPLETE]);
                equals(&events[2], "/type", "item.completed");
                equals(&events[2], "/item/type", "todo_list");
                equals(&events[3], "/type", "turn.completed");
            },
        ),
        works(
            58,
            "`TokenCount` is not emitted, but is the usage of `turn.completed`",
            "No event of its own, and its numbers at the end of the turn",
            || {
                assert_eq!(mapped(&[TOKENS]), [Value::Null; 0]);
                let usage = json!({"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 20});
                equals(&mapped(&[TOKENS, COMPLETE])[0], "/usage", usage);
            },
        ),
        works(59, "`Error` is emitted at once and recorded", "The event, without an end of the turn", || {
            assert_eq!(mapped(&[ERROR]), [json!({"type": "error", "message": "quota"})])
        }),
        works(
            60,
            "`StreamError` is emitted and does not fail the turn",
            "The turn completes after it",
            || {
                let events = mapped(&[r#"{"type":"stream_error","message":"retrying"}"#, COMPLETE]);
                equals(&events[0], "", json!({"type": "error", "message": "retrying"}));
                equals(&events[1], "/type", "turn.completed");
            },
        ),
        works(
            61,
            "`TaskComplete` after an `Error` becomes `turn.failed` with that error",
            "The error of the turn",
            || {
                equals(
                    &mapped(&[ERROR, COMPLETE])[1],
                    "",
                    json!({"type": "turn.failed", "error": {"message": "quota"}}),
                )
            },
        ),
        works(
            62,
            "`TaskComplete` becomes `turn.completed` with usage",
            "With the tokens counted before",
            || {
                let end = &mapped(&[TOKENS, COMPLETE])[0];
                equals(end, "/type", "turn.completed");
                equals(end, "/usage/output_tokens", 20);
            },
        ),
        works(63, "Unknown usage is zero", "A turn without token counts", || {
            equals(
                &mapped(&[COMPLETE])[0],
                "/usage",
                json!({"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}),
            )
        }),
        works(
            64,
            "`ExecCommandOutputDelta` is ignored",
            "Nothing is written, and the line is counted as ignored",
            || are_ignored(&["exec_command_output_delta"]),
        ),
        works(
            65,
            "`WebSearchBegin` is ignored",
            "Nothing is written, and the line is counted as ignored",
            || are_ignored(&["web_search_begin"]),
        ),
        works(
            66,
            "Approval requests are ignored",
            "Nothing is written, and the line is counted as ignored",
            || are_ignored(&["exec_approval_request", "apply_patch_approval_request"]),
        ),
        works(
            67,
            "Review mode and responses with lists are ignored",
            "Nothing is written, and the line is counted as ignored",
            || {
                are_ignored(&[
                    "entered_review_mode",
                    "exited_review_mode",
                    "mcp_list_tools_response",
                    "list_custom_prompts_response",
                ])
            },
        ),
    ],
}];
