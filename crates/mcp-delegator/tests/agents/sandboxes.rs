//! Every kind of agent tries to write where its mode forbids it, with a command and with its own tool for files.

use std::path::PathBuf;

use delegator_testkit::program::World;
use delegator_testkit::scripted_model::{Action, Script};
use serde_json::{Value, json};

use crate::agent_kinds::{AgentKind, for_every_agent};
use crate::live_world::LiveWorld;

/// The directories, in which `command` and `tool` are written: the project, its neighbour and the user's home.
fn directories(world: &World) -> [PathBuf; 3] {
    [world.project(), world.project().with_file_name("neighbour"), world.home()]
}

/// Writes to every directory. Some agents end their turn when a permission is refused, so that comes last.
fn script(world: &World) -> Script {
    let directories = directories(world);
    let paths: Vec<String> = directories.iter().map(|path| format!("'{}'", path.display())).collect();
    let command = format!(
        "n=0; for d in {}; do n=$((n + 1)); echo x > \"$d/command\" || echo \"refused-$n\"; done",
        paths.join(" ")
    );
    let write = |path: PathBuf| Action::WriteFile { path: path.join("tool"), text: "x\n" };
    vec![vec![Action::Run(command)], directories.map(write).to_vec(), vec![Action::Say("Tried.")]]
}

for_every_agent!(nothing_is_written_in_read_only_mode, only_the_project_is_written_in_workspace_write_mode);

fn nothing_is_written_in_read_only_mode(kind: AgentKind) {
    assert_written(kind, "auto", "read-only", 0);
}

fn only_the_project_is_written_in_workspace_write_mode(kind: AgentKind) {
    assert_written(kind, "auto", "workspace-write", 1);
}

/// The tests above use Landlock where the kernel has it.
#[test]
fn bubblewrap_encloses_a_real_agent() {
    assert_written(AgentKind::Claude, "bubblewrap", "read-only", 0);
    assert_written(AgentKind::Claude, "bubblewrap", "workspace-write", 1);
}

/// Asserts that the agent writes to the first directories, as many as are writable, and to no other.
fn assert_written(kind: AgentKind, enclosure: &str, mode: &str, writable: usize) {
    let live = LiveWorld::new(kind, |world| vec![("attempts", script(world))]);
    let live = live.variable("MCP_DELEGATOR_ENCLOSURE", enclosure);
    live.world.write("neighbour/.keep", "");
    let id = live.exec("attempts", &["--mode", mode]);
    let data = live.wait(&id);
    // What the agent printed, and what it sent to the model after its attempts.
    let mut output = live.world.run(["logs", &id, "--raw"]).stdout;
    output.push_str(data["output"]["stderr"].as_str().unwrap());
    output.extend(live.model.requests().iter().map(Value::to_string));
    let report = format!("{kind:?} {mode}: {data:#}\n{output}");
    for (at, directory) in directories(&live.world).iter().enumerate() {
        let is_written = ["command", "tool"].map(|file| directory.join(file).exists());
        assert_eq!(is_written, [at < writable; 2], "{}: {report}", directory.display());
        // The agent has tried.
        assert_eq!(output.contains(&format!("refused-{}", at + 1)), at >= writable, "{report}");
    }
    assert!(output.contains("neighbour/tool"), "{report}");
    let sandbox = match kind {
        AgentKind::Codex | AgentKind::CodexAppServer => "agent",
        _ => "enforced",
    };
    assert_eq!((&data["state"], &data["sandbox"]), (&json!("completed"), &json!(sandbox)), "{report}");
}
