//! Token usage per task, label and day, and estimates from finished tasks.

use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A turn with this token usage.
fn turn_with_usage(input: u64, cached: u64, output: u64) -> Value {
    json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started",
        {"turn_completed": {
            "input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 1
        }},
    ])
}

fn run_to_end(stage: &Stage, more: &[&str]) -> String {
    let id = stage.exec(more);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    id
}

#[test]
fn usage_is_summed_per_task_label_and_day() {
    let stage = Stage::with_script(PROGRAM, turn_with_usage(100, 40, 10));
    let first = run_to_end(&stage, &["--labels", "team=red"]);
    stage.set_script(turn_with_usage(1_000, 0, 5));
    let second = run_to_end(&stage, &["--labels", "team=blue", "--labels", "kind=fix"]);
    let status = stage.run_json(&["local", "status", "--usage"]);
    let usage = &status["data"]["usage"];
    assert_eq!(usage["total"]["task_count"], 2, "{status}");
    assert_eq!(usage["total"]["input_tokens"], 1_100);
    assert_eq!(usage["total"]["cached_input_tokens"], 40);
    assert_eq!(usage["total"]["output_tokens"], 15);
    assert_eq!(usage["total"]["reasoning_output_tokens"], 2);
    assert!(usage["total"].get("tasks_without_tokens_count").is_none(), "{usage}");
    let tasks: Vec<(&str, u64)> =
        usage["per_task"].as_array().unwrap().iter().map(input_tokens_by("task_id")).collect();
    assert_eq!(tasks, [(second.as_str(), 1_000), (first.as_str(), 100)], "newest first");
    let labels: Vec<(&str, u64)> =
        usage["per_label"].as_array().unwrap().iter().map(input_tokens_by("label")).collect();
    assert_eq!(labels, [("kind=fix", 1_000), ("team=blue", 1_000), ("team=red", 100)]);
    let days = usage["per_day"].as_array().unwrap();
    assert_eq!(days.iter().map(|day| day["input_tokens"].as_u64().unwrap()).sum::<u64>(), 1_100);
    let red = stage.run_json(&["local", "status", "--usage", "--labels", "team=red"]);
    assert_eq!(red["data"]["usage"]["total"]["input_tokens"], 100, "{red}");
    let single = stage.run_json(&["local", "status", &second, "--usage"]);
    assert_eq!(single["data"]["usage"]["total"]["task_count"], 1, "{single}");
}

fn input_tokens_by(key: &'static str) -> impl Fn(&Value) -> (&str, u64) {
    move |line| (line[key].as_str().unwrap(), line["input_tokens"].as_u64().unwrap())
}

#[test]
fn a_task_without_token_usage_is_counted_separately() {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 3");
    let id = stage.exec(&[]);
    assert_eq!(stage.wait(&id)["data"]["state"], "failed");
    let status = stage.run_json(&["local", "status", "--usage"]);
    assert_eq!(status["data"]["usage"]["total"]["tasks_without_tokens_count"], 1, "{status}");
    let page = stage.run_json(&["local", "status"]);
    assert!(page["data"].get("usage").is_none(), "only with --usage: {page}");
}

#[test]
fn durations_are_estimated_only_from_finished_tasks() {
    let stage =
        Stage::with_script(PROGRAM, successful_turn(&[])).variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let first = stage.run_json(&["local", "exec", "first"]);
    assert!(first["data"].get("expected_duration").is_none(), "{first}");
    stage.wait(first["data"]["task_id"].as_str().unwrap());
    let mut known = stage.run_json(&["local", "exec", "second"]);
    assert!(known["data"]["expected_duration"].is_string(), "{known}");
    stage.wait(known["data"]["task_id"].as_str().unwrap());
    stage.set_script(successful_turn(&[json!({"wait_for_file": "go"})]));
    known = stage.run_json(&["local", "exec", "third"]);
    let queued = stage.run_json(&["local", "exec", "fourth"]);
    assert_eq!(queued["meta"]["queue_position"], 1, "{queued}");
    // The third task soon runs longer than every finished one; until then there is an estimate, and it is not negative.
    for start in [
        &queued["meta"]["estimated_start_ms"],
        &stage.run_json(&["local", "status"])["data"]["queue"][0]["estimated_start_ms"],
    ] {
        assert!(start.is_null() || start.is_u64(), "{start}");
    }
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    for response in [&known, &queued] {
        assert_eq!(stage.wait(response["data"]["task_id"].as_str().unwrap())["data"]["state"], "completed");
    }
}

/// The progress of the only running task.
fn progress(stage: &Stage) -> Value {
    stage.run_json(&["local", "status"])["data"]["tasks"][0]["progress"].clone()
}

#[test]
fn progress_without_a_plan_is_estimated_only_from_similar_tasks() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let waiting = || successful_turn(&[json!({"command": {"run": "true"}}), json!({"wait_for_file": "go"})]);
    for _ in 0..2 {
        run_to_end(&stage, &[]);
    }
    let go = stage.world.project().join("go");
    stage.set_script(waiting());
    let third = stage.exec(&[]);
    wait_until("the agent has run a command", || progress(&stage)["command_count"] == 1);
    let unknown = progress(&stage);
    assert_eq!(unknown["percent"], Value::Null, "two similar tasks are too few: {unknown}");
    assert!(
        unknown.get("progress_source").is_none() && unknown["event_count"].as_u64() > Some(0),
        "{unknown}"
    );
    std::fs::write(&go, "").unwrap();
    stage.wait(&third);
    std::fs::remove_file(&go).unwrap();

    let other_mode = stage.exec(&["--mode", "workspace-write"]);
    wait_until("the agent has run a command", || progress(&stage)["command_count"] == 1);
    assert_eq!(progress(&stage)["percent"], Value::Null, "another mode is not similar");
    std::fs::write(&go, "").unwrap();
    stage.wait(&other_mode);
    std::fs::remove_file(&go).unwrap();

    let fourth = stage.exec(&[]);
    let mut last = 0;
    wait_until("the estimate has reached its end", || {
        let progress = progress(&stage);
        let percent = progress["percent"].as_u64().unwrap_or(0);
        assert!(percent >= last && percent <= 95, "{percent} after {last}");
        last = percent;
        percent == 95 && progress["progress_source"] == "history"
    });
    let text = stage.world.run(["local", "status", "--format", "markdown"]).stdout;
    assert!(text.contains("about 95 % (estimate)"), "{text}");
    std::fs::write(&go, "").unwrap();
    stage.wait(&fourth);
}

#[test]
fn a_plan_that_begins_below_the_estimate_does_not_lower_the_progress() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    for _ in 0..3 {
        run_to_end(&stage, &[]);
    }
    stage.set_script(successful_turn(&[
        json!({"wait_for_file": "plan"}),
        json!({"plan": {"steps": ["a", "b"], "done": 1}}),
        json!({"wait_for_file": "go"}),
    ]));
    let id = stage.exec(&[]);
    wait_until("the estimate has reached its end", || progress(&stage)["percent"] == 95);
    std::fs::write(stage.world.project().join("plan"), "").unwrap();
    wait_until("the plan is known", || progress(&stage)["total_steps"] == 2);
    let planned = progress(&stage);
    assert_eq!(
        (&planned["percent"], &planned["progress_source"]),
        (&json!(95), &json!("history")),
        "{planned}"
    );
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    stage.wait(&id);
}
