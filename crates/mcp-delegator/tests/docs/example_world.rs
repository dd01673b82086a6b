//! The world of one block: the program and stand-ins for other programs on `PATH`, a git repository as working
//! directory, the MCP clients' directories, and the tasks and files that the examples name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use delegator_domain::question::{AnswerOption, OptionKind, Question, QuestionKind, QuestionNumber};
use delegator_domain::task::{State, TaskId};
use delegator_fleet::{Database, DatabaseUrl, NewFleetTask, NewSession, OnLost, new_id};
use delegator_registry::{OpenOptions, Registry, StateDir};
use delegator_testkit::cloud_script::{ENVIRONMENTS, answer_cloud_commands};
use delegator_testkit::generated::workspace;
use delegator_testkit::postgres::PostgresServer;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");
/// How the pages write the id of a task.
pub(crate) const TASK_ID: &str = "T-local-…";
pub(crate) const CLOUD_TASK_ID: &str = "T-cloud-…";
const GROUP_ID: &str = "G-local-…";
/// The address of the pages. The tests use a free port instead.
const ADDRESS: &str = "127.0.0.1:7777";

pub(crate) struct ExampleWorld {
    pub(crate) stage: Stage,
    /// A finished task that wrote a file, or the task of `chat`; present if an example names a task.
    task_id: Option<String>,
    /// A finished group of attempts; present if an example names one.
    group_id: Option<String>,
    /// A running task whose agent takes messages and has asked a question; present if an example talks to one.
    chat: Option<Chat>,
    /// A finished cloud task that changed the same file; present if an example names one.
    cloud_task_id: Option<String>,
    /// The database of a fleet with one worker; present if an example is about the fleet.
    fleet: Option<PostgresServer>,
    /// Workers that the examples started.
    workers: RefCell<Vec<Child>>,
}

impl ExampleWorld {
    /// A world for these commands, with this configuration of the user.
    pub(crate) fn new(commands: &[&String], config: &str) -> ExampleWorld {
        let stage = stage_in_repository(
            &[("code.txt", "committed\n")],
            successful_turn(&[json!({"write_file": {"path": "code.txt", "text": "agent\n"}})]),
        );
        for path in ["home/.claude.json", "home/.cursor/mcp.json", "home/.config/Code/User/mcp.json"] {
            stage.world.write(path, "{}\n");
        }
        stage.world.write("home/.config/Claude/claude_desktop_config.json", "{}\n");
        stage.world.write("home/.codex/config.toml", "");
        let starts_worker = commands.iter().any(|command| command.contains("mcp-delegator worker "));
        let names_fleet = |command: &&String| {
            command.contains("mcp-delegator fleet ") || command.contains("--provider fleet")
        };
        let is_about_fleet = starts_worker || commands.iter().any(names_fleet);
        let fleet = is_about_fleet.then(fleet_with_worker);
        // A key of the top level must stand before any table.
        let url = fleet.as_ref().map(|server| format!("database_url = '{}'\n", server.url()));
        let config = url.unwrap_or_default() + config;
        stage.world.write("home/.config/mcp-delegator/config.toml", &config);
        if starts_worker {
            let repository = stage.world.project().display().to_string();
            let environment =
                json!({"name": "Site", "repoUrl": repository, "stack": "node", "provider": "fleet"});
            let environments = json!({"env_site": environment}).to_string();
            stage.world.write("home/.config/mcp-delegator/environments.json", &environments);
        }
        let talks = |command: &&String| {
            command.contains("mcp-delegator send ") || command.contains("mcp-delegator answer ")
        };
        let chat = commands.iter().any(talks).then(|| Chat::start(&stage, &config));
        let names_task = commands.iter().any(|command| command.contains(TASK_ID));
        let finished_task = (names_task && chat.is_none()).then(|| finished_task(&stage, commands));
        let names_group = commands.iter().any(|command| command.contains(GROUP_ID));
        let group_id = names_group.then(|| finished_group(&stage));
        let is_about_cloud = commands
            .iter()
            .any(|command| command.contains("cloud submit") || command.contains(CLOUD_TASK_ID));
        if is_about_cloud && !starts_worker {
            answer_cloud_commands(&stage.root());
        }
        let names_cloud_task = commands.iter().any(|command| command.contains(CLOUD_TASK_ID));
        let cloud_task_id = names_cloud_task.then(|| {
            stage.world.write("home/.config/mcp-delegator/environments.json", ENVIRONMENTS);
            let submitted = stage.run_json(&["cloud", "submit", "x", "--env-id", "env_site"]);
            let id = submitted["data"]["task_id"].as_str().unwrap().to_owned();
            stage.wait(&id);
            if commands.iter().any(|command| command.contains("env add")) {
                std::fs::remove_file(stage.world.home().join(".config/mcp-delegator/environments.json"))
                    .unwrap();
            }
            id
        });
        let task_id = chat.as_ref().map(|chat| chat.task_id.clone()).or(finished_task);
        let workers = RefCell::default();
        let world = ExampleWorld { stage, task_id, group_id, chat, cloud_task_id, fleet, workers };
        commands.iter().for_each(|command| world.prepare_files(command));
        world
    }

