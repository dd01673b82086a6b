//! Messages from four servers at once to one agent, while servers and the supervisor are killed.
//!
//! Every message that a sender got a confirmation for is delivered once, in the order of its sender, or it is reported that
//! it was not, or that this is unknown. A message without a confirmation, because its server was killed, is delivered once
//! or never.

use std::collections::BTreeMap;

use delegator_domain::message::MessageState;
use delegator_registry::{Message, OpenOptions, Registry, StateDir};
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::PROGRAM;
use crate::client::{Client, V2025_11};

const SENDERS: usize = 4;
/// A sender kills its server in the middle of every such call.
const CALLS_UNTIL_KILL: usize = 83;

/// Writes each message to a file and is idle after it, until it gets the message `end`.
const AGENT: &str = r#"#!/bin/sh
while read -r line; do
  printf '%s\n' "$line" >> received.txt
  printf '{"type":"idle"}\n'
  case "$line" in *'"content":"end"'*) exit 0;; esac
done
"#;

/// A stage in memory, because the test is about processes that die and not about the disk.
struct ChatStage {
    stage: Stage,
    state_dir: tempfile::TempDir,
    task: String,
}

impl ChatStage {
    fn new() -> ChatStage {
        let state_dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let stage = Stage::with_shell_agent(PROGRAM, "exit 99")
            .variable("MCP_DELEGATOR_HOME", state_dir.path().join("state").to_str().unwrap());
        let agent = stage.write_program("bin/chat", AGENT);
        let config = format!(
            "[agents.chat]\nprotocol = \"idle-jsonl\"\ncommand = [\"{}\"]\nunsandboxed = true\nlinger_sec = 600\n",
            agent.display()
        );
        stage.world.write("home/.config/mcp-delegator/config.toml", &config);
        let task = stage.exec(&["--agent", "chat", "--skip-git-repo-check"]);
        ChatStage { stage, state_dir, task }
    }

    fn messages(&self) -> Vec<Message> {
        let dir = StateDir::open(&self.state_dir.path().join("state"), &OpenOptions::default()).unwrap();
        Registry::open(&dir).unwrap().last_messages(&self.task.parse().unwrap(), u32::MAX).unwrap()
    }

    /// The texts that the agent read, without its task.
    fn received(&self) -> Vec<String> {
        let lines = read_text(&self.stage.world.project().join("received.txt"));
        let text = |line: &str| -> String {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            message["content"].as_str().unwrap().to_owned()
        };
        lines.lines().skip(1).map(text).collect()
    }

    /// Sends numbered messages until the task has ended; kills the server now and then. Returns which were confirmed.
    fn send(&self, sender: usize, count: usize) -> Vec<usize> {
        let connect = || Client::connect_with(&self.stage, V2025_11, &["--toolsets", "extra"], json!({}));
        let (mut server, mut confirmed) = (connect(), Vec::new());
        for index in 0..count {
            let call = json!({"task_id": self.task, "text": format!("{sender}:{index}"), "format": "json"});
            let id = server.start_call("_codex_send", call);
            if index % CALLS_UNTIL_KILL == CALLS_UNTIL_KILL - 1 {
                server.child.kill().unwrap();
                server.child.wait().unwrap();
                server = connect();
                continue;
            }
            let envelope = server.response(id)["result"]["structuredContent"].clone();
            match envelope["status"] == "ok" {
                true => confirmed.push(index),
                false if envelope["error"]["details"]["kind"] == "wrong_state" => break,
                false => panic!("{envelope}"),
            }
        }
        confirmed
    }

    /// The confirmed messages of all senders, each with `count` messages.
    fn send_from_all(&self, count: usize) -> Vec<Vec<usize>> {
        std::thread::scope(|scope| {
            let senders: Vec<_> =
                (0..SENDERS).map(|sender| scope.spawn(move || self.send(sender, count))).collect();
            senders.into_iter().map(|sender| sender.join().unwrap()).collect()
        })
    }
}

/// Checks what became of the messages against what the agent read; returns the number of messages by state.
fn check(stage: &ChatStage, confirmed: &[Vec<usize>]) -> BTreeMap<&'static str, usize> {
    let (messages, received) = (stage.messages(), stage.received());
    let times_read = |text: &str| received.iter().filter(|read| *read == text).count();
    let mut counts = BTreeMap::new();
    for message in &messages {
        *counts.entry(message.state.name()).or_default() += 1;
        let expected = match message.state {
            MessageState::Accepted => 1..=1,
            MessageState::Unknown => 0..=1,
            _ => 0..=0,
        };
        assert!(expected.contains(&times_read(&message.excerpt)), "{message:?}");
    }
    for (sender, confirmed) in confirmed.iter().enumerate() {
        for index in confirmed {
            let text = format!("{sender}:{index}");
            assert!(messages.iter().any(|message| message.excerpt == text), "{text} is lost");
        }
        let prefix = format!("{sender}:");
        let own = received.iter().filter_map(|text| text.strip_prefix(&prefix));
        let own: Vec<usize> = own.map(|index| index.parse().unwrap()).collect();
        assert!(own.is_sorted_by(|left, right| left < right), "sender {sender}: {own:?}");
    }
    counts
}

#[test]
fn a_thousand_messages_of_four_servers_arrive_once_and_in_order_although_servers_are_killed() {
    const COUNT: usize = 250;
    let stage = ChatStage::new();
    let confirmed = stage.send_from_all(COUNT);
    let kills = SENDERS * (COUNT / CALLS_UNTIL_KILL);
    assert_eq!(confirmed.iter().map(Vec::len).sum::<usize>(), SENDERS * COUNT - kills);
    stage.stage.run_json(&["send", &stage.task, "end"]);
    let waited = stage.stage.wait(&stage.task);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    let counts = check(&stage, &confirmed);
    assert_eq!(counts.keys().collect::<Vec<_>>(), [&"accepted"], "{counts:?}");
}

#[test]
fn a_killed_supervisor_delivers_no_message_twice_and_every_message_is_accounted_for() {
    const COUNT: usize = 60;
    let stage = ChatStage::new();
    let received = stage.stage.world.project().join("received.txt");
    let confirmed = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("some messages were delivered", || {
                received.exists() && read_text(&received).lines().count() > COUNT
            });
            let supervisor = Pid::from_raw(stage.stage.supervisor_pid(&stage.task)).unwrap();
            kill_process(supervisor, Signal::KILL).unwrap();
        });
        stage.send_from_all(COUNT)
    });
    let waited = stage.stage.wait(&stage.task);
    assert_eq!(waited["data"]["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{waited}");
    let counts = check(&stage, &confirmed);
    for state in ["queued", "delivered"] {
        assert_eq!(counts.get(state), None, "{counts:?}");
    }
    assert!(counts.get("unknown").copied().unwrap_or(0) <= 1, "one message at a time: {counts:?}");
    let messages = &waited["data"]["messages"];
    for (state, count) in &counts {
        assert_eq!(messages[format!("{state}_count")], *count, "{messages}");
    }
}
