//! A world for agents that converse, with scripts that the tests of several agents use.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use delegator_testkit::codex::world_with_codex;
use delegator_testkit::program::World;
use delegator_testkit::scripted_model::{Action, Script, ScriptedModel};
use delegator_testkit::stage::{is_alive, pids, task_processes, wait_until};
use serde_json::Value;

use crate::PROGRAM;
use crate::agent_kinds::AgentKind;

/// What the command does that never ends. Claude Code refuses the program `sleep`.
const SLEEP: &str = "import time; time.sleep(600)";

/// The world of a test, with its model and scripts:
///
/// | script | what the model does |
/// |---|---|
/// | `wait` | runs a command that creates `started` and never ends |
/// | `gate` | runs a command that creates `started` and ends when `go` exists, then says `Done.` |
/// | `write` | writes `notes.txt`, then says `Wrote it.` |
/// | `second` | says `Second.` |
pub(crate) struct LiveWorld {
    pub(crate) world: World,
    pub(crate) model: ScriptedModel,
    pub(crate) agent: &'static str,
}

impl LiveWorld {
    /// A world with an agent. `more` are further scripts.
    pub(crate) fn new(
        kind: AgentKind,
        more: impl FnOnce(&World) -> Vec<(&'static str, Script)>,
    ) -> LiveWorld {
        let world = world_with_codex(PROGRAM, "")
            .variable("PATH", "/usr/local/bin:/usr/bin:/bin")
            // Otherwise the agents wait for all the tests that run at the same time.
            .variable("MCP_DELEGATOR_NICENESS", "0");
        let run = world.run_as(Path::new("/usr/bin/git"), ["init", "--quiet"]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        let scripts: Vec<_> = scripts(&world.project()).into_iter().chain(more(&world)).collect();
        let model = ScriptedModel::start(scripts.clone());
        LiveWorld { world: kind.install(world, &model, &scripts), model, agent: kind.name() }
    }

    #[must_use]
    pub(crate) fn variable(self, name: &str, value: &str) -> LiveWorld {
        LiveWorld { world: self.world.variable(name, value), ..self }
    }

    /// Submits a task that runs this script and returns its id.
    pub(crate) fn exec(&self, script: &str, more: &[&str]) -> String {
        let task = format!("Please do [script {script}].");
        let args = ["local", "exec", &task, "--agent", self.agent];
        let accepted = self.world.run(args.iter().chain(more)).json();
        accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
    }

    /// Waits for the end of a task and returns its results.
    pub(crate) fn wait(&self, id: &str) -> Value {
        let answer = self.world.run(["local", "wait", id, "--include-output"]).json();
        assert_eq!(task_processes(id), Vec::<i32>::new(), "the task left processes: {answer:#}");
        answer["data"].clone()
    }

    /// Waits until the command of a script has begun.
    pub(crate) fn wait_for_command(&self) {
        let started = self.world.project().join("started");
        wait_until("the command runs", || started.exists());
    }

    /// The live processes of the command that never ends.
    pub(crate) fn endless_processes(&self) -> Vec<i32> {
        let project = self.world.project();
        let is_ours = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut args = line.split(|byte| *byte == 0);
            args.any(|arg| arg == SLEEP.as_bytes())
                && args.any(|arg| arg == project.as_os_str().as_bytes())
                && is_alive(*pid)
        };
        pids().into_iter().filter(is_ours).collect()
    }

    /// Waits for a question of the task and returns it.
    pub(crate) fn open_question(&self) -> Value {
        let mut open = Value::Null;
        wait_until("the agent asks", || {
            let status = self.world.run(["local", "status"]).json();
            open = status["data"]["tasks"][0]["waiting_for_answer"][0].clone();
            open.is_object()
        });
        open
    }

    pub(crate) fn answer(&self, id: &str, option: &str) {
        let answered = self.world.run(["answer", id, option]).json();
        assert_eq!(answered["data"]["answer"]["option"], option, "{answered}");
    }
}

/// The scripts of every world.
fn scripts(project: &Path) -> Vec<(&'static str, Script)> {
    let run = |text: String| vec![Action::Run(text)];
    let endless = format!("touch started; python3 -c '{SLEEP}' '{}'", project.display());
    let until_go = "touch started; while [ ! -e go ]; do python3 -c 'import time; time.sleep(0.05)'; done";
    let write = Action::WriteFile { path: project.join("notes.txt"), text: "fixed\n" };
    vec![
        ("wait", vec![run(endless)]),
        ("gate", vec![run(until_go.to_owned()), vec![Action::Say("Done.")]]),
        ("write", vec![vec![write], vec![Action::Say("Wrote it.")]]),
        ("second", vec![vec![Action::Say("Second.")]]),
    ]
}

/// The thread of a task, from its results.
pub(crate) fn thread_of(data: &Value) -> String {
    let thread = &data["metadata"]["thread_info"]["thread_id"];
    thread.as_str().unwrap_or_else(|| panic!("{data:#}")).to_owned()
}

/// Input tokens of a task, from its results.
pub(crate) fn input_tokens(data: &Value) -> u64 {
    data["metadata"]["thread_info"]["token_usage"]["input_tokens"]
        .as_u64()
        .unwrap_or_else(|| panic!("{data:#}"))
}
