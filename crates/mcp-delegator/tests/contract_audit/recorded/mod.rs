//! Answers of the real program, recorded once per test process.
//!
//! Each scenario is a `LazyLock` of a struct with one field per answer: a world with a scripted agent, and calls through
//! MCP. A test process records only the scenarios that its rows read.

mod all_tools;
mod cli_answers;
mod ended_tasks;

pub(crate) use all_tools::ALL_TOOLS;
pub(crate) use cli_answers::{CLI_ANSWERS, CliAnswer};
pub(crate) use ended_tasks::COMPLETED;

use std::path::Path;

use delegator_testkit::program::World;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, V2025_11, text};

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
}

/// A world whose agent starts a thread and a turn, then runs these steps.
pub(crate) fn stage_with_agent(steps: &[Value]) -> Stage {
    let start = [json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    Stage::with_script(PROGRAM, json!([&start, steps].concat())).variable("MCP_DELEGATOR_MAX_CONCURRENT", "4")
}

/// The id of the task in an answer.
#[track_caller]
pub(crate) fn task_id(answer: &Value) -> String {
    let id = answer.pointer("/data/task_id").or_else(|| answer.pointer("/error/details/task_id"));
    id.and_then(Value::as_str).unwrap_or_else(|| panic!("no task in {answer}")).to_owned()
}

/// The published schema of the data of a command.
pub(crate) fn schema(command: &str) -> Value {
    let run = World::new(PROGRAM).run(["schema", command, "--json"]);
    run.json()["data"]["output"].clone()
}
