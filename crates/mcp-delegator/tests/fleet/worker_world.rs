//! A fleet for tests: a private PostgreSQL, a repository, a scripted agent, and real worker processes.

#![expect(clippy::disallowed_methods, reason = "tests start workers and create repositories")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use delegator_domain::task::{Mode, TaskEnd};
use delegator_fleet::{
    BlobName, Database, DatabaseUrl, EventPosition, FleetEnd, FleetState, FleetTask, NewFleetTask, OnLost,
    TaskSpec, new_id,
};
use delegator_testkit::postgres::PostgresServer;
use delegator_testkit::program::{faketime_library, read_text};
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use delegator_worker::FleetResult;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::namespace::Namespace;

pub(crate) struct Fleet {
    pub(crate) server: PostgresServer,
    pub(crate) database: Database,
    pub(crate) stage: Stage,
}

impl Fleet {
    /// The agent runs these shell commands, one after another.
    pub(crate) fn new(commands: &[&str]) -> Fleet {
        Fleet::with_times(commands, [180, 15, 150])
    }

    /// Lease, interval of heartbeats and cutoff, in seconds.
    pub(crate) fn with_times(commands: &[&str], [lease, heartbeat, cutoff]: [u32; 3]) -> Fleet {
        let server = PostgresServer::options().fast().start();
        let database = Database::new(&DatabaseUrl::parse(&server.url()).unwrap());
        database.migrate().unwrap();
        let stage = Stage::with_script(PROGRAM, turn(commands))
            .variable("MCP_DELEGATOR_DATABASE_URL", &server.url())
            .variable("MCP_DELEGATOR_FLEET_LEASE_SEC", &lease.to_string())
            .variable("MCP_DELEGATOR_FLEET_HEARTBEAT_SEC", &heartbeat.to_string())
            .variable("MCP_DELEGATOR_FLEET_CUTOFF_SEC", &cutoff.to_string());
        let fleet = Fleet { server, database, stage };
        fleet.stage.world.write("repo/README", "first\n");
        fleet.stage.world.write("repo/.gitignore", "*.log\n");
        fleet.git(&["init", "--quiet", "--initial-branch=main"]);
        fleet.commit();
        fleet
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.stage.root().join("repo")
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "a commit"]);
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let output = Command::new("git")
            .args(identity)
            .args(args)
            .current_dir(self.repo())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn spec(&self) -> TaskSpec {
        TaskSpec {
            environment: "env_test".to_owned(),
            repo_url: self.repo().display().to_string(),
            branch: None,
            setup: None,
            mode: Mode::WorkspaceWrite,
            push: false,
            text: "do it".to_owned(),
            title: "do it".to_owned(),
            labels: BTreeMap::new(),
            submitter_task: Some("T-cloud-0123456789".to_owned()),
        }
    }

    pub(crate) fn submit(&self, spec: TaskSpec) -> String {
        self.submit_with(spec, OnLost::Fail)
    }

    pub(crate) fn submit_with(&self, spec: TaskSpec, on_lost: OnLost) -> String {
        let task = NewFleetTask {
            id: new_id(),
            idempotency: None,
            spec,
            labels: BTreeMap::new(),
            priority: 0,
            on_lost,
            max_claims: 3,
        };
        self.database.submit(&task).unwrap().id
    }

    /// Starts a worker process with this name and a workspace of its own.
    pub(crate) fn worker(&self, name: &str, args: &[&str]) -> WorkerProcess {
        start_worker(self.worker_command(name, args), self.log_file(name))
    }

    /// Starts a worker process that reaches the database at this URL.
    pub(crate) fn worker_at(&self, url: &str, name: &str, args: &[&str]) -> WorkerProcess {
        let mut command = self.worker_command(name, args);
        command.env("MCP_DELEGATOR_DATABASE_URL", url);
        start_worker(command, self.log_file(name))
    }

    /// Starts a worker process in a network namespace.
    pub(crate) fn worker_in(&self, namespace: &Namespace, url: &str, name: &str) -> WorkerProcess {
        let program = PROGRAM.to_owned();
        let arguments = [namespace.argument(), program].into_iter().chain(self.worker_arguments(name, &[]));
        let mut command = self.stage.world.command_as("nsenter".as_ref(), arguments);
        command.env("MCP_DELEGATOR_DATABASE_URL", url);
        start_worker(command, self.log_file(name))
    }

    /// Starts a worker process whose wall clock is wrong, such as `+1d`; its supervisors have the same clock.
    pub(crate) fn worker_with_clock(&self, offset: &str, name: &str) -> WorkerProcess {
        let library = faketime_library();
        let variables = [
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME", offset),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ];
        let mut command = self.worker_command(name, &["--slots", "1"]);
        command.envs(variables).env("MCP_DELEGATOR_TEST_INHERIT", variables.map(|(name, _)| name).join(","));
        start_worker(command, self.log_file(name))
    }

    fn worker_command(&self, name: &str, args: &[&str]) -> Command {
        self.stage.world.command(self.worker_arguments(name, args))
    }

    fn worker_arguments(&self, name: &str, args: &[&str]) -> Vec<String> {
        let workspace = self.workspace(name).display().to_string();
        let all = [&["worker", "--name", name, "--workspace", &workspace], args].concat();
        all.into_iter().map(str::to_owned).collect()
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.stage.root().join(format!("{name}.log"))
    }

    pub(crate) fn workspace(&self, name: &str) -> PathBuf {
        self.stage.root().join("workspaces").join(name)
    }

    /// The checkouts in the workspace of a worker.
    pub(crate) fn checkouts(&self, name: &str) -> usize {
        std::fs::read_dir(self.workspace(name).join("tasks")).map_or(0, Iterator::count)
    }

    pub(crate) fn task(&self, id: &str) -> FleetTask {
        self.database.tasks(&[id.to_owned()]).unwrap().remove(0).unwrap()
    }

    pub(crate) fn wait_until_running(&self, id: &str) {
        wait_until("the task is running", || self.task(id).state == FleetState::Running);
    }

    pub(crate) fn wait_for_end(&self, id: &str) -> FleetEnd {
        let mut end = None;
        wait_until("the task has ended", || {
            if let FleetState::Ended(found) = self.task(id).state {
                end = Some(*found);
            }
            end.is_some()
        });
        end.unwrap()
    }

    pub(crate) fn diff(&self, id: &str) -> String {
        self.blob(id, BlobName::Diff)
    }

    pub(crate) fn blob(&self, id: &str, name: BlobName) -> String {
        String::from_utf8(self.database.blob(id, name).unwrap().unwrap_or_default()).unwrap()
    }

    pub(crate) fn events(&self, id: &str) -> String {
        let page = self.database.events(id, EventPosition::default(), 1 << 20).unwrap();
        String::from_utf8(page.bytes).unwrap()
    }

    /// A file that the agent waits for, or writes.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.stage.root().join(name)
    }

    pub(crate) fn wait_for_file(&self, name: &str) {
        let path = self.file(name);
        wait_until(&format!("{} exists", path.display()), || path.exists());
    }
}

