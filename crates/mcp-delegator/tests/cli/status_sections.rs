//! `status` for people: in which section a task is, what empties a section, and the screen that redraws itself.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use delegator_testkit::asking_agent::{self, permission_request};
use delegator_testkit::program::wait_for_output;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use delegator_testkit::terminal::{TerminalSession, run_on_terminal_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;

fn stage(steps: &[Value]) -> Stage {
    Stage::with_script(PROGRAM, successful_turn(steps)).variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true")
}

/// A project with one commit.
fn make_repository(stage: &Stage) {
    let commit =
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "x", "--allow-empty"];
    for args in [&["init", "--quiet"][..], &commit] {
        let run = stage.world.run_as(Path::new("/usr/bin/git"), args);
        assert_eq!(run.exit, Some(0), "{run:?}");
    }
}

fn screen(stage: &Stage, args: &[&str]) -> String {
    let mut command = stage.world.command(args);
    command.env("TERM", "dumb");
    run_on_terminal_of(100, command).stdout
}

/// The lines of a section.
fn section<'a>(screen: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = screen.lines().skip_while(|line| *line != heading).skip(1);
    lines.take_while(|line| !line.is_empty()).collect()
}

fn ended_states(stage: &Stage) -> Vec<(Value, Value)> {
    let status = stage.run_json(&["local", "status"]);
    let ended = status["data"]["recently_completed"].as_array().unwrap();
    ended.iter().map(|task| (task["section"].clone(), task["verification"].clone())).collect()
}

fn wait_until_ended(stage: &Stage, count: u64) {
    wait_until("the tasks have ended", || {
        stage.run_json(&["local", "status"])["data"]["summary"]["recently_completed"] == count
    });
}

#[test]
fn a_failed_check_needs_a_person_until_it_is_read() {
    let stage = stage(&[]);
    let refuted = stage.exec(&["--verify", "false"]);
    let verified = stage.exec(&["--verify", "true"]);
    wait_until_ended(&stage, 2);
    let mut states = ended_states(&stage);
    states.sort_by_key(|state| state.1.to_string());
    let expected =
        [(json!("finished_unread"), json!("verified")), (json!("needs_you"), json!("verify_failed"))];
    assert_eq!(states, expected);
    let shown = screen(&stage, &["local", "status"]);
    assert!(section(&shown, "Needs you").iter().any(|line| line.starts_with(&refuted)), "{shown}");
    assert!(section(&shown, "Needs you")[0].contains("verify failed"), "{shown}");
    assert!(section(&shown, "Finished, unread")[0].starts_with(&verified), "{shown}");
    let unread = stage.world.run(["read", "--all"]);
    assert_eq!((unread.exit, &unread.json()["data"]["count"]), (Some(0), &json!(2)), "{unread:?}");
    assert_eq!(stage.run_json(&["read", &refuted])["data"]["count"], 0);
    let shown = screen(&stage, &["local", "status"]);
    assert_eq!(section(&shown, "Recent").len(), 2, "{shown}");
    assert!(!shown.contains("Needs you") && !shown.contains("Finished, unread"), "{shown}");
    let result = screen(&stage, &["local", "results", &refuted]);
    assert!(result.starts_with(&format!("Task {refuted} completed, verify failed\n")), "{result}");
    let log = screen(&stage, &["logs", &refuted]);
    assert!(log.contains(&format!("Task {refuted} completed, verify failed.")), "{log}");
}

