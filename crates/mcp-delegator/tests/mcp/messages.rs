//! Messages from four senders at once to one agent, while senders, the supervisor or the agent are killed.
//!
//! A sender has a server of its own and starts commands, too; both are killed now and then in the middle of a call. Every
//! message that a sender got a confirmation for is delivered once, in the order of its sender, or it is reported that it
//! was not, or that this is unknown. A message without a confirmation is delivered once or never.

use std::collections::BTreeMap;
use std::process::Stdio;

use delegator_domain::message::MessageState;
use delegator_registry::{OpenOptions, Registry, StateDir};
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, V2025_11};

const SENDERS: usize = 4;

/// Writes each message to a file and is idle after it, until it gets the message `end`. It works on its task until there
/// is a file `gate`.
const AGENT: &str = r#"#!/bin/sh
echo $$ > agent.pid
read -r line
until [ -e gate ]; do sleep 0.02; done
printf '{"type":"idle"}\n'
while read -r line; do
  printf '%s\n' "$line" >> received.txt
  printf '{"type":"idle"}\n'
  case "$line" in *'"content":"end"'*) exit 0;; esac
done
"#;

/// A stage in memory, because the tests are about processes that die and not about the disk.
struct ChatStage {
    stage: Stage,
    state_dir: tempfile::TempDir,
    task: String,
}

/// The response to a message.
#[derive(Debug, PartialEq)]
enum Response {
    Confirmed,
    /// Too many messages wait.
    Full,
    TaskEnded,
}

impl Response {
    /// From the envelope of a tool or a command.
    fn parse(envelope: &Value) -> Response {
        let error = &envelope["error"];
        let code = error["details"]["code"].as_str().or(error["code"].as_str());
        match (code, error["retryable"] == true) {
            (None, _) if envelope["data"].is_object() => Response::Confirmed,
            (Some(_), true)
                if error["message"].as_str().is_some_and(|it| it.contains("not delivered yet")) =>
            {
                Response::Full
            }
            (Some("WRONG_STATE"), false) => Response::TaskEnded,
            _ => panic!("{envelope}"),
        }
    }
}

/// A sender of numbered messages.
struct Sender<'a> {
    chat: &'a ChatStage,
    name: usize,
    server: Client,
    confirmed: Vec<usize>,
    kills: usize,
}

impl<'a> Sender<'a> {
    fn new(chat: &'a ChatStage, name: usize) -> Sender<'a> {
        Sender { chat, name, server: chat.connect(), confirmed: Vec::new(), kills: 0 }
    }

    /// Sends messages until the task has ended.
    fn send_all(&mut self, count: usize) {
        for index in 0..count {
            let text = format!("{}:{index}", self.name);
            match index % 40 {
                12 => self.kill_command(&text),
                25 => self.kill_server(&text),
                place => {
                    let response = self.send(&text, place == 38);
                    if response == Response::TaskEnded {
                        return;
                    }
                    self.confirmed.push(index);
                }
            }
        }
    }

    /// Repeats the call while the queue is full.
    fn send(&mut self, text: &str, by_command: bool) -> Response {
        let mut response = Response::Full;
        wait_until("the message is stored", || {
            let envelope = match by_command {
                true => self.chat.stage.run_json(&["send", &self.chat.task, text]),
                false => {
                    let call = self.start_call(text);
                    self.server.response(call)["result"]["structuredContent"].clone()
                }
            };
            response = Response::parse(&envelope);
            if response == Response::Full {
                self.chat.open_gate();
            }
            response != Response::Full
        });
        response
    }

    fn start_call(&mut self, text: &str) -> u64 {
        let call = json!({"task_id": self.chat.task, "text": text, "format": "json"});
        self.server.start_call("_codex_send", call)
    }

    fn kill_server(&mut self, text: &str) {
        self.start_call(text);
        self.server.child.kill().unwrap();
        self.server.child.wait().unwrap();
        self.server = self.chat.connect();
        self.kills += 1;
    }

    /// Starts a command and kills it once it has opened the registry.
    fn kill_command(&mut self, text: &str) {
        let mut command = self.chat.stage.world.command(["send", &self.chat.task, text]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let descriptors = format!("/proc/{}/fd", child.id());
        let has_opened = || {
            let links = std::fs::read_dir(&descriptors).into_iter().flatten().flatten();
            let mut links = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            links.any(|link| link.ends_with("registry.db"))
        };
        while !has_opened() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        self.kills += 1;
    }
}

/// The messages that were confirmed to each sender, and how often a sender was killed.
struct SentMessages {
    confirmed: Vec<Vec<usize>>,
    kills: usize,
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
        // The agent prints nothing until the queue is full.
        let limits = ["--idle-timeout-sec", "3600", "--hard-timeout-sec", "3600"];
        let task = stage.exec(&[&["--agent", "chat", "--skip-git-repo-check"][..], &limits].concat());
        ChatStage { stage, state_dir, task }
    }

    fn connect(&self) -> Client {
        Client::connect_with(&self.stage, V2025_11, &["--toolsets", "extra"], json!({}))
    }

    /// Lets the agent end its first turn.
    fn open_gate(&self) {
        std::fs::write(self.stage.world.project().join("gate"), "").unwrap();
    }

    /// The texts of the stored messages, with their states.
    fn stored(&self) -> BTreeMap<String, MessageState> {
        let dir = StateDir::open(&self.state_dir.path().join("state"), &OpenOptions::default()).unwrap();
        let task = self.task.parse().unwrap();
        let messages = Registry::open(&dir).unwrap().last_messages(&task, u32::MAX).unwrap();
        let count = messages.len();
        let stored: BTreeMap<_, _> = messages.into_iter().map(|it| (it.excerpt, it.state)).collect();
        assert_eq!(stored.len(), count, "a message was stored twice");
        stored
    }

    /// The texts that the agent read after its task.
    fn received(&self) -> Vec<String> {
        let path = self.stage.world.project().join("received.txt");
        let lines = if path.exists() { read_text(&path) } else { String::new() };
        let text = |line: &str| -> String {
            let message: Value = serde_json::from_str(line).unwrap();
            message["content"].as_str().unwrap().to_owned()
        };
        lines.lines().map(text).collect()
    }

    /// All senders send `count` messages each.
    fn send_from_all(&self, count: usize) -> SentMessages {
        let senders: Vec<Sender<'_>> = std::thread::scope(|scope| {
            let start = |name| {
                scope.spawn(move || {
                    let mut sender = Sender::new(self, name);
                    sender.send_all(count);
                    sender
                })
            };
            let senders: Vec<_> = (0..SENDERS).map(start).collect();
            senders.into_iter().map(|sender| sender.join().unwrap()).collect()
        });
        SentMessages {
            kills: senders.iter().map(|sender| sender.kills).sum(),
            confirmed: senders.into_iter().map(|sender| sender.confirmed).collect(),
        }
    }

    /// Sends messages, and sends SIGKILL to a process as soon as the agent has read some of them.
    fn send_until_killed(&self, count: usize, victim: impl Fn() -> i32 + Send) -> SentMessages {
        self.open_gate();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                wait_until("some messages were delivered", || self.received().len() > count);
                kill_process(Pid::from_raw(victim()).unwrap(), Signal::KILL).unwrap();
            });
            self.send_from_all(count)
        })
    }
}