    /// The command with real values instead of placeholders.
    pub(crate) fn fill_in(&self, command: &str) -> String {
        let mut command = command.replace(ADDRESS, "127.0.0.1:0");
        // Pages are tested at the same time, and the usual port has only one server.
        if !command.contains("dashboard sessions") {
            command = command.replace("mcp-delegator dashboard", "mcp-delegator dashboard --port 0");
        }
        if let (Some(group), true) = (&self.group_id, command.contains("--against ")) {
            let status = self.stage.run_json(&["local", "status", group]);
            let attempt = status["data"]["groups"][0]["attempts"][0]["task_id"].as_str().unwrap();
            command = command.replace("--against T-local-…", &format!("--against {attempt}"));
        }
        let ids =
            [(TASK_ID, &self.task_id), (GROUP_ID, &self.group_id), (CLOUD_TASK_ID, &self.cloud_task_id)];
        ids.into_iter().fold(command, |command, (placeholder, id)| match id {
            Some(id) => command.replace(placeholder, id),
            None => command,
        })
    }

    /// Waits for tasks in the background: the next command may need their work tree, and none may outlive this world.
    pub(crate) fn wait_for_tasks(&self) {
        if !self.stage.world.home().join("state").exists() {
            return;
        }
        let status = self.stage.run_json(&["local", "status"]);
        let chat = self.chat.as_ref().map(|chat| chat.task_id.as_str());
        let tasks = ["tasks", "queue"].iter().flat_map(|list| status["data"][list].as_array().unwrap());
        for id in tasks.map(|task| task["task_id"].as_str()).filter(|id| *id != chat) {
            self.stage.wait(id.unwrap());
        }
    }

    /// Starts a worker, and waits until it has a lease.
    pub(crate) fn start_worker(&self, mut command: Command) {
        let server = self.fleet.as_ref().unwrap();
        let sessions = || server.value("select count(*) from delegator.sessions where ended_at is null");
        let before = sessions();
        let worker =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.workers.borrow_mut().push(worker);
        wait_until("the worker has a lease", || sessions() != before);
    }

    /// Ends the workers as a service manager does: they finish their tasks first.
    pub(crate) fn drain_workers(&self) {
        for mut worker in self.workers.take() {
            kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
            assert_eq!(worker.wait().unwrap().code(), Some(0));
        }
    }

    /// Ends the task whose agent takes messages.
    pub(crate) fn end_chat(&self) {
        if let Some(chat) = &self.chat {
            self.stage.run_json(&["local", "cancel", &chat.task_id]);
        }
    }

    /// Creates the transcripts that a command reads, and the directories of files that it writes.
    fn prepare_files(&self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        for (index, word) in words.iter().enumerate() {
            let path = match word.strip_prefix("~/") {
                Some(path) => self.stage.world.home().join(path),
                None => self.stage.world.project().join(word),
            };
            let is_written = index > 0 && words[index - 1] == ">";
            if let (Some(server), true) =
                (&self.fleet, index > 0 && words[index - 1] == "--database-url-file")
            {
                std::fs::write(&path, server.url()).unwrap();
            }
            if is_written || word.ends_with(".jsonl") {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            }
            if word.ends_with(".jsonl") && !is_written {
                std::fs::copy(transcript(word), path).unwrap();
            }
        }
    }
}

