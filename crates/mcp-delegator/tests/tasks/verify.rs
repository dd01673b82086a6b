//! The verify command, with an agent that has no sandbox and a user who allows that.
//!
//! `codex.rs` tests verification in the sandbox of the real Codex; the supervisor's own tests cover its limits and sweep.

use std::os::unix::fs::PermissionsExt;

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn, task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PROGRAM;
/// Shell code of an agent that cannot start a sandbox.
const NO_SANDBOX: &str = "if [ \"$1\" = sandbox ]; then echo 'bwrap: No permissions'; exit 1; fi";

fn stage_after(prelude: &str) -> Stage {
    Stage::with_script_after(prelude, PROGRAM, successful_turn(&[]))
}

fn stage() -> Stage {
    stage_after(NO_SANDBOX).variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true")
}

fn run_with_check(stage: &Stage, script: &str) -> (String, Value) {
    let id = stage.exec(&["--verify", "sh", "--verify=-c", "--verify", script]);
    let response = stage.wait(&id);
    (id, response)
}

#[test]
fn a_passing_verify_command_verifies_the_task() {
    let stage = stage();
    let run = stage.world.run(["local", "run", "do it", "--verify", "echo \"all  fine\"; pwd"]);
    let response = run.json();
    assert_eq!(run.exit, Some(0), "{response}");
    let data = &response["data"];
    assert_eq!(data["state"], "completed", "{response}");
    let verification = &data["verification"];
    assert_eq!(
        (&verification["status"], &verification["exit_code"]),
        (&json!("verified"), &json!(0)),
        "{response}"
    );
    assert_eq!(verification["command"], "echo \"all  fine\"; pwd");
    assert_eq!(verification["is_sandboxed"], false);
    assert!(verification.get("reason").is_none(), "{verification}");
    let project = std::fs::canonicalize(stage.world.project()).unwrap();
    assert_eq!(verification["output_tail"], format!("all  fine\n{}\n", project.display()));
    assert!(data["summary"].as_str().unwrap().contains("; verified by `echo \"all  fine\"; pwd`"), "{data}");
    let id = data["task_id"].as_str().unwrap();
    let log = stage.task_dir(id).join("verify.log");
    assert_eq!(read_text(&log), verification["output_tail"].as_str().unwrap());
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    let results = stage.run_json(&["local", "results", id]);
    assert_eq!(results["data"]["verification"], *verification);
}

#[test]
fn tests_of_the_verify_command_are_counted_separately() {
    let stage = stage();
    let printed = "test a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out";
    let (_, response) = run_with_check(&stage, &format!("printf '{printed}\n'; exit 101"));
    let data = &response["data"];
    let results = &data["verification"]["test_results"];
    let counts = ["passed", "failed", "skipped"].map(|key| results[key].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(2)], "{response}");
    assert_eq!(results["failed_tests"], json!(["b"]));
    assert!(data["metadata"].get("test_results").is_none(), "the agent ran no tests: {response}");
}

#[test]
fn a_failing_verify_command_leaves_the_task_completed_and_unverified() {
    let stage = stage();
    let run = stage.world.run(["local", "run", "do it", "--verify", "sh -c 'echo broken; exit 3'"]);
    let response = run.json();
    assert_eq!(run.exit, Some(80), "{response}");
    assert_eq!(response["error"]["code"], "AGENT_FAILED", "{response}");
    let (id, response) = run_with_check(&stage, "echo broken >&2; exit 3");
    let data = &response["data"];
    assert_eq!((&data["state"], &response["ok"]), (&json!("completed"), &json!(true)), "{response}");
    assert_eq!(data["metadata"]["task_status"], "completed", "the agent's own report must not change");
    let verification = &data["verification"];
    assert_eq!(
        (&verification["status"], &verification["exit_code"]),
        (&json!("verify_failed"), &json!(3)),
        "{response}"
    );
    assert_eq!(verification["output_tail"], "broken\n");
    assert!(data["summary"].as_str().unwrap().ends_with("exited with 3"), "{data}");
    assert!(response["warnings"].to_string().contains("W_VERIFY_001: verification failed: "), "{response}");
    let strict = stage.world.run(["local", "wait", &id, "--exit-status"]);
    assert_eq!(strict.exit, Some(80), "{strict:?}");
    let shown = stage.world.run(["local", "results", &id, "--format", "markdown"]).stdout;
    assert!(shown.contains("verify_failed") && shown.contains("broken"), "{shown}");
}

