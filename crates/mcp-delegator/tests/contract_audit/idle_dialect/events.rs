//! Statements about the events, and about messages to the agent.

use serde_json::{Value, json};

use crate::assertions::{equals, text};
use crate::recorded::{CHAT, CHAT_TEXTS, record_chat};
use crate::row::{Section, differs, not_testable, works};
use crate::transcripts::{converted, events, run_events, summary};

/// One event of each type.
const STREAM: &str = r#"{"type":"agent_message","content":"Working","role":"assistant"}
{"type":"tool_call","name":"write_file","call_id":"c1","arguments":{"path":"a.txt"}}
{"type":"tool_result","call_id":"c1","output":"ok"}
{"type":"file_change","path":"a.txt","action":"write"}
{"type":"idle"}
{"type":"done"}
"#;

/// An agent whose first line does not fit into a pipe (64 KiB).
const LONG_LINE_AGENT: &str = r#"#!/bin/sh
read -r line
printf '{"type":"agent_message","content":"%0200000d"}\n' 0
printf '{"type":"agent_message","content":"read"}\n{"type":"idle"}\n'
cat > /dev/null
printf '{"type":"done"}'
"#;

fn change(path: &str, action: &str) -> String {
    format!("{{\"type\":\"file_change\",\"path\":\"{path}\",\"action\":\"{action}\"}}\n")
}

/// The first item of a type in the converted stream.
#[track_caller]
fn item_of(kind: &str) -> Value {
    let events = converted(STREAM);
    let found = events.iter().find(|event| event["item"]["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {events:?}"))["item"].clone()
}

/// The lines that the agent read, as JSON.
fn messages() -> Vec<Value> {
    CHAT.stdin.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The kinds of the lines of the conversation in order; `sent` for a line to the agent.
fn conversation() -> Vec<&'static str> {
    let kind = |event: &'static Value| event["type"].as_str().unwrap_or("sent");
    CHAT.events.iter().map(kind).collect()
}

/// All queued messages are sent together when the agent has reported that it is idle, and never before.
#[track_caller]
fn messages_follow_idle() {
    let answer = ["agent_message", "idle"];
    let messages = vec!["sent"; CHAT_TEXTS.len() - 1];
    let answers = answer.repeat(messages.len());
    assert_eq!(conversation(), [&["sent"], &answer[..], &messages, &answers, &["done"]].concat());
}

