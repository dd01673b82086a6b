//! Task ids as people give them: a prefix, or `--last` for the most recent task of the current directory.

use delegator_testkit::program::RunOutput;
use delegator_testkit::stage::{Stage, successful_turn};
use delegator_testkit::terminal::{TerminalSession, run_on_terminal};
use serde_json::json;

use crate::PROGRAM;

fn stage() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[json!({"message": "Done."})]))
}

fn run_in(stage: &Stage, directory: &str, args: &[&str]) -> RunOutput {
    let directory = stage.world.project().join(directory);
    std::fs::create_dir_all(&directory).unwrap();
    delegator_testkit::program::output_of(stage.world.command(args).current_dir(directory))
}

#[test]
fn a_prefix_of_four_characters_is_enough() {
    let stage = stage();
    let id = stage.exec(&[]);
    stage.wait(&id);
    let random = id.strip_prefix("T-local-").unwrap();
    for given in [&id[..12], &random[..4], random, &random.to_uppercase()] {
        let found = stage.run_json(&["results", given]);
        assert_eq!(found["data"]["task_id"], json!(id), "{given}");
        let events = stage.world.run(["events", "summarize", given]);
        assert_eq!(events.exit, Some(0), "{given}: {events:?}");
    }
    let short = stage.world.run(["results", &random[..3]]);
    assert_eq!((short.exit, &short.json()["error"]["code"]), (Some(2), &json!("INVALID_ID")));
}

#[test]
fn an_ambiguous_prefix_names_the_candidates() {
    let stage = stage();
    let ids = [stage.exec(&[]), stage.exec(&[])];
    ids.iter().for_each(|id| drop(stage.wait(id)));
    let database = rusqlite::Connection::open(stage.world.home().join("state/registry.db")).unwrap();
    let near = ["T-local-7q3k000001", "T-local-7q3k000002"];
    for (id, new) in ids.iter().zip(near) {
        database.execute("UPDATE tasks SET id = ?1 WHERE id = ?2", [new, id]).unwrap();
    }
    let run = stage.world.run(["results", "7q3k"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(2), &json!("INVALID_ID")));
    assert_eq!(run.json()["meta"]["error_context"]["candidates"], json!(near));
    let suggestion = run.json()["error"]["suggestion"].as_str().unwrap().to_owned();
    assert!(near.iter().all(|id| suggestion.contains(id)), "{suggestion}");
}

