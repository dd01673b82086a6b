//! A damaged registry, or one of a newer program: every command that needs it fails with the file and the next step.
//! No command creates an empty registry in its place; only `doctor --set-aside-damaged` moves it.

use std::path::Path;

use delegator_testkit::cloud_script::ENVIRONMENTS;
use mcp_delegator::app::command_list::catalog;
use mcp_delegator::spec::CommandSpec;
use rusqlite::Connection;

use crate::stage::{Stage, successful_turn};

const ID: &str = "T-local-0123456789";

/// The arguments of a command that needs the registry, or `None`. Panics for a command that is not listed.
fn task_call(spec: &CommandSpec) -> Option<Vec<&'static str>> {
    let args = match spec.path {
        ["local", "run" | "exec"] => vec!["do it"],
        ["local", "resume"] => vec!["go on", "--task-id", ID],
        ["local", "status"]
        | ["cleanup-registry"]
        | ["queue", _]
        | ["notify"]
        | ["history"]
        | ["usage"]
        | ["worktrees"] => {
            vec![]
        }
        ["worktrees", "prune"] => vec!["--dry-run"],
        ["local", _]
        | ["logs"]
        | ["show"]
        | ["read"]
        | ["retry"]
        | ["cancel"]
        | ["events", _]
        | ["diff"]
        | ["answer"]
        | ["review"] => vec![ID],
        ["apply"] => vec![ID],
        ["discard"] => vec![ID, "--confirm-destructive"],
        ["send"] => vec![ID, "go on"],
        ["cloud", "submit"] => vec!["do it", "--env-id", "env_site"],
        ["cloud", "status"] => vec![],
        ["cloud", "wait" | "results" | "cancel" | "apply"] => vec![ID],
        ["restore" | "undo"] => vec![ID, "--dry-run"],
        ["import"] => vec![SESSION],
        // `serve` and `dashboard` start, and their tools and pages report the error; `worker` needs its database first, `watch` a terminal; the
        // others do not need the registry.
        ["serve"]
        | ["dashboard", ..]
        | ["watch"]
        | ["worker"]
        | ["fleet", _]
        | ["cloud", "list-environments" | "github-setup"]
        | ["env", _]
        | ["init"]
        | ["setup"]
        | ["doctor"]
        | ["demo"]
        | ["agents"]
        | ["agents" | "config", _]
        | ["schema"]
        | ["manifest"]
        | ["completions"]
        | ["man"]
        | ["help"]
        | ["version"] => return None,
        other => panic!("does {other:?} need the registry?"),
    };
    Some([spec.path, &args].concat())
}

const SESSION: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../delegator-transcript/tests/transcripts/rollouts/0.166.0.patch.rollout.jsonl"
);

fn stage_with_task() -> Stage {
    let stage = Stage::with_script(successful_turn(&[]));
    stage.world.write("home/.config/mcp-delegator/environments.json", ENVIRONMENTS);
    let id = stage.exec(&[]);
    stage.wait_for_end(&id);
    assert!(
        !stage.state_dir().join("registry.db-wal").exists() || Connection::open(stage.database()).is_ok()
    );
    stage
}

#[track_caller]
fn assert_every_command_refuses(stage: &Stage, next_step: &str) {
    let file = stage.database();
    let before = std::fs::read(&file).ok();
    let mut commands = 0;
    for spec in catalog().iter() {
        let Some(args) = task_call(spec) else { continue };
        commands += 1;
        for envelope in ["agent", "tool"] {
            let run = stage.run(&[args.as_slice(), &["--envelope", envelope]].concat());
            let error = run.document()["error"].clone();
            assert_eq!(run.exit, Some(4), "{args:?}: {run:?}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(file.to_str().unwrap()), "{args:?}: {message}");
            assert!(error.to_string().contains(next_step), "{args:?}: {error}");
        }
    }
    assert!(commands >= 15, "only {commands} commands were run");
    let checks = stage.world.doctor_checks().to_string();
    assert!(checks.contains(file.to_str().unwrap()), "{checks}");
    assert!(std::fs::read(&file).ok() == before, "the file was changed");
    assert_eq!(set_aside_files(stage.state_dir()), Vec::<String>::new());
}

fn set_aside_files(state: &Path) -> Vec<String> {
    let names = std::fs::read_dir(state).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.contains("damaged")).collect()
}

#[test]
fn f37_every_command_refuses_a_damaged_registry() {
    let stage = stage_with_task();
    let whole = std::fs::read(stage.database()).unwrap();
    let mut flipped = whole.clone();
    flipped[100] ^= 0x5a;
    for damaged in [flipped, whole[..whole.len() / 2].to_vec(), Vec::new(), vec![7; 8192]] {
        std::fs::write(stage.database(), &damaged).unwrap();
        assert_every_command_refuses(&stage, "doctor --set-aside-damaged");
    }
    std::fs::remove_file(stage.database()).unwrap();
    assert_every_command_refuses(&stage, "doctor --set-aside-damaged");
    std::fs::write(stage.database(), &whole).unwrap();
    assert_eq!(stage.run_json(&["local", "status"])["data"]["summary"]["recently_completed"], 1);
}

#[test]
fn f37_every_command_refuses_a_registry_of_a_newer_program() {
    let stage = stage_with_task();
    Connection::open(stage.database()).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert_every_command_refuses(&stage, "newer program");
    // It is not damaged, so it cannot be set aside.
    let run = stage.run(&["doctor", "--set-aside-damaged"]);
    assert_eq!(run.exit, Some(4), "{run:?}");
    assert_eq!(set_aside_files(stage.state_dir()), Vec::<String>::new());
}

#[test]
fn f37_a_registry_that_is_set_aside_is_preserved() {
    let stage = stage_with_task();
    std::fs::write(stage.database(), vec![7; 8192]).unwrap();
    stage.run(&["doctor", "--set-aside-damaged"]);
    let files = set_aside_files(stage.state_dir());
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(std::fs::read(stage.state_dir().join(&files[0])).unwrap(), vec![7; 8192]);
    assert_eq!(
        std::fs::read_dir(stage.state_dir().join("tasks")).unwrap().count(),
        1,
        "task directories were changed"
    );
    assert_eq!(stage.run(&["local", "run", "next"]).exit, Some(0));
    let again = stage.run(&["doctor", "--set-aside-damaged"]);
    assert_ne!(again.exit, Some(0), "a healthy registry was set aside: {again:?}");
}
