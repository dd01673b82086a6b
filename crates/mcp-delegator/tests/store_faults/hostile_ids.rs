//! Invalid task ids: an id is the only path component from outside, so every command refuses an invalid one before
//! any file access.

use mcp_delegator::app::command_list::catalog;
use mcp_delegator::spec::{CommandSpec, Property};
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

/// Whether an input takes task ids.
fn names_tasks(property: &Property) -> bool {
    matches!(property.name.as_str(), "task_id" | "task_ids")
}

/// The minimal input of a command without its task id.
fn minimal_input(spec: &CommandSpec) -> Map<String, Value> {
    let minimal = |property: Property| match property.name.as_str() {
        "confirm_destructive" => Some((property.name, json!(true))),
        _ if property.required && !names_tasks(&property) => {
            let word = property.choices().first().map_or(json!("text"), |word| json!(word));
            Some((property.name, word))
        }
        _ => None,
    };
    spec.inputs().properties.into_iter().filter_map(minimal).collect()
}

#[test]
fn f39_an_invalid_id_is_refused_by_every_command() {
    let stage = Stage::with_script(successful_turn(&[]));
    let known = stage.exec(&[]);
    stage.wait_for_end(&known);
    let mut commands = 0;
    for spec in catalog().iter() {
        for property in spec.inputs().properties.iter().filter(|candidate| names_tasks(candidate)) {
            commands += 1;
            for (number, id) in hostile_ids().into_iter().enumerate() {
                let mut input = minimal_input(spec);
                let value = if property.name == "task_ids" { json!([id]) } else { json!(id) };
                input.insert(property.name.clone(), value);
                let input = Value::Object(input).to_string();
                // The envelopes alternate; another test covers every code in every envelope.
                let variants = [("agent", "INVALID_ID"), ("tool", "VALIDATION")];
                let (envelope, code) = variants[number % 2];
                let args = [spec.path, &["--input-json", "-", "--envelope", envelope]].concat();
                let run = stage.world.run_with_input(&args, input.as_bytes());
                let error = run.document()["error"].clone();
                assert_eq!((run.exit, &error["code"]), (Some(2), &json!(code)), "{args:?} {id:?}: {error}");
            }
        }
    }
    assert!(commands >= 8, "only {commands} commands take an id");
    assert_eq!(std::fs::read_dir(stage.state_dir().join("tasks")).unwrap().count(), 1);
}

/// The events commands also take file names; an invalid id must not lead to a file in the state directory.
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