#[test]
fn last_is_the_most_recent_task_of_the_directory_or_its_work_tree() {
    let stage = stage();
    let missing = run_in(&stage, "", &["results", "--last"]);
    assert_eq!((missing.exit, &missing.json()["error"]["code"]), (Some(5), &json!("TASK_NOT_FOUND")));
    assert!(missing.json()["error"]["suggestion"].as_str().unwrap().contains("mcp-delegator status"));
    let first = run_in(&stage, "", &["exec", "x"]).json()["data"]["task_id"].clone();
    let below = run_in(&stage, "below", &["exec", "x"]).json()["data"]["task_id"].clone();
    let elsewhere = run_in(&stage, "../elsewhere", &["exec", "x"]).json()["data"]["task_id"].clone();
    let last =
        |directory: &str| run_in(&stage, directory, &["wait", "--last"]).json()["data"]["task_id"].clone();
    assert_eq!([last(""), last("below"), last("../elsewhere")], [below.clone(), below.clone(), elsewhere]);
    let empty = run_in(&stage, "empty", &["wait", "--last"]);
    assert_eq!(empty.exit, Some(5), "outside a work tree a directory does not include its parent: {empty:?}");
    std::fs::create_dir(stage.world.project().join(".git")).unwrap();
    std::fs::write(stage.world.project().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(last("empty"), below);
    assert_ne!(first, below);
}

#[test]
fn last_is_not_a_task_of_a_nested_repository() {
    let stage = stage();
    let add_repository =
        |path: &str| stage.world.write(&format!("project{path}/.git/HEAD"), "ref: refs/heads/main\n");
    add_repository("");
    add_repository("/nested");
    let exec = |directory: &str| run_in(&stage, directory, &["exec", "x"]).json()["data"]["task_id"].clone();
    let last =
        |directory: &str| run_in(&stage, directory, &["wait", "--last"]).json()["data"]["task_id"].clone();
    let below = exec("below");
    let nested = exec("nested/src");
    assert_eq!([last(""), last("below"), last("nested")], [below.clone(), below, nested.clone()]);
    // The directory above is not in a work tree.
    assert_eq!(last(".."), nested);
}

#[test]
fn last_does_not_hide_other_problems() {
    let stage = stage();
    let problems = |args: &[&str]| {
        let run = run_in(&stage, "", args);
        assert_eq!(run.exit, Some(2), "{run:?}");
        let found = run.json()["meta"]["error_context"]["problems"].clone();
        found.as_array().unwrap().iter().map(|problem| problem["field"].clone()).collect::<Vec<_>>()
    };
    let without_task = ["wait", "--last", "--timeout-sec", "x", "--bogus"];
    assert_eq!(problems(&without_task), [json!("--bogus"), json!("timeout_sec")]);
    let twice = ["wait", "T-local-7q3kd0x9fw", "--last", "--timeout-sec", "x"];
    assert_eq!(problems(&twice), [json!("--last"), json!("timeout_sec")]);
}

#[test]
fn every_command_that_takes_a_task_takes_last() {
    let stage = stage();
    let id = run_in(&stage, "", &["exec", "x"]).json()["data"]["task_id"].as_str().unwrap().to_owned();
    stage.wait(&id);
    for args in [
        &["wait"][..],
        &["results"],
        &["local", "results"],
        &["status"],
        &["logs"],
        &["events", "summarize"],
        &["events", "normalize"],
        &["events", "follow"],
        &["resume", "go on"],
        &["retry"],
    ] {
        let run = run_in(&stage, "", &[args, &["--last"]].concat());
        assert_eq!(run.exit, Some(0), "{args:?}: {run:?}");
        let help = run_in(&stage, "", &[args, &["--help"]].concat());
        assert!(help.stdout.contains("--last"), "{args:?}: {help:?}");
    }
    stage.set_script(json!([{"wait_for_file": "never"}]));
    let running = run_in(&stage, "", &["exec", "x"]).json()["data"]["task_id"].clone();
    let cancelled = run_in(&stage, "", &["cancel", "--last"]);
    assert_eq!(
        (cancelled.exit, &cancelled.json()["data"]["tasks"][0]["task_id"]),
        (Some(0), &running),
        "{cancelled:?}"
    );
    let sent = run_in(&stage, "", &["send", "--last", "hello"]);
    assert_eq!(sent.json()["error"]["code"], "WRONG_STATE", "the task is found and has ended: {sent:?}");
    for args in [
        &["results", &id, "--last"][..],
        &["resume", "x", "--last", "--thread-id", "t"],
        &["send", &id, "hello", "--last"],
        &["answer", &id, "yes", "--last"],
    ] {
        let both = run_in(&stage, "", args);
        assert_eq!(
            (both.exit, &both.json()["error"]["code"]),
            (Some(2), &json!("INVALID_VALUE")),
            "{both:?}"
        );
        assert!(both.json()["error"]["message"].as_str().unwrap().contains("--last"), "{both:?}");
    }
}

#[test]
fn a_destructive_command_names_the_last_task() {
    let stage = stage();
    let id = stage.exec(&[]);
    stage.wait(&id);
    let run = run_on_terminal(stage.world.command(["restore", "--last"]));
    assert!(run.stdout.starts_with(&format!("The last task is {id}: do it")), "{run:?}");
}

#[test]
fn on_a_terminal_a_missing_id_means_the_last_task() {
    let stage = stage();
    let interactive = |args: &[&str]| TerminalSession::start_interactive(stage.world.command(args)).wait();
    let none = interactive(&["results"]);
    assert_eq!(none.exit, Some(5), "there is no task yet: {none:?}");
    let id = stage.exec(&[]);
    stage.wait(&id);
    for command in ["results", "wait", "diff"] {
        let run = interactive(&[command]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert!(run.stdout.starts_with(&format!("The last task is {id}: do it")), "{run:?}");
        let quiet = interactive(&[command, "--quiet"]);
        assert!(!quiet.stdout.contains("The last task"), "{quiet:?}");
    }
    let for_a_program = interactive(&["results", "--json"]);
    assert_eq!(for_a_program.exit, Some(2), "{for_a_program:?}");
    let wrong = interactive(&["results", "--no-such-flag"]);
    assert_eq!(wrong.exit, Some(2), "{wrong:?}");
}

#[test]
fn on_a_terminal_cancel_without_an_id_names_the_last_submission_and_asks() {
    let stage = Stage::with_script(PROGRAM, json!([{"wait_for_file": "never"}]));
    let id = stage.exec(&[]);
    let question = format!("Cancel the last task, {id} (do it)? [y/N]");
    let is_unfinished = || stage.run_json(&["status"])["data"]["summary"]["running"] == 1;
    for command in [&["cancel"][..], &["local", "cancel"]] {
        let mut terminal = TerminalSession::start_interactive(stage.world.command(command));
        terminal.wait_for_text(&question);
        terminal.type_text("n\n");
        let refused = terminal.wait();
        assert!(refused.exit == Some(2) && refused.stdout.contains("nothing was done"), "{refused:?}");
        assert!(is_unfinished());
    }
    let interactive = |args: &[&str]| TerminalSession::start_interactive(stage.world.command(args)).wait();
    for args in [&["cancel", "--state", "queued"][..], &["cancel", "--dry-run"]] {
        let run = interactive(args);
        assert!(run.exit == Some(0) && !run.stdout.contains("Cancel the last"), "{run:?}");
        assert!(is_unfinished());
    }
    let cancelled = interactive(&["cancel", "-y"]);
    assert!(cancelled.exit == Some(0) && cancelled.stdout.contains(&id), "{cancelled:?}");
    assert!(!is_unfinished());
    stage.set_script(successful_turn(&[]));
    let ended = stage.exec(&[]);
    stage.wait(&ended);
    for command in [&["cancel"][..], &["local", "cancel"]] {
        let run = interactive(command);
        assert!(run.exit == Some(4) && !run.stdout.contains("Cancel the last"), "{run:?}");
        assert!(run.stdout.contains("has ended"), "{run:?}");
    }
}

#[test]
fn in_a_pipe_a_missing_id_is_an_error_that_names_last() {
    let stage = stage();
    for command in ["results", "wait", "cancel"] {
        let run = stage.world.run([command]);
        assert_eq!(
            (run.exit, &run.json()["error"]["code"]),
            (Some(2), &json!("MISSING_ARGUMENT")),
            "{run:?}"
        );
        assert!(run.json()["error"].to_string().contains("--last"), "{run:?}");
    }
}

#[test]
fn on_a_terminal_a_started_task_is_waited_for_unless_detached() {
    let stage = stage();
    let id = stage.exec(&[]);
    stage.wait(&id);
    let interactive = |args: &[&str]| TerminalSession::start_interactive(stage.world.command(args)).wait();
    let waits = [vec!["retry", &id], vec!["review", &id], vec!["resume", "go on", "--task-id", &id]];
    for args in &waits {
        let run = interactive(args);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert!(run.stdout.contains("The agent's final message:"), "{run:?}");
    }
    for mut args in waits.into_iter().chain([vec!["run", "do it"]]) {
        args.push("--detach");
        let run = interactive(&args);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert!(!run.stdout.contains("The agent's final message:"), "{run:?}");
    }
    let piped = stage.run_json(&["retry", &id]);
    assert_eq!(piped["data"]["capability"], "background", "{piped}");
}
