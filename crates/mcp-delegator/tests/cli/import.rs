//! `import` lists the sessions that Codex stored, and takes the id of one of them.

use delegator_testkit::generated::workspace;
use delegator_testkit::program::{World, read_text};
use delegator_testkit::terminal::run_on_terminal;
use serde_json::{Value, json};

use crate::PROGRAM;

const PATCH: &str = "01a1dd02-99a2-74b2-b01c-f2039fb32a28";
const PLAIN: &str = "01a1dd02-9335-77e2-a9a6-ae513b121208";
const OLD: &str = "01a1dd09-76de-7183-9d34-609c7113e932";

/// Stores a session as Codex does, on this day.
fn store(world: &World, day: u32, id: &str, text: &str) -> String {
    let path = format!("home/.codex/sessions/2026/11/{day:02}/rollout-2026-11-{day:02}T02-21-37-{id}.jsonl");
    world.write(&path, text);
    world.home().parent().unwrap().join(path).display().to_string()
}

fn recorded(name: &str) -> String {
    let path = format!("crates/delegator-transcript/tests/transcripts/rollouts/{name}.rollout.jsonl");
    read_text(&workspace().join(path))
}

fn world_with_sessions() -> World {
    let world = World::new(PROGRAM);
    store(&world, 14, OLD, &recorded("0.44.0.plain"));
    store(&world, 16, PATCH, &recorded("0.166.0.patch"));
    store(&world, 15, PLAIN, &recorded("0.166.0.plain"));
    world
}

fn listed(world: &World) -> Vec<Value> {
    world.run(["import"]).json()["data"]["sessions"].as_array().unwrap().clone()
}

#[test]
fn without_a_session_import_lists_them_and_takes_one_of_the_ids() {
    let world = world_with_sessions();
    let sessions = listed(&world);
    let ids: Vec<&Value> = sessions.iter().map(|session| &session["thread_id"]).collect();
    assert_eq!(ids, [PATCH, PLAIN, OLD], "the newest first");
    assert_eq!(sessions[0]["started_ts"], "2026-11-15T02:21:37.576Z", "{sessions:?}");
    assert_eq!(sessions[2]["working_dir"], "/home/dev/project");
    assert_eq!(sessions[2]["title"], "say hi");
    assert!(sessions.iter().all(|session| session["task_id"] == Value::Null), "{sessions:?}");

    let imported = world.run(["import", &PATCH[..13].to_uppercase()]);
    assert_eq!(imported.exit, Some(0), "{imported:?}");
    let task = imported.json()["data"]["task_id"].clone();
    assert_eq!(imported.json()["data"]["thread_id"], PATCH);
    assert_eq!(listed(&world)[0]["task_id"], task);
    assert_eq!(world.run(["import", PATCH]).json()["data"]["replayed"], true);

    let shown = run_on_terminal(world.command(["import"])).stdout;
    assert!(shown.contains(PLAIN) && shown.contains(task.as_str().unwrap()), "{shown}");
    assert!(shown.contains(&format!("mcp-delegator import {PLAIN}")), "the next one: {shown}");
}

#[test]
fn an_ambiguous_and_an_unknown_id_are_refused() {
    let world = world_with_sessions();
    let ambiguous = world.run(["import", "01a1dd02"]);
    assert_eq!(ambiguous.exit, Some(2), "{ambiguous:?}");
    let suggestion = ambiguous.json()["error"]["suggestion"].to_string();
    assert!(suggestion.contains(PATCH) && suggestion.contains(PLAIN) && !suggestion.contains(OLD));
    let unknown = world.run(["import", "0123abcd"]);
    assert_eq!(unknown.exit, Some(5), "{unknown:?}");
    assert!(unknown.json()["error"]["suggestion"].as_str().unwrap().contains("mcp-delegator import"));
}

#[test]
fn the_list_is_bounded_and_skips_files_that_are_no_sessions() {
    let world = World::new(PROGRAM);
    assert_eq!(world.run(["import"]).json()["data"], json!({"sessions": [], "more_count": 0}));
    // A session of this length is not read to its end: what follows its beginning does not matter.
    let long = recorded("0.44.0.plain") + &"x".repeat(1 << 20);
    for day in 1..=24 {
        let id = format!("01a1dd09-76de-7183-9d34-6000000000{day:02}");
        store(&world, day, &id, if day == 24 { "nothing" } else { &long });
    }
    let run = world.run(["import"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let answer = run.json();
    assert_eq!(answer["data"]["sessions"].as_array().unwrap().len(), 19, "{answer}");
    assert_eq!(answer["data"]["more_count"], 4, "{answer}");
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("W_IMPORT_001: 1 session file") && warning.contains("2026-11-24"),
        "{warning}"
    );
    let shown = run_on_terminal(world.command(["import"])).stdout;
    assert!(shown.contains("4 more, which are older"), "{shown}");
}

#[test]
fn sessions_are_found_in_the_home_of_codex() {
    let world = world_with_sessions();
    std::fs::rename(world.home().join(".codex"), world.home().join("codex")).unwrap();
    assert_eq!(listed(&world).len(), 0);
    let home = world.home().join("codex").display().to_string();
    assert_eq!(listed(&world.variable("CODEX_HOME", &home)).len(), 3);
}
