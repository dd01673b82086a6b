//! The session in the README: real commands and their real output, in the repository of the demo.

use std::path::Path;

use delegator_scripted_agent::demo;
use delegator_testkit::generated::{assert_up_to_date, workspace};
use delegator_testkit::program::read_text;
use delegator_testkit::stage::Stage;
use delegator_testkit::terminal::run_on_terminal;
use serde_json::{Value, json};

use crate::example_world::{TASK_ID, stage_in_repository};

const BEGIN: &str = "<!-- session: generated -->\n```console\n";
const END: &str = "```\n<!-- session: end -->\n";

#[test]
fn the_session_in_the_readme_is_up_to_date() {
    let session = readme_parts().1;
    let files = demo::files().map(|file| (file.path, file.text));
    let stage = stage_in_repository(&files, demo_steps());
    let mut printed = String::new();
    let mut task_id = None;
    for command in session.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let output = run(&stage, &command.replace(TASK_ID, task_id.as_deref().unwrap_or(TASK_ID)));
        task_id = task_id.or_else(|| find_task_id(&output));
        let separator = if printed.is_empty() { "" } else { "\n" };
        printed += &format!("{separator}$ {command}\n{}", without_changing_values(&stage, &output));
    }
    // Read again: another test may have updated another part of the page meanwhile.
    let (before, _, after) = readme_parts();
    assert_up_to_date("README.md", &format!("{before}{BEGIN}{printed}{END}{after}"));
}

/// The README before the session, the session, and the README after it.
fn readme_parts() -> (String, String, String) {
    let readme = read_text(&workspace().join("README.md"));
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (session, after) = rest.split_once(END).unwrap();
    (before.to_owned(), session.to_owned(), after.to_owned())
}

fn demo_steps() -> Value {
    let script = workspace().join("crates/delegator-scripted-agent/demo/script.json");
    let script: Value = serde_json::from_str(&read_text(&script)).unwrap();
    script["steps"].clone()
}

/// Runs a command on a terminal.
fn run(stage: &Stage, command: &str) -> String {
    let run = run_on_terminal(stage.world.command_as(Path::new("bash"), ["-c", command]));
    assert_eq!(run.exit, Some(0), "{command}: {run:?}");
    // Progress is drawn on one line, over and over.
    run.stdout.rsplit("\u{1b}[2K").next().unwrap().to_owned()
}

fn find_task_id(output: &str) -> Option<String> {
    let words = output.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    words.map(str::to_owned).find(|word| word.starts_with("T-local-"))
}

/// The output with fixed values for what differs in each session.
fn without_changing_values(stage: &Stage, output: &str) -> String {
    let mut text = output.replace(&stage.world.project().display().to_string(), "/home/me/calendar");
    if let Some(id) = find_task_id(output) {
        text = text.replace(&id, TASK_ID);
    }
    let mut lines = String::new();
    for line in text.lines() {
        match line.split_once(' ') {
            Some((name @ ("seconds" | "thread"), value)) => {
                let padding = &value[..value.len() - value.trim_start().len()];
                let value = if name == "seconds" { "3" } else { "0199a213-81c0-7800-8aa1-bbab2a035a53" };
                lines += &format!("{name} {padding}{value}\n");
            }
            _ => lines += &format!("{}\n", line.trim_end()),
        }
    }
    lines
}

#[test]
fn changing_values_are_replaced() {
    let stage = Stage::with_script(env!("CARGO_BIN_EXE_mcp-delegator"), json!([]));
    let output = format!(
        "Task T-local-0a1b completed\n\nseconds    17\nthread     x\ntree  {}\n",
        stage.world.project().display()
    );
    let expected = "Task T-local-… completed\n\nseconds    3\nthread     0199a213-81c0-7800-8aa1-bbab2a035a53\ntree  /home/me/calendar\n";
    assert_eq!(without_changing_values(&stage, &output), expected);
}
