//! F39: an id is the only part of a path that comes from outside. What is not one is refused before anything is looked
//! at, by every command that takes one, in words and as JSON.

use mcp_delegator::registry::{CommandSpec, Property, all};
use serde_json::{Map, Value, json};

use crate::stage::{Stage, turn};

fn hostile() -> Vec<String> {
    let digits = "0123456789abcdef0123456789abcdef";
    [
        "../../x",
        "T-local-../x",
        "T-local-/etc/passwd",
        "T-local-..",
        "T-local-",
        "/",
        ".",
        "T-local-%2e%2e%2f",
        "T-local-0123456789\u{0}abcdef",
        "T-local-0123\n4567",
        " T-local-0123456789abcdef",
        "T-local-\u{0435}123456789abcdef",
        "T-local-\u{ff11}23456789abcdef",
        "t-local-0123456789abcdef",
        "--last",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([format!("T-local-{}", "a".repeat(300)), format!("T-local-{}", digits.to_uppercase())])
    .chain([format!("T-LOCAL-{digits}"), format!("T-other-{digits}")])
    .collect()
}

/// Whether an input names tasks.
fn names_tasks(property: &Property) -> bool {
    matches!(property.name.as_str(), "task_id" | "task_ids")
}

/// The least a command takes beside its id.
fn beside(spec: &CommandSpec) -> Map<String, Value> {
    let properties = spec.inputs().properties;
    let confirms = properties.iter().any(|one| one.name == "confirm_destructive");
    let others = properties.into_iter().filter(|one| one.required && !names_tasks(one));
    others
        .map(|one| (one.name.clone(), one.choices().first().map_or(json!("text"), |word| json!(word))))
        .chain(confirms.then(|| ("confirm_destructive".to_owned(), json!(true))))
        .collect()
}

#[test]
fn f39_what_is_no_id_is_refused_by_every_command() {
    let stage = Stage::playing(turn(&[]));
    let known = stage.exec(&[]);
    stage.end_of(&known);
    let mut commands = 0;
    for spec in all().iter().filter(|spec| spec.is_available()) {
        for property in spec.inputs().properties.iter().filter(|one| names_tasks(one)) {
            commands += 1;
            for id in hostile() {
                let mut input = beside(spec);
                let value = if property.name == "task_ids" { json!([id]) } else { json!(id) };
                input.insert(property.name.clone(), value);
                let input = Value::Object(input).to_string();
                for (envelope, code) in [("agent", "INVALID_ID"), ("tool", "VALIDATION")] {
                    let words = [spec.path, &["--input-json", "-", "--envelope", envelope]].concat();
                    let run = stage.world.run_with_input(&words, input.as_bytes());
                    let error = run.document()["error"].clone();
                    assert_eq!(
                        (run.exit, &error["code"]),
                        (Some(2), &json!(code)),
                        "{words:?} {id:?}: {error}"
                    );
                }
            }
        }
    }
    assert!(commands >= 8, "only {commands} commands take an id");
    assert_eq!(std::fs::read_dir(stage.state().join("tasks")).unwrap().count(), 1);
}

/// Commands that read transcripts take a file's name as well; what looks like an id and is none leads to no file of ours.
#[test]
fn f39_no_id_leads_out_of_the_state_directory() {
    let stage = Stage::playing(turn(&[]));
    let known = stage.exec(&[]);
    stage.end_of(&known);
    stage.world.write("home/state/secret/events.jsonl", "{\"type\":\"turn.started\"}\n");
    for id in ["T-local-../secret", "T-local-0123456789abcdef/../../secret"] {
        for command in ["summarize", "normalize", "follow"] {
            let run = stage.run(&["events", command, id]);
            assert!(matches!(run.exit, Some(2 | 5)), "{command} {id}: {run:?}");
        }
    }
}
