//! Answers of the real program, recorded once per test process.
//!
//! Each scenario is a `LazyLock` of a struct with one field per answer: a world with a scripted agent, and calls through
//! MCP. A test process records only the scenarios that its rows read. Every scenario ends its tasks before it returns.

mod all_tools;
mod chat;
mod cli_answers;
mod cloud;
mod ended_tasks;
mod long_output;
mod progress;
mod refusals;
mod registry;
mod running_tasks;
mod standard_answers;
mod standard_fields;
mod stopped_tasks;

pub(crate) use all_tools::{ALL_TOOLS, CATEGORIES};
pub(crate) use chat::{CHAT, CHAT_TEXTS, record_chat};
pub(crate) use cli_answers::{CLI_ANSWERS, CliAnswer};
pub(crate) use cloud::{CLOUD, FLEET_CANCEL};
pub(crate) use ended_tasks::{ADDED_COUNT, COMPLETED, FAILED};
pub(crate) use long_output::LONG_OUTPUT;
pub(crate) use progress::PROGRESS;
pub(crate) use refusals::REFUSALS;
pub(crate) use registry::{MANY_ENVIRONMENTS, REGISTRY};
pub(crate) use running_tasks::{COMPLETED_COUNT, MANY, MANY_TASKS, OVERFULL, STATUS};
pub(crate) use standard_answers::{STANDARD_ANSWERS, UNKNOWN_TASK};
pub(crate) use standard_fields::{MESSAGE, STANDARD_FIELDS};
pub(crate) use stopped_tasks::{CANCELLED, TIMED_OUT};

use std::path::Path;

use delegator_testkit::program::World;
use delegator_testkit::stage::{Stage, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, V2025_11, release_agents, text};

/// A world with a scripted agent, and an MCP client of a server in it.
pub(crate) struct Session {
    pub(crate) stage: Stage,
    pub(crate) client: Client,
}

impl Session {
    /// The agent starts a thread and a turn, then runs these steps.
    pub(crate) fn with_agent(steps: &[Value]) -> Session {
        Session::start(stage_with_agent(steps))
    }

    pub(crate) fn start(stage: Stage) -> Session {
        let client = Client::connect(&stage, V2025_11);
        Session { stage, client }
    }

    /// The steps of the agents that start from now on.
    pub(crate) fn set_agent(&self, steps: &[Value]) {
        self.stage.set_script(agent_script(steps));
    }

    /// The JSON answer of a tool.
    pub(crate) fn json(&mut self, tool: &str, arguments: Value) -> Value {
        self.client.envelope(tool, arguments)
    }

    /// The Markdown answer of a tool.
    pub(crate) fn markdown(&mut self, tool: &str, mut arguments: Value) -> String {
        arguments["format"] = json!("markdown");
        text(&self.client.call(tool, arguments)).to_owned()
    }

    /// Runs a shell command in the project directory.
    pub(crate) fn shell(&self, command: &str) {
        let run = self.stage.world.run_as(Path::new("/bin/sh"), ["-c", command]);
        assert_eq!(run.exit, Some(0), "{command}: {run:?}");
    }

    /// Polls the status until it is as wanted, and returns it.
    pub(crate) fn status_when(&mut self, what: &str, is_wanted: fn(&Value) -> bool) -> Value {
        let mut status = json!(null);
        wait_until(what, || {
            status = self.json("_codex_local_status", json!({}));
            is_wanted(&status["data"])
        });
        status
    }

    /// Lets agents that wait for the file `go` continue, and waits until no task is left.
    pub(crate) fn finish(mut self) {
        release_agents(&self.stage);
        self.status_when("all tasks have ended", |data| {
            data["summary"]["running"] == 0 && data["summary"]["queued"] == 0
        });
    }
}

/// A world whose agent starts a thread and a turn, then runs these steps.
pub(crate) fn stage_with_agent(steps: &[Value]) -> Stage {
    let stage = Stage::with_script(PROGRAM, agent_script(steps));
    stage.variable("MCP_DELEGATOR_MAX_CONCURRENT", "4")
}

fn agent_script(steps: &[Value]) -> Value {
    let start = [json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    json!([&start, steps].concat())
}

/// Steps that end a turn well.
pub(crate) fn done() -> [Value; 2] {
    [json!({"message": "All done."}), json!({"turn_completed": {"input_tokens": 100, "output_tokens": 7}})]
}

/// The id of the task in an answer.
#[track_caller]
pub(crate) fn task_id(answer: &Value) -> String {
    let id = answer.pointer("/data/task_id").or_else(|| answer.pointer("/error/details/task_id"));
    id.and_then(Value::as_str).unwrap_or_else(|| panic!("no task in {answer}")).to_owned()
}

/// The published schema of the answers of a command in an envelope.
pub(crate) fn schema(command: &str, envelope: &str) -> Value {
    let run = World::new(PROGRAM).run(["schema", command, "--json"]);
    run.json()["data"]["output"][envelope].clone()
}
