//! A world with an agent: a `codex` that runs a script of the scripted agent, or a shell script.

#![expect(clippy::disallowed_methods, reason = "conditions of other processes have to be polled")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::World;

/// A world with an agent and a separate state directory.
#[derive(Debug)]
pub struct Stage {
    pub world: World,
}

impl Stage {
    /// The agent is the scripted agent of the program, installed as `codex`.
    pub fn with_script(program: &str, steps: Value) -> Stage {
        Stage::with_script_after("", program, steps)
    }

    /// Like [`Stage::with_script`], with shell commands before the agent.
    pub fn with_script_after(prelude: &str, program: &str, steps: Value) -> Stage {
        let stage = Stage::with_shell_agent(program, "");
        stage.set_script(steps);
        let script = stage.root().join("script.json");
        stage.write_agent(&format!(
            "{prelude}\nexec '{program}' scripted-agent --script '{}' \"$@\"",
            script.display()
        ));
        stage
    }

    /// The agent is a shell script, installed as `codex`.
    pub fn with_shell_agent(program: &str, text: &str) -> Stage {
        let world = World::new(program);
        let root = world.home().parent().expect("a home in a folder").to_owned();
        let world = world
            .variable("MCP_DELEGATOR_CODEX_BIN", &root.join("bin/codex").display().to_string())
            .variable("MCP_DELEGATOR_HOME", &root.join("home/state").display().to_string())
            .variable("MCP_DELEGATOR_INTERRUPT_GRACE_SEC", "1")
            .variable("MCP_DELEGATOR_TERMINATE_GRACE_SEC", "1");
        let stage = Stage { world };
        stage.write_agent(text);
        stage
    }

    #[must_use]
    pub fn variable(self, name: &str, value: &str) -> Stage {
        Stage { world: self.world.variable(name, value) }
    }

    /// Sets the script of the scripted agent for its next starts.
    pub fn set_script(&self, steps: Value) {
        self.world.write("script.json", &json!({ "steps": steps }).to_string());
    }

    /// Writes the shell script of the agent. It always answers `--version`.
    fn write_agent(&self, text: &str) {
        let version = "if [ \"$1\" = --version ]; then echo codex-cli 0.166.0; exit 0; fi";
        self.write_program("bin/codex", &format!("#!/bin/sh\n{version}\n{text}\n"));
    }

    /// Writes an executable file below the root of this world.
    pub fn write_program(&self, path: &str, text: &str) -> PathBuf {
        self.world.write(path, text);
        let path = self.root().join(path);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Root directory of this world.
    pub fn root(&self) -> PathBuf {
        self.world.home().parent().expect("a home in a folder").to_owned()
    }

    pub fn run_json(&self, args: &[&str]) -> Value {
        let run = self.world.run(args);
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    }

    /// Submits a task and returns its id.
    pub fn exec(&self, extra_args: &[&str]) -> String {
        let response = self.run_json(&[&["local", "exec", "do it"], extra_args].concat());
        response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    pub fn wait(&self, id: &str) -> Value {
        self.run_json(&["local", "wait", id])
    }

    pub fn task_dir(&self, id: &str) -> PathBuf {
        self.world.home().join("state/tasks").join(id)
    }

    /// Waits until a file exists in the working directory of the agent.
    pub fn wait_for_project_file(&self, name: &str) {
        let path = self.world.project().join(name);
        wait_until(&format!("{} exists", path.display()), || path.exists());
    }

    /// Creates the session file by which Codex knows a thread.
    pub fn write_session(&self, thread: &str) {
        let day = "home/.codex/sessions/2026/11/16";
        self.world.write(&format!("{day}/rollout-2026-11-16T05-56-29-{thread}.jsonl"), "");
    }

    /// Process id of the supervisor of a task.
    pub fn supervisor_pid(&self, id: &str) -> i32 {
        supervisor_of(id)
    }
}

/// A successful turn that contains these steps.
pub fn successful_turn(steps: &[Value]) -> Value {
    let mut all = vec![json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    all.extend_from_slice(steps);
    all.push(json!({"message": "All done."}));
    all.push(json!({"turn_completed": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}}));
    json!(all)
}

/// Process id of the supervisor of a task.
pub fn supervisor_of(id: &str) -> i32 {
    let wanted = format!("supervise\0{id}\0");
    let found = pids().into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&wanted)
    });
    found.unwrap_or_else(|| panic!("no supervisor of {id}"))
}

/// Live processes of a task: its agent, and everything the agent started.
pub fn task_processes(id: &str) -> Vec<i32> {
    let mark = format!("DELEGATOR_TASK={id}:");
    let belongs_to_task = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(mark.len()).any(|window| window == mark.as_bytes()) && is_alive(*pid)
    };
    pids().into_iter().filter(belongs_to_task).collect()
}

/// Whether the process exists and is not a zombie.
pub fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

pub fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

/// Polls until the condition is true; panics after a generous timeout.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(240);
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
