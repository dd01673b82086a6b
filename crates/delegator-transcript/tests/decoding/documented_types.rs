//! `strict` output is exactly what the documentation of Codex exec events defines: every line of every recording is read
//! with the documented types, written here literally, which reject every other field, type and value.

#![allow(dead_code, reason = "the fields are only read by serde")]

use std::collections::BTreeMap;

use crate::recorded::{all, normalize};
use delegator_transcript::{NormalizeOptions, UnmappedReason};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum ThreadEvent {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: String },
    #[serde(rename = "turn.started")]
    TurnStarted {},
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: Usage },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: ThreadError },
    #[serde(rename = "item.started")]
    ItemStarted { item: ThreadItem },
    #[serde(rename = "item.updated")]
    ItemUpdated { item: ThreadItem },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: ThreadItem },
    #[serde(rename = "error")]
    Error { message: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Usage {
    input_tokens: i64,
    cached_input_tokens: i64,
    output_tokens: i64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadError {
    message: String,
}

/// The documented types flatten the details beside `id`; serde cannot reject unknown fields then, so `id` is repeated.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum ThreadItem {
    AgentMessage {
        id: String,
        text: String,
    },
    Reasoning {
        id: String,
        text: String,
    },
    CommandExecution {
        id: String,
        command: String,
        aggregated_output: String,
        exit_code: Option<i32>,
        status: CallStatus,
    },
    FileChange {
        id: String,
        changes: Vec<FileUpdateChange>,
        status: PatchApplyStatus,
    },
    McpToolCall {
        id: String,
        server: String,
        tool: String,
        status: CallStatus,
    },
    WebSearch {
        id: String,
        query: String,
    },
    TodoList {
        id: String,
        items: Vec<TodoItem>,
    },
    Error {
        id: String,
        message: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallStatus {
    InProgress,
    Completed,
    Failed,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PatchApplyStatus {
    Completed,
    Failed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileUpdateChange {
    path: String,
    kind: PatchChangeKind,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PatchChangeKind {
    Add,
    Delete,
    Update,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TodoItem {
    text: String,
    completed: bool,
}

impl ThreadItem {
    fn id(&self) -> &str {
        let (Self::AgentMessage { id, .. }
        | Self::Reasoning { id, .. }
        | Self::CommandExecution { id, .. }
        | Self::FileChange { id, .. }
        | Self::McpToolCall { id, .. }
        | Self::WebSearch { id, .. }
        | Self::TodoList { id, .. }
        | Self::Error { id, .. }) = self;
        id
    }
}

/// Reads a line with the documented types.
fn read_documented(line: &str) -> Result<ThreadEvent, serde_json::Error> {
    // A null is an absent field to serde, but documented fields are omitted instead.
    if line.contains(r#""exit_code":null"#) {
        return Err(serde::de::Error::custom("exit_code is null"));
    }
    serde_json::from_str(line)
}

fn assert_documented(name: &str, line: &str) {
    let event = read_documented(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
    if let ThreadEvent::ItemStarted { item }
    | ThreadEvent::ItemUpdated { item }
    | ThreadEvent::ItemCompleted { item } = &event
    {
        let number = item.id().strip_prefix("item_").and_then(|number| number.parse::<u64>().ok());
        assert!(number.is_some(), "{name}: {line}");
    }
}

const STRICT: NormalizeOptions = NormalizeOptions { strict: true, keep_unknown: false, dialect: None };

#[test]
fn every_strict_line_of_every_recording_has_the_documented_types() {
    let (mut read, mut written, mut left_out) = (0, 0, BTreeMap::new());
    for (name, bytes) in all() {
        let (out, summary) = normalize(&bytes, STRICT);
        out.lines().for_each(|line| assert_documented(&name, line));
        read += summary.lines_read;
        written += summary.lines_written;
        for (reason, count) in summary.no_place {
            *left_out.entry(reason).or_insert(0) += count;
        }
        let (again, _) = normalize(out.as_bytes(), STRICT);
        assert_eq!(again, out, "{name}: strict is the identity on what it wrote");
    }
    println!("{read} lines read, {written} written, left out: {left_out:?}");
    assert!(written > 1_000, "{written}");
    assert!(left_out[&UnmappedReason::UnknownItem] > 10 && left_out[&UnmappedReason::PatchInProgress] > 5);
    assert_eq!(left_out.get(&UnmappedReason::InvalidField), None, "Codex writes no invalid fields");
}

#[test]
fn the_idle_dialect_has_the_documented_types_too() {
    let stream = r#"{"type":"agent_message","content":"text","role":"assistant"}
{"type":"tool_call","name":"write_file","call_id":"c1","arguments":{"path":"a"}}
{"type":"tool_result","call_id":"c1","output":"done","error":"why"}
{"type":"tool_result","call_id":"c9","output":"done"}
{"type":"file_change","path":"/abs/f","action":"write"}
{"type":"idle"}
{"type":"done"}
"#;
    let (out, _) = normalize(stream.as_bytes(), STRICT);
    out.lines().for_each(|line| assert_documented("idle", line));
    let first = out.lines().next().map(read_documented);
    assert!(matches!(first, Some(Ok(ThreadEvent::ThreadStarted { .. }))), "{out}");
}

#[test]
fn without_strict_only_marked_lines_lack_the_documented_types() {
    for (name, bytes) in all() {
        let (out, _) = normalize(&bytes, NormalizeOptions::default());
        for line in out.lines() {
            // Further fields are allowed here, so the line is reduced to the documented fields.
            let (reduced, _) = normalize(line.as_bytes(), STRICT);
            let is_marked = line.contains(delegator_transcript::MARK);
            let is_documented = !reduced.is_empty() && !line.contains(r#""status":"declined""#);
            assert_eq!(is_documented, !is_marked, "{name}: {line}");
        }
    }
}
