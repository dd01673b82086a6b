//! An agent of the idle dialect that gets its task and two messages, and is done when its input ends.

use std::sync::LazyLock;

use delegator_testkit::stage::Stage;
use serde_json::Value;

use crate::PROGRAM;

/// The texts that the agent gets: its task, then the messages.
pub(crate) const CHAT_TEXTS: [&str; 3] = ["the task", "two\nlines", "say \"three\""];

pub(crate) struct Chat {
    /// The kinds of the agent's standard input and output.
    pub(crate) pipes: String,
    /// What the agent read.
    pub(crate) stdin: String,
    /// What the agent printed on stderr.
    pub(crate) stderr: String,
    /// What the agent printed, with the lines that were sent to it.
    pub(crate) events: Vec<Value>,
    /// The log of the supervisor.
    pub(crate) log: Vec<Value>,
    pub(crate) task_id: String,
    pub(crate) wait: Value,
}

const AGENT: &str = r#"#!/bin/sh
[ -p /dev/stdin ] && [ -p /dev/stdout ] && echo pipes > pipes.txt
printf '{"type":"idle"}\n' >&2
while read -r line; do
  printf '%s\n' "$line" >> stdin.txt
  printf '{"type":"agent_message","content":"read"}\n{"type":"idle"}\n'
done
printf '{"type":"done"}\n'
"#;

pub(crate) static CHAT: LazyLock<Chat> = LazyLock::new(|| record_chat(AGENT, &CHAT_TEXTS));

/// Runs an agent of the idle dialect that gets these texts.
pub(crate) fn record_chat(agent: &str, texts: &[&str]) -> Chat {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let agent = stage.write_program("bin/chat", agent);
    let config = format!(
        "[agents.chat]\nprotocol = \"idle-jsonl\"\ncommand = [\"{}\"]\nunsandboxed = true\n",
        agent.display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage.run_json(&["queue", "pause"]);
    let accepted = stage.run_json(&["local", "exec", texts[0], "--agent", "chat", "--skip-git-repo-check"]);
    let id = accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned();
    for text in &texts[1..] {
        stage.run_json(&["send", &id, text]);
    }
    stage.run_json(&["queue", "resume"]);
    let wait = stage.wait(&id);
    let logs = stage.run_json(&["logs", &id])["data"].take();
    let log_of = |field: &str| logs[field].as_str().unwrap_or_else(|| panic!("no {field} in {logs}"));
    let json_lines = |field: &str| -> Vec<Value> {
        log_of(field).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let file = |name: &str| std::fs::read_to_string(stage.world.project().join(name)).unwrap_or_default();
    Chat {
        pipes: file("pipes.txt"),
        stdin: file("stdin.txt"),
        stderr: log_of("stderr").to_owned(),
        events: json_lines("stdout"),
        log: json_lines("supervisor_log"),
        task_id: id,
        wait,
    }
}
