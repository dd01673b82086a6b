//! `watch` on a real terminal: what it shows, what its keys do, and what it leaves of the terminal.

use std::ffi::OsStr;

use delegator_testkit::asking_agent::{self, exec, permission_request, response};
use delegator_testkit::stage::{Stage, successful_turn};
use delegator_testkit::terminal::TerminalSession;
use delegator_testkit::tmux::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::PROGRAM;

/// A screen of 120 columns.
fn watch(stage: &Stage, args: &[&str]) -> TerminalSession {
    let mut command = stage.world.command([&["watch"], args].concat());
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    TerminalSession::start_interactive_of(120, command)
}

fn signal(session: &TerminalSession, signal: Signal) {
    kill_process(Pid::from_child(&session.child), signal).unwrap();
}

fn scripted() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[json!({"wait_for_file": "go"})]))
}

#[test]
fn a_question_is_answered_on_the_screen() {
    let stage = asking_agent::stage(PROGRAM, &permission_request());
    let mut session = watch(&stage, &[]);
    session.wait_for_screen("No tasks.");
    let id = exec(&stage);
    session.wait_for_screen("Needs you (1)");
    session.wait_for_text("\u{1b}]2;1 waiting · mcp-delegator\u{1b}\\");
    session.wait_for_screen("make all");
    session.resize(60, 12);
    signal(&session, Signal::WINCH);
    session.wait_for_screen(" 1 needs you ");
    session.type_text("a");
    session.wait_for_screen("answer>");
    session.type_text("1\r");
    session.wait_for_screen(" answered");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    assert_eq!(response(&stage)["behavior"], "allow");
    let settings = session.settings();
    assert!(!settings.are_restored(), "each key is read at once");
    session.type_text("q");
    let run = session.wait();
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert!(run.stdout.ends_with("\u{1b}[?1049l\u{1b}[23;2t"), "{:?}", run.stdout);
    assert!(settings.are_restored());
}

#[test]
fn a_key_that_is_pressed_while_the_size_changes_counts_at_once() {
    let stage = scripted();
    let mut session = watch(&stage, &[]);
    session.wait_for_screen("No tasks.");
    session.type_text("/");
    let mut typed = "/".to_owned();
    for _ in 0..30 {
        signal(&session, Signal::WINCH);
        session.type_text("x");
        typed.push('x');
        session.wait_for_screen(&typed);
    }
    session.type_text("\u{3}");
    assert_eq!(session.wait().exit, Some(0));
}

/// In tmux, `watch` fits every size, and leaves the terminal as it was.
#[test]
fn the_screen_follows_the_size_of_tmux() {
    let stage = asking_agent::stage(PROGRAM, &permission_request());
    let id = exec(&stage);
    let command = stage.world.command(["watch"]);
    let text = |value: &OsStr| value.to_str().unwrap().to_owned();
    let variables = command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?))));
    let mut variables: Vec<(String, String)> = variables.filter(|(name, _)| name != "TERM").collect();
    variables.extend(
        [("PS1", "$ "), ("TERM", "screen-256color")].map(|(name, value)| (name.into(), value.into())),
    );
    let variables: Vec<(&str, String)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let terminal = Terminal::start(&stage.world.project(), &variables);
    terminal.type_line(&format!("echo before; {PROGRAM} watch"));
    for (columns, rows) in [(100, 30), (40, 10), (300, 100), (20, 5), (80, 24)] {
        terminal.resize(columns, rows);
        terminal.wait_for(&format!("a screen of {columns} columns"), |_| {
            let screen = terminal.visible();
            let lines: Vec<&str> = screen.lines().collect();
            lines.len() == usize::from(rows)
                && lines[0].starts_with(" 1 needs you")
                && lines[usize::from(rows) - 1].starts_with("? help")
                && lines.iter().all(|line| line.chars().count() <= columns.into())
        });
    }
    assert!(terminal.visible().contains("make all"), "{}", terminal.visible());
    terminal.send_keys(&["a"]);
    terminal.wait_for("the question", |screen| screen.contains("answer>"));
    terminal.type_line("1");
    terminal.wait_for("the answer", |screen| screen.contains(" answered"));
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    terminal.send_keys(&["q"]);
    let end = terminal.wait_for("the shell", |screen| screen.ends_with('$'));
    assert!(end.contains("before\n") && !end.contains("Recent"), "{end}");
}

#[test]
fn the_open_task_shows_its_output_and_its_result() {
    let stage = scripted();
    let id = stage.exec(&[]);
    let mut session = watch(&stage, &[&id, "--color", "never"]);
    session.wait_for_screen("[overview]");
    session.wait_for_screen(&id);
    session.type_text("3");
    session.wait_for_screen("[output]");
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    session.wait_for_screen("Message: All done.");
    session.type_text("1");
    session.wait_for_screen(&format!("Task {id} completed"));
    session.type_text("\u{1b}");
    session.wait_for_screen("Recent (1)");
    session.type_text("nwrite it down\r");
    session.wait_for_screen("write it down");
    session.type_text("q");
    let run = session.wait();
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert!(!run.stdout.contains("\u{1b}[38;5;"), "no colours");
    std::fs::write(stage.world.project().join("go"), "").unwrap();
}

#[test]
fn the_terminal_is_restored_after_signals_and_panics() {
    let ends: [(Option<Signal>, &[i32]); 4] =
        [(Some(Signal::TERM), &[143]), (Some(Signal::INT), &[0]), (Some(Signal::HUP), &[]), (None, &[1])];
    for (cause, exits) in ends {
        let stage = scripted().variable("MCP_DELEGATOR_TEST_PANIC", "1");
        let mut session = watch(&stage, &[]);
        session.wait_for_screen("No tasks.");
        let settings = session.settings();
        match cause {
            Some(cause) => signal(&session, cause),
            // F12.
            None => session.type_text("\u{1b}[24~"),
        }
        let run = session.wait();
        assert!(run.exit.is_none_or(|exit| exits.contains(&exit)), "{cause:?}: {run:?}");
        assert_eq!(run.exit.is_none(), exits.is_empty(), "{cause:?}: {run:?}");
        assert_eq!(run.stdout.matches("\u{1b}[?1049l").count(), 1, "{run:?}");
        let after = run.stdout.split("\u{1b}[?1049l").nth(1).unwrap_or_default();
        assert_eq!(after.contains("Internal error"), cause.is_none(), "{run:?}");
        assert!(settings.are_restored(), "{cause:?}");
    }
}

#[test]
fn a_screen_needs_a_terminal() {
    let stage = scripted();
    let refused = stage.world.run(["watch", "--format", "human"]);
    assert!(
        refused.exit != Some(0) && format!("{refused:?}").contains("mcp-delegator status"),
        "{refused:?}"
    );
    let refused = stage.world.run(["watch"]);
    assert_eq!(refused.json()["error"]["code"], "DEPENDENCY_MISSING", "{refused:?}");
}
