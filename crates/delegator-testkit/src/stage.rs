//! A world whose agent does what a test tells it to: a `codex` that plays a script, or any other text for a shell.

#![expect(
    clippy::disallowed_methods,
    reason = "a condition of another process has to be looked at again and again"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::World;

/// The program, an agent to run, and a state directory of their own.
#[derive(Debug)]
pub struct Stage {
    pub world: World,
}

impl Stage {
    /// The agent is this very program's scripted one, behind a name Codex would have.
    pub fn with_script(program: &str, steps: Value) -> Stage {
        Stage::with_script_after("", program, steps)
    }

    /// The same, after some words of a shell.
    pub fn with_script_after(prelude: &str, program: &str, steps: Value) -> Stage {
        let stage = Stage::with_shell_agent(program, "");
        stage.set_script(steps);
        let script = stage.root().join("script.json");
        stage.write_agent(&format!(
            "{prelude}\nexec {program} scripted-agent --script {} \"$@\"",
            script.display()
        ));
        stage
    }

    /// The agent is a shell's script. It is told apart from Codex only by what it does.
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

    /// What the scripted agent does from now on.
    pub fn set_script(&self, steps: Value) {
        self.world.write("script.json", &json!({ "steps": steps }).to_string());
    }

    /// What the shell's agent does from now on. Its version is always told.
    fn write_agent(&self, text: &str) {
        let version = "if [ \"$1\" = --version ]; then echo codex-cli 0.166.0; exit 0; fi";
        self.write_program("bin/codex", &format!("#!/bin/sh\n{version}\n{text}\n"));
    }

    /// Something to be run, below the root of this world.
    pub fn write_program(&self, path: &str, text: &str) -> PathBuf {
        self.world.write(path, text);
        let path = self.root().join(path);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The folder everything of this world is in.
    pub fn root(&self) -> PathBuf {
        self.world.home().parent().expect("a home in a folder").to_owned()
    }

    pub fn run_json(&self, args: &[&str]) -> Value {
        let run = self.world.run(args);
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    }

    /// Submits a task and says its id.
    pub fn exec(&self, more: &[&str]) -> String {
        let response = self.run_json(&[&["local", "exec", "do it"], more].concat());
        response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    pub fn wait(&self, id: &str) -> Value {
        self.run_json(&["local", "wait", id])
    }

    pub fn task_dir(&self, id: &str) -> PathBuf {
        self.world.home().join("state/tasks").join(id)
    }

    /// Until a file is there, in the directory the agent works in.
    pub fn wait_for_project_file(&self, name: &str) {
        let path = self.world.project().join(name);
        wait_until(&format!("{} is there", path.display()), || path.exists());
    }

    /// The process that supervises a task.
    pub fn supervisor_pid(&self, id: &str) -> i32 {
        let wanted = format!("supervise\0{id}\0");
        let found = pids().into_iter().find(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&wanted)
        });
        found.unwrap_or_else(|| panic!("nobody supervises {id}"))
    }
}

/// A turn that goes well, around some steps.
pub fn successful_turn(steps: &[Value]) -> Value {
    let mut all = vec![json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    all.extend_from_slice(steps);
    all.push(json!({"message": "All done."}));
    all.push(json!({"turn_completed": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}}));
    json!(all)
}

/// The living processes that belong to a task: its agent, and what that started.
pub fn task_processes(id: &str) -> Vec<i32> {
    let mark = format!("DELEGATOR_TASK={id}:");
    let belongs_to_task = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(mark.len()).any(|window| window == mark.as_bytes()) && is_alive(*pid)
    };
    pids().into_iter().filter(belongs_to_task).collect()
}

/// Whether there is such a process, and not only what is left of it.
pub fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

pub fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

/// Looks until something holds, for a generous while.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(240);
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
