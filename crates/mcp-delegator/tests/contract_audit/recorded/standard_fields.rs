//! Answers in the standard envelope with fields of every type, for the rows about types and names.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::stage_with_agent;

pub(crate) static STANDARD_FIELDS: LazyLock<StandardFields> = LazyLock::new(record);

/// Characters of two, three and four bytes.
pub(crate) const MESSAGE: &str = "Größe: 猫 🐈";

pub(crate) struct StandardFields {
    /// The working directory of all tasks.
    pub(crate) project: String,
    pub(crate) acknowledgement: Value,
    /// A run that writes the file `docs/new.txt`; the agent's last message is [`MESSAGE`].
    pub(crate) run: Value,
    /// What that run wrote to standard output.
    pub(crate) run_text: String,
    /// The wait for that run.
    pub(crate) wait: Value,
    /// The status after that run.
    pub(crate) status: Value,
    pub(crate) queue_paused: Value,
    /// The summary of a transcript with a failed tool call, which reports no tokens.
    pub(crate) transcript: Value,
}

impl StandardFields {
    pub(crate) fn all(&self) -> [&Value; 6] {
        [&self.acknowledgement, &self.run, &self.wait, &self.status, &self.queue_paused, &self.transcript]
    }
}

const TRANSCRIPT: &str = r#"{"type":"thread.started","thread_id":"t"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"mcp_tool_call","server":"s","tool":"t","status":"failed"}}
"#;

fn record() -> StandardFields {
    let write = json!({"write_file": {"path": "docs/new.txt", "text": "x\n"}});
    let stage = stage_with_agent(&[write, json!({ "message": MESSAGE }), json!({"turn_completed": {}})]);
    let call = |args: &[&str]| stage.world.run([args, &["--envelope", "standard"]].concat());
    let run = call(&["local", "run", "x", "--mode", "workspace-write", "--confirm"]);
    let id = run.document()["data"]["result"]["task_id"].as_str().unwrap().to_owned();
    let wait = call(&["local", "wait", &id]).document();
    let status = call(&["local", "status"]).document();
    let acknowledgement = call(&["local", "exec", "x"]).document();
    stage.wait(acknowledgement["data"]["result"]["task_id"].as_str().unwrap());
    let summarize = ["events", "summarize", "--envelope", "standard"];
    StandardFields {
        project: stage.world.project().display().to_string(),
        run: run.document(),
        run_text: run.stdout,
        queue_paused: call(&["queue", "pause"]).document(),
        transcript: stage.world.run_with_input(summarize, TRANSCRIPT.as_bytes()).document(),
        acknowledgement,
        wait,
        status,
    }
}
