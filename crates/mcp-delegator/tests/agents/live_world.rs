//! A world for agents that converse, with scripts that the tests of several agents use.

use std::path::Path;

use delegator_testkit::codex::world_with_codex;
use delegator_testkit::program::World;
use delegator_testkit::scripted_model::{Action, Script, ScriptedModel};
use delegator_testkit::stage::{task_processes, wait_until};
use serde_json::Value;

use crate::PROGRAM;

/// The world of a test, with its model and scripts:
///
/// | script | what the model does |
/// |---|---|
/// | `wait` | runs a command that creates `started` and never ends |
/// | `gate` | runs a command that creates `started` and ends when `go` exists, then says `Done.` |
/// | `write` | writes `notes.txt`, then says `Wrote it.` |
/// | `second` | says `Second.` |
/// | `limit` | fails with a usage limit |
pub(crate) struct LiveWorld {
    pub(crate) world: World,
    /// Serves as long as the world is used.
    _model: ScriptedModel,
    pub(crate) agent: &'static str,
}

impl LiveWorld {
    /// `with_agent` adds the agent, which uses the model.
    pub(crate) fn new(
        agent: &'static str,
        more: Vec<(&'static str, Script)>,
        with_agent: impl FnOnce(World, &ScriptedModel) -> World,
    ) -> LiveWorld {
        let world = world_with_codex(PROGRAM, "").variable("PATH", "/usr/local/bin:/usr/bin:/bin");
        let run = world.run_as(Path::new("/usr/bin/git"), ["init", "--quiet"]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        let notes = world.project().join("notes.txt");
        let command = |text: &str| vec![Action::Run(text.to_owned())];
        let scripts = vec![
            ("wait", vec![command("touch started; python3 -c 'import time; time.sleep(600)'")]),
            (
                "gate",
                vec![
                    command(
                        "touch started; while [ ! -e go ]; do python3 -c 'import time; time.sleep(0.05)'; done",
                    ),
                    vec![Action::Say("Done.")],
                ],
            ),
            (
                "write",
                vec![
                    vec![Action::WriteFile { path: notes, text: "fixed\n" }],
                    vec![Action::Say("Wrote it.")],
                ],
            ),
            ("second", vec![vec![Action::Say("Second.")]]),
        ];
        let model = ScriptedModel::start(scripts.into_iter().chain(more));
        LiveWorld { world: with_agent(world, &model), _model: model, agent }
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
