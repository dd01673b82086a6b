//! Agents of the protocol `plain`: a shell script from the user's configuration, from submission to its results.

use std::path::Path;

use delegator_testkit::stage::{Stage, successful_turn, task_processes, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A stage with the agent `helper`, which is this shell script. Its project is a git repository.
fn stage_with_helper(script: &str) -> Stage {
    stage_with_settings(script, "env = [\"DEPLOY_TOKEN\"]")
}

fn stage_with_settings(script: &str, settings: &str) -> Stage {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let helper = stage.write_program("bin/helper", &format!("#!/bin/sh\n{script}\n"));
    let config = format!(
        "[agents.helper]\nprotocol = \"plain\"\ncommand = [\"{}\", \"--fast\"]\n{settings}\n",
        helper.display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    let run = stage.world.run_as(Path::new("/usr/bin/git"), ["init", "--quiet"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    stage
}

fn exec(stage: &Stage, args: &[&str]) -> String {
    stage.exec(&[&["--agent", "helper"], args].concat())
}

/// The response to a call that has to fail with this code.
fn refused(stage: &Stage, args: &[&str], code: &str) -> String {
    let run = stage.world.run(args);
    assert_ne!(run.exit, Some(0), "{run:?}");
    assert!(run.stdout.contains(code), "{code}: {}", run.stdout);
    run.stdout
}

fn warning_codes(response: &Value) -> Vec<&str> {
    let warnings = response["meta"]["warning_details"].as_array().into_iter().flatten();
    warnings.filter_map(|warning| warning["code"].as_str()).collect()
}

#[test]
fn stdout_is_the_final_message_and_the_exit_code_decides() {
    let stage =
        stage_with_helper("echo \"args: $*\"; cat; echo; echo; echo new > new.txt; printf 'no line end'");
    let id = exec(&stage, &["--mode", "workspace-write"]);
    let waited = stage.wait(&id);
    let data = &waited["data"];
    assert_eq!(data["state"], "completed", "{waited}");
    assert_eq!(data["final_message"], "args: --fast\ndo it\n\nno line end", "{waited}");
    assert_eq!(data["metadata"]["file_operations"]["added_files"], json!(["new.txt"]), "{waited}");
    assert_eq!(data["metadata"]["file_operations"]["source"], "git");
    assert!(warning_codes(&waited).is_empty(), "{waited}");

    let stdout = "args: --fast\ndo it\n\nno line end";
    let normalized = stage.run_json(&["events", "normalize", &id, "--format", "json"]);
    let first = &normalized["data"]["events"][0];
    // No thread that a reader could try to resume.
    assert!(first["thread_id"].as_str().unwrap().starts_with("derived-"), "{first}");
    assert_eq!(stage.run_json(&["logs", &id])["data"]["stdout"], stdout);
    let results = stage.run_json(&["local", "results", &id, "--include-events"]);
    let lines = json!(stdout.split('\n').filter(|line| !line.is_empty()).collect::<Vec<_>>());
    assert_eq!(results["data"]["events"]["items"], lines, "{results}");
    let followed = stage.world.run(["events", "follow", &id]);
    assert!(followed.stdout.contains("agent_message") && followed.stdout.contains("--fast"), "{followed:?}");
    let summary = stage.run_json(&["events", "summarize", &id]);
    assert_eq!(summary["data"]["final_message"], stdout, "{summary}");
    assert_eq!(summary["data"]["state"], "unknown", "its lines do not say it: {summary}");
    // The stored report says which dialect it is, even if the agent is no longer configured.
    stage.world.write("home/.config/mcp-delegator/config.toml", "");
    let later = stage.run_json(&["events", "summarize", &id]);
    assert_eq!(later["data"]["final_message"], stdout, "{later}");
}

#[test]
fn a_failure_has_the_exit_code_and_the_last_line_of_stderr() {
    let stage = stage_with_helper("echo half; echo 'first' >&2; echo '429: the disk is full' >&2; exit 3");
    let run = stage.world.run(["local", "run", "do it", "--agent", "helper"]);
    assert_eq!(run.exit, Some(80), "{run:?}");
    let response: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(
        run.stdout.contains("AGENT_EXITED") && run.stdout.contains("429: the disk is full"),
        "{response}"
    );
    let id = response["meta"]["error_context"]["task_id"].as_str().unwrap();
    let results = stage.run_json(&["local", "results", id]);
    assert_eq!(results["data"]["state"], "failed", "{results}");
    assert_eq!(results["data"]["final_message"], "half", "{results}");
}

#[test]
fn silence_reaches_the_idle_limit_and_output_is_retained() {
    let stage = stage_with_helper("echo working; sleep 600 & wait");
    let id = exec(&stage, &["--idle-timeout-sec", "1"]);
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "timeout", "{waited}");
    assert_eq!(waited["data"]["final_message"], "working", "{waited}");
    assert!(task_processes(&id).is_empty());
}

#[test]
fn a_running_task_shows_its_last_line() {
    let stage = stage_with_helper("echo reading; echo 'step 2 of 3'; while [ ! -e go ]; do sleep 0.05; done");
    let id = exec(&stage, &[]);
    wait_until("the activity is shown", || {
        stage.run_json(&["local", "status"]).to_string().contains("step 2 of 3")
    });
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn secrets_are_redacted_and_keys_of_other_agents_are_not_passed() {
    let stage = stage_with_helper(
        "echo \"token $DEPLOY_TOKEN\"; echo \"key '$OPENAI_API_KEY'\"; echo \"$DEPLOY_TOKEN\" >&2",
    )
    .variable("DEPLOY_TOKEN", "hunter2-and-more-of-it")
    .variable("OPENAI_API_KEY", "sk-another-secret-value");
    let id = exec(&stage, &[]);
    let waited = stage.wait(&id);
    let message = waited["data"]["final_message"].as_str().unwrap();
    assert!(message.starts_with("token [REDACTED:") && message.ends_with("key ''"), "{message}");
    for file in std::fs::read_dir(stage.task_dir(&id)).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"), "a stored file has the secret");
    }
}

#[test]
fn threads_and_inputs_without_a_place_are_refused() {
    let stage = stage_with_helper("cat");
    let id = exec(&stage, &[]);
    stage.wait(&id);
    for args in [
        &["local", "resume", "go on", "--task-id", &id][..],
        &["local", "resume", "go on", "--thread-id", "abc", "--agent", "helper"],
    ] {
        let response = refused(&stage, args, "UNSUPPORTED");
        assert!(response.contains("The agent helper has no threads"), "{response}");
    }
    let schema = r#"{"type":"object"}"#;
    let image = stage.world.project().join("a.png");
    std::fs::write(&image, "png").unwrap();
    let image = image.display().to_string();
    for (flag, value) in [
        ("--model", "m"),
        ("--env-policy", "inherit-none"),
        ("--profile", "p"),
        ("--reasoning-effort", "high"),
        ("--output-schema", schema),
        ("--images", &image),
    ] {
        let response =
            refused(&stage, &["local", "exec", "x", "--agent", "helper", flag, value], "UNSUPPORTED");
        assert!(response.contains("not supported by the agent helper"), "{flag}: {response}");
    }
    let listed =
        ["local", "exec", "x", "--agent", "helper", "--env-policy", "allow-list", "--env-allow-list", "PATH"];
    refused(&stage, &listed, "UNSUPPORTED");
}

#[test]
fn a_project_cannot_waive_the_sandbox() {
    let stage = stage_with_helper("cat");
    stage.world.write("project/.mcp-delegator.toml", "[agents.helper]\nunsandboxed = true\n");
    refused(&stage, &["local", "exec", "x", "--agent", "helper"], "CONFIG_INVALID");
}

#[test]
fn a_read_only_task_without_a_sandbox_counts_as_a_writer() {
    let stage = stage_with_settings(
        "touch ready; while [ ! -e go ]; do sleep 0.05; done; echo agent > notes; echo agent > ../more/notes",
        "unsandboxed = true",
    );
    stage.world.write("project/notes", "the user's\n");
    stage.world.write("project/../more/notes", "the user's\n");
    let more = stage.world.project().join("../more").canonicalize().unwrap();
    let path = more.display().to_string();
    let run = stage.world.run_as(Path::new("/usr/bin/git"), ["init", "--quiet", &path]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let id = exec(&stage, &["--mode", "read-only", "--add-dirs", &path]);
    stage.wait_for_project_file("ready");
    let args = ["local", "exec", "x", "--agent", "helper", "--mode", "read-only", "--working-dir", &path];
    let second = stage.run_json(&args);
    assert_eq!(second["meta"]["waiting_for"], json!({"task_id": id, "reason": "work_tree"}), "{second}");
    stage.run_json(&["local", "cancel", second["data"]["task_id"].as_str().unwrap()]);
    stage.world.write("project/go", "");
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    assert_eq!(warning_codes(&waited), ["W_FILES_005"], "the mode was read-only: {waited}");
    let modified = &waited["data"]["metadata"]["file_operations"]["modified_files"];
    assert_eq!(modified, &json!(["../more/notes", "notes"]), "{waited}");
    let restored = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(restored["ok"], true, "{restored}");
    for notes in [stage.world.project().join("notes"), more.join("notes")] {
        assert_eq!(std::fs::read_to_string(notes).unwrap(), "the user's\n");
    }
}

#[test]
fn unknown_agents_and_missing_programs_are_named() {
    let stage = stage_with_helper("cat");
    let response = refused(&stage, &["local", "exec", "x", "--agent", "helpr"], "INVALID_VALUE");
    assert!(
        response.contains("there are codex, ") && response.contains("Did you mean helper?"),
        "{response}"
    );
    let check = |stage: &Stage| {
        let checks = stage.world.doctor_checks();
        checks.as_array().unwrap().iter().find(|check| check["name"] == "agents.helper").unwrap().clone()
    };
    assert_eq!(check(&stage)["status"], "ok");
    std::fs::remove_file(stage.root().join("bin/helper")).unwrap();
    let response = refused(&stage, &["local", "exec", "x", "--agent", "helper"], "DEPENDENCY_MISSING");
    assert!(response.contains("agents.helper.command"), "{response}");
    assert_eq!(check(&stage)["status"], "problem");
}

#[test]
fn doctor_checks_the_environment_of_each_protocol_once() {
    let second = "[agents.second]\nprotocol = \"codex-exec\"\ncommand = [\"sh\"]";
    let stage = stage_with_settings("cat", second);
    let response = stage.world.doctor_checks();
    let checks = response.as_array().unwrap();
    let count = |name: &str| checks.iter().filter(|check| check["name"] == name).count();
    assert_eq!((count("codex_home"), count("agent"), count("agents.second")), (1, 1, 1), "{response}");
}

#[test]
fn a_verify_command_needs_a_sandbox_or_permission() {
    let stage = stage_with_settings("cat", "unsandboxed = true");
    let args = ["local", "exec", "x", "--agent", "helper", "--verify", "true"];
    let response = refused(&stage, &args, "UNSUPPORTED");
    assert!(response.contains("verify_unsandboxed"), "{response}");
    let stage = stage.variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true");
    let id = exec(&stage, &["--verify", "true"]);
    let verification = stage.wait(&id)["data"]["verification"].clone();
    assert_eq!((&verification["status"], &verification["is_sandboxed"]), (&json!("verified"), &json!(false)));
}

/// 800 lines, 20,800 bytes.
const LONG_OUTPUT: &str = "cat > /dev/null; seq -f 'line %06g of the output' 1 800; echo oops >&2";

#[test]
fn a_long_message_is_shown_once() {
    let stage = stage_with_helper(LONG_OUTPUT);
    let id = exec(&stage, &[]);
    stage.wait(&id);
    for format in ["human", "markdown"] {
        let shown = stage.world.run(["results", &id, "--include-output", "--format", format]).stdout;
        assert_eq!(shown.matches("line 000001 of").count(), 1, "{shown}");
        assert_eq!(shown.matches("line 000800 of").count(), 1, "{shown}");
        assert!(shown.contains("oops"), "{shown}");
    }
    // A failed task includes its output, and so the whole message.
    let stage = stage_with_helper(&format!("{LONG_OUTPUT}; exit 3"));
    let id = exec(&stage, &[]);
    stage.wait(&id);
    let shown = stage.world.run(["results", &id, "--format", "human"]).stdout;
    assert_eq!(shown.matches("line 000800 of").count(), 1, "{shown}");
    assert!(shown.contains("line 000001 of") && !shown.contains("Read the whole message"), "{shown}");
}

#[test]
fn the_log_marks_what_is_not_stored() {
    let stage = stage_with_helper(LONG_OUTPUT).variable("MCP_DELEGATOR_MAX_STREAM_BYTES", "4096");
    let id = exec(&stage, &[]);
    stage.wait(&id);
    let log = stage.world.run(["logs", &id, "--format", "human"]).stdout;
    assert!(log.contains(" bytes omitted]\n") && !log.contains("delegator.omitted"), "{log}");
    let shown = stage.world.run(["results", &id, "--include-output", "--format", "human"]).stdout;
    assert!(shown.contains("The output was truncated: ") && !shown.contains("the limit is"), "{shown}");
    let messages: Vec<Value> =
        (0..300).map(|number| json!({"message": format!("number {number}")})).collect();
    let stage = Stage::with_script(PROGRAM, successful_turn(&messages))
        .variable("MCP_DELEGATOR_MAX_STREAM_BYTES", "4096");
    let id = stage.exec(&[]);
    stage.wait(&id);
    let log = stage.world.run(["logs", &id, "--format", "human"]).stdout;
    assert_eq!(log.matches(" bytes omitted]\n").count(), 1, "{log}");
}

const NODE_ERROR: &str = "/w/src/app.js:3\n    user.name();\n         ^\n\nTypeError: user.name is not a function\n    at greet (src/app.js:3:10)\n    at Object.<anonymous> (src/main.js:9:1)\n    at Module._compile (node:internal/modules/cjs/loader:1554:14)\n\nNode.js v22.14.0\n";
const PYTHON_ERROR: &str = "Traceback (most recent call last):\n  File \"src/app.py\", line 12, in <module>\n    main()\n  File \"src/app.py\", line 7, in main\n    int(\"x\")\nValueError: invalid literal for int() with base 10: 'x'\n";

#[test]
fn the_error_that_ends_an_agent_has_its_location_from_either_stream() {
    for (text, file, line, column, kind, message) in [
        (NODE_ERROR, "src/app.js", 3, json!(10), "TypeError", "user.name is not a function"),
        (
            PYTHON_ERROR,
            "src/app.py",
            7,
            Value::Null,
            "ValueError",
            "invalid literal for int() with base 10: 'x'",
        ),
    ] {
        for stream in [">&2", ""] {
            let stage =
                stage_with_helper(&format!("cat > /dev/null\ncat {stream} <<'END'\n{text}END\nexit 1"));
            let waited = stage.wait(&exec(&stage, &[]));
            let context = &waited["data"]["metadata"]["error_context"];
            let location = &context["error_locations"][0];
            assert_eq!((&location["file"], &location["line"]), (&json!(file), &json!(line)), "{waited}");
            assert_eq!(location["column"], column, "{waited}");
            assert_eq!((&context["error_type"], &context["error_message"]), (&json!(kind), &json!(message)));
            assert_eq!(context["agent_message"], format!("{kind}: {message}"), "{waited}");
            assert_eq!(context["failed_files"], json!([file]));
        }
    }
}

#[test]
fn the_text_of_a_failed_turn_has_locations() {
    let event = json!({"type": "turn.failed", "error": {"message": NODE_ERROR}}).to_string();
    let stage = Stage::with_shell_agent(
        PROGRAM,
        &format!("cat > /dev/null\ncat <<'END'\n{{\"type\":\"turn.started\"}}\n{event}\nEND\nexit 1"),
    );
    let waited = stage.wait(&stage.exec(&["--skip-git-repo-check"]));
    let context = &waited["data"]["metadata"]["error_context"];
    assert_eq!(context["error_locations"][0]["file"], "src/app.js", "{waited}");
    assert_eq!(context["error_message"], "user.name is not a function", "{waited}");
}

#[test]
fn test_results_of_a_plain_agent_are_read() {
    let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    let stage = stage_with_helper(&format!("cat > /dev/null\ncat <<'END'\n\nrunning 2 tests\n{output}END"));
    let waited = stage.wait(&exec(&stage, &[]));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    let tests = &waited["data"]["metadata"]["test_results"];
    assert_eq!((&tests["passed"], &tests["failed"]), (&json!(1), &json!(1)), "{waited}");
}
