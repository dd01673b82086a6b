//! `agents` lists what tasks can run on, and `agents use` chooses the default; defaults of tasks apply where a
//! call names none.

use delegator_domain::task::Mode;
use delegator_testkit::program::{World, read_text};
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A stage with a second agent, `mine`, which is a shell script. Codex records its arguments.
fn stage() -> Stage {
    let record = "echo \"$*\" > \"$HOME/args\"";
    let stage = Stage::with_script_after(record, PROGRAM, successful_turn(&[]));
    let program = stage.write_program("bin/mine", "#!/bin/sh\ncat > /dev/null\necho by mine\n");
    let config = format!(
        "[agents.mine]\nprotocol = 'plain'\nunsandboxed = true\ncommand = ['{}']\n",
        program.display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage
}

fn default_of(stage: &Stage) -> Vec<String> {
    let agents = stage.run_json(&["agents"])["data"]["agents"].clone();
    let agents = agents.as_array().unwrap().iter().filter(|agent| agent["is_default"] == true);
    agents.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
}

/// What the agent of a task says.
fn message_of(stage: &Stage, args: &[&str]) -> Value {
    let id = stage.exec(args);
    stage.wait(&id)["data"]["final_message"].clone()
}

#[test]
fn the_chosen_agent_runs_tasks_that_name_none() {
    let stage = stage();
    assert_eq!(default_of(&stage), ["codex"]);
    let earlier = stage.exec(&[]);
    assert_eq!(stage.wait(&earlier)["data"]["final_message"], "All done.");
    let chosen = stage.run_json(&["agents", "use", "mine"]);
    assert_eq!((&chosen["data"]["value"], &chosen["warnings"]), (&json!("mine"), &json!([])));
    assert_eq!(default_of(&stage), ["mine"]);
    assert_eq!(message_of(&stage, &[]), "by mine");
    assert_eq!(message_of(&stage, &["--agent", "codex"]), "All done.");
    // A thread stays with its agent, and so does a retried task.
    let first = stage.exec(&["--agent", "codex"]);
    stage.wait(&first);
    let retried = stage.run_json(&["retry", &earlier])["data"]["task_id"].clone();
    assert_eq!(stage.wait(retried.as_str().unwrap())["data"]["final_message"], "All done.");
    let resumed =
        stage.run_json(&["resume", "--task-id", &first, "--task", "go on"])["data"]["task_id"].clone();
    assert_eq!(stage.wait(resumed.as_str().unwrap())["data"]["final_message"], "All done.");
}

#[test]
fn an_unknown_agent_is_refused_and_one_that_is_not_installed_is_a_warning() {
    let stage = stage();
    let before = read_text(&stage.world.home().join(".config/mcp-delegator/config.toml"));
    let run = stage.world.run(["agents", "use", "clade"]);
    assert_eq!(run.json()["error"]["suggestion"], "Did you mean claude?", "{run:?}");
    let planned = stage.run_json(&["agents", "use", "goose", "--dry-run"]);
    assert!(planned["warnings"].to_string().contains("goose cannot run yet"), "{planned}");
    assert_eq!(read_text(&stage.world.home().join(".config/mcp-delegator/config.toml")), before);
    stage.run_json(&["agents", "use", "goose"]);
    let run = stage.world.run(["exec", "x"]);
    assert_eq!(
        run.json()["error"]["code"],
        "DEPENDENCY_MISSING",
        "the user's choice is not replaced: {run:?}"
    );
}

#[test]
fn agents_are_listed_for_people() {
    let stage = stage();
    let shown = stage.world.run(["agents", "--format", "human"]).stdout;
    let line =
        |name: &str| shown.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
    assert!(line("codex").ends_with("default"), "{shown}");
    assert!(line("mine").contains("yes") && line("goose").contains("no"), "{shown}");
    for column in ["INSTALLED", "VERSION", "SIGNED IN", "SANDBOX", "MESSAGES", "THREADS"] {
        assert!(shown.contains(column), "{column}: {shown}");
    }
}

#[test]
fn the_default_mode_applies_where_a_call_names_none() {
    let stage = stage();
    let mode = |args: &[&str]| {
        let id = stage.run_json(&[&["exec", "work"], args].concat())["data"]["task_id"].clone();
        stage.wait(id.as_str().unwrap());
        let args = read_text(&stage.world.home().join("args"));
        Mode::ALL.into_iter().map(Mode::name).find(|mode| args.contains(mode)).unwrap_or_default()
    };
    assert_eq!(mode(&[]), "read-only");
    stage.run_json(&["config", "set", "default_mode", "workspace-write"]);
    assert_eq!(mode(&[]), "workspace-write");
    assert_eq!(mode(&["--mode", "read-only"]), "read-only");
    stage.world.write("project/.mcp-delegator.toml", "max_mode = 'read-only'\n");
    assert_eq!(mode(&[]), "read-only", "a project lowers the default with the limit");
    stage.world.write("project/.mcp-delegator.toml", "default_mode = 'read-only'\n");
    assert_eq!(mode(&[]), "read-only");
    assert_eq!(mode(&["--mode", "workspace-write"]), "workspace-write");
}

#[test]
fn a_default_mode_without_a_sandbox_still_needs_consent() {
    let world =
        World::new(PROGRAM).config("max_mode = 'danger-full-access'\ndefault_mode = 'danger-full-access'\n");
    let run = world.run(["exec", "x"]);
    assert_eq!(run.json()["error"]["code"], "CONFIRMATION_REQUIRED", "{run:?}");
}
