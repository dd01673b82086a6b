//! One task on every kind of agent: it writes a file and runs a test. Each report has the same shape.

use std::collections::{BTreeMap, BTreeSet};

use delegator_testkit::program::{World, read_text};
use delegator_testkit::scripted_model::{Action, Script};
use serde_json::{Map, Value, json};

use crate::agent_kinds::{AgentKind, for_every_agent};
use crate::live_world::LiveWorld;

const TEST: &str = "import unittest\n\n\nclass Notes(unittest.TestCase):\n    def test_notes(self):\n        \
                    self.assertEqual(open(\"notes.txt\").read(), \"fixed\\n\")\n";

/// Writes a file, runs the test and says so.
fn script(world: &World) -> Script {
    let path = world.project().join("notes.txt");
    vec![
        vec![Action::WriteFile { path, text: "fixed\n" }],
        vec![Action::Run("python3 -m unittest test_notes".to_owned())],
        vec![Action::Say("Wrote notes.txt; its test passes.")],
    ]
}

for_every_agent!(a_task_is_reported);

fn a_task_is_reported(kind: AgentKind) {
    let live = LiveWorld::new(kind, |world| vec![("task", script(world))]);
    live.world.write("project/test_notes.py", TEST);
    live.world.write("project/.gitignore", "__pycache__/\n");
    let id = live.exec("task", &["--mode", "workspace-write"]);
    let data = live.wait(&id);
    assert_eq!(data["state"], "completed", "{kind:?}: {data:#}");
    assert_eq!(data["final_message"], "Wrote notes.txt; its test passes.", "{kind:?}: {data:#}");
    assert_eq!(read_text(&live.world.project().join("notes.txt")), "fixed\n");
    let added = &data["metadata"]["file_operations"]["added_files"];
    assert!(added.as_array().is_some_and(|added| added.contains(&json!("notes.txt"))), "{kind:?}: {data:#}");
    assert_shape(kind, &data, "output");
    let results = &live.world.run(["local", "results", &id]).json()["data"];
    assert_shape(kind, results, "output completed_ts duration_seconds events");
    if !kind.is_own() {
        let usage = &data["metadata"]["thread_info"]["token_usage"];
        assert!(usage["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{kind:?}: {data:#}");
        assert_eq!(data["metadata"]["test_results"]["passed"], 1, "{kind:?}: {data:#}");
    }
}

/// The keys of every report, by their place.
const KEYS: [(&str, &str); 5] = [
    (
        "",
        "agent_exit_code artifacts diff_command final_message git metadata restore_point sandbox state summary task_id working_dir",
    ),
    ("/metadata", "containment duration error_context file_operations task_status thread_info"),
    (
        "/metadata/file_operations",
        "added_files deleted_files is_lines_changed_exact lines_added lines_changed lines_deleted modified_files scope source",
    ),
    ("/metadata/thread_info", "cache_hit_rate thread_id token_usage"),
    ("/artifacts/0", "attributed_to ref sha256 size type"),
];

/// The keys that agents have that report commands and tokens.
const REPORTED_KEYS: [(&str, &str); 3] = [
    ("/metadata", "test_results"),
    ("/metadata/test_results", "failed failed_tests passed skipped"),
    ("/metadata/thread_info/token_usage", "cached_input_tokens input_tokens output_tokens"),
];

/// What only some agents report.
const OPTIONAL_KEYS: [&str; 3] = ["cache_write_input_tokens", "reasoning_output_tokens", "cost_usd"];

/// A plain agent reports no changed files, so we cannot know which are its own. Tests are read from its output.
const PLAIN_KEYS: [(&str, &str); 3] = [
    ("/metadata/file_operations", "possibly_agent_files"),
    ("/metadata", "test_results"),
    ("/metadata/test_results", "failed failed_tests passed skipped"),
];

/// Asserts that a report has the keys that it has for every agent.
fn assert_shape(kind: AgentKind, data: &Value, more: &'static str) {
    let of_kind: &[(&str, &str)] = match kind {
        AgentKind::Plain => &PLAIN_KEYS,
        AgentKind::IdleJsonl => &[],
        _ => &REPORTED_KEYS,
    };
    let mut expected = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (place, keys) in KEYS.iter().chain(of_kind).chain(&[("", more)]) {
        expected.entry(place).or_default().extend(keys.split(' '));
    }
    for (place, expected) in expected {
        let keys = data.pointer(place).and_then(Value::as_object).map(Map::keys);
        let keys = keys.into_iter().flatten().map(String::as_str);
        let keys: BTreeSet<&str> = keys.filter(|key| !OPTIONAL_KEYS.contains(key)).collect();
        assert_eq!(keys, expected, "{kind:?}: {place}: {data:#}");
    }
}
