//! Runs every call that the program suggests in common situations. The testkit additionally parses every command that any
//! answer of any test suggests.

use std::collections::BTreeMap;
use std::path::Path;

use delegator_testkit::remedies::{commands_in, commands_in_answer};
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Exit codes of a remedy that does what it promises: the task may have failed or may still run.
const USABLE: [i32; 4] = [0, 10, 14, 80];

fn turn(steps: &[Value]) -> Value {
    let mut all = vec![json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    all.extend_from_slice(steps);
    json!(all)
}

/// The commands that a call suggests in its envelope, as text and as Markdown.
fn suggested(stage: &Stage, args: &[&str]) -> Vec<String> {
    let envelope = stage.world.run(args);
    let mut commands = match serde_json::from_str::<Value>(&envelope.stdout) {
        Ok(answer) => commands_in_answer(&answer),
        Err(_) => commands_in(&envelope.stdout),
    };
    for format in ["human", "markdown"] {
        let run = stage.world.run([args, &["--format", format]].concat());
        commands.extend(commands_in(&run.stdout));
        commands.extend(commands_in(&run.stderr));
    }
    commands.sort();
    commands.dedup();
    commands
}

/// The command with the same id for every task.
fn without_task_ids(command: &str) -> String {
    let word = |word| if str::starts_with(word, "T-local-") { "T-local-0000000000" } else { word };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Runs the commands as a user would, in a shell.
fn run_all(stage: &Stage, situation: &str, commands: &[String], expected: &str) {
    assert!(commands.iter().any(|command| command.contains(expected)), "{situation}: {commands:?}");
    run_each(stage, situation, commands);
}

fn run_each(stage: &Stage, situation: &str, commands: &[String]) {
    for command in commands {
        // A wait for a task that does not end would not end either.
        let is_endless = command.contains(" wait ") || command.ends_with("--follow");
        let script = match is_endless {
            true => command.replacen("mcp-delegator", &format!("timeout -s INT 1 '{PROGRAM}'"), 1),
            false => command.replacen("mcp-delegator", &format!("'{PROGRAM}'"), 1),
        };
        let run = stage.world.run_as(Path::new("bash"), ["-c", &script]);
        let exit = run.exit.unwrap_or_default();
        assert!(USABLE.contains(&exit) || is_endless && exit == 124, "{situation}: `{command}`: {run:?}");
    }
}

#[test]
fn remedies_for_long_messages_and_ended_tasks_run() {
    let long = "m".repeat(9_000);
    let message = |text: &str| turn(&[json!({"message": text}), json!({"turn_completed": {}})]);
    let stage = Stage::with_script(PROGRAM, message(&long));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let cut = suggested(&stage, &["local", "results", &id]);
    run_all(&stage, "a long message", &cut, "--include-output");
    let whole = stage
        .world
        .run_as(Path::new("bash"), ["-c", &cut[0].replacen("mcp-delegator", &format!("'{PROGRAM}'"), 1)]);
    assert!(whole.stdout.contains(&long), "the remedy returns the whole message");
    run_all(&stage, "an ended task", &suggested(&stage, &["logs", &id]), "results");
    run_all(&stage, "an unknown task", &suggested(&stage, &["local", "wait", "T-local-zzzz"]), "status");
}

/// A message of this length, and a word in it that it has once.
fn long_message(bytes: usize) -> (String, &'static str) {
    let words: Vec<String> = (0..=bytes / 8).map(|number| format!("w{number:06}")).collect();
    let mut text = words.join(" ");
    text.truncate(bytes - 1);
    (text + ".", "w000900")
}

/// A stage with a completed task whose agent wrote this message, and the id of the task.
fn stage_with_message(text: &str) -> (Stage, String) {
    let stage = Stage::with_script(PROGRAM, turn(&[json!({"message": text}), json!({"turn_completed": {}})]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    (stage, id)
}

#[test]
fn the_remedy_for_a_long_message_shows_it_once_and_whole() {
    let (message, word) = long_message(20_000);
    let (stage, id) = stage_with_message(&message);
    for format in ["human", "markdown"] {
        let run = stage.world.run(["results", &id, "--include-output", "--format", format]);
        assert!(run.stdout.contains(&message), "{format}");
        assert_eq!(run.stdout.matches(word).count(), 1, "{format}: {}", run.stdout);
    }
    let facts = stage.run_json(&["results", &id, "--fields", "final_message"])["data"].clone();
    assert_eq!(facts["final_message_truncated"]["total_bytes"], 20_000, "{facts}");
}

#[test]
fn a_message_over_the_limit_of_an_answer_is_marked() {
    let (message, word) = long_message(2_000_000);
    let (stage, id) = stage_with_message(&message);
    let args = ["results", &id, "--include-output", "--fields", "final_message"];
    let facts = stage.run_json(&args)["data"].clone();
    let truncated = &facts["final_message_truncated"];
    assert_eq!(truncated["shown_bytes"], facts["final_message"].as_str().map_or(0, str::len), "{truncated}");
    assert_eq!(truncated["total_bytes"], 2_000_000, "{truncated}");
    let raw = stage.world.run([&args[..], &["--envelope", "raw"]].concat());
    assert!(raw.stdout.contains("final_message_truncated"));
    assert!(raw.stderr.contains("and was truncated to 1048576"), "{}", raw.stderr);
    let shown = stage.world.run(["results", &id, "--format", "human"]).stdout;
    assert!(shown.contains("(8000 of 2000000 bytes)"), "{shown}");
    let remedy = format!("mcp-delegator logs {id} --raw");
    assert!(commands_in(&shown).contains(&remedy), "{shown}");
    let whole = stage.world.run(["logs", &id, "--raw"]).stdout;
    assert!(whole.contains(&message) && whole.matches(word).count() == 1);
}

#[test]
fn remedies_for_failed_tasks_run() {
    let stage =
        Stage::with_script(PROGRAM, turn(&[json!({"turn_failed": "unexpected status 401 Unauthorized"})]));
    run_all(&stage, "a failed run", &suggested(&stage, &["local", "run", "x"]), "results");
    stage.set_script(turn(&[json!({"wait_for_file": "never"})]));
    let timed_out = suggested(&stage, &["local", "run", "x", "--hard-timeout-sec", "1"]);
    stage.set_script(successful_turn(&[]));
    run_all(&stage, "a task over its limit", &timed_out, "results");
}

#[test]
fn remedies_for_running_and_absent_tasks_run() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    run_all(&stage, "no task", &suggested(&stage, &["local", "status"]), "run");
    stage.set_script(successful_turn(&[json!({"wait_for_file": "go"})]));
    let id = stage.exec(&[]);
    // Most situations suggest the same commands for a task that runs; each is run once.
    let mut distinct = BTreeMap::new();
    for (situation, args) in [
        ("a running task", vec!["local", "status"]),
        ("an expired wait", vec!["local", "wait", &id, "--timeout-sec", "1"]),
        ("results of a running task", vec!["local", "results", &id]),
        ("the log of a running task", vec!["logs", &id]),
        ("an expired run", vec!["local", "run", "x", "--call-budget-sec", "1"]),
    ] {
        let commands = suggested(&stage, &args);
        assert!(commands.iter().any(|command| command.contains("T-local-")), "{situation}: {commands:?}");
        distinct.extend(commands.into_iter().map(|command| (without_task_ids(&command), command)));
    }
    run_each(&stage, "a running task", &distinct.into_values().collect::<Vec<_>>());
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    stage.wait(&id);
}

#[test]
fn remedies_for_a_denied_write_run() {
    let change = json!({"id": "f", "type": "file_change", "status": "failed",
                        "changes": [{"path": "x", "kind": "add"}]});
    let event = format!("{}\n", json!({"type": "item.completed", "item": change}));
    let stage = Stage::with_script(PROGRAM, successful_turn(&[json!({"raw": {"text": event}})]));
    let run = ["local", "run", "x", "--mode", "read-only"];
    run_all(&stage, "a denied write", &suggested(&stage, &run), "--mode workspace-write");
    stage.world.write("home/.config/mcp-delegator/config.toml", "max_mode = \"read-only\"\n");
    let commands = suggested(&stage, &run);
    run_all(&stage, "a denied write, and max_mode forbids it", &commands, "config show max_mode");
    assert!(!commands.iter().any(|command| command.contains("workspace-write")), "{commands:?}");
}

#[test]
fn an_agent_that_is_not_signed_in_leads_to_its_sign_in_and_not_to_resume() {
    let stage =
        Stage::with_script(PROGRAM, turn(&[json!({"turn_failed": "unexpected status 401 Unauthorized"})]));
    let shown = stage.world.run(["run", "x", "--format", "markdown"]).stdout;
    assert!(shown.contains("Next: Sign in: codex login") && !shown.contains("resume"), "{shown}");
    let error = stage.run_json(&["run", "x"])["error"].clone();
    assert_eq!(error["suggestion"], "Sign in: codex login", "{error}");
}

#[test]
fn the_task_of_a_demo_is_found_or_reported_as_deleted() {
    let stage = Stage::with_shell_agent(PROGRAM, "");
    let shown = stage.world.run(["demo", "--format", "markdown"]).stdout;
    assert!(shown.contains("are deleted again; --keep keeps them"), "{shown}");
    let root = stage.root().display().to_string();
    let stage = stage.variable("TMPDIR", &root);
    let shown = stage.world.run(["demo", "--keep", "--format", "markdown"]).stdout;
    let (_, command) = shown.split_once("The task: ").unwrap_or_else(|| panic!("{shown}"));
    let command = command.replacen("mcp-delegator results", &format!("'{PROGRAM}' results"), 1);
    let found = stage.world.run_as(Path::new("bash"), ["-c", &command]);
    assert_eq!(found.exit, Some(0), "{command}: {found:?}");
}