/// The log of the supervisor has an entry with this action for each event of that kind.
#[track_caller]
fn is_logged(action: &str, kind: &str) {
    let logged: Vec<&Value> = CHAT.log.iter().filter(|entry| entry["action"] == action).collect();
    let count = conversation().into_iter().filter(|known| *known == kind).count();
    assert_eq!(logged.len(), count, "{:?}", CHAT.log);
    for entry in logged {
        equals(entry, "/task_id", CHAT.task_id.as_str());
        let time: jiff::Timestamp = text(entry, "/ts").parse().unwrap();
        assert!(time.as_second() > 0, "{entry}");
    }
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Introduction",
        rows: &[works(
            1,
            "The stream is one JSON object per line, with `type`",
            "All six event types are recognised",
            || {
                let summary = summary(STREAM);
                equals(&summary, "/dialect", "idle");
                equals(&summary, "/counts/event_count", 6);
                equals(&summary, "/counts/unknown_count", 0);
            },
        )],
    },
    Section {
        heading: "Event Types",
        rows: &[
            works(
                2,
                "`agent_message` has `content`, the text",
                "It is the text of the message and the final message",
                || {
                    equals(&item_of("agent_message"), "/text", "Working");
                    equals(&summary(STREAM), "/final_message", "Working");
                },
            ),
            works(
                3,
                "`agent_message` has `role`",
                "A message with the role `user` is not a message of the agent",
                || {
                    let user = STREAM.replace("assistant", "user");
                    equals(&summary(&user), "/final_message", Value::Null);
                },
            ),
            works(4, "`tool_call` has `name`", "It is the tool of the call; the server is `agent`", || {
                equals(&item_of("mcp_tool_call"), "/tool", "write_file");
                equals(&item_of("mcp_tool_call"), "/server", "agent");
            }),
            works(
                5,
                "`tool_call` has `call_id`, unique for the call",
                "Two open calls have two items",
                || {
                    let call = r#"{"type":"tool_call","name":"a","call_id":"ID","arguments":{}}"#;
                    let stream = format!("{}\n{}\n", call.replace("ID", "1"), call.replace("ID", "2"));
                    let events = converted(&stream);
                    equals(&events[2], "/item/id", "item_0");
                    equals(&events[3], "/item/id", "item_1");
                },
            ),
            works(6, "`tool_call` has `arguments`, an object", "They are the arguments of the call", || {
                let calls = events(&run_events(&["normalize"], STREAM));
                let call = calls.iter().find(|event| event["item"]["type"] == "mcp_tool_call").unwrap();
                equals(call, "/item/arguments", json!({"path": "a.txt"}));
            }),
            works(
                7,
                "`tool_result` has the `call_id` of its call",
                "The completed item has the id and the tool of the call",
                || {
                    let events = converted(STREAM);
                    let calls: Vec<&Value> =
                        events.iter().filter(|event| event["item"]["type"] == "mcp_tool_call").collect();
                    assert_eq!(calls[0]["item"]["id"], calls[1]["item"]["id"]);
                    equals(calls[1], "/type", "item.completed");
                    equals(calls[1], "/item/tool", "write_file");
                },
            ),
            works(8, "`tool_result` has `output`, a text", "It is the text of the result", || {
                let calls = events(&run_events(&["normalize"], STREAM));
                let end = calls.iter().find(|event| event["item"]["result"].is_object()).unwrap();
                equals(end, "/item/result/content/0/text", "ok");
            }),
            works(
                9,
                "`tool_result` has `error` if the tool failed",
                "The call has failed; an error of null is none",
                || {
                    for (error, status) in [(r#""why""#, "failed"), ("null", "completed")] {
                        let stream =
                            STREAM.replace(r#""output":"ok""#, &format!(r#""output":"ok","error":{error}"#));
                        let events = converted(&stream);
                        let end =
                            events.iter().rfind(|event| event["item"]["type"] == "mcp_tool_call").unwrap();
                        equals(end, "/item/status", status);
                    }
                },
            ),
            works(10, "`file_change` has `path`, absolute or relative", "Both are copied", || {
                for path in ["a.txt", "/abs/a.txt"] {
                    let change = change(path, "edit");
                    equals(&converted(&change)[2], "/item/changes/0/path", path);
                }
            }),
            works(
                11,
                "The action `write` writes a file",
                "A file that was not known is added, a known one updated",
                || {
                    let events = converted(&change("a", "write").repeat(2));
                    equals(&events[2], "/item/changes/0/kind", "add");
                    equals(&events[3], "/item/changes/0/kind", "update");
                },
            ),
            works(12, "The action `edit` edits a file", "The kind is `update`", || {
                equals(&converted(&change("a", "edit"))[2], "/item/changes/0/kind", "update")
            }),
            works(
                13,
                "The action `delete` deletes a file",
                "The kind is `delete`, and the summary lists the file",
                || {
                    equals(&converted(&change("a", "delete"))[2], "/item/changes/0/kind", "delete");
                    equals(&summary(&change("a", "delete")), "/file_operations/deleted_files/0", "a");
                },
            ),
            works(
                14,
                "`idle`: the agent waits for input",
                "The end of the stream while the agent waits is no interruption",
                || {
                    let waiting = STREAM.replace("{\"type\":\"done\"}\n", "");
                    equals(&summary(&waiting), "/state", "completed");
                },
            ),
            works(
                15,
                "`idle`: queued messages can be written to the standard input of the agent now",
                "Each message is sent after `idle`, the first one at the start",
                || messages_follow_idle(),
            ),
            works(
                16,
                "`idle`: the turn is complete",
                "`turn.completed`, with a usage of zero, and nothing after a repeated `idle`",
                || {
                    let events = converted(&STREAM.replace("done", "idle"));
                    let ends: Vec<&Value> =
                        events.iter().filter(|event| event["type"] == "turn.completed").collect();
                    assert_eq!(ends.len(), 1, "{events:?}");
                    equals(ends[0], "/usage/input_tokens", 0);
                },
            ),
            works(
                17,
                "`idle` sets the idle flag",
                "Only an idle agent gets messages: none is sent before `idle`",
                || messages_follow_idle(),
            ),
            works(
                18,
                "`idle` drains the stdin queue",
                "All messages that are queued by then follow the first `idle`, and all of them are accepted",
                || {
                    messages_follow_idle();
                    equals(&CHAT.wait, "/data/messages/accepted_count", 2);
                    equals(&CHAT.wait, "/data/messages/queued_count", 0);
                },
            ),
            works(
                19,
                "`idle` emits a structured log event, `idle_detected`",
                "The log of the supervisor has one for each `idle`, with task and time; `logs` contains it",
                || is_logged("idle_detected", "idle"),
            ),
            works(
                20,
                "`done`: the session is complete",
                "With it the summary is completed, without it and without `idle` interrupted",
                || {
                    let idle = "{\"type\":\"idle\"}\n";
                    equals(&summary(&STREAM.replace(idle, "")), "/state", "completed");
                    let endless = STREAM.replace(idle, "").replace("{\"type\":\"done\"}\n", "");
                    equals(&summary(&endless), "/state", "interrupted");
                    equals(&CHAT.wait, "/data/state", "completed");
                },
            ),
        ],
    },
    Section {
        heading: "Communication Pattern",
        rows: &[
            works(
                21,
                "The parent writes `tool_result` objects to the standard input of the agent",
                "Each line that the agent reads has the type `tool_result`",
                || {
                    let kinds: Vec<Value> = messages().into_iter().map(|it| it["type"].clone()).collect();
                    assert_eq!(kinds, ["tool_result"; CHAT_TEXTS.len()]);
                },
            ),
            works(
                22,
                "The agent writes events as JSON lines to its standard output",
                "A pipe is read to its end, in the order of the lines",
                || {
                    let kinds: Vec<Value> =
                        converted(STREAM).into_iter().map(|event| event["type"].clone()).collect();
                    let expected = [
                        "thread.started",
                        "turn.started",
                        "item.completed",
                        "item.started",
                        "item.completed",
                        "item.completed",
                        "turn.completed",
                    ];
                    assert_eq!(kinds, expected);
                },
            ),
            works(
                23,
                "Standard input of the agent: one JSON object per line",
                "The agent reads as many lines as it gets messages",
                || assert_eq!(CHAT.stdin.lines().count(), CHAT_TEXTS.len()),
            ),
            works(
                24,
                "Standard output of the agent: one event per line",
                "The number of lines read is the number of events",
                || {
                    equals(
                        &run_events(&["normalize", "--format", "json"], STREAM).json(),
                        "/data/read_line_count",
                        6,
                    )
                },
            ),
            differs(
                25,
                "The standard error of the agent is discarded, so that it cannot disturb the standard output of the parent",
                "it is stored apart, cannot disturb anything, and explains failures",
                "What an agent of this dialect prints on stderr, an event even, is in the field `stderr` of `logs`, and \
                 not among the events",
                || {
                    assert_eq!(CHAT.stderr, "{\"type\":\"idle\"}\n");
                    messages_follow_idle();
                },
            ),
        ],
    },
    Section {
        heading: "Stdin Input Format",
        rows: &[
            works(
                26,
                "Queued messages are written as newline-delimited `tool_result` objects",
                "Each line that the agent reads is such an object",
                || assert!(messages().iter().all(|message| message["type"] == "tool_result")),
            ),
            works(
                27,
                "A message is `{\"type\":\"tool_result\",\"content\":TEXT}`",
                "A message has exactly these keys; such a line in a transcript is recognised as an echo and not as an action of the agent",
                || {
                    let text = CHAT_TEXTS[0];
                    assert_eq!(messages()[0], json!({"type": "tool_result", "content": text}));
                    let echoed = r#"{"type":"tool_result","content":"text"}"#;
                    let run = run_events(&["normalize"], &format!("{STREAM}{echoed}\n"));
                    assert!(run.stderr.contains("1 ignored."), "{}", run.stderr);
                },
            ),
            works(28, "Each message ends with a newline", "The agent reads each message as one line", || {
                assert!(CHAT.stdin.ends_with("}\n"), "{}", CHAT.stdin);
                assert_eq!(CHAT.stdin.matches("}\n").count(), CHAT_TEXTS.len());
            }),
            works(
                29,
                "Each queued message is one JSON object",
                "A message of two lines is one object",
                || equals(&messages()[1], "/content", CHAT_TEXTS[1]),
            ),
            works(
                30,
                "`content` is the text of the message, unchanged",
                "Line breaks and quotes arrive as they were given",
                || {
                    let contents: Vec<Value> =
                        messages().into_iter().map(|it| it["content"].clone()).collect();
                    assert_eq!(contents, CHAT_TEXTS);
                },
            ),
        ],
    },
    Section {
        heading: "Usage in atm-agent-mcp",
        rows: &[
            works(
                31,
                "The agent is started with pipes for standard input and output",
                "The agent finds pipes there",
                || assert_eq!(CHAT.pipes, "pipes\n"),
            ),
            works(
                32,
                "Standard output is read line by line",
                "An agent prints a line that is longer than a pipe, then two lines at once and a last one without its end: \
                 four events",
                || {
                    let chat = record_chat(LONG_LINE_AGENT, &["the task"]);
                    let kinds = chat.events.iter().map(|event| event["type"].as_str().unwrap_or("sent"));
                    let kinds: Vec<&str> = kinds.collect();
                    assert_eq!(kinds, ["sent", "agent_message", "agent_message", "idle", "done"]);
                    assert_eq!(text(&chat.events[1], "/content").len(), 200_000);
                },
            ),
            works(33, "Each line is parsed for its type", "The summary counts the lines by type", || {
                let summary = summary(STREAM);
                for kind in ["agent_message", "tool_call", "tool_result", "file_change", "idle", "done"] {
                    equals(&summary, &format!("/counts/by_type/{kind}"), 1);
                }
            }),
            works(
                34,
                "`idle` sets the flag and triggers the drain of the queue",
                "All messages that are queued by then follow the `idle`",
                || messages_follow_idle(),
            ),
            works(
                35,
                "`done` emits a structured log event",
                "The log of the supervisor has `done_detected` as its last entry",
                || {
                    is_logged("done_detected", "done");
                    equals(CHAT.log.last().unwrap(), "/action", "done_detected");
                },
            ),
            works(
                36,
                "All lines, `idle` and `done` included, are forwarded to readers",
                "The stored events have every line in order; `events follow` prints the events that a transcript means, and `idle` as the end of a turn",
                || {
                    messages_follow_idle();
                    let run = run_events(&["follow", "--format", "jsonl"], STREAM);
                    let last = run.stdout.lines().nth(6).unwrap();
                    assert!(last.contains("turn.completed"), "{}", run.stdout);
                },
            ),
            not_testable(
                37,
                "The reader of the proxy processes forwarded lines like MCP messages",
                "it is inside another program",
            ),
        ],
    },
];
