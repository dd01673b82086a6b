//! Whether commands under the real Codex can read our state directory.

use delegator_testkit::codex::world_with_codex;
use delegator_testkit::fake_model::{FakeModel, Reply, command, message};
use delegator_testkit::program::World;
use serde_json::Value;

use crate::PROGRAM;

fn run_json(world: &World, args: &[&str]) -> Value {
    let run = world.run(args);
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

/// Submits a task and waits for its end.
fn run_to_end(world: &World, args: &[&str]) -> Value {
    let accepted = run_json(world, &[&["local"], args, &["--skip-git-repo-check"]].concat());
    let id = accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned();
    run_json(world, &["local", "wait", &id])["data"].clone()
}

#[test]
fn commands_cannot_read_the_state_directory_where_it_is_hidden() {
    let cases = [
        ("read-only", "read-only", true),
        ("workspace-write", "read-only", false),
        ("workspace-write", "always", true),
        ("read-only", "never", false),
    ];
    // Each case has its own world, and mostly waits for Codex to start.
    std::thread::scope(|scope| {
        for (mode, setting, is_hidden) in cases {
            scope.spawn(move || assert_hidden(mode, setting, is_hidden));
        }
    });
}

fn assert_hidden(mode: &str, setting: &str, is_hidden: bool) {
    let state = "../home/state";
    let script = format!("cat {state}/http-token; ls {state}; touch inside; touch ../more/added; :");
    let model = FakeModel::start(vec![
        Reply::Output(vec![command(&script)]),
        Reply::Output(vec![message("Looked.")]),
        Reply::Output(vec![command(&script)]),
        Reply::Output(vec![message("Looked again.")]),
    ]);
    let world = world_with_codex(PROGRAM, &model.codex_config())
        .variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .variable("MCP_DELEGATOR_HIDE_STATE_DIR", setting);
    world.write("home/state/http-token", "the-token-of-the-server");
    world.write("more/.keep", "");
    let root = world.home().parent().unwrap().to_owned();
    let more = root.join("more").display().to_string();
    let check = format!("sh -c '! cat {state}/http-token'");
    let data = run_to_end(&world, &["exec", "look", "--mode", mode, "--add-dirs", &more, "--verify", &check]);
    assert_eq!(data["state"], "completed", "{mode} {setting}: {data}");
    let status = if is_hidden { "verified" } else { "verify_failed" };
    assert_eq!(data["verification"]["status"], status, "{mode} {setting}: {data}");
    let task = data["task_id"].as_str().unwrap().to_owned();
    let again =
        run_to_end(&world, &["resume", "again", "--mode", mode, "--add-dirs", &more, "--task-id", &task]);
    assert_eq!(again["state"], "completed", "{mode} {setting}: {again}");
    let sent: Vec<String> = model.requests().iter().map(ToString::to_string).collect();
    let was_read = sent.iter().any(|request| request.contains("the-token-of-the-server"));
    assert_eq!(was_read, !is_hidden, "{mode} {setting}");
    for path in ["project/inside", "more/added"] {
        assert_eq!(root.join(path).exists(), mode != "read-only", "{mode} {setting}: {path}");
    }
}
