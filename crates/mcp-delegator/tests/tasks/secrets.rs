//! No secret reaches the state directory, neither the database and its log nor the task files, whichever input carried
//! it.

use std::path::{Path, PathBuf};

use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::evidence::{Project, write};

/// Recognised by the name of its variable.
const NAMED_SECRET: &str = "correct-horse-battery-staple";
/// Recognised by its format, without a variable.
const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
/// Named in the configuration; they look like an id and a digest.
const UUID: &str = "7f2c1a9e-4b1d-4c8e-9a55-0f6e2d3c4b5a";
const DIGEST: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567";

const SECRETS: [&str; 4] = [NAMED_SECRET, TOKEN, UUID, DIGEST];

fn stage(steps: Value) -> Stage {
    with_secrets(Stage::with_script(PROGRAM, steps))
}

fn with_secrets(stage: Stage) -> Stage {
    stage
        .variable("SHOP_PASSWORD", NAMED_SECRET)
        .variable("CORP_TENANT", UUID)
        .variable("CORP_BUILD", DIGEST)
        .variable("MCP_DELEGATOR_REDACT_NAMES", "CORP_TENANT,CORP_BUILD")
        .variable("MCP_DELEGATOR_VERIFY_UNSANDBOXED", "true")
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => found.push(path),
        }
    }
    found
}

/// The files of the state directory that contain a secret, as `file: secret`.
fn leaks(stage: &Stage) -> Vec<String> {
    let state = stage.world.home().join("state");
    let mut found = Vec::new();
    for path in files_below(&state) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let name = path.strip_prefix(&state).unwrap().display().to_string();
        let holds = |secret: &&&str| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        found.extend(SECRETS.iter().filter(holds).map(|secret| format!("{name}: {secret}")));
    }
    found
}

/// Every input that takes text, with this secret in it.
fn inputs(secret: &str) -> Vec<String> {
    let schema = json!({"type": "object", "title": format!("about {secret}"), "properties": {secret: {"const": secret}}});
    [
        "--labels",
        &format!("run-{secret}=of {secret}"),
        "--idempotency-key",
        &format!("key {secret}"),
        "--output-schema",
        &schema.to_string(),
        "--model",
        secret,
        "--profile",
        secret,
    ]
    .map(str::to_owned)
    .to_vec()
}

fn exec(stage: &Stage, task: &str, more: &[String]) -> Value {
    let args: Vec<&str> =
        ["local", "exec", task].into_iter().chain(more.iter().map(String::as_str)).collect();
    stage.run_json(&args)
}

#[test]
fn no_input_carries_a_secret_into_the_state_directory() {
    let stage = stage(successful_turn(&[json!({"touch_file": "ready"}), json!({"wait_for_file": "go"})]));
    for secret in SECRETS {
        // The first occurrence is cut by the truncation of titles.
        let task = format!("{} {secret} and {secret}", "x".repeat(110));
        let response = exec(&stage, &task, &inputs(secret));
        let id = response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
        stage.wait_for_project_file("ready");
        let launch = stage.task_dir(&id).join("launch");
        wait_until("the agent has its input", || !launch.exists());
        // The agent reads the schema file itself; no other file contains the secret while it runs.
        let found: Vec<String> =
            leaks(&stage).into_iter().filter(|leak| !leak.contains("output-schema")).collect();
        assert_eq!(found, Vec::<String>::new(), "while the task runs");
        let cancelled = stage.run_json(&["local", "cancel", &id, "--reason", &format!("because {secret}")]);
        assert_eq!(cancelled["ok"], true, "{cancelled}");
        stage.wait(&id);
        assert_eq!(leaks(&stage), Vec::<String>::new(), "after the task ended");
        std::fs::remove_file(stage.world.project().join("ready")).unwrap();
    }
}

