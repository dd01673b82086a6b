//! A fleet with a real worker process: the submitter and the worker are different users of one PostgreSQL.

#![expect(clippy::disallowed_methods, reason = "the test starts a worker and creates a repository")]

use std::path::Path;
use std::process::{Child, Stdio};

use delegator_testkit::postgres::PostgresServer;
use delegator_testkit::program::World;
use delegator_testkit::stage::Stage;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

pub(crate) const ENVIRONMENT: &str = "env_fleet";

pub(crate) struct OwnFleet {
    /// The machine that submits. Its project is the repository that the worker clones.
    pub(crate) submitter: World,
    /// The machine of the worker, with the agent.
    pub(crate) stage: Stage,
    worker: Child,
    _server: PostgresServer,
}

impl OwnFleet {
    pub(crate) fn start() -> OwnFleet {
        let server = PostgresServer::options().fast().start();
        let program = env!("CARGO_BIN_EXE_mcp-delegator");
        let database = |world: World| world.variable("MCP_DELEGATOR_DATABASE_URL", &server.url());
        let submitter = database(World::new(program));
        submitter.write("project/seed.txt", "seed\n");
        let git = |args: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
            let run = submitter.run_as(Path::new("/usr/bin/git"), [&identity, args].concat());
            assert_eq!(run.exit, Some(0), "{run:?}");
        };
        git(&["init", "--quiet", "--initial-branch=main"]);
        git(&["add", "seed.txt"]);
        git(&["commit", "--quiet", "-m", "first"]);
        let repository = submitter.project().display().to_string();
        let environment = json!({"name": "Own", "repoUrl": repository, "stack": "rust", "provider": "fleet"});
        submitter.write(
            "home/.config/mcp-delegator/environments.json",
            &json!({ENVIRONMENT: environment}).to_string(),
        );
        let Stage { world } = Stage::with_script(program, json!([]));
        let stage = Stage { world: database(world) };
        let mut command = stage.world.command(["worker", "--name", "build-1"]);
        let worker =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        OwnFleet { submitter, stage, worker, _server: server }
    }
}

impl Drop for OwnFleet {
    /// The first signal drains the worker, the second cancels its tasks.
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.worker);
        while let Ok(None) = self.worker.try_wait() {
            let _ = kill_process(pid, Signal::TERM);
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }
}