#[test]
fn a_missing_verify_program_fails_verification() {
    let stage = stage();
    let id = stage.exec(&["--verify", "no-such-program", "--verify=--flag"]);
    let verification = stage.wait(&id)["data"]["verification"].take();
    assert_eq!(
        (&verification["status"], &verification["reason"]),
        (&json!("verify_failed"), &json!("cannot_start")),
        "{verification}"
    );
    assert!(verification["detail"].as_str().unwrap().contains("no-such-program"), "{verification}");
}

#[test]
fn verify_without_a_sandbox_is_refused() {
    let pretending =
        "if [ \"$1\" = sandbox ]; then while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"; fi";
    let silent = "if [ \"$1\" = --version ]; then exit 1; fi";
    for (prelude, why) in [
        (NO_SANDBOX, "bwrap: No permissions"),
        (pretending, "its sandbox does not restrict writing"),
        (silent, "has no sandbox"),
    ] {
        let stage = stage_after("");
        let text = read_text(&stage.root().join("bin/codex"));
        let agent = text.strip_prefix("#!/bin/sh\n").unwrap();
        stage.write_program("bin/codex", &format!("#!/bin/sh\n{prelude}\n{agent}"));
        for command in ["run", "exec"] {
            let run = stage.world.run(["local", command, "do it", "--verify", "true"]);
            let response = run.json();
            assert_eq!(
                (run.exit, &response["error"]["code"]),
                (Some(4), &json!("UNSUPPORTED")),
                "{response}"
            );
            assert!(response["error"]["message"].as_str().unwrap().contains(why), "{response}");
            assert!(response.to_string().contains("verify_unsandboxed"), "{response}");
        }
        let status = stage.run_json(&["local", "status"]);
        assert!(!status.to_string().contains("T-local-"), "{status}");
        // Without a verify command the task runs.
        assert_eq!(stage.wait(&stage.exec(&[]))["data"]["state"], "completed");
    }
}

#[test]
fn full_access_mode_verifies_without_a_sandbox() {
    let stage = stage_after(NO_SANDBOX).variable("MCP_DELEGATOR_MAX_MODE", "danger-full-access");
    let id = stage.exec(&["--mode", "danger-full-access", "--confirm", "--verify", "true"]);
    let verification = stage.wait(&id)["data"]["verification"].take();
    assert_eq!(
        (&verification["status"], &verification["is_sandboxed"]),
        (&json!("verified"), &json!(false)),
        "{verification}"
    );
}

#[test]
fn a_failed_agent_is_not_verified() {
    let stage = stage();
    stage.set_script(json!([{"read_stdin": "all"}, {"exit": 7}]));
    let (id, response) = run_with_check(&stage, "touch checked");
    let verification = &response["data"]["verification"];
    assert_eq!(
        (&verification["status"], &verification["reason"]),
        (&json!("not_run"), &json!("agent_failed")),
        "{response}"
    );
    assert!(!stage.world.project().join("checked").exists());
    assert!(!stage.task_dir(&id).join("verify.log").exists());
}

