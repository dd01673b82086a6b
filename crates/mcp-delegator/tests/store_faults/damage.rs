//! F37: a damaged registry, or one for newer programs. Every command that is about tasks says so, with the file and the
//! next step; nobody makes an empty registry of it, and only `doctor --set-aside-damaged` moves it.

use std::path::Path;

use mcp_delegator::spec::{CommandSpec, all};
use rusqlite::Connection;

use crate::stage::{Stage, successful_turn};

const ID: &str = "T-local-0123456789abcdef0123456789abcdef";

/// How a command is called, if it is about tasks. Every command there is has its line here.
fn task_call(spec: &CommandSpec) -> Option<Vec<&'static str>> {
    let words = match spec.path {
        ["local", "run" | "exec"] => vec!["do it"],
        ["local", "resume"] => vec!["go on", "--task-id", ID],
        ["local", "status"] | ["cleanup-registry"] | ["queue", _] => vec![],
        ["local", _] | ["logs"] | ["retry"] | ["cancel"] | ["events", _] => vec![ID],
        ["restore"] => vec![ID, "--dry-run"],
        ["import"] => vec![SESSION],
        // It starts, and its tools say so; the others do not look at tasks.
        ["serve"]
        | ["cloud", "list-environments" | "github-setup"]
        | ["env", _]
        | ["setup"]
        | ["doctor"]
        | ["demo"]
        | ["config", "show"]
        | ["schema"]
        | ["manifest"]
        | ["completions"]
        | ["man"]
        | ["help"]
        | ["version"] => return None,
        other => panic!("is {other:?} about tasks?"),
    };
    Some([spec.path, &words].concat())
}

const SESSION: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../delegator-transcript/tests/transcripts/rollouts/0.166.0.patch.rollout.jsonl"
);

fn stage_with_task() -> Stage {
    let stage = Stage::with_script(successful_turn(&[]));
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
    let mut asked = 0;
    for spec in all().iter().filter(|spec| spec.is_available()) {
        let Some(words) = task_call(spec) else { continue };
        asked += 1;
        for envelope in ["agent", "tool"] {
            let run = stage.run(&[words.as_slice(), &["--envelope", envelope]].concat());
            let error = run.document()["error"].clone();
            assert_eq!(run.exit, Some(4), "{words:?}: {run:?}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(file.to_str().unwrap()), "{words:?}: {message}");
            assert!(error.to_string().contains(next_step), "{words:?}: {error}");
        }
    }
    assert!(asked >= 15, "only {asked} commands were asked");
    let doctor = stage.run_json(&["doctor"])["data"].clone();
    assert_eq!(doctor["is_healthy"], false, "{doctor}");
    assert!(doctor.to_string().contains(file.to_str().unwrap()), "{doctor}");
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
    // It is not damaged, so it is not set aside either.
    let run = stage.run(&["doctor", "--set-aside-damaged"]);
    assert_eq!(run.exit, Some(4), "{run:?}");
    assert_eq!(set_aside_files(stage.state_dir()), Vec::<String>::new());
}

#[test]
fn f37_a_registry_that_is_set_aside_is_preserved() {
    let stage = stage_with_task();
    std::fs::write(stage.database(), vec![7; 8192]).unwrap();
    stage.run_json(&["doctor", "--set-aside-damaged"]);
    let kept = set_aside_files(stage.state_dir());
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(std::fs::read(stage.state_dir().join(&kept[0])).unwrap(), vec![7; 8192]);
    assert_eq!(
        std::fs::read_dir(stage.state_dir().join("tasks")).unwrap().count(),
        1,
        "results were touched"
    );
    assert_eq!(stage.run(&["local", "run", "next"]).exit, Some(0));
    let again = stage.run(&["doctor", "--set-aside-damaged"]);
    assert_ne!(again.exit, Some(0), "a registry that is in order was set aside: {again:?}");
}
