//! Codex exec events, and the work behind them.

use delegator_transcript::{FoldOptions, LineLimits, Report, StreamOutcome, Summarizer};
use serde_json::{Value, json};

use crate::agent::{Stage, json_lines, run_steps, stderr_text};

pub(crate) fn report(stream: &[u8]) -> Report {
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    summarizer.push(stream);
    summarizer.finish()
}

#[test]
fn a_turn_has_the_events_of_codex() {
    let output = run_steps(json!([
        {"thread_started": {"id": "t"}},
        {"warning": "careful"},
        "turn_started",
        {"reasoning": "hm"},
        {"plan": {"steps": ["a", "b"]}},
        {"plan_done": 1},
        {"plan": {"steps": ["a", "b", "c"], "done": 2}},
        {"error": "Reconnecting... 1/5"},
        {"message": "Done."},
        {"turn_completed": {"input_tokens": 5, "output_tokens": 3}},
    ]));
    let todo = |texts: &[&str], done: usize| -> Value {
        texts.iter().enumerate().map(|(i, text)| json!({"text": text, "completed": i < done})).collect()
    };
    let plan = |phase: &str, texts: &[&str], done| json!({"type": phase, "item": {"id": "item_2", "type": "todo_list", "items": todo(texts, done)}});
    let expected = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "careful"}}),
        json!({"type": "turn.started"}),
        json!({"type": "item.completed", "item": {"id": "item_1", "type": "reasoning", "text": "hm"}}),
        plan("item.started", &["a", "b"], 0),
        plan("item.updated", &["a", "b"], 1),
        plan("item.updated", &["a", "b", "c"], 2),
        json!({"type": "error", "message": "Reconnecting... 1/5"}),
        json!({"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": "Done."}}),
        plan("item.completed", &["a", "b", "c"], 2),
        json!({"type": "turn.completed", "usage": {"input_tokens": 5, "cached_input_tokens": 0,
               "cache_write_input_tokens": 0, "output_tokens": 3, "reasoning_output_tokens": 0}}),
    ];
    assert_eq!(json_lines(&output), expected);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(report(&output.stdout).outcome, StreamOutcome::Completed);
}

#[test]
fn the_order_of_keys_is_that_of_codex() {
    let output = run_steps(json!([{"message": "m"}]));
    let expected = "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\",\"text\":\"m\"}}\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn a_failed_turn_ends_with_1() {
    let output = run_steps(json!([{"thread_started": {}}, "turn_started", {"turn_failed": "no"}]));
    assert_eq!(json_lines(&output)[2], json!({"type": "turn.failed", "error": {"message": "no"}}));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        report(&output.stdout).outcome,
        StreamOutcome::Failed { message: "no".to_owned(), code: None }
    );
}

#[test]
fn the_thread_is_the_requested_one_unless_the_script_sets_it() {
    let announced = |settings: Value, args: &[&str]| {
        let output = Stage::with(json!([{"thread_started": settings}])).run_with(args, b"");
        json_lines(&output)[0]["thread_id"].as_str().unwrap().to_owned()
    };
    let resume = ["exec", "--json", "--sandbox", "read-only", "resume", "old", "-"];
    assert_eq!(announced(json!({}), &resume), "old");
    assert_eq!(announced(json!({"new": true}), &resume).len(), 36);
    assert_eq!(announced(json!({"id": "other"}), &resume), "other");
    let fresh = ["exec", "--json", "-"];
    assert_eq!(announced(json!({}), &fresh).len(), 36);
    assert_ne!(announced(json!({}), &fresh), announced(json!({}), &fresh));
}