#[test]
fn verify_output_is_bounded_and_redacted() {
    let stage = stage()
        .variable("SOME_API_KEY", "hunter2-hunter2")
        .variable("MCP_DELEGATOR_MAX_STREAM_BYTES", "1048576");
    let script = "yes a line that comes again and again | head -c 10485760; echo; echo key hunter2-hunter2";
    let (id, response) = run_with_check(&stage, script);
    let verification = &response["data"]["verification"];
    assert_eq!(verification["status"], "verified", "{verification}");
    let tail = verification["output_tail"].as_str().unwrap();
    assert!(tail.len() <= 4096 && tail.ends_with("key [REDACTED:env]\n"), "{} {verification}", tail.len());
    assert!(verification["output_bytes"].as_u64().unwrap() > 10_485_760, "{verification}");
    let log = std::fs::read(stage.task_dir(&id).join("verify.log")).unwrap();
    assert!(log.len() <= 1 << 20 && !String::from_utf8_lossy(&log).contains("hunter2"), "{}", log.len());
    let more = stage.run_json(&["local", "results", &id, "--include-output"]);
    let tail = more["data"]["verification"]["output_tail"].as_str().unwrap();
    assert!(tail.len() > 4096 && tail.len() <= 64 << 10, "{}", tail.len());
}

#[test]
fn a_cancel_during_verification_ends_the_task() {
    let stage = stage();
    let script = "(trap '' TERM INT; sleep 300) & touch checking; sleep 300";
    let id = stage.exec(&["--verify", "sh", "--verify=-c", "--verify", script]);
    stage.wait_for_project_file("checking");
    let status = stage.run_json(&["local", "status"]);
    assert!(status.to_string().contains("\"current_activity\":\"Verifying: sh -c "), "{status}");
    let cancelled = stage.run_json(&["local", "cancel", &id]);
    assert_eq!(
        (&cancelled["data"]["state"], &cancelled["data"]["survivors"]),
        (&json!("cancelled"), &json!([])),
        "{cancelled}"
    );
    let data = stage.wait(&id)["data"].take();
    assert_eq!(data["state"], "cancelled");
    let verification = &data["verification"];
    assert_eq!(
        (&verification["status"], &verification["reason"]),
        (&json!("not_run"), &json!("cancelled")),
        "{verification}"
    );
    assert_eq!(data["final_message"], "All done.", "the agent's message was lost");
    assert_eq!(task_processes(&id), Vec::<i32>::new());
}

#[test]
fn a_supervisor_killed_during_verification_is_swept() {
    let stage = stage();
    let id = stage.exec(&["--verify", "sh", "--verify=-c", "--verify", "touch checking; sleep 300"]);
    stage.wait_for_project_file("checking");
    let supervisor = Pid::from_raw(stage.supervisor_pid(&id)).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    let data = stage.wait(&id)["data"].take();
    assert_eq!(data["state"], "failed");
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{data}");
    let verification = &data["verification"];
    assert_eq!(
        (&verification["status"], &verification["reason"]),
        (&json!("not_run"), &json!("supervisor_lost")),
        "{data}"
    );
    wait_until("its processes are gone", || task_processes(&id).is_empty());
}

#[test]
fn processes_left_by_verify_are_swept() {
    let stage = stage();
    let (id, response) = run_with_check(&stage, "setsid sleep 300 & (sleep 300 &); echo ok");
    assert_eq!(response["data"]["verification"]["status"], "verified", "{response}");
    assert_eq!(task_processes(&id), Vec::<i32>::new());
}

#[test]
fn verify_gets_the_environment_of_the_policy() {
    for (policy, more, is_visible) in [
        ("inherit-none", vec![], false),
        ("inherit-all", vec![], false),
        ("allow-list", vec!["--env-allow-list", "MY_FLAG"], true),
    ] {
        // Only the user's configuration adds variables to the agent's environment; the caller selects from them.
        let configured = r#"{"codex": {"env": ["MY_FLAG"]}}"#;
        let stage = stage()
            .variable("MCP_DELEGATOR_AGENTS", if is_visible { configured } else { "{}" })
            .variable("MY_FLAG", "up")
            .variable("NO_PROXY", "here");
        let id = stage.exec(&[vec!["--verify", "env", "--env-policy", policy], more].concat());
        let verification = stage.wait(&id)["data"]["verification"].take();
        let shown = verification["output_tail"].as_str().unwrap();
        assert!(shown.contains(&format!("DELEGATOR_TASK={id}:0\n")) && shown.contains("PATH="), "{shown}");
        assert_eq!(shown.contains("MY_FLAG=up"), is_visible, "{policy}: {shown}");
        assert_eq!(shown.contains("NO_PROXY=here"), policy == "inherit-all", "{policy}: {shown}");
    }
}