/// Checks what became of the messages against what the agent read; returns the number of messages by state.
fn check(chat: &ChatStage, sent: &SentMessages) -> BTreeMap<&'static str, usize> {
    let (stored, received) = (chat.stored(), chat.received());
    let mut times_read: BTreeMap<&str, usize> = BTreeMap::new();
    received.iter().for_each(|text| *times_read.entry(text).or_default() += 1);
    assert!(times_read.keys().all(|text| stored.contains_key(*text)), "read, but not stored: {times_read:?}");
    let mut counts = BTreeMap::new();
    for (text, state) in &stored {
        *counts.entry(state.name()).or_default() += 1;
        let expected = match state {
            MessageState::Accepted => 1..=1,
            MessageState::Unknown => 0..=1,
            _ => 0..=0,
        };
        let times_read = times_read.get(text.as_str()).copied().unwrap_or(0);
        assert!(expected.contains(&times_read), "{text} is {state:?} and was read {times_read} times");
    }
    for (sender, confirmed) in sent.confirmed.iter().enumerate() {
        for index in confirmed {
            assert!(stored.contains_key(&format!("{sender}:{index}")), "{sender}:{index} is lost");
        }
        let prefix = format!("{sender}:");
        let own = received.iter().filter_map(|text| text.strip_prefix(&prefix));
        let own: Vec<usize> = own.map(|index| index.parse().unwrap()).collect();
        assert!(own.is_sorted_by(|left, right| left < right), "sender {sender}: {own:?}");
    }
    counts
}

/// Checks the messages of a task whose supervisor or agent was killed; `waited` is the response of `wait`.
fn check_killed(chat: &ChatStage, sent: &SentMessages, waited: &Value) {
    let counts = check(chat, sent);
    for state in ["queued", "delivered"] {
        assert_eq!(counts.get(state), None, "{counts:?}");
    }
    let messages = &waited["data"]["messages"];
    for (state, count) in &counts {
        assert_eq!(messages[format!("{state}_count")], *count, "{messages}");
    }
}

/// More messages than a queue holds: senders are refused, and repeat their calls when the agent has begun to read.
#[test]
fn a_thousand_messages_arrive_once_and_in_order_although_senders_are_killed() {
    const COUNT: usize = 275;
    let chat = ChatStage::new();
    let sent = chat.send_from_all(COUNT);
    let confirmed = sent.confirmed.iter().map(Vec::len).sum::<usize>();
    let status = || chat.stage.run_json(&["local", "results", &chat.task]);
    assert_eq!(confirmed, SENDERS * COUNT - sent.kills, "{}", status());
    assert!(chat.stage.world.project().join("gate").exists(), "no sender was refused: {}", status());
    assert_eq!(Sender::new(&chat, SENDERS).send("end", true), Response::Confirmed);
    let waited = chat.stage.wait(&chat.task);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    let counts = check(&chat, &sent);
    assert_eq!(counts.keys().collect::<Vec<_>>(), [&"accepted"], "{counts:?}");
    println!("{confirmed} messages confirmed, {} senders killed, stored: {counts:?}", sent.kills);
}

#[test]
fn a_killed_supervisor_delivers_no_message_twice_and_every_message_is_accounted_for() {
    let chat = ChatStage::new();
    let sent = chat.send_until_killed(60, || chat.stage.supervisor_pid(&chat.task));
    let waited = chat.stage.wait(&chat.task);
    assert_eq!(waited["data"]["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{waited}");
    check_killed(&chat, &sent, &waited);
}

#[test]
fn a_killed_agent_gets_no_message_twice_and_every_message_is_accounted_for() {
    let chat = ChatStage::new();
    let pid_file = chat.stage.world.project().join("agent.pid");
    let sent = chat.send_until_killed(60, || read_text(&pid_file).trim().parse().unwrap());
    let waited = chat.stage.wait(&chat.task);
    assert_eq!(waited["data"]["state"], "failed", "{waited}");
    check_killed(&chat, &sent, &waited);
}
