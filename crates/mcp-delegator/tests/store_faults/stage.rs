//! A world whose `codex` runs a script, with a configurable state directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_registry::{OpenOptions, Registry, StateDir};
use delegator_testkit::program::{RunOutput, World};
use serde_json::{Value, json};

pub(crate) struct Stage {
    pub(crate) world: World,
    state: PathBuf,
}

impl Stage {
    pub(crate) fn with_script(steps: Value) -> Stage {
        let stage = Stage::with_state_dir(steps, None, "");
        std::fs::create_dir_all(stage.state.parent().unwrap()).unwrap();
        stage
    }

    /// The same with another state directory, or with additional user configuration.
    pub(crate) fn with_state_dir(steps: Value, state: Option<&Path>, config: &str) -> Stage {
        let program = env!("CARGO_BIN_EXE_mcp-delegator");
        let world = World::new(program).config(config);
        let root = world.home().parent().unwrap().to_owned();
        world.write("script.json", &json!({"steps": steps}).to_string());
        let script = root.join("script.json");
        let wrapper =
            format!("#!/bin/sh\nexec '{program}' scripted-agent --script '{}' \"$@\"\n", script.display());
        let codex = write_program(&world, "bin/codex", &wrapper);
        let state = state.map_or_else(|| root.join("home/state"), Path::to_owned);
        let world = world
            .variable("MCP_DELEGATOR_CODEX_BIN", codex.to_str().unwrap())
            .variable("MCP_DELEGATOR_HOME", state.to_str().unwrap())
            .variable("MCP_DELEGATOR_INTERRUPT_GRACE_SEC", "1")
            .variable("MCP_DELEGATOR_TERMINATE_GRACE_SEC", "1");
        Stage { world, state }
    }

    pub(crate) fn variable(self, name: &str, value: &str) -> Stage {
        Stage { world: self.world.variable(name, value), ..self }
    }

    pub(crate) fn state_dir(&self) -> &Path {
        &self.state
    }

    pub(crate) fn task_dir(&self, id: &str) -> PathBuf {
        self.state.join("tasks").join(id)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state.join("registry.db")
    }

    pub(crate) fn registry(&self) -> Registry {
        Registry::open(&StateDir::open(&self.state, &OpenOptions::default()).unwrap()).unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> RunOutput {
        self.world.run(args)
    }

    /// The JSON output of a command that must succeed.
    #[track_caller]
    pub(crate) fn run_json(&self, args: &[&str]) -> Value {
        let run = self.run(args);
        assert_eq!(run.exit, Some(0), "{args:?}: {run:?}");
        run.json()
    }

    #[track_caller]
    pub(crate) fn exec(&self, more: &[&str]) -> String {
        let response = self.run_json(&[&["local", "exec", "do it"], more].concat());
        response["data"]["task_id"].as_str().unwrap().to_owned()
    }

    /// The data of a task after its end; panics if it does not end within a minute.
    #[track_caller]
    pub(crate) fn wait_for_end(&self, id: &str) -> Value {
        let run = self.run(&["local", "wait", id, "--timeout-sec", "60"]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        run.json()["data"].clone()
    }

    pub(crate) fn wait_for_project_file(&self, file: &str) {
        wait_until(|| self.world.project().join(file).exists());
    }

    /// Creates a file that agents wait for.
    pub(crate) fn touch(&self, file: &str) {
        self.world.write(&format!("project/{file}"), "");
    }
}

/// Writes an executable file into the world.
pub(crate) fn write_program(world: &World, name: &str, text: &str) -> PathBuf {
    world.write(name, text);
    let path = world.home().parent().unwrap().join(name);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// Waits for a condition; panics after 100 s.
#[track_caller]
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(100), "timed out waiting for a condition");
        std::thread::yield_now();
    }
}

/// A successful turn with these steps.
pub(crate) fn successful_turn(steps: &[Value]) -> Value {
    let mut all = vec![json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    all.extend_from_slice(steps);
    all.push(json!({"message": "All done."}));
    all.push(json!({"turn_completed": {"input_tokens": 100, "output_tokens": 7}}));
    json!(all)
}

/// A number from an environment variable, or the default.
pub(crate) fn env_number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The processes of this world: supervisors, whose environment contains the state directory, and their children, whose
/// environment contains its root.
pub(crate) fn stage_processes(stage: &Stage) -> Vec<i32> {
    let markers =
        [stage.world.home().parent().unwrap(), stage.state_dir()].map(|path| path.display().to_string());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let contains =
            |marker: &String| environ.windows(marker.len()).any(|window| window == marker.as_bytes());
        if markers.iter().any(contains) {
            found.push(pid);
        }
    }
    found
}
