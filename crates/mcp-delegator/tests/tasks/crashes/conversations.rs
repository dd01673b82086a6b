//! Crashes around messages to an agent, and questions of an agent.

use delegator_domain::crash::CrashPoint;
use delegator_domain::question::QuestionNumber;
use delegator_testkit::asking_agent;
use delegator_testkit::program::read_text;
use serde_json::Value;

use super::Stage;
use crate::scripted::wait_until;

/// Configures the agent `chat`, which takes messages and answers each after the file `go` exists.
fn configure_chat(stage: &Stage) {
    let script = r#"echo "$DELEGATOR_TASK" >> "$HOME/../starts"
while read -r line; do
  while [ ! -e go ]; do sleep 0.05; done
  printf '{"type":"agent_message","content":"ok"}\n{"type":"idle"}\n'
done"#;
    stage.world.write("bin/chat", script);
    let config = format!(
        "[agents.chat]\nprotocol = \"idle-jsonl\"\ncommand = [\"/bin/sh\", \"{}\"]\nunsandboxed = true\n",
        stage.root.join("bin/chat").display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
}

/// A message is stored or not; one that was marked as delivered is not delivered again.
pub(super) fn crash_with_a_message(stage: &mut Stage, name: &str, point: CrashPoint) {
    configure_chat(stage);
    let exec = ["local", "exec", "do it", "--agent", "chat", "--skip-git-repo-check"];
    let is_sender = matches!(point, CrashPoint::MessageWritten | CrashPoint::MessageQueued);
    let (id, expected) = match is_sender {
        true => {
            let response = stage.run_json(&exec);
            let id = stage.acknowledge(&response);
            stage.crash(name, &["send", &id, "a message"]);
            (id, if point == CrashPoint::MessageQueued { vec!["accepted"] } else { Vec::new() })
        }
        false => {
            let output = stage.run_with_crash_point(name, &exec);
            let id = stage.acknowledge(&serde_json::from_slice(&output.stdout).unwrap());
            stage.run_json(&["send", &id, "a message"]);
            (id, vec![if point == CrashPoint::MessageSettled { "accepted" } else { "unknown" }])
        }
    };
    stage.release_agent();
    let waited = stage.run_json(&["local", "wait", &id, "--timeout-sec", "60"]);
    assert_eq!(waited["data"]["state"], if is_sender { "completed" } else { "failed" }, "{name}: {waited}");
    let messages = waited["data"]["messages"]["items"].as_array().cloned().unwrap_or_default();
    let states: Vec<&Value> = messages.iter().map(|message| &message["state"]).collect();
    assert_eq!(states, expected, "{name}: {waited}");
    let task = stage.state_dir().task(&id.parse().unwrap());
    assert!(!task.path().join("messages").exists(), "{name}: a text is left");
}

/// A supervisor that crashes leaves no question open. An answer is recorded or not; if not, another one can be given.
pub(super) fn crash_with_a_question(stage: &mut Stage, name: &str, point: CrashPoint) {
    asking_agent::install(&stage.world, &asking_agent::permission_request());
    let exec = [&["local", "exec", "do it"], asking_agent::TASK_ARGS.as_slice()].concat();
    let question =
        |stage: &Stage, id: &str| stage.registry().question(&id.parse().unwrap(), QuestionNumber(1)).unwrap();
    if matches!(point, CrashPoint::QuestionAsked | CrashPoint::QuestionClosed) {
        // The question expires at once.
        let mut command = stage.command_with_crash_point(name, &exec);
        let output = command.env("MCP_DELEGATOR_ANSWER_TIMEOUT_SEC", "1").output().unwrap();
        let id = stage.acknowledge(&serde_json::from_slice(&output.stdout).unwrap());
        let waited = stage.run_json(&["local", "wait", &id, "--timeout-sec", "60"]);
        assert_eq!(waited["data"]["state"], "failed", "{name}: {waited}");
        let state = question(stage, &id).unwrap().state.name();
        let expected = if point == CrashPoint::QuestionClosed { "expired" } else { "withdrawn" };
        assert_eq!(state, expected, "{name}");
        return;
    }
    let response = stage.run_json(&exec);
    let id = stage.acknowledge(&response);
    wait_until("the agent asks", || question(stage, &id).is_some());
    stage.crash(name, &["answer", &id, "allow_once"]);
    let second = stage.run_json(&["answer", &id, "reject_once", "--question", "1"]);
    let is_recorded = point == CrashPoint::AnswerRecorded;
    assert_eq!(second["ok"], !is_recorded, "{name}: {second}");
    let waited = stage.run_json(&["local", "wait", &id, "--timeout-sec", "60"]);
    assert_eq!(waited["data"]["state"], "completed", "{name}: {waited}");
    let response = read_text(&stage.world.project().join("answer.json"));
    let expected = if is_recorded { "allow" } else { "deny" };
    assert!(response.contains(&format!("\"behavior\":\"{expected}\"")), "{name}: {response}");
}
