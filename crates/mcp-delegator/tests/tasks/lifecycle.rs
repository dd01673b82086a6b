//! Tasks from submit to result, with a scripted agent in place of Codex.

use std::path::Path;
use std::process::Stdio;

use delegator_testkit::program::{World, output_of, read_text, wait_for_output};
use delegator_testkit::stage::{Stage, successful_turn, task_processes};
use delegator_testkit::terminal::run_on_terminal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;

fn scripted_stage(steps: Value) -> Stage {
    Stage::with_script(PROGRAM, steps)
}

#[test]
fn a_completed_task_is_reported() {
    let stage = scripted_stage(successful_turn(&[
        json!({"write_file": {"path": "new.txt", "text": "hello"}}),
        json!({"command": {"run": "exit 3"}}),
    ]));
    let id = stage.exec(&["--mode", "workspace-write"]);
    let data = stage.wait(&id)["data"].clone();
    assert_eq!((&data["state"], &data["final_message"]), (&json!("completed"), &json!("All done.")));
    assert_eq!(data["summary"], "Added 1 file (+1 −0), ran 1 command");
    assert_eq!(read_text(&stage.world.project().join("new.txt")), "hello");
    let usage = &data["metadata"]["thread_info"]["token_usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(100), &json!(7)));
    let results = stage.run_json(&["local", "results", &id, "--include-events", "--include-output"]);
    assert_eq!(results["data"]["events"]["included"], true);
    assert!(results["data"]["output"]["stdout"].as_str().unwrap().contains("turn.completed"));
    assert!(!stage.task_dir(&id).join("launch").exists(), "the launch file was not removed");
}

#[test]
fn the_duration_is_the_difference_of_the_printed_times() {
    let stage = scripted_stage(successful_turn(&[json!({"command": {"run": "sleep 1.1"}})]));
    let id = stage.exec(&[]);
    let waited = stage.run_json(&["local", "wait", &id, "--envelope", "tool"]);
    let time = |key: &str| -> i64 {
        let text = waited["meta"][key].as_str().unwrap_or_else(|| panic!("{waited}"));
        text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
    };
    let duration_ms = time("completed_ts") - time("started_ts");
    assert!(duration_ms >= 1_100, "{waited}");
    assert_eq!(waited["meta"]["duration_ms"], duration_ms, "{waited}");
    assert_eq!(waited["data"]["metadata"]["duration"], duration_ms / 1000, "{waited}");
    let results = stage.run_json(&["local", "results", &id])["data"].clone();
    assert_eq!(results["duration_seconds"], duration_ms / 1000, "{results}");
    assert_eq!(results["metadata"]["duration"], duration_ms / 1000, "{results}");
    assert_eq!(results["completed_ts"], waited["meta"]["completed_ts"], "{results}");
    let listed = stage.run_json(&["local", "status"])["data"]["recently_completed"][0].clone();
    assert_eq!(listed["duration_seconds"], duration_ms / 1000, "{listed}");
}

#[test]
fn every_response_about_a_task_names_its_absolute_directory() {
    let stage = scripted_stage(successful_turn(&[json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let directory = json!(stage.world.project().canonicalize().unwrap());
    let accepted = stage.run_json(&["local", "exec", "first"])["data"].clone();
    let queued = stage.run_json(&["local", "exec", "second"])["data"].clone();
    let id = accepted["task_id"].as_str().unwrap();
    let unfinished = stage.run_json(&["local", "wait", id, "--timeout-sec", "1"]);
    let status = stage.run_json(&["local", "status"])["data"].clone();
    stage.world.write("project/go", "");
    let ended = stage.wait(id)["data"].clone();
    stage.wait(queued["task_id"].as_str().unwrap());
    let after = stage.run_json(&["local", "status"])["data"].clone();
    let results = stage.run_json(&["local", "results", id])["data"].clone();
    let run = stage.run_json(&["local", "run", "third"])["data"].clone();
    for task in [
        &accepted,
        &queued,
        &unfinished["meta"]["failure_data"],
        &status["tasks"][0],
        &status["queue"][0],
        &after["recently_completed"][0],
        &ended,
        &results,
        &run,
    ] {
        assert_eq!(task["working_dir"], directory, "{task}");
    }
    let text = stage.world.run(["local", "results", id, "--format", "human"]).stdout;
    assert_eq!(text.matches(directory.as_str().unwrap()).count(), 1, "{text}");
}

#[test]
fn every_task_response_matches_its_schema() {
    let stage = scripted_stage(successful_turn(&[]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    for (args, category) in [
        (vec!["local", "wait", &id], "wait_result"),
        (vec!["local", "results", &id], "result_set"),
        (vec!["local", "status"], "status_snapshot"),
        (vec!["local", "run", "again"], "execution_ack"),
        (vec!["local", "exec", "again"], "execution_ack"),
    ] {
        // A debug build panics on an envelope that violates its schema, so a result proves validity.
        let response = stage.run_json(&[args.as_slice(), &["--envelope", "tool"]].concat());
        assert_eq!(
            (&response["status"], &response["tool_category"]),
            (&json!("ok"), &json!(category)),
            "{response}"
        );
    }
}

#[test]
fn the_task_text_reaches_the_agent_byte_for_byte_and_never_as_an_argument() {
    let stage =
        scripted_stage(json!([{"read_stdin": "all"}, {"record": {"file": "record.json"}}, {"exit": 0}]));
    let text = "--last - \u{1F980} \"quotes\" $HOME `x`\n\ttabs\n";
    let run = stage.world.run(["local", "run", &format!("--task={text}")]);
    assert_eq!(run.exit, Some(80), "no terminal event is a failure: {run:?}");
    assert_eq!(run.json()["meta"]["error_context"]["failure_kind"], "no_terminal_event");
    let record: Value = serde_json::from_str(&read_text(&stage.world.project().join("record.json"))).unwrap();
    assert_eq!(record["stdin"], text);
    assert!(!record["argv"].to_string().contains("quotes"), "{record}");
}

/// The supervisor is in a session of its own, without a terminal on which it could prompt or be hung up.
#[test]
fn an_agent_runs_outside_the_callers_terminal_session() {
    let stage = scripted_stage(successful_turn(&[json!({"record": {"file": "record.json"}})]));
    // A session whose controlling terminal is its stdout.
    let script = "exec setsid --ctty --wait \"$0\" local run x <&1";
    let shell = stage.world.command_as(Path::new("sh"), ["-c", script, PROGRAM]);
    let run = run_on_terminal(shell);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let record: Value = serde_json::from_str(&read_text(&stage.world.project().join("record.json"))).unwrap();
    assert!(record["session"].is_u64(), "{record}");
    assert_eq!(record["session"], record["parent_pid"], "{record}");
}

#[test]
fn a_secret_reaches_neither_disk_nor_response() {
    let secret = "correct-horse-battery-staple";
    let stage = scripted_stage(successful_turn(&[
        json!({"message": format!("the token is {secret}")}),
        json!({"stderr_line": format!("leaking {secret}")}),
    ]));
    let world = &stage.world;
    let mut command = world.command(["local", "run", &format!("use {secret}")]);
    command.env("DEPLOY_TOKEN", secret);
    let run = wait_for_output(
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
    );
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert!(!run.stdout.contains(secret));
    fn search(folder: &Path, secret: &str) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                search(&path, secret);
            } else if path.is_file() {
                let bytes = std::fs::read(&path).unwrap();
                let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "{} holds the secret", path.display());
            }
        }
    }
    search(&world.home().join("state"), secret);
}

#[test]
fn a_task_continues_when_its_submitter_is_killed() {
    let stage =
        scripted_stage(successful_turn(&[json!({"touch_file": "ready"}), json!({"wait_for_file": "go"})]));
    let mut child = stage
        .world
        .command(["local", "run", "x"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    stage.wait_for_project_file("ready");
    child.kill().unwrap();
    child.wait().unwrap();
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"]["summary"]["running"], 1, "{status}");
    let id = status["data"]["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn an_interrupt_detaches_and_cancel_ends_the_task() {
    let stage = scripted_stage(successful_turn(&[json!({"touch_file": "ready"}), json!("silent")]));
    let mut command = stage.world.command(["local", "run", "x"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    stage.wait_for_project_file("ready");
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).unwrap();
    let run = wait_for_output(child);
    assert_eq!(run.exit, Some(14), "{run:?}");
    assert!(run.stderr.contains("it continues"), "{}", run.stderr);
    let id = run.json()["meta"]["failure_data"]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(stage.run_json(&["local", "status"])["data"]["summary"]["running"], 1);
    let cancelled = stage.run_json(&["local", "cancel", &id]);
    assert_eq!(cancelled["data"]["state"], "cancelled");
}

#[test]
fn a_resumed_thread_must_be_the_requested_one() {
    let stage = scripted_stage(successful_turn(&[]));
    let id = stage.exec(&[]);
    let thread = stage.wait(&id)["data"]["metadata"]["thread_info"]["thread_id"].as_str().unwrap().to_owned();
    let resumed = stage.run_json(&["local", "resume", "go on", "--task-id", &id]);
    let second = resumed["data"]["task_id"].as_str().unwrap().to_owned();
    let data = stage.wait(&second)["data"].clone();
    assert_eq!(
        (&data["state"], &data["metadata"]["thread_info"]["thread_id"]),
        (&json!("completed"), &json!(thread))
    );
    let stage = scripted_stage(
        json!([{"read_stdin": "all"}, {"thread_started": {"new": true}}, "turn_started", "silent"]),
    );
    stage.write_session(THREAD);
    let response = stage.run_json(&["local", "resume", "go on", "--thread-id", THREAD]);
    let data = stage.wait(response["data"]["task_id"].as_str().unwrap())["data"].clone();
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "wrong_thread", "{data}");
}

const THREAD: &str = "0199a213-81c0-7800-8aa1-bbab2a035a53";

/// The codes of a call that must not start anything, and what it suggests.
fn refused_resume(stage: &Stage, args: &[&str]) -> Value {
    let run = stage.world.run(args);
    let error = run.json()["error"].clone();
    assert_eq!((run.exit, &error["code"]), (Some(5), &json!("THREAD_NOT_FOUND")), "{run:?}");
    assert_eq!(error["retryable"], false, "{error}");
    assert!(!stage.root().join("agent-started").exists(), "the agent was run");
    error
}

#[test]
fn resuming_an_unknown_thread_starts_nothing() {
    let program = PROGRAM;
    let stage = Stage::with_shell_agent(program, "");
    let agent = format!("#!/bin/sh\ntouch {}/agent-started\n", stage.root().display());
    stage.write_program("bin/codex", &agent);
    let resume = ["local", "resume", "go on", "--thread-id", THREAD];
    let suggestion = refused_resume(&stage, &resume)["suggestion"].as_str().unwrap().to_owned();
    assert!(
        suggestion.contains("mcp-delegator status") && !suggestion.contains("Did you mean"),
        "{suggestion}"
    );
    // A thread of another Codex home, and one with a similar id.
    stage.world.write(&format!("other/sessions/rollout-2026-11-16T05-56-29-{THREAD}.jsonl"), "");
    let similar = THREAD.replace("0199", "0198");
    stage.write_session(&similar);
    let error = refused_resume(&stage, &resume);
    assert!(error["suggestion"].as_str().unwrap().contains(&format!("Did you mean {similar}?")), "{error}");
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"]["summary"]["recently_completed"], 0, "{status}");
    assert!(!stage.world.home().join("state/tasks").exists());
    let other = stage.root().join("other").display().to_string();
    let stage = stage.variable("CODEX_HOME", &other);
    assert_eq!(stage.world.run(resume).exit, Some(0), "the CODEX_HOME of the task counts");
}

#[test]
fn an_archived_thread_is_refused_with_the_command_that_restores_it() {
    let stage = scripted_stage(successful_turn(&[]));
    let archived = format!("home/.codex/archived_sessions/rollout-2026-11-16T05-56-29-{THREAD}.jsonl");
    stage.world.write(&archived, "");
    let error = refused_resume(&stage, &["local", "resume", "go on", "--thread-id", THREAD]);
    assert!(error["suggestion"].as_str().unwrap().contains(&format!("codex unarchive {THREAD}")), "{error}");
}

#[test]
fn a_retry_does_not_resume_a_thread_that_no_longer_exists() {
    let stage = scripted_stage(json!([{"read_stdin": "all"}, {"exit": 1}]));
    stage.write_session(THREAD);
    let resumed = stage.run_json(&["local", "resume", "go on", "--thread-id", THREAD]);
    let id = resumed["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{resumed}")).to_owned();
    stage.wait(&id);
    assert_eq!(stage.world.run(["retry", &id]).exit, Some(0));
    std::fs::remove_dir_all(stage.world.home().join(".codex/sessions")).unwrap();
    refused_resume(&stage, &["retry", &id]);
}

#[test]
fn the_same_idempotency_key_returns_the_same_task() {
    let stage = scripted_stage(successful_turn(&[]));
    let first = stage.exec(&["--idempotency-key", "k1"]);
    let again = stage.run_json(&["local", "exec", "do it", "--idempotency-key", "k1"]);
    assert_eq!((&again["data"]["task_id"], &again["meta"]["replayed"]), (&json!(first), &json!(true)));
    let explicit = stage.run_json(&["local", "exec", "do it", "--idempotency-key", "k1", "--agent", "codex"]);
    assert_eq!(
        explicit["data"]["task_id"],
        json!(first),
        "an explicit default is the same input: {explicit}"
    );
    let other = stage.world.run(["local", "exec", "something else", "--idempotency-key", "k1"]);
    assert_eq!((other.exit, &other.json()["error"]["code"]), (Some(6), &json!("IDEMPOTENCY_MISMATCH")));
}

#[test]
fn results_of_unknown_and_unfinished_tasks_are_refused() {
    let stage = scripted_stage(successful_turn(&[json!({"wait_for_file": "go"})]));
    let unknown = stage.world.run(["local", "results", "T-local-0000000000"]);
    assert_eq!((unknown.exit, &unknown.json()["error"]["code"]), (Some(5), &json!("TASK_NOT_FOUND")));
    let id = stage.exec(&[]);
    let early = stage.world.run(["local", "results", &id]);
    assert_eq!((early.exit, &early.json()["error"]["retryable"]), (Some(4), &json!(true)));
    let expired = stage.world.run(["local", "wait", &id, "--timeout-sec", "1"]);
    assert_eq!(
        (expired.exit, &expired.json()["meta"]["failure_data"]["state"]),
        (Some(14), &json!("working"))
    );
    stage.world.write("project/go", "");
    let by_prefix = stage.run_json(&["local", "wait", &id[..16]]);
    assert_eq!(by_prefix["data"]["task_id"], json!(id));
}

#[test]
fn the_demo_fixes_a_bug_offline() {
    let world = World::new(PROGRAM);
    let data = world.run(["demo"]).json()["data"].clone();
    assert_eq!(data["result"]["state"], "completed", "{data}");
    assert!(data["diff"].as_str().unwrap().contains("+++ b/"), "{data}");
}

#[test]
fn a_tasks_events_can_be_read_and_followed_by_its_id() {
    let stage =
        scripted_stage(successful_turn(&[json!({"message": "first"}), json!({"wait_for_file": "go"})]));
    let id = stage.exec(&[]);
    let mut command = stage.world.command(["events", "follow", &id]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.contains("first")));
    stage.world.write("project/go", "");
    let last: Value = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
    assert_eq!(last["data"]["state"], "completed", "{last}");
    assert_eq!(wait_for_output(child).exit, Some(0));
    let summary = stage.run_json(&["events", "summarize", &id]);
    assert_eq!(summary["data"]["final_message"], "All done.");
    let logs = stage.run_json(&["logs", &id]);
    assert!(logs["data"]["stdout"].as_str().unwrap().contains("first"), "{logs}");
}

#[test]
fn follow_ends_when_the_task_is_cancelled() {
    let stage = scripted_stage(successful_turn(&[json!({"message": "first"}), json!("silent")]));
    let id = stage.exec(&[]);
    let mut command = stage.world.command(["events", "follow", &id]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.contains("first")));
    stage.run_json(&["local", "cancel", &id]);
    let last: Value = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
    assert_eq!(last["data"]["state"], "interrupted", "{last}");
    assert_eq!(wait_for_output(child).exit, Some(0));
}

#[test]
fn a_resumed_task_counts_only_its_own_tokens() {
    let stage = scripted_stage(json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": "ok"},
        {"turn_completed": {"input_tokens": 100, "output_tokens": 7}}
    ]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    stage.world.write(
        "script.json",
        &json!({"steps": [
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": "ok"},
            {"turn_completed": {"input_tokens": 250, "output_tokens": 10}}
        ]})
        .to_string(),
    );
    let resumed = stage.run_json(&["local", "resume", "go on", "--task-id", &id]);
    let data = stage.wait(resumed["data"]["task_id"].as_str().unwrap())["data"].clone();
    let usage = &data["metadata"]["thread_info"]["token_usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(150), &json!(3)), "{data}");
}

#[test]
fn doctor_reports_a_missing_agent() {
    let stage = scripted_stage(successful_turn(&[]));
    let checks = stage.world.doctor_checks();
    let of =
        |name: &str| checks.as_array().unwrap().iter().find(|check| check["name"] == name).unwrap().clone();
    assert_eq!(of("agent")["status"], "ok", "{checks}");
    assert_eq!(of("state_dir")["status"], "ok");
    let missing = output_of(stage.world.command(["doctor"]).env("MCP_DELEGATOR_CODEX_BIN", "/nowhere/codex"));
    let response = missing.json();
    assert_eq!(
        (&response["error"]["code"], missing.exit),
        (&json!("DEPENDENCY_MISSING"), Some(4)),
        "{response}"
    );
    assert_eq!(response["meta"]["failure_data"]["is_healthy"], false, "{response}");
    let suggestion = response["error"]["suggestion"].as_str().unwrap();
    assert!(suggestion.contains("npm install -g @openai/codex") && suggestion.contains("codex login"));
}

#[test]
fn a_session_is_imported_once() {
    let stage = scripted_stage(successful_turn(&[]));
    let session = delegator_testkit::generated::workspace()
        .join("crates/delegator-transcript/tests/transcripts/rollouts/0.166.0.patch.rollout.jsonl")
        .display()
        .to_string();
    let imported = stage.run_json(&["import", &session]);
    let id = imported["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{imported}")).to_owned();
    assert_eq!(stage.run_json(&["import", &session])["data"], {
        let mut again = imported["data"].clone();
        again["replayed"] = json!(true);
        again
    });
    let results = stage.run_json(&["local", "results", &id, "--include-events"]);
    assert_eq!(results["ok"], true, "{results}");
    assert!(results["data"]["events"]["items"].as_array().unwrap().len() > 1, "{results}");
    assert_eq!(stage.world.run(["import", "/nowhere"]).exit, Some(5));
    assert_eq!(stage.world.run(["import", "/dev/null"]).exit, Some(2));
}

#[test]
fn a_damaged_registry_is_reported_and_set_aside_only_on_request() {
    let stage = scripted_stage(successful_turn(&[]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let registry = stage.world.home().join("state/registry.db");
    std::fs::write(&registry, vec![7; 8192]).unwrap();
    let run = stage.world.run(["local", "status"]);
    assert_eq!(run.exit, Some(4), "{run:?}");
    assert!(run.json()["error"]["message"].as_str().unwrap().contains("registry.db"), "{}", run.stdout);
    let checks = stage.run_json(&["doctor", "--set-aside-damaged"]);
    let state = checks["meta"]["failure_data"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "state_dir")
        .unwrap();
    assert_eq!(state["status"], "ok", "{checks}");
    let files = std::fs::read_dir(registry.parent().unwrap()).unwrap().flatten();
    assert!(files.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains("damaged")));
    assert_eq!(stage.run_json(&["local", "status"])["ok"], true);
}

#[test]
fn logs_follow_until_the_task_ends() {
    let stage =
        scripted_stage(successful_turn(&[json!({"message": "first"}), json!({"wait_for_file": "go"})]));
    let id = stage.exec(&[]);
    let mut command = stage.world.command(["logs", &id, "--follow", "--raw", "--format", "human"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut printed = Vec::new();
    while !printed.last().is_some_and(|line: &String| line.contains("first")) {
        printed.push(lines.next().unwrap().unwrap());
    }
    stage.world.write("project/go", "");
    printed.extend(lines.map(Result::unwrap));
    assert_eq!(wait_for_output(child).exit, Some(0));
    let logs = stage.run_json(&["logs", &id])["data"].clone();
    let streams = ["stdout", "stderr"].map(|name| logs[name].as_str().unwrap());
    let mut stored: Vec<&str> = streams.iter().flat_map(|text| text.lines()).collect();
    printed.sort();
    stored.sort_unstable();
    assert_eq!(printed, stored, "every line is printed once");
    assert!(printed.iter().any(|line| line.contains("turn.completed")), "{printed:?}");
}

#[test]
fn nested_tasks_obey_depth_and_children_limits() {
    let stage = scripted_stage(successful_turn(&[json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_DEPTH", "2")
        .variable("MCP_DELEGATOR_MAX_CHILDREN", "2")
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let outer = "T-local-0000000000";
    let exec_inside = |marker: &str| {
        let run = output_of(stage.world.command(["local", "exec", "x"]).env("DELEGATOR_TASK", marker));
        (run.exit, run.json())
    };
    let (exit, response) = exec_inside(&format!("{outer}:2"));
    assert_eq!((exit, &response["error"]["code"]), (Some(7), &json!("POLICY_BLOCKED")), "{response}");
    assert!(response["error"]["message"].as_str().unwrap().contains("max_depth is 2"), "{response}");
    // One runs and one is queued: both count until they end.
    let ids = [(); 2].map(|()| {
        let (exit, response) = exec_inside(&format!("{outer}:1"));
        assert_eq!(exit, Some(0), "{response}");
        response["data"]["task_id"].as_str().unwrap().to_owned()
    });
    let (exit, response) = exec_inside(&format!("{outer}:1"));
    assert_eq!((exit, &response["error"]["code"]), (Some(7), &json!("POLICY_BLOCKED")), "{response}");
    assert!(response["error"]["message"].as_str().unwrap().contains("max_children"), "{response}");
    let another = "T-local-1111111111:0";
    assert_eq!(exec_inside(another).0, Some(0), "children are counted per parent");
    assert_eq!(exec_inside("nonsense").0, Some(0), "an invalid marker counts as no parent");
    stage.world.write("project/go", "");
    for id in &ids {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
    assert_eq!(exec_inside(&format!("{outer}:1")).0, Some(0));
}

#[test]
fn a_task_submitted_by_an_agent_has_depth_one() {
    let program = PROGRAM;
    let stage = scripted_stage(successful_turn(&[]));
    let state = stage.world.home().join("state").display().to_string();
    let codex = stage.root().join("bin/codex").display().to_string();
    // The agent's command waits for the inner task, because the inner task's process is swept with the outer one.
    let run = format!(
        "MCP_DELEGATOR_HOME={state} MCP_DELEGATOR_CODEX_BIN={codex} '{program}' local run inner > inner.json"
    );
    stage.set_script(json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"record": {"file": "record.json"}},
        {"command": {"run": format!("[ -e inner.json ] || {{ : > inner.json; {run}; }}")}},
        {"message": "done"}, {"turn_completed": {}}
    ]));
    assert_eq!(stage.world.run(["local", "run", "outer"]).exit, Some(0));
    let inner: Value = serde_json::from_str(&read_text(&stage.world.project().join("inner.json"))).unwrap();
    assert_eq!(inner["data"]["state"], "completed", "{inner}");
    // The inner task wrote it last.
    let record: Value = serde_json::from_str(&read_text(&stage.world.project().join("record.json"))).unwrap();
    assert!(record["env"]["DELEGATOR_TASK"].as_str().unwrap().ends_with(":1"), "{record}");
}

/// An inherited lock would be held as long as the task runs, and inherited files would be open to the agent.
#[test]
#[expect(clippy::disallowed_methods, reason = "a shell opens what the program is started with")]
fn open_descriptors_of_the_caller_are_not_inherited() {
    let stage = scripted_stage(successful_turn(&[json!({"wait_for_file": "go"})]));
    let lock = stage.root().join("lock");
    let original = stage.world.command(["local", "exec", "x"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "exec 9>\"$0\"; exec \"$@\""]).arg(&lock);
    command
        .arg(original.get_program())
        .args(original.get_args())
        .current_dir(stage.world.project())
        .env_clear();
    command.envs(original.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let accepted = output_of(&mut command).json();
    let id = accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}"));
    let pids = task_processes(id).into_iter().chain([stage.supervisor_pid(id)]);
    for pid in pids {
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
            let open = std::fs::read_link(entry.path()).unwrap_or_default();
            assert_ne!(open, lock, "process {pid} inherited the descriptor");
        }
    }
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    stage.wait(id);
}