#[test]
fn a_result_that_was_not_read_stays_on_the_screen() {
    let stage = stage(&[]);
    let old = stage.exec(&[]);
    wait_until_ended(&stage, 1);
    stage.wait(&stage.exec(&[]));
    let shown = screen(&stage, &["local", "status", "--limit", "1"]);
    assert!(section(&shown, "Finished, unread")[0].starts_with(&old), "{shown}");
    assert_eq!(section(&shown, "Recent").len(), 1, "{shown}");
    let listed = stage.run_json(&["local", "status", "--limit", "1"]);
    assert_eq!(listed["data"]["recently_completed"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(stage.run_json(&["read", &old])["data"]["count"], 1);
    assert!(!screen(&stage, &["local", "status"]).contains("Finished, unread"));
}

#[test]
fn only_ended_tasks_can_be_read() {
    let stage = stage(&[json!({"wait_for_file": "go"})]);
    let id = stage.exec(&[]);
    let refused = stage.world.run(["read", &id]);
    assert_eq!(refused.json()["error"]["code"], "WRONG_STATE", "{refused:?}");
    let neither = stage.world.run(["read"]);
    assert_eq!(neither.exit, Some(2), "{neither:?}");
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    stage.wait(&id);
}

#[test]
fn groups_and_chains_are_one_line_above_their_tasks() {
    let stage = stage(&[]);
    make_repository(&stage);
    let group = stage.run_json(&["local", "exec", "try it", "--attempts", "2"]);
    let chain = stage.exec(&["--on-success", "review it"]);
    wait_until_ended(&stage, 4);
    let group = group["data"]["group_id"].as_str().unwrap_or_else(|| panic!("{group}"));
    let shown = screen(&stage, &["local", "status"]);
    let lines = section(&shown, "Finished, unread");
    let at = |start: &str| lines.iter().position(|line| line.starts_with(start));
    let of_group =
        at(&format!("{group}  group of 2, 2 of 2 ended  try it")).unwrap_or_else(|| panic!("{shown}"));
    assert!(lines[of_group + 1..of_group + 3].iter().all(|line| line.starts_with("  T-local-")), "{shown}");
    let of_chain = at(&format!("{chain}  chain of 2, 2 of 2 ended")).unwrap_or_else(|| panic!("{shown}"));
    assert!(lines[of_chain + 1].starts_with(&format!("  {chain}")), "{shown}");
    assert!(lines[of_chain + 2].contains("review it"), "{shown}");
    let narrow = run_on_terminal_of(60, stage.world.command(["local", "status", "--color", "never"])).stdout;
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
}

#[test]
fn a_queued_task_shows_what_it_waits_for() {
    let stage = stage(&[json!({"wait_for_file": "go"})]);
    make_repository(&stage);
    let first = stage.exec(&["--mode", "workspace-write"]);
    let second = stage.exec(&["--mode", "workspace-write"]);
    wait_until("the first task runs", || {
        stage.run_json(&["local", "status"])["data"]["summary"]["running"] == 1
    });
    let shown = screen(&stage, &["local", "status"]);
    assert!(section(&shown, "Working")[0].starts_with(&first), "{shown}");
    let waiting = section(&shown, "Waiting");
    assert!(waiting[0].contains(&format!("waits for {first} in this directory")), "{shown}");
    let queued = stage.run_json(&["local", "status"])["data"]["queue"][0].clone();
    assert_eq!((&queued["task_id"], &queued["section"]), (&json!(second), &json!("waiting")));
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    stage.wait(&first);
    stage.wait(&second);
}

#[test]
fn a_watch_redraws_until_it_is_interrupted() {
    let stage = stage(&[json!({"wait_for_file": "go"})]);
    let id = stage.exec(&[]);
    let mut command = stage.world.command(["local", "status", "--watch", "--color", "never"]);
    command.env("TERM", "xterm");
    let mut session = TerminalSession::start_with_columns(100, command);
    session.wait_for_text("Working");
    session.wait_for_text(&id);
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    session.wait_for_text("Finished, unread");
    kill_process(Pid::from_child(&session.child), Signal::INT).unwrap();
    let run = session.wait();
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert!(!run.stdout.contains("error"), "{run:?}");
}

#[test]
fn a_watch_in_a_pipe_prints_questions_and_unread_ends() {
    let stage = asking_agent::stage(PROGRAM, &permission_request());
    let asking = asking_agent::exec(&stage);
    let project = stage.world.project().display().to_string();
    let mut command = stage.world.command(["status", "--watch", "-C", &project, "--format", "human"]);
    let mut watch =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), format!("{asking} needs you: allow 'make all'? (do it)"));

    // The end of a task elsewhere is no news, nor is one whose result was waited for.
    let elsewhere = stage.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let failing = |directory: &Path| {
        let directory = directory.display().to_string();
        stage.exec(&["--agent", "codex", "--skip-git-repo-check", "-C", &directory])
    };
    failing(&elsewhere);
    stage.wait(&failing(&stage.world.project()));
    let unread = failing(&stage.world.project());
    let line = lines.next().unwrap();
    assert!(line.starts_with(&format!("{unread} failed: ")), "{line}");
    assert!(line.ends_with("(do it)"), "{line}");

    // The watch ends with its reader, although there is nothing to print.
    drop(lines);
    assert_eq!(wait_for_output(watch).exit, Some(0));
    stage.run_json(&["cancel", &asking]);
}

#[test]
fn a_watch_in_a_pipe_prints_json_for_programs() {
    let stage = asking_agent::stage(PROGRAM, &permission_request());
    let asking = asking_agent::exec(&stage);
    let mut command = stage.world.command(["status", "--watch"]);
    let mut watch = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    let expected = json!({
        "task_id": asking, "section": "needs_you", "line": "needs you: allow 'make all'?", "title": "do it",
    });
    assert_eq!(line, expected);
    kill_process(Pid::from_child(&watch), Signal::INT).unwrap();
    assert!(lines.next().is_none());
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    stage.run_json(&["cancel", &asking]);
}
