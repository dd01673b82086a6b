//! Tasks from submission to result, with a scripted agent in Codex's place.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use delegator_testkit::program::{World, finished, text_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A world whose `codex` plays a script.
struct Stage {
    world: World,
}

impl Stage {
    fn playing(steps: Value) -> Stage {
        let world = World::new(env!("CARGO_BIN_EXE_mcp-delegator"));
        world.write("script.json", &json!({"steps": steps}).to_string());
        let home = world.home();
        let script = home.parent().unwrap().join("script.json");
        // The agent's own life of this very program, behind a name Codex would have.
        let program = env!("CARGO_BIN_EXE_mcp-delegator");
        let wrapper =
            format!("#!/bin/sh\nexec {program} scripted-agent --script {} \"$@\"\n", script.display());
        world.write("bin/codex", &wrapper);
        let codex = home.parent().unwrap().join("bin/codex");
        std::fs::set_permissions(&codex, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let state = home.join("state").display().to_string();
        let world = world
            .variable("MCP_DELEGATOR_CODEX_BIN", codex.to_str().unwrap())
            .variable("MCP_DELEGATOR_HOME", &state)
            .variable("MCP_DELEGATOR_INTERRUPT_GRACE_SEC", "1")
            .variable("MCP_DELEGATOR_TERMINATE_GRACE_SEC", "1");
        Stage { world }
    }

    fn answer(&self, args: &[&str]) -> Value {
        let run = self.world.run(args);
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    }

    fn exec(&self, more: &[&str]) -> String {
        let answer = self.answer(&[&["local", "exec", "do it"], more].concat());
        answer["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn wait(&self, id: &str) -> Value {
        self.answer(&["local", "wait", id])
    }

    fn task_dir(&self, id: &str) -> PathBuf {
        self.world.home().join("state/tasks").join(id)
    }
}

/// A turn that goes well, around some steps.
fn turn(steps: &[Value]) -> Value {
    let mut all = vec![json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
    all.extend_from_slice(steps);
    all.push(json!({"message": "All done."}));
    all.push(json!({"turn_completed": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}}));
    json!(all)
}

fn processes_of(mark: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.windows(mark.len()).any(|window| window == mark.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

#[test]
fn a_task_is_done_and_told() {
    let stage = Stage::playing(turn(&[
        json!({"write_file": {"path": "new.txt", "text": "hello"}}),
        json!({"command": {"run": "exit 3"}}),
    ]));
    let id = stage.exec(&["--mode", "workspace-write"]);
    let data = stage.wait(&id)["data"].clone();
    assert_eq!((&data["state"], &data["final_message"]), (&json!("completed"), &json!("All done.")));
    assert_eq!(data["summary"], "Completed: changed 1 file, ran 1 command");
    assert_eq!(text_of(&stage.world.project().join("new.txt")), "hello");
    let usage = &data["metadata"]["thread_info"]["token_usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(100), &json!(7)));
    let results = stage.answer(&["local", "results", &id, "--include-events", "--include-output"]);
    assert_eq!(results["data"]["events"]["included"], true);
    assert!(results["data"]["output"]["stdout"].as_str().unwrap().contains("turn.completed"));
    assert!(!stage.task_dir(&id).join("launch").exists(), "the launch file is gone");
}

#[test]
fn every_answer_about_a_task_fits_its_contract() {
    let stage = Stage::playing(turn(&[]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    for (args, category) in [
        (vec!["local", "wait", &id], "wait_result"),
        (vec!["local", "results", &id], "result_set"),
        (vec!["local", "status"], "status_snapshot"),
        (vec!["local", "run", "again"], "execution_ack"),
        (vec!["local", "exec", "again"], "execution_ack"),
    ] {
        // A debug build stops at an envelope that breaks its schema, so an answer is proof enough.
        let answer = stage.answer(&[args.as_slice(), &["--envelope", "tool"]].concat());
        assert_eq!(
            (&answer["status"], &answer["tool_category"]),
            (&json!("ok"), &json!(category)),
            "{answer}"
        );
    }
}

#[test]
fn the_task_text_reaches_the_agent_byte_for_byte_and_never_as_an_argument() {
    let stage =
        Stage::playing(json!([{"read_stdin": "all"}, {"record": {"file": "record.json"}}, {"exit": 0}]));
    let text = "--last - \u{1F980} \"quotes\" $HOME `x`\n\ttabs\n";
    let run = stage.world.run(["local", "run", &format!("--task={text}")]);
    assert_eq!(run.exit, Some(80), "no terminal event is a failure: {run:?}");
    assert_eq!(run.json()["meta"]["error_context"]["failure_kind"], "no_terminal_event");
    let record: Value = serde_json::from_str(&text_of(&stage.world.project().join("record.json"))).unwrap();
    assert_eq!(record["stdin"], text);
    assert!(!record["argv"].to_string().contains("quotes"), "{record}");
}

#[test]
fn the_agents_environment_is_the_allow_list() {
    let stage =
        Stage::playing(json!([{"read_stdin": "all"}, {"record": {"file": "record.json"}}, {"exit": 0}]));
    let mut command = stage.world.command(["local", "run", "x"]);
    command
        .env("LD_PRELOAD", "")
        .env("BASH_ENV", "/tmp/evil")
        .env("MY_SECRET", "correct-horse-battery")
        .env("LANG", "C");
    let run =
        finished(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(run.exit, Some(80));
    let record: Value = serde_json::from_str(&text_of(&stage.world.project().join("record.json"))).unwrap();
    let names: Vec<&String> = record["env"].as_object().unwrap().keys().collect();
    for forbidden in ["BASH_ENV", "MY_SECRET", "LD_PRELOAD", "MCP_DELEGATOR_HOME"] {
        assert!(!names.iter().any(|name| *name == forbidden), "{forbidden} in {names:?}");
    }
    assert!(record["env"]["DELEGATOR_TASK"].as_str().unwrap().ends_with(":0"));
    assert_eq!(record["env"]["TERM"], "dumb");
}

#[test]
fn a_secret_reaches_neither_disk_nor_answer() {
    let secret = "correct-horse-battery-staple";
    let stage = Stage::playing(turn(&[
        json!({"message": format!("the token is {secret}")}),
        json!({"stderr_line": format!("leaking {secret}")}),
    ]));
    let world = &stage.world;
    let mut command = world.command(["local", "run", &format!("use {secret}")]);
    command.env("DEPLOY_TOKEN", secret);
    let run =
        finished(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
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
fn a_failing_agent_is_never_a_success() {
    for (steps, kind, exit) in [
        (json!([{"exit": 7}]), "agent_exit", 80),
        (json!([{"raise": "KILL"}]), "killed", 80),
        (json!([{"thread_started": {}}, "turn_started", {"exit": 0}]), "no_terminal_event", 80),
        (json!([{"thread_started": {}}, "turn_started", {"turn_failed": "it broke"}]), "agent_error", 80),
    ] {
        let stage = Stage::playing(steps.clone());
        let run = stage.world.run(["local", "run", "x"]);
        assert_eq!(run.exit, Some(exit), "{steps}: {run:?}");
        assert_eq!(run.json()["meta"]["error_context"]["failure_kind"], kind, "{steps}: {}", run.stdout);
    }
}

#[test]
fn limits_end_a_task_with_what_it_had() {
    let stage =
        Stage::playing(json!([{"thread_started": {}}, "turn_started", {"message": "thinking"}, "silent"]));
    let run = stage.world.run(["local", "run", "x", "--idle-timeout-sec", "1"]);
    assert_eq!(run.exit, Some(10), "{run:?}");
    let context = run.json()["meta"]["error_context"].clone();
    assert_eq!((&context["timeout_type"], &context["limit_seconds"]), (&json!("idle"), &json!(1)), "{context}");
    assert!(context["partial_results"]["last_events"].to_string().contains("thinking"));
    let stage =
        Stage::playing(json!([{"thread_started": {}}, "turn_started", {"events": {"per_second": 50}}]));
    let run = stage.world.run(["local", "run", "x", "--hard-timeout-sec", "1", "--idle-timeout-sec", "60"]);
    assert_eq!((run.exit, &run.json()["meta"]["error_context"]["timeout_type"]), (Some(10), &json!("hard")));
}

#[test]
fn cancel_leaves_nothing_alive_however_it_was_started() {
    let escapee = |session: &str, orphan: bool| json!({"child": {"session": session, "orphan": orphan, "seconds": 300, "ignore": ["TERM", "INT"]}});
    let stage = Stage::playing(turn(&[
        json!({"trap": {"signals": ["INT", "TERM"]}}),
        escapee("same", false),
        escapee("own", true),
        escapee("own_group", true),
        json!({"touch_file": "ready"}),
        json!("silent"),
    ]));
    let id = stage.exec(&[]);
    while !stage.world.project().join("ready").exists() {
        std::thread::yield_now();
    }
    let mark = format!("DELEGATOR_TASK={id}:");
    assert!(processes_of(&mark).len() >= 4, "{:?}", processes_of(&mark));
    let answer = stage.answer(&["local", "cancel", &id, "--reason", "test"]);
    assert_eq!(answer["data"]["state"], "cancelled", "{answer}");
    assert_eq!(
        (&answer["data"]["previous_state"], &answer["data"]["survivors"]),
        (&json!("working"), &json!([]))
    );
    assert_eq!(processes_of(&mark), Vec::<u32>::new());
    let again = stage.answer(&["local", "cancel", &id]);
    assert_eq!(again["data"]["state"], "cancelled", "cancelling twice is the same answer: {again}");
}

#[test]
fn a_killed_supervisor_is_a_visible_loss() {
    let stage = Stage::playing(turn(&[
        json!({"message": "so far"}),
        json!({"touch_file": "ready"}),
        json!("silent"),
    ]));
    let id = stage.exec(&[]);
    while !stage.world.project().join("ready").exists() {
        std::thread::yield_now();
    }
    let supervisor = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok())
        .find(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&format!("supervise\0{id}"))
        })
        .unwrap();
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    let data = stage.wait(&id)["data"].clone();
    assert_eq!(data["state"], "failed", "{data}");
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "supervisor_lost");
    assert!(
        data["output"]["stdout"].as_str().unwrap().contains("so far"),
        "what it had done is kept: {data}"
    );
    assert_eq!(processes_of(&format!("DELEGATOR_TASK={id}:")), Vec::<u32>::new());
}

#[test]
fn a_task_outlives_whoever_submitted_it() {
    let stage = Stage::playing(turn(&[json!({"touch_file": "ready"}), json!({"wait_for_file": "go"})]));
    let mut child = stage
        .world
        .command(["local", "run", "x"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !stage.world.project().join("ready").exists() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let status = stage.answer(&["local", "status"]);
    assert_eq!(status["data"]["summary"]["running"], 1, "{status}");
    let id = status["data"]["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn the_first_interrupt_lets_go_and_the_second_cancels() {
    let stage = Stage::playing(turn(&[json!({"touch_file": "ready"}), json!("silent")]));
    let mut command = stage.world.command(["local", "run", "x"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !stage.world.project().join("ready").exists() {
        std::thread::yield_now();
    }
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).unwrap();
    let run = finished(child);
    assert_eq!(run.exit, Some(14), "{run:?}");
    assert!(run.stderr.contains("it runs on"), "{}", run.stderr);
    let id = run.json()["meta"]["failure_data"]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(stage.answer(&["local", "status"])["data"]["summary"]["running"], 1);
    let cancelled = stage.answer(&["local", "cancel", &id]);
    assert_eq!(cancelled["data"]["state"], "cancelled");
}

#[test]
fn a_resumed_thread_must_be_the_one_asked_for() {
    let stage = Stage::playing(turn(&[]));
    let id = stage.exec(&[]);
    let thread = stage.wait(&id)["data"]["metadata"]["thread_info"]["thread_id"].as_str().unwrap().to_owned();
    let resumed = stage.answer(&["local", "resume", "go on", "--task-id", &id]);
    let second = resumed["data"]["task_id"].as_str().unwrap().to_owned();
    let data = stage.wait(&second)["data"].clone();
    assert_eq!(
        (&data["state"], &data["metadata"]["thread_info"]["thread_id"]),
        (&json!("completed"), &json!(thread))
    );
    let stage = Stage::playing(
        json!([{"read_stdin": "all"}, {"thread_started": {"new": true}}, "turn_started", "silent"]),
    );
    let answer =
        stage.answer(&["local", "resume", "go on", "--thread-id", "0199a213-81c0-7800-8aa1-bbab2a035a53"]);
    let data = stage.wait(answer["data"]["task_id"].as_str().unwrap())["data"].clone();
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "wrong_thread", "{data}");
}

#[test]
fn circumstances_are_checked_before_anything_is_written() {
    let stage = Stage::playing(turn(&[]));
    let refused = |args: &[&str]| {
        let run = stage.world.run([&["local", "exec", "x"], args].concat());
        (run.exit.unwrap(), run.json()["error"]["code"].as_str().unwrap().to_owned())
    };
    assert_eq!(refused(&["--mode", "danger-full-access"]), (7, "POLICY_BLOCKED".into()));
    assert_eq!(refused(&["--working-dir", "/nowhere/at/all"]), (2, "INVALID_VALUE".into()));
    let outside = stage
        .world
        .command(["local", "exec", "x"])
        .env("MCP_DELEGATOR_ALLOWED_ROOTS", "/usr")
        .output()
        .unwrap();
    assert_eq!(outside.status.code(), Some(7));
    let missing = stage
        .world
        .command(["local", "exec", "x"])
        .env("MCP_DELEGATOR_CODEX_BIN", "/nowhere/codex")
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(4));
    assert_eq!(stage.answer(&["local", "status"])["data"]["summary"]["recently_completed"], 0);
}

#[test]
fn the_same_key_is_the_same_task() {
    let stage = Stage::playing(turn(&[]));
    let first = stage.exec(&["--idempotency-key", "k1"]);
    let again = stage.answer(&["local", "exec", "do it", "--idempotency-key", "k1"]);
    assert_eq!((&again["data"]["task_id"], &again["meta"]["replayed"]), (&json!(first), &json!(true)));
    let other = stage.world.run(["local", "exec", "something else", "--idempotency-key", "k1"]);
    assert_eq!((other.exit, &other.json()["error"]["code"]), (Some(6), &json!("IDEMPOTENCY_MISMATCH")));
}

#[test]
fn questions_about_tasks_that_are_not_there_or_not_done() {
    let stage = Stage::playing(turn(&[json!({"wait_for_file": "go"})]));
    let unknown = stage.world.run(["local", "results", "T-local-00000000000000000000000000000000"]);
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
    let by_prefix = stage.answer(&["local", "wait", &id[..16]]);
    assert_eq!(by_prefix["data"]["task_id"], json!(id));
}

#[test]
fn the_demo_fixes_a_bug_offline() {
    let world = World::new(env!("CARGO_BIN_EXE_mcp-delegator"));
    let data = world.run(["demo"]).json()["data"].clone();
    assert_eq!(data["result"]["state"], "completed", "{data}");
    assert!(data["diff"].as_str().unwrap().contains("+++ b/"), "{data}");
}

#[test]
fn a_tasks_events_can_be_read_and_followed_by_its_id() {
    let stage = Stage::playing(turn(&[json!({"message": "first"}), json!({"wait_for_file": "go"})]));
    let id = stage.exec(&[]);
    let mut command = stage.world.command(["events", "follow", &id]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.contains("first")));
    stage.world.write("project/go", "");
    let last: Value = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
    assert_eq!(last["data"]["state"], "completed", "{last}");
    assert_eq!(finished(child).exit, Some(0));
    let summary = stage.answer(&["events", "summarize", &id]);
    assert_eq!(summary["data"]["final_message"], "All done.");
    let logs = stage.answer(&["logs", &id]);
    assert!(logs["data"]["stdout"].as_str().unwrap().contains("first"), "{logs}");
}

#[test]
fn following_a_task_ends_with_it_however_it_ends() {
    let stage = Stage::playing(turn(&[json!({"message": "first"}), json!("silent")]));
    let id = stage.exec(&[]);
    let mut command = stage.world.command(["events", "follow", &id]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.contains("first")));
    stage.answer(&["local", "cancel", &id]);
    let last: Value = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
    assert_eq!(last["data"]["state"], "interrupted", "{last}");
    assert_eq!(finished(child).exit, Some(0));
}

#[test]
fn a_resumed_task_counts_only_its_own_tokens() {
    let stage = Stage::playing(json!([
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
    let resumed = stage.answer(&["local", "resume", "go on", "--task-id", &id]);
    let data = stage.wait(resumed["data"]["task_id"].as_str().unwrap())["data"].clone();
    let usage = &data["metadata"]["thread_info"]["token_usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(150), &json!(3)), "{data}");
}

#[test]
fn the_doctor_tells_what_is_missing() {
    let stage = Stage::playing(turn(&[]));
    let checks = stage.answer(&["doctor"])["data"]["checks"].clone();
    let of =
        |name: &str| checks.as_array().unwrap().iter().find(|check| check["name"] == name).unwrap().clone();
    assert_eq!(of("agent")["status"], "ok", "{checks}");
    assert_eq!(of("state_dir")["status"], "ok");
    let missing =
        stage.world.command(["doctor"]).env("MCP_DELEGATOR_CODEX_BIN", "/nowhere/codex").output().unwrap();
    let answer: Value = serde_json::from_slice(&missing.stdout).unwrap();
    assert_eq!((&answer["data"]["is_healthy"], missing.status.code()), (&json!(false), Some(0)), "{answer}");
}

#[test]
fn a_past_session_becomes_a_task_once() {
    let stage = Stage::playing(turn(&[]));
    let session = delegator_testkit::generated::workspace()
        .join("crates/delegator-transcript/tests/transcripts/rollouts/0.166.0.patch.rollout.jsonl")
        .display()
        .to_string();
    let imported = stage.answer(&["import", &session]);
    let id = imported["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{imported}")).to_owned();
    assert_eq!(stage.answer(&["import", &session])["data"], {
        let mut again = imported["data"].clone();
        again["replayed"] = json!(true);
        again
    });
    let results = stage.answer(&["local", "results", &id, "--include-events"]);
    assert_eq!(results["ok"], true, "{results}");
    assert!(results["data"]["events"]["items"].as_array().unwrap().len() > 1, "{results}");
    assert_eq!(stage.world.run(["import", "/nowhere"]).exit, Some(5));
    assert_eq!(stage.world.run(["import", "/dev/null"]).exit, Some(2));
}

#[test]
fn a_damaged_registry_is_told_and_set_aside_only_on_request() {
    let stage = Stage::playing(turn(&[]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let registry = stage.world.home().join("state/registry.db");
    std::fs::write(&registry, vec![7; 8192]).unwrap();
    let run = stage.world.run(["local", "status"]);
    assert_eq!(run.exit, Some(4), "{run:?}");
    assert!(run.json()["error"]["message"].as_str().unwrap().contains("registry.db"), "{}", run.stdout);
    let checks = stage.answer(&["doctor", "--set-aside-damaged"]);
    let state = checks["data"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "state_dir")
        .unwrap();
    assert_eq!(state["status"], "ok", "{checks}");
    let kept = std::fs::read_dir(registry.parent().unwrap()).unwrap().flatten();
    assert!(kept.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains("damaged")));
    assert_eq!(stage.answer(&["local", "status"])["ok"], true);
}

#[test]
fn logs_can_be_followed_to_the_end() {
    let stage = Stage::playing(turn(&[json!({"message": "first"}), json!({"wait_for_file": "go"})]));
    let id = stage.exec(&[]);
    let mut command = stage.world.command(["logs", &id, "--follow", "--format", "human"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.contains("first")));
    stage.world.write("project/go", "");
    assert!(lines.map(Result::unwrap).any(|line| line.contains("turn.completed")));
    assert_eq!(finished(child).exit, Some(0));
}

#[test]
fn a_program_that_cannot_be_run_is_a_failed_task_and_frees_its_slot() {
    let stage = Stage::playing(turn(&[]));
    let broken = stage.world.home().join("broken");
    std::fs::write(&broken, [0x7f, b'E', b'L', b'F', 2, 1, 1, 0]).unwrap();
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run =
        stage.world.command(["local", "run", "x"]).env("MCP_DELEGATOR_CODEX_BIN", &broken).output().unwrap();
    let answer: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(run.status.code(), Some(80), "{answer}");
    assert_eq!(answer["meta"]["error_context"]["failure_kind"], "spawn_failed", "{answer}");
    assert_eq!(stage.world.run(["local", "run", "next"]).exit, Some(0));
}

#[test]
fn a_shortage_of_descriptors_is_an_error_and_not_a_loss() {
    let stage = Stage::playing(turn(&[]));
    let program = env!("CARGO_BIN_EXE_mcp-delegator");
    // The limit is the shell's to set; everything else is as in any other run.
    stage.world.write("bin/limited", &format!("#!/bin/sh\nulimit -n 9\nexec {program} \"$@\"\n"));
    let limited = stage.world.home().parent().unwrap().join("bin/limited");
    std::fs::set_permissions(&limited, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = stage.world.run_as(&limited, ["local", "run", "x"]);
    assert!(matches!(run.exit, Some(1 | 80)), "{run:?}");
    assert_eq!(run.json()["ok"], false);
    assert_eq!(stage.world.run(["local", "run", "next"]).exit, Some(0));
    assert_eq!(stage.answer(&["local", "status"])["data"]["summary"]["queued"], 0);
}
