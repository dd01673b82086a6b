//! A test bed: one state directory with agents, a project, a home and a clean environment.
//!
//! Every process started here has the test bed's home directory in its environment, regardless of its parent, session
//! or process group. That is how a test bed finds its processes and kills them when it is dropped.

#![expect(clippy::disallowed_methods, reason = "a test bed starts the programs under test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clock::sleep;
use crate::engine_calls::EngineClient;
use crate::error::LoadError;
use crate::processes::{ProcessHandle, with_variable};
use crate::programs::Programs;
use crate::server::ServerConfig;
use crate::server::handle::Server;

/// How long a test bed tries to kill its processes.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);

/// Options of a test bed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestbedOptions<'a> {
    pub(crate) name: &'a str,
    pub(crate) slots: usize,
    pub(crate) interrupt_grace_sec: u64,
    pub(crate) terminate_grace_sec: u64,
    pub(crate) keep: bool,
}

#[derive(Debug)]
pub(crate) struct Testbed {
    root: PathBuf,
    programs: Programs,
    slots: usize,
    graces: (u64, u64),
    keep: bool,
}

impl Testbed {
    pub(crate) fn new(programs: &Programs, options: TestbedOptions<'_>) -> Result<Testbed, LoadError> {
        let root = programs.testbeds.join(format!("{}-{}", options.name, std::process::id()));
        let make_dir = |path: &Path| {
            fs::create_dir_all(path).map_err(LoadError::io(format!("create {}", path.display())))
        };
        if root.exists() {
            fs::remove_dir_all(&root).map_err(LoadError::io(format!("remove {}", root.display())))?;
        }
        for folder in ["home", "project", "bin"] {
            make_dir(&root.join(folder))?;
        }
        let graces = (options.interrupt_grace_sec, options.terminate_grace_sec);
        Ok(Testbed { root, programs: programs.clone(), slots: options.slots, graces, keep: options.keep })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.root.join("state")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Creates an agent that plays these steps. Returns its path.
    pub(crate) fn agent(&self, name: &str, steps: &Value) -> Result<PathBuf, LoadError> {
        self.write_agent(name, steps, "")
    }

    /// The same, but every start is first recorded in `starts`: pid and task.
    pub(crate) fn start_recording_agent(&self, name: &str, steps: &Value) -> Result<PathBuf, LoadError> {
        let prelude = format!(
            "[ \"$1\" = --version ] || echo \"$$ $DELEGATOR_TASK\" >> '{}'\n",
            self.starts_file().display()
        );
        self.write_agent(name, steps, &prelude)
    }

    pub(crate) fn starts_file(&self) -> PathBuf {
        self.root.join("starts")
    }

    /// A shell script that execs the scripted agent, so no shell remains while the agent runs.
    fn write_agent(&self, name: &str, steps: &Value, prelude: &str) -> Result<PathBuf, LoadError> {
        let folder = self.root.join("bin").join(name);
        let (program, script) = (folder.join("codex"), folder.join("script.json"));
        let args: Vec<String> = self.programs.agent.iter().map(|arg| format!("'{arg}'")).collect();
        let text =
            format!("#!/bin/sh\n{prelude}exec {} --script '{}' \"$@\"\n", args.join(" "), script.display());
        let result = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&script, json!({"steps": steps}).to_string()))
            .and_then(|()| fs::write(&program, text))
            .and_then(|()| fs::set_permissions(&program, fs::Permissions::from_mode(0o755)));
        result.map_err(LoadError::io(format!("write the agent {name}")))?;
        Ok(program)
    }

    /// A command-line call of the program in this test bed, with this agent.
    pub(crate) fn cli_call(&self, agent: &Path, args: &[&str]) -> Command {
        let mut command = self.clean_command(&self.programs.delegator);
        command.args(args).env("MCP_DELEGATOR_CODEX_BIN", agent);
        command
    }

    fn clean_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("MCP_DELEGATOR_HOME", self.state_dir())
            .env("MCP_DELEGATOR_MAX_CONCURRENT", self.slots.to_string())
            .env("MCP_DELEGATOR_INTERRUPT_GRACE_SEC", self.graces.0.to_string())
            .env("MCP_DELEGATOR_TERMINATE_GRACE_SEC", self.graces.1.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Starts a process that embeds the engine.
    pub(crate) fn server(&self) -> Result<Server, LoadError> {
        let mut command = self.clean_command(&self.programs.server);
        command.arg(crate::SERVE);
        Server::start(command, &self.server_config())
    }

    pub(crate) fn server_config(&self) -> ServerConfig {
        ServerConfig {
            state_dir: self.state_dir(),
            program: self.programs.delegator.clone(),
            slots: self.slots,
            project: self.project(),
            graces: self.graces,
        }
    }

    /// The engine in our own process, for inspecting the results.
    pub(crate) fn engine(&self) -> EngineClient {
        EngineClient::new(self.server_config())
    }

    /// The living processes of this test bed. Supervisors have no HOME, only the state directory.
    pub(crate) fn processes(&self) -> Vec<ProcessHandle> {
        let home = format!("HOME={}", self.home().display());
        with_variable(&[home, format!("MCP_DELEGATOR_HOME={}", self.state_dir().display())])
    }

    /// Whether any event of the task was stored.
    pub(crate) fn has_output(&self, id: &str) -> bool {
        fs::metadata(self.events_file(id)).is_ok_and(|file| file.len() > 0)
    }

    pub(crate) fn events_file(&self, id: &str) -> PathBuf {
        self.state_dir().join("tasks").join(id).join("events.jsonl")
    }

    /// Kills all processes, including those they start meanwhile. False if some are left.
    pub(crate) fn kill_all(&self) -> bool {
        let deadline = Instant::now() + CLEANUP_TIMEOUT;
        loop {
            let alive = self.processes();
            if alive.is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            alive.iter().for_each(ProcessHandle::kill);
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.kill_all();
        if !self.keep {
            // A directory that cannot be removed lies below the test bed directory and harms nothing.
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}
