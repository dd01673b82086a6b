//! What a person sees: whole screens of common situations, on terminals of 60 and 100 columns.
//!
//! The expected screens are in `tests/screens/`; `UPDATE_GENERATED=1` rewrites them. Task ids, directories and times are
//! replaced by constants of the same length.

use std::process::Command;

use delegator_testkit::generated::assert_up_to_date;
use delegator_testkit::program::output_of;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use delegator_testkit::terminal::{TerminalSession, run_on_terminal_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;
const WIDTHS: [u16; 2] = [60, 100];
const ZONE: &str = "EST5";

const MESSAGE: &str = "I looked at the whole project and found that everything is fine, but there are some things that \
    you may want to improve:\n\n- the first one is long enough that it has to be wrapped on a narrow terminal\n- the second";

/// Compares the screens of a situation with the stored ones. `show` returns the screen for a terminal of this width.
fn compare(name: &str, show: impl Fn(u16) -> String) {
    let screens =
        WIDTHS.map(|columns| format!("==== {columns} columns ====\n{}", normalized(&show(columns))));
    assert_up_to_date(&format!("crates/mcp-delegator/tests/screens/{name}.txt"), &screens.join("\n"));
}

fn normalized(screen: &str) -> String {
    let lines: Vec<String> = screen.lines().map(normalized_line).collect();
    lines.join("\n") + "\n"
}

fn normalized_line(line: &str) -> String {
    let line = replace_after(line, "T-local-", 10, '0');
    let line = replace_after(&line, "/tmp/.tmp", 6, 'X');
    if let Some(line) = normalized_task_line(&line) {
        return line;
    }
    // Seconds are in a fact, or in a column of a table.
    let is_time = ["seconds ", "elapsed ", "T-local-"].iter().any(|start| line.starts_with(start));
    let number = line.split("  ").map(|cell| cell.trim().trim_end_matches(" s"));
    match number.filter(|_| is_time).find(|cell| cell.parse::<u32>().is_ok()) {
        Some(number) => line.replacen(&format!("  {number}"), &format!("  {}", "N".repeat(number.len())), 1),
        None => line,
    }
}

/// A line of `status`: its id and its age, whose width moves and clips what follows. `None` for another line.
fn normalized_task_line(line: &str) -> Option<String> {
    let (id, rest) = line.split_once("  ")?;
    let (age, rest) = rest.trim_start().split_once("  ")?;
    age.strip_suffix(['s', 'm'])?.parse::<u32>().ok()?;
    let id = if id.len() == 10 { "0".repeat(10) } else { id.to_owned() };
    let rest =
        rest.strip_suffix('…').and_then(|clipped| clipped.rsplit_once(' ')).map_or(rest, |(whole, _)| whole);
    Some(format!("{id}  N  {}", rest.trim()))
}

/// Replaces the characters that follow each occurrence of `start`.
fn replace_after(line: &str, start: &str, count: usize, with: char) -> String {
    let mut parts = line.split(start);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let length = part.chars().take(count).take_while(char::is_ascii_alphanumeric).count();
        replaced.push_str(start);
        replaced.extend(std::iter::repeat_n(with, length));
        replaced.push_str(&part[length..]);
    }
    replaced
}

fn command(stage: &Stage, args: &[&str]) -> Command {
    let mut command = stage.world.command(args);
    // Without a progress bar, which shows times. The time zone is not that of the machine.
    command.env("TERM", "dumb").env("TZ", ZONE);
    command
}

fn screen(stage: &Stage, columns: u16, args: &[&str]) -> String {
    let run = run_on_terminal_of(columns, command(stage, args));
    format!("{}[exit {}]", run.stdout, run.exit.unwrap())
}

