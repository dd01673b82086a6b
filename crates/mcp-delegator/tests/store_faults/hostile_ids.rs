//! F39: an id is the only part of a path that comes from outside. What is not one is refused before anything is looked
//! at, by every command that takes one, in words and as JSON.

use mcp_delegator::spec::{CommandSpec, Property, all};
use serde_json::{Map, Value, json};

use crate::stage::{Stage, successful_turn};

fn hostile_ids() -> Vec<String> {
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
fn minimal_input(spec: &CommandSpec) -> Map<String, Value> {
    let least = |one: Property| match one.name.as_str() {
        "confirm_destructive" => Some((one.name, json!(true))),
        _ if one.required && !names_tasks(&one) => {
            let word = one.choices().first().map_or(json!("text"), |word| json!(word));
            Some((one.name, word))
        }
        _ => None,
    };
    spec.inputs().properties.into_iter().filter_map(least).collect()
}

#[test]
fn f39_an_invalid_id_is_refused_by_every_command() {
    let stage = Stage::with_script(successful_turn(&[]));
    let known = stage.exec(&[]);
    stage.wait_for_end(&known);
    let mut commands = 0;
    for spec in all().iter().filter(|spec| spec.is_available()) {
        for property in spec.inputs().properties.iter().filter(|one| names_tasks(one)) {
            commands += 1;
            for (number, id) in hostile_ids().into_iter().enumerate() {
                let mut input = minimal_input(spec);
                let value = if property.name == "task_ids" { json!([id]) } else { json!(id) };
                input.insert(property.name.clone(), value);
                let input = Value::Object(input).to_string();
                // One code for each in every vocabulary is another test's business; here they take turns.
                let told = [("agent", "INVALID_ID"), ("tool", "VALIDATION")];
                let (envelope, code) = told[number % 2];
                let words = [spec.path, &["--input-json", "-", "--envelope", envelope]].concat();
                let run = stage.world.run_with_input(&words, input.as_bytes());
                let error = run.document()["error"].clone();
                assert_eq!((run.exit, &error["code"]), (Some(2), &json!(code)), "{words:?} {id:?}: {error}");
            }
        }
    }
    assert!(commands >= 8, "only {commands} commands take an id");
    assert_eq!(std::fs::read_dir(stage.state_dir().join("tasks")).unwrap().count(), 1);
}

/// Commands that read transcripts take a file's name as well; what looks like an id and is none leads to no file of ours.
#[test]
fn f39_no_id_leads_out_of_the_state_directory() {
    let stage = Stage::with_script(successful_turn(&[]));
    let known = stage.exec(&[]);
    stage.wait_for_end(&known);
    stage.world.write("home/state/secret/events.jsonl", "{\"type\":\"turn.started\"}\n");
    for id in ["T-local-../secret", "T-local-0123456789abcdef/../../secret"] {
        for command in ["summarize", "normalize", "follow"] {
            let run = stage.run(&["events", command, id]);
            assert!(matches!(run.exit, Some(2 | 5)), "{command} {id}: {run:?}");
        }
    }
}