#[test]
fn verify_is_part_of_the_input() {
    let stage = stage();
    let check = ["--idempotency-key", "k", "--verify", "touch checked"];
    let id = stage.exec(&check);
    stage.wait(&id);
    assert_eq!(stage.exec(&check), id, "a different task");
    let other = stage.world.run(["local", "exec", "do it", "--idempotency-key", "k", "--verify", "touch it"]);
    assert_eq!(other.json()["error"]["code"], "IDEMPOTENCY_MISMATCH");
    let again = |args: &[&str]| {
        std::fs::remove_file(stage.world.project().join("checked")).unwrap();
        let response = stage.run_json(args);
        let id = response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
        assert_eq!(stage.wait(&id)["data"]["verification"]["status"], "verified");
        assert!(stage.world.project().join("checked").exists());
    };
    again(&["retry", &id]);
    again(&["local", "resume", "more", "--task-id", &id, "--verify", "touch checked"]);
}

#[test]
fn a_secret_in_the_verify_command_is_used_and_not_stored() {
    let stage = stage().variable("SOME_API_KEY", "hunter2-hunter2");
    let id = stage.exec(&["--verify", "test hunter2-hunter2 = hunter2-hunter2"]);
    let verification = stage.wait(&id)["data"]["verification"].take();
    assert_eq!(verification["status"], "verified", "{verification}");
    assert_eq!(verification["command"], "test [REDACTED:env] = [REDACTED:env]", "{verification}");
    for entry in std::fs::read_dir(stage.task_dir(&id)).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"), "{}", entry.path().display());
    }
    let again = stage.run_json(&["retry", &id]);
    assert_eq!(again["error"]["code"], "WRONG_STATE", "{again}");
    assert!(again["error"]["message"].as_str().unwrap().contains("verify"), "{again}");
}

#[test]
fn a_string_is_a_shell_command_line_and_a_list_a_program() {
    let stage = stage();
    for (given, command, status) in [
        (vec!["--verify", "true && false"], json!("true && false"), "verify_failed"),
        (vec!["--verify", "true | false"], json!("true | false"), "verify_failed"),
        (vec!["--verify", "true\nfalse"], json!("true\nfalse"), "verify_failed"),
        (vec!["--verify", "echo 'open"], json!("echo 'open"), "verify_failed"),
        (vec!["--verify", "no-such-program"], json!("no-such-program"), "verify_failed"),
        (
            vec!["--verify", "[ \"$(printf '%s' a b)\" = ab ]"],
            json!("[ \"$(printf '%s' a b)\" = ab ]"),
            "verified",
        ),
        (vec!["--verify", "[\"printf\", \"x y\"]"], json!(["printf", "x y"]), "verified"),
        (
            vec!["--verify", "test", "--verify", "&&", "--verify", "=", "--verify", "a b"],
            json!(["test", "&&", "=", "a b"]),
            "verify_failed",
        ),
        (vec!["--verify", "printf", "--verify", "two words"], json!(["printf", "two words"]), "verified"),
    ] {
        let data = stage.wait(&stage.exec(&given))["data"].take();
        let verification = &data["verification"];
        assert_eq!((&verification["command"], &verification["status"]), (&command, &json!(status)), "{data}");
    }
    let first_line = stage.wait(&stage.exec(&["--verify", "true && true"]))["data"]["summary"].to_string();
    assert!(first_line.contains("verified by `true && true`"), "{first_line}");
    for given in [vec![" "], vec!["[]"], vec!["cargo test", "--quiet"], vec!["[1]"], vec!["[\"cargo test\"]"]]
    {
        let flags = given.iter().map(|word| format!("--verify={word}"));
        let args = ["local", "exec", "do it"].map(str::to_owned).into_iter().chain(flags);
        let run = stage.world.run(args.collect::<Vec<_>>());
        assert_eq!(run.exit, Some(2), "{run:?}");
        assert!(run.stdout.contains("one string") && run.stdout.contains("list"), "{run:?}");
    }
}