fn turn(steps: &[Value]) -> Value {
    let mut all = vec![json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    all.extend_from_slice(steps);
    json!(all)
}

/// An agent that ran a command and then waits for the file `go`.
fn waiting_stage() -> Stage {
    Stage::with_script(
        PROGRAM,
        successful_turn(&[json!({"command": {"run": "true"}}), json!({"wait_for_file": "go"})]),
    )
}

fn start_waiting_task(stage: &Stage) -> String {
    let id = stage.exec(&[]);
    wait_until("the agent has run its command", || {
        stage.run_json(&["local", "status"])["data"]["tasks"][0]["progress"]["command_count"] == 1
    });
    id
}

fn release(stage: &Stage, id: &str) {
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    stage.wait(id);
}

#[test]
fn status_without_tasks_explains_how_to_start() {
    let stage = Stage::with_script(PROGRAM, turn(&[]));
    compare("status_empty", |columns| screen(&stage, columns, &["local", "status"]));
}

#[test]
fn a_completed_run_its_status_and_its_log() {
    let stage = Stage::with_script(
        PROGRAM,
        turn(&[
            json!({"command": {"run": "echo hi; exit 3"}}),
            json!({"message": MESSAGE}),
            json!({"turn_completed": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 7}}),
        ]),
    );
    let task = "Explain what this project does, and why it is needed by people who delegate their work";
    compare("run_completed", |columns| screen(&stage, columns, &["local", "run", task]));
    compare("status_ended", |columns| screen(&stage, columns, &["local", "status"]));
    let status = stage.run_json(&["local", "status"]);
    let id = status["data"]["recently_completed"][0]["task_id"].as_str().unwrap();
    compare("logs_completed", |columns| {
        let text = screen(&stage, columns, &["logs", id]);
        assert!(!text.contains("thread.started"), "{text}");
        text
    });
    let raw = screen(&stage, 60, &["logs", id, "--raw"]);
    assert!(raw.starts_with(r#"{"type":"thread.started""#) && raw.contains("turn.completed"), "{raw}");
    let piped = stage.world.run(["logs", id, "--raw"]);
    assert!(piped.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{piped:?}");
}

#[test]
fn failed_agents() {
    let stage = Stage::with_script(
        PROGRAM,
        turn(&[json!({"turn_failed": "unexpected status 401 Unauthorized: Incorrect API key provided"})]),
    );
    compare("run_not_signed_in", |columns| {
        let text = screen(&stage, columns, &["local", "run", "x"]);
        assert_eq!(text.matches("Incorrect API").count(), 1, "each message once: {text}");
        text
    });
    let limit = "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at Sep 23rd, 2027 8:13 AM UTC.";
    stage.set_script(turn(&[json!({"turn_failed": limit})]));
    compare("run_usage_limit", |columns| {
        let text = screen(&stage, columns, &["local", "run", "x"]);
        // The limit pauses the agent.
        stage.run_json(&["queue", "resume", "--agent", "codex"]);
        text
    });
    stage.set_script(turn(&[json!({"wait_for_file": "never"})]));
    compare("run_timeout", |columns| {
        screen(&stage, columns, &["local", "run", "x", "--hard-timeout-sec", "1"])
    });
}

#[test]
fn times_are_local_for_people_and_utc_for_programs_and_models() {
    let limit = "You've hit your usage limit. Try again at Sep 23rd, 2027 8:13 AM UTC.";
    let stage = Stage::with_script(PROGRAM, turn(&[json!({"turn_failed": limit})]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let (local, utc) = ("2027-09-23 03:13", "2027-09-23T08:13:00.000Z");
    for arguments in [&["results", id.as_str()][..], &["status"], &["queue", "pause"]] {
        for (format, shown, other) in [("human", local, utc), ("markdown", utc, local), ("json", utc, local)]
        {
            let run = output_of(&mut command(&stage, &[arguments, &["--format", format]].concat()));
            let text = run.stdout + &run.stderr;
            // `status` says on a terminal only until when, in words.
            assert!(text.contains(shown) && !text.contains(other), "{arguments:?} {format}: {text}");
        }
    }
}

#[test]
fn wrong_calls() {
    let stage = Stage::with_script(PROGRAM, turn(&[]));
    compare("invalid_input", |columns| {
        screen(&stage, columns, &["local", "run", "", "--hard-timeout-sec", "0", "--idle-timeout-sec", "x"])
    });
    stage.exec(&[]);
    compare("unknown_task", |columns| screen(&stage, columns, &["local", "wait", "T-local-0000000000"]));
}

#[test]
fn running_tasks() {
    let stage = waiting_stage();
    let id = start_waiting_task(&stage);
    compare("status_running", |columns| screen(&stage, columns, &["local", "status"]));
    compare("wait_expired", |columns| screen(&stage, columns, &["local", "wait", &id, "--timeout-sec", "1"]));
    compare("logs_running", |columns| screen(&stage, columns, &["logs", &id]));
    compare("wait_interrupted", |columns| {
        let mut wait = command(&stage, &["local", "wait", &id]);
        wait.env("MCP_DELEGATOR_LOG", "mcp_delegator=debug");
        let mut session = TerminalSession::start_with_columns(columns, wait);
        session.wait_for_text("waiting for a task");
        kill_process(Pid::from_child(&session.child), Signal::INT).unwrap();
        session.wait_for_text("to cancel the task.");
        let run = session.wait();
        let printed: Vec<&str> = run.stdout.lines().filter(|line| !line.contains("DEBUG")).collect();
        let printed = printed.join("\n");
        assert_eq!(printed.matches(&id).count(), 2, "named once, and in the command: {printed}");
        format!("{printed}\n[exit {}]", run.exit.unwrap())
    });
    release(&stage, &id);
}

#[test]
fn a_log_without_events_suggests_what_to_do_next() {
    let stage = Stage::with_script(PROGRAM, json!([{"wait_for_file": "go"}]));
    let id = stage.exec(&[]);
    compare("logs_empty", |columns| screen(&stage, columns, &["logs", &id]));
    release(&stage, &id);
}

#[test]
fn colour_is_used_only_where_the_terminal_has_it() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    stage.wait(&stage.exec(&[]));
    let shown = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = stage.world.command([&["local", "status"], args].concat());
        command.env("TERM", "xterm").envs(variables.iter().copied());
        run_on_terminal_of(100, command).stdout.contains('\u{1b}')
    };
    assert!(shown(&[], &[]));
    assert!(!shown(&[("NO_COLOR", "1")], &[]) && !shown(&[("TERM", "dumb")], &[]));
    assert!(!shown(&[], &["--color", "never"]) && shown(&[("NO_COLOR", "1")], &["--color", "always"]));
    let piped = stage.world.run(["local", "status", "--format", "human"]);
    assert!(!piped.stdout.contains('\u{1b}') && piped.stdout.contains("completed"), "{piped:?}");
    let wrong = stage.world.run(["local", "status", "--color", "sometimes"]);
    assert_eq!(wrong.exit, Some(2), "{wrong:?}");
}

/// The lines that are wider than the terminal.
fn wide_lines(screen: &str, columns: usize) -> Vec<&str> {
    screen.lines().filter(|line| line.chars().count() > columns).collect()
}

#[test]
fn the_help_of_every_command_fits_60_columns() {
    let stage = Stage::with_script(PROGRAM, turn(&[]));
    let manifest = stage.run_json(&["manifest", "--fields", "commands.path,commands.short_path"]);
    let words = |path: &Value| -> Vec<String> {
        path.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let commands = manifest["data"]["commands"].as_array().unwrap();
    let mut paths: Vec<Vec<String>> = commands
        .iter()
        .flat_map(|command| [words(&command["path"]), words(&command["short_path"])])
        .collect();
    // The groups, and the program.
    paths.extend(paths.clone().into_iter().map(|path| path.into_iter().take(1).collect()));
    paths.push(Vec::new());
    paths.sort();
    paths.dedup();
    for path in paths {
        let args: Vec<&str> = std::iter::once("help").chain(path.iter().map(String::as_str)).collect();
        let text = screen(&stage, 60, &args);
        assert_eq!(wide_lines(&text, 60), Vec::<&str>::new(), "{args:?}");
    }
}

#[test]
fn lists_of_the_program_fit_60_columns() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    stage.wait(&stage.exec(&[]));
    for args in [&["manifest"][..], &["version"], &["local", "status"], &["env", "list"], &["queue", "pause"]]
    {
        let text = screen(&stage, 60, args);
        assert_eq!(wide_lines(&text, 60), Vec::<&str>::new(), "{args:?}: {text}");
    }
}

#[test]
fn the_manual_on_a_terminal_is_text() {
    let stage = Stage::with_script(PROGRAM, turn(&[]));
    let shown = screen(&stage, 60, &["man", "local", "wait"]);
    assert!(!shown.contains(".TH") && shown.contains("Usage: mcp-delegator local wait"), "{shown}");
    assert!(shown.contains("mcp-delegator man local wait | man -l -"), "{shown}");
    let piped = stage.world.run(["man", "local", "wait"]).stdout;
    assert!(piped.contains(".TH") && !piped.contains("man -l -"), "{piped}");
}

#[test]
fn one_message_is_shown_once() {
    let error = "unexpected status 401 Unauthorized: Incorrect API key provided";
    let stage = Stage::with_script(PROGRAM, turn(&[json!({"error": error}), json!({"turn_failed": error})]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let log = screen(&stage, 100, &["logs", &id]);
    assert_eq!(log.matches("Incorrect API key").count(), 1, "{log}");
    assert!(log.contains("Turn failed\n"), "{log}");
    let world = stage.world.variable("MCP_DELEGATOR_CODEX_BIN", "/nowhere/codex");
    let mut doctor = world.command(["doctor"]);
    doctor.env("TERM", "dumb");
    let shown = run_on_terminal_of(1000, doctor).stdout;
    let message = shown.lines().find_map(|line| line.strip_prefix("problem  agent ")).unwrap().trim();
    assert_eq!(shown.matches(message).count(), 1, "{shown}");
    assert!(shown.contains("error: 2 problems: agent, codex_home."), "{shown}");
}
