//! A world whose agent runs a script, and helpers that inspect its processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delegator_testkit::program::World;
use serde_json::{Value, json};

use crate::PROGRAM;

/// A world with the state directory `home/state` and an agent `bin/codex` that records every start.
pub(crate) fn world(steps: &Value) -> (World, PathBuf) {
    let world = World::new(PROGRAM);
    let root = world.home().parent().unwrap().to_owned();
    world.write("script.json", &json!({"steps": steps}).to_string());
    let (starts, script) = (root.join("starts"), root.join("script.json"));
    let wrapper = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || echo \"$DELEGATOR_TASK\" >> '{}'\nexec '{PROGRAM}' scripted-agent --script '{}' \"$@\"\n",
        starts.display(),
        script.display()
    );
    world.write("bin/codex", &wrapper);
    let codex = root.join("bin/codex");
    std::fs::set_permissions(&codex, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let world = world
        .variable("MCP_DELEGATOR_CODEX_BIN", codex.to_str().unwrap())
        .variable("MCP_DELEGATOR_HOME", root.join("home/state").to_str().unwrap());
    (world, root)
}

/// The number of agent starts per task.
pub(crate) fn agent_starts(root: &Path) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for line in std::fs::read_to_string(root.join("starts")).unwrap_or_default().lines() {
        *counted.entry(line.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    counted
}

/// Processes whose environment contains a text.
pub(crate) fn processes_with_environment(mark: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok());
    let is_marked = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    pids.filter(is_marked).collect()
}

/// The running supervisors of a world.
pub(crate) fn supervisors(root: &Path) -> Vec<i32> {
    let ours =
        processes_with_environment(&format!("MCP_DELEGATOR_HOME={}", root.join("home/state").display()));
    let is_supervisor = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("\0supervise\0T-local-")
    };
    let found: Vec<i32> = ours.into_iter().filter(is_supervisor).collect();
    // A child of a supervisor has its command line until it executes the agent.
    let is_child = |pid: &i32| parent(*pid).is_some_and(|parent| found.contains(&parent));
    found.iter().copied().filter(|pid| !is_child(pid)).collect()
}

fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Waits for a condition; panics after a minute.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed().as_secs() < 60, "timed out waiting until {what}");
        std::thread::yield_now();
    }
}
