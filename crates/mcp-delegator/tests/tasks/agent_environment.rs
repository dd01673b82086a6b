//! Environment of the agent: the user's configuration adds variables, a caller can only select from them, and loader
//! variables never pass.

use delegator_testkit::stage::Stage;
use serde_json::Value;

use crate::PROGRAM;

/// An agent that writes its environment to a file and completes.
fn stage_recording_environment() -> Stage {
    Stage::with_shell_agent(
        PROGRAM,
        "env > environment; cat > /dev/null; echo '{\"type\":\"thread.started\",\"thread_id\":\"t\"}'; \
         echo '{\"type\":\"turn.started\"}'; \
         echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}'",
    )
    .variable("FIRST_FLAG", "one")
    .variable("SECOND_FLAG", "two")
    .variable("AWS_SECRET_ACCESS_KEY", "hunter2-and-more-of-it")
    .variable("NODE_OPTIONS", "--require=/nowhere.js")
}

fn with_configured_env(stage: Stage, names: &str) -> Stage {
    stage.variable("MCP_DELEGATOR_AGENTS", &format!("{{\"codex\": {{\"env\": [{names}]}}}}"))
}

fn agent_environment(stage: &Stage) -> String {
    std::fs::read_to_string(stage.world.project().join("environment")).unwrap()
}

fn assert_refused(stage: &Stage, args: &[&str], code: &str) -> Value {
    let run = stage.world.run(args);
    assert_ne!(run.exit, Some(0), "{run:?}");
    let response: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(response.to_string().contains(code), "{response}");
    response
}

#[test]
fn a_caller_cannot_add_a_variable() {
    let stage = stage_recording_environment();
    for name in ["AWS_SECRET_ACCESS_KEY", "NODE_OPTIONS", "LD_PRELOAD", "NOT_EVEN_SET"] {
        let args = ["local", "exec", "x", "--env-policy", "allow-list", "--env-allow-list", name];
        let response = assert_refused(&stage, &args, "POLICY_BLOCKED");
        assert!(response.to_string().contains(name), "the variable is missing: {response}");
        let names_the_key = response.to_string().contains("agents.codex.env");
        assert_eq!(names_the_key, !["NODE_OPTIONS", "LD_PRELOAD"].contains(&name), "{response}");
    }
    assert!(!stage.world.project().join("environment").exists(), "no agent was started");
}

#[test]
fn a_caller_selects_from_the_variables_the_user_configured() {
    let stage = with_configured_env(stage_recording_environment(), "\"FIRST_FLAG\", \"SECOND_FLAG\"")
        .variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true");
    let run = ["--env-policy", "allow-list", "--env-allow-list", "FIRST_FLAG", "--verify", "env"];
    let id = stage.exec(&run);
    let data = stage.wait(&id)["data"].clone();
    assert_eq!(data["state"], "completed", "{data}");
    let agent = agent_environment(&stage);
    assert!(agent.contains("FIRST_FLAG=one") && agent.contains("SECOND_FLAG=two"), "{agent}");
    assert!(!agent.contains("hunter2") && !agent.contains("NODE_OPTIONS"), "{agent}");
    let check = data["verification"]["output_tail"].as_str().unwrap();
    assert!(check.contains("FIRST_FLAG=one") && !check.contains("SECOND_FLAG"), "{check}");
}

#[test]
fn a_retry_gets_no_variable_removed_from_the_configuration() {
    let stage = with_configured_env(stage_recording_environment(), "\"FIRST_FLAG\"");
    let id = stage.exec(&["--env-policy", "allow-list", "--env-allow-list", "FIRST_FLAG"]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    let stage = with_configured_env(stage, "");
    let response = assert_refused(&stage, &["retry", &id], "POLICY_BLOCKED");
    assert!(response.to_string().contains("FIRST_FLAG"), "{response}");
}

#[test]
fn a_loader_variable_in_the_configuration_is_refused() {
    let stage = with_configured_env(stage_recording_environment(), "\"NODE_OPTIONS\"");
    let response = assert_refused(&stage, &["local", "exec", "x"], "CONFIG_INVALID");
    assert!(response.to_string().contains("NODE_OPTIONS"), "{response}");
}
