//! Recorded agents are fed to the conversation, and what it sends is compared with what the recorded client
//! sent.

use std::collections::HashMap;
use std::path::Path;

use delegator_domain::message::Delivery;
use delegator_domain::task::Mode;
use serde_json::{Value, json};

use super::{Conversation, Step, Talk, methods, plan};
use crate::conversation::acp::AcpPlan;
use crate::conversation::recorded_lines::{Sender, message_of_text};

/// Feeds the lines of a recorded agent, up to its first end. Its answers get the ids of our requests of the
/// same method; a request that the recording does not have is answered with an empty result.
pub(super) fn replay(name: &str, plan: AcpPlan) -> Talk {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../delegator-transcript/tests/transcripts/acp");
    let stream = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
    let parsed = stream.lines().map(|line| {
        let (sender, message) = message_of_text(line);
        (sender, serde_json::from_str::<Value>(message).unwrap())
    });
    let is_start = |(_, message): &(Sender, Value)| message["method"] == "initialize";
    let mut lines: Vec<(Sender, Value)> = parsed.collect();
    let end = lines.iter().skip(1).position(is_start).map_or(lines.len(), |at| at + 1);
    lines.truncate(end);
    let mut recorded: Vec<(String, Value)> = lines
        .iter()
        .filter(|(sender, message)| *sender == Sender::Us && message.get("method").is_some())
        .map(|(_, message)| (message["method"].as_str().unwrap().to_owned(), message["id"].clone()))
        .collect();
    let mut ids: HashMap<String, Value> = HashMap::new();
    let mut talk = Talk::open(plan);
    let mut matched = 0;
    for (_, message) in lines.iter().filter(|(sender, _)| *sender == Sender::Agent) {
        while let Some(ours) = talk.sent.get(matched).cloned() {
            matched += 1;
            let Some(method) = ours["method"].as_str().filter(|_| ours.get("id").is_some()) else { continue };
            match recorded.iter().position(|(known, _)| known == method) {
                Some(index) => drop(ids.insert(recorded.remove(index).1.to_string(), ours["id"].clone())),
                None => drop(talk.line(&json!({"jsonrpc": "2.0", "id": ours["id"], "result": {}}))),
            }
        }
        let mut message = message.clone();
        if message.get("method").is_none() {
            let Some(id) = ids.get(&message["id"].to_string()) else { continue };
            message["id"] = id.clone();
        }
        talk.line(&message);
    }
    talk
}

/// The recorded answers to permission requests, by the id of the request.
fn recorded_answers(name: &str) -> Vec<(Value, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../delegator-transcript/tests/transcripts/acp");
    let stream = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
    answers(stream.lines().filter_map(|line| match message_of_text(line) {
        (Sender::Us, message) => Some(serde_json::from_str(message).unwrap()),
        (Sender::Agent, _) => None,
    }))
}

fn answers(lines: impl Iterator<Item = Value>) -> Vec<(Value, Value)> {
    let is_answer = |line: &Value| line["result"]["outcome"].is_object();
    lines.filter(is_answer).map(|line| (line["id"].clone(), line["result"]["outcome"].clone())).collect()
}

#[test]
fn recorded_agents_are_led_through_a_task_that_may_write() {
    for agent in [
        "claude-acp",
        "codex-acp",
        "codex-acp-zed",
        "gemini",
        "opencode",
        "qwen",
        "copilot",
        "goose",
        "kimi",
        "cline",
    ] {
        let name = format!("{agent}.task");
        let talk = replay(&name, plan(Mode::WorkspaceWrite, true));
        assert_eq!(methods(&talk.sent)[..3], ["initialize", "session/new", "session/prompt"], "{name}");
        assert_eq!(talk.steps, [Step::Ready, Step::TurnEnded], "{name}");
        let sent = answers(talk.sent.into_iter());
        assert_eq!(sent, recorded_answers(&name), "{name}: every permission was granted once");
    }
}

#[test]
fn without_an_enclosure_a_read_only_task_refuses_what_recorded_agents_request() {
    for agent in ["claude-acp", "gemini", "qwen", "copilot", "goose", "kimi"] {
        let name = format!("{agent}.task_reject");
        let talk = replay(&name, plan(Mode::ReadOnly, false));
        let sent = answers(talk.sent.into_iter());
        assert!(!sent.is_empty(), "{name}");
        assert_eq!(sent, recorded_answers(&name), "{name}: every permission was refused once");
    }
}

#[test]
fn an_agent_that_needs_a_sign_in_takes_nothing_more() {
    for (name, is_prompted) in [
        ("claude-acp.no_login", true),
        ("codex-acp.no_login", false),
        ("gemini.no_login", false),
        ("qwen.no_login", false),
        ("copilot.no_login", false),
        ("kimi.no_login", false),
        ("cline.no_login", false),
        ("kimi.err_auth", true),
    ] {
        let talk = replay(name, plan(Mode::ReadOnly, true));
        let expected: &[Step] = if is_prompted { &[Step::Ready, Step::Over] } else { &[Step::Over] };
        assert_eq!(talk.steps, expected, "{name}");
        assert!(!talk.acp.can_take(Delivery::Next));
    }
}

#[test]
fn other_errors_end_the_turn_and_not_the_conversation() {
    for name in
        ["claude-acp.err_limit", "qwen.err_auth", "gemini.err_auth", "goose.err_auth", "cline.err_auth"]
    {
        let talk = replay(name, plan(Mode::ReadOnly, true));
        assert_eq!(talk.steps, [Step::Ready, Step::TurnEnded], "{name}");
        assert!(talk.acp.can_take(Delivery::Next));
    }
}

#[test]
fn requests_that_are_not_served_are_refused() {
    let talk = replay("opencode.task", plan(Mode::WorkspaceWrite, true));
    let refusals: Vec<&Value> = talk.sent.iter().filter(|line| line.get("error").is_some()).collect();
    assert!(!refusals.is_empty(), "it asks us to write files");
    assert!(refusals.iter().all(|line| line["error"]["code"] == -32601), "{refusals:?}");
}