#[test]
fn commands_run_for_real() {
    let stage = Stage::with(json!([
        {"command": {"run": "echo out; echo 'it'\\''s err' >&2; exit 3", "if_failed": [{"touch_file": "failed"}]}},
        {"command": {"run": ["printf", "%s", "a b"]}},
        {"command": {"run": ["/no/such/program"]}},
        {"command": {"run": "kill -9 $$"}},
    ]));
    let lines = json_lines(&stage.run());
    let item = |index: usize| &lines[index]["item"];
    assert_eq!(lines[0]["type"], "item.started");
    assert_eq!(item(0)["exit_code"], Value::Null);
    assert_eq!(item(0)["status"], "in_progress");
    assert_eq!(item(1)["id"], item(0)["id"]);
    assert_eq!(item(1)["aggregated_output"], "out\nit's err\n");
    assert_eq!((&item(1)["exit_code"], &item(1)["status"]), (&json!(3), &json!("failed")));
    assert_eq!(item(3)["command"], "printf %s 'a b'");
    assert_eq!(item(3)["aggregated_output"], "a b");
    assert_eq!((&item(3)["exit_code"], &item(3)["status"]), (&json!(0), &json!("completed")));
    assert_eq!(item(5)["exit_code"], 127);
    assert_eq!(item(7)["exit_code"], 137);
    assert!(stage.path("failed").exists());
}

#[test]
fn a_command_that_leaves_a_process_behind_still_ends() {
    let stage = Stage::with(json!([{"command": {"run": "sleep 300 & echo $!"}}]));
    let output = stage.run();
    let printed = json_lines(&output)[1]["item"]["aggregated_output"].as_str().unwrap().trim().to_owned();
    let left = crate::agent::KillOnDrop(printed.parse().unwrap());
    assert!(crate::agent::is_alive(left.0));
}

#[test]
fn long_output_is_truncated_as_codex_does() {
    let output = run_steps(json!([{"command": {"run": "yes | head -c 2000000"}}]));
    let text = json_lines(&output)[1]["item"]["aggregated_output"].as_str().unwrap().to_owned();
    let omitted = "\n... 951424 bytes omitted ...\n";
    assert!(text.contains(omitted));
    assert_eq!(text.len(), 1024 * 1024 + omitted.len());
}

#[test]
fn files_change_for_real() {
    let stage = Stage::with(json!([
        {"write_file": {"path": "new/a.txt", "text": "one two two"}},
        {"replace_in_file": {"path": "new/a.txt", "old": "two", "new": "2"}},
        {"replace_in_file": {"path": "new/a.txt", "old": "three", "new": "3", "if_failed": [{"message": "not there"}]}},
        {"write_file": {"path": "b.txt", "text": ""}},
        {"delete_file": "b.txt"},
    ]));
    let output = stage.run();
    assert_eq!(stage.read("new/a.txt"), "one 2 two");
    assert!(!stage.path("b.txt").exists());
    let changes: Vec<String> = json_lines(&output)
        .iter()
        .filter(|line| line["item"]["type"] == "file_change")
        .map(|line| {
            let change = &line["item"]["changes"][0];
            assert!(change["path"].as_str().unwrap().starts_with('/'), "{line}");
            format!("{} {}", change["kind"].as_str().unwrap(), line["item"]["status"].as_str().unwrap())
        })
        .collect();
    let both = |kind: &str, end: &str| [format!("{kind} in_progress"), format!("{kind} {end}")];
    let expected = [
        both("add", "completed"),
        both("update", "completed"),
        both("update", "failed"),
        both("add", "completed"),
        both("delete", "completed"),
    ];
    assert_eq!(changes, expected.concat());
    assert!(json_lines(&output).iter().any(|line| line["item"]["text"] == "not there"));
}

#[test]
fn work_is_done_in_the_directory_of_the_command_line() {
    let stage = Stage::with(json!([
        {"write_file": {"path": "a", "text": ""}},
        {"command": {"run": "ls"}},
    ]));
    std::fs::create_dir(stage.path("below")).unwrap();
    let output = stage.run_with(&["exec", "--json", "--cd", "below", "-"], b"");
    assert!(stage.path("below/a").exists(), "{}", stderr_text(&output));
    assert_eq!(json_lines(&output)[3]["item"]["aggregated_output"], "a\n");
}
