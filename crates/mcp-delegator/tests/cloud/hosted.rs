//! The program with a signed-in Codex and a fake backend of hosted Codex.

use delegator_testkit::codex::world_with_codex;
use delegator_testkit::fake_cloud::{ENVIRONMENT, FakeCloud, FakeState, FakeTask};
use delegator_testkit::program::{RunOutput, World};
use serde_json::{Value, json};

pub(crate) const DIFF: &str =
    "diff --git a/seed.txt b/seed.txt\n--- a/seed.txt\n+++ b/seed.txt\n@@ -1 +1,2 @@\n-seed\n+grown\n+more\n";

pub(crate) struct Cloud {
    pub(crate) world: World,
    pub(crate) backend: FakeCloud,
}

impl Cloud {
    /// A signed-in Codex, an environment of the backend and one of a fleet.
    pub(crate) fn new() -> Cloud {
        let cloud = Cloud::signed_out();
        cloud.backend.sign_in(&cloud.world.home().join(".codex"));
        cloud
    }

    pub(crate) fn signed_out() -> Cloud {
        let backend = FakeCloud::start();
        let world = world_with_codex(env!("CARGO_BIN_EXE_mcp-delegator"), "");
        let world =
            backend.variables().iter().fold(world, |world, (name, value)| world.variable(name, value));
        let environment = |provider| json!({"name": provider, "repoUrl": "https://github.com/me/app", "stack": "rust", "provider": provider});
        let environments = json!({ENVIRONMENT: environment("codex-cloud"), "env_fleet": environment("fleet"), "env_gone": environment("codex-cloud")});
        world.write("home/.config/mcp-delegator/environments.json", &environments.to_string());
        Cloud { world, backend }
    }

    /// What the next submitted task becomes.
    pub(crate) fn next_task(&self, states: &[FakeState], diffs: &[&str]) {
        self.backend.set_next_task(FakeTask::new("").states(states).diffs(diffs));
    }

    pub(crate) fn run(&self, args: &[&str]) -> RunOutput {
        self.world.run(args)
    }

    pub(crate) fn data(&self, args: &[&str]) -> Value {
        let run = self.run(args);
        let answer = run.json();
        assert_eq!(answer["ok"], true, "{args:?}: {run:?}");
        answer["data"].clone()
    }

    /// The exit code and the error of a command that fails.
    pub(crate) fn error(&self, args: &[&str]) -> (i32, Value) {
        let run = self.run(args);
        let answer = run.json();
        assert_eq!(answer["ok"], false, "{args:?}: {run:?}");
        (run.exit.unwrap(), json!({"error": answer["error"], "context": answer["meta"]["error_context"]}))
    }

    pub(crate) fn submit(&self) -> Value {
        self.data(&["cloud", "submit", "grow the seed", "--env-id", ENVIRONMENT])
    }

    pub(crate) fn submitted_id(&self) -> String {
        self.submit()["task_id"].as_str().unwrap().to_owned()
    }
}