/// A task that wrote a file: in a worktree, if a command takes the changes of one.
fn finished_task(stage: &Stage, commands: &[&String]) -> String {
    let takes_worktree = |command: &&String| {
        command.contains("mcp-delegator apply ") || command.contains("mcp-delegator discard ")
    };
    let isolation = if commands.iter().any(takes_worktree) { "worktree" } else { "none" };
    let id = stage.exec(&["--mode", "workspace-write", "--isolation", isolation]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    id
}

fn finished_group(stage: &Stage) -> String {
    let args = ["local", "exec", "x", "--mode", "workspace-write", "--attempts", "2"];
    let id = stage.run_json(&args)["data"]["group_id"].as_str().unwrap().to_owned();
    stage.wait(&id);
    id
}

/// A task of an agent that reads messages until it is cancelled, with an open question.
struct Chat {
    task_id: String,
}

impl Chat {
    fn start(stage: &Stage, config: &str) -> Chat {
        let agent =
            "[agents.chat]\nprotocol = \"idle-jsonl\"\ncommand = [\"/bin/cat\"]\nunsandboxed = true\n";
        stage.world.write("home/.config/mcp-delegator/config.toml", &format!("{config}{agent}"));
        // There is something to send.
        stage.world.write("project/code.txt", "changed\n");
        let accepted = stage.run_json(&["local", "exec", "chat", "--agent", "chat"]);
        let task_id = accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned();
        let state_dir = StateDir::open(&stage.world.home().join("state"), &OpenOptions::default()).unwrap();
        let mut registry = Registry::open(&state_dir).unwrap();
        let id: TaskId = task_id.parse().unwrap();
        let is_working = |registry: &Registry| registry.get(&id).unwrap().unwrap().state == State::Working;
        wait_until("the agent works", || is_working(&registry));
        let nonce = registry.get(&id).unwrap().unwrap().nonce.unwrap();
        let option = |id: &str, label: &str, kind| AnswerOption { id: id.into(), label: label.into(), kind };
        let question = Question {
            number: QuestionNumber(1),
            kind: QuestionKind::Permission,
            title: "Run make?".to_owned(),
            detail: None,
            options: vec![
                option("allow_once", "Allow once", OptionKind::AllowOnce),
                option("reject_once", "Reject", OptionKind::RejectOnce),
            ],
            free_text: false,
        };
        registry.ask(&id, &nonce, &question, 4_000_000_000_000, 1).unwrap();
        Chat { task_id }
    }
}

/// A database with the worker and the task of another machine that the examples name.
fn fleet_with_worker() -> PostgresServer {
    let server = PostgresServer::options().fast().start();
    let database = Database::new(&DatabaseUrl::parse(&server.url()).unwrap());
    database.migrate().unwrap();
    let session = NewSession {
        worker: "build-3".to_owned(),
        workspace: "build-3".to_owned(),
        slots: 4,
        labels: BTreeMap::new(),
        version: "3.6.0".to_owned(),
        lease: Duration::from_secs(3600),
    };
    database.open_session(&session).unwrap();
    database.submit(&task_of_another_machine()).unwrap();
    server
}

/// A task that no worker of the examples claims.
fn task_of_another_machine() -> NewFleetTask {
    let spec = json!({
        "environment": "env_site", "repo_url": "/nowhere", "branch": null, "setup": null, "mode": "read-only",
        "push": false, "text": "explain it", "title": "explain it", "labels": {}, "submitter_task": "T-cloud-7q3k9x2m4p",
    });
    NewFleetTask {
        id: new_id(),
        idempotency: None,
        spec: serde_json::from_value(spec).unwrap(),
        labels: BTreeMap::from([("os".to_owned(), "none".to_owned())]),
        priority: 0,
        on_lost: OnLost::Fail,
        max_claims: 1,
    }
}

/// The recorded transcript for a file name of the pages.
fn transcript(name: &str) -> PathBuf {
    let is_rollout = name.contains("rollout-") || name.contains("session");
    let file = if is_rollout { "rollouts/0.166.0.patch.rollout.jsonl" } else { "patch.jsonl" };
    workspace().join("crates/delegator-transcript/tests/transcripts").join(file)
}

/// A stage whose project is a git repository with these files, committed, and whose agent runs these steps.
pub(crate) fn stage_in_repository(files: &[(&str, &str)], steps: Value) -> Stage {
    let stage = on_path(Stage::with_script(PROGRAM, steps));
    for (path, text) in files {
        stage.world.write(&format!("project/{path}"), text);
    }
    for args in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "."],
        &["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "first"],
    ] {
        let run = stage.world.run_as(&PathBuf::from("/usr/bin/git"), args);
        assert_eq!(run.exit, Some(0), "{run:?}");
    }
    stage
}

/// The stage with the program and stand-ins for others on its `PATH`.
pub(crate) fn on_path(stage: Stage) -> Stage {
    let root = stage.root();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", root.join("bin").display());
    std::fs::create_dir(root.join("tmp")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, root.join("bin/mcp-delegator")).unwrap();
    // The verify command of the examples, and the reader of the manual page: it must get a page.
    stage.write_program("bin/cargo", "#!/bin/sh\nexit 0\n");
    stage.write_program("bin/man", "#!/bin/sh\ngrep -q '^\\.TH mcp-delegator'\n");
    stage
        .variable("PATH", &path)
        .variable("TMPDIR", &root.join("tmp").display().to_string())
        .variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true")
}