pub(crate) fn turn(commands: &[&str]) -> Value {
    let steps: Vec<Value> = commands.iter().map(|command| json!({"command": {"run": command}})).collect();
    successful_turn(&steps)
}

/// A shell command that waits for a file.
pub(crate) fn wait_command(path: &str) -> String {
    format!("while [ ! -e {path} ]; do sleep 0.02; done")
}

pub(crate) fn result_of(end: &FleetEnd) -> FleetResult {
    FleetResult::from_json(end.result.as_deref().unwrap()).unwrap()
}

#[track_caller]
pub(crate) fn failure(end: &FleetEnd) -> (&'static str, String) {
    match &end.end {
        TaskEnd::Failed { kind, message, .. } => (kind.name(), message.clone()),
        other => panic!("{other:?}"),
    }
}

fn start_worker(mut command: Command, log: PathBuf) -> WorkerProcess {
    let file = File::options().create(true).append(true).open(&log).unwrap();
    command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    WorkerProcess { child: command.spawn().unwrap(), log }
}

/// A worker process; killed when it is dropped.
pub(crate) struct WorkerProcess {
    child: Child,
    log: PathBuf,
}

impl WorkerProcess {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the worker has exited", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Waits for the exit, which must be a success.
    #[track_caller]
    pub(crate) fn assert_success(&mut self) {
        let status = self.wait();
        assert!(status.success(), "{status}: {}", self.log());
    }

    pub(crate) fn log(&self) -> String {
        read_text(&self.log)
    }

    pub(crate) fn wait_for_log(&self, text: &str) {
        wait_until(&format!("the worker logs '{text}'"), || self.log().contains(text));
    }
}

impl Drop for WorkerProcess {
    #[expect(clippy::print_stderr, reason = "a failed test shows the log of the worker")]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", read_text(&self.log));
        }
    }
}