#[test]
fn a_queued_task_that_is_cancelled_leaves_no_secret_behind() {
    let stage = stage(successful_turn(&[json!({"wait_for_file": "go"})]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let first = stage.exec(&[]);
    for secret in SECRETS {
        let response = exec(&stage, "later", &inputs(secret));
        let id = response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
        stage.run_json(&["local", "cancel", &id, "--reason", secret]);
        assert_eq!(stage.wait(&id)["data"]["state"], "cancelled");
    }
    assert_eq!(leaks(&stage), Vec::<String>::new());
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    stage.wait(&first);
}

#[test]
fn secret_idempotency_keys_are_distinguished_and_recognised() {
    let stage = stage(successful_turn(&[]));
    let with_key = |key: &str| {
        let response = exec(&stage, "x", &["--idempotency-key".to_owned(), key.to_owned()]);
        (response["data"]["task_id"].clone(), response["meta"]["replayed"].clone(), response["ok"].clone())
    };
    let first = with_key(TOKEN);
    let other = with_key("ghp_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ");
    assert_ne!(first.0, other.0, "two secrets are two keys");
    assert_eq!(with_key(TOKEN).0, first.0, "the same secret is the same key");
    let response = exec(&stage, "another task", &["--idempotency-key".to_owned(), TOKEN.to_owned()]);
    assert_eq!(response["ok"], false, "{response}");
    assert_eq!(leaks(&stage), Vec::<String>::new());
}

#[test]
fn agent_output_is_redacted_for_configured_names() {
    let text = format!("tenant {UUID} build {DIGEST}");
    let stage = stage(successful_turn(&[json!({"message": text})]));
    let id = stage.exec(&[]);
    let ended = stage.wait(&id);
    assert_eq!(ended["data"]["state"], "completed", "{ended}");
    assert!(!ended.to_string().contains(UUID) && !ended.to_string().contains(DIGEST), "{ended}");
    assert_eq!(leaks(&stage), Vec::<String>::new());
}

#[test]
fn a_task_with_redacted_inputs_cannot_be_retried() {
    let stage = stage(successful_turn(&[]));
    let schema = json!({"type": "object", "title": TOKEN}).to_string();
    let response = exec(&stage, "x", &["--output-schema".to_owned(), schema]);
    let id = response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
    stage.wait(&id);
    let refused = stage.run_json(&["retry", &id]);
    assert!(refused["error"]["message"].to_string().contains("output_schema"), "{refused}");
    let checked = exec(&stage, "x", &["--verify", "true", "--verify", TOKEN].map(str::to_owned));
    let id = checked["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{checked}")).to_owned();
    stage.wait(&id);
    let refused = stage.run_json(&["retry", &id]);
    assert!(refused["error"]["message"].to_string().contains("verify"), "{refused}");
    assert_eq!(leaks(&stage), Vec::<String>::new());
    let labelled = exec(&stage, "x", &["--labels".to_owned(), format!("a={TOKEN}")]);
    let id = labelled["data"]["task_id"].as_str().unwrap().to_owned();
    stage.wait(&id);
    let again = stage.run_json(&["retry", &id]);
    assert_eq!(again["ok"], true, "{again}");
}

#[test]
fn a_diff_is_redacted_by_the_secrets_of_the_submission_for_every_reader() {
    let text = format!("one={NAMED_SECRET}\ntwo={UUID}\nthree=harmless\n");
    let stage = with_secrets(Project::repository(&[write("settings.env", &text)]).stage);
    let id = stage.exec(&["--mode", "workspace-write"]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    let reader = stage
        .variable("SHOP_PASSWORD", "")
        .variable("CORP_TENANT", "")
        .variable("MCP_DELEGATOR_REDACT_NAMES", "");
    let shown = reader.world.run(["diff", &id]).stdout;
    assert!(shown.contains("+one=[REDACTED:env]\n+two=[REDACTED:env]\n+three=harmless\n"), "{shown}");
    let structured = reader.run_json(&["diff", &id, "--json"]).to_string();
    assert!(structured.contains("+one=[REDACTED:env]"), "{structured}");
    assert!(!structured.contains(NAMED_SECRET) && !structured.contains(UUID), "{structured}");
}
