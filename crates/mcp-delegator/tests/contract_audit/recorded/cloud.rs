//! The cloud tools, with a program that answers `codex cloud`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use delegator_testkit::cloud_script::{ENVIRONMENTS, answer_cloud_commands};
use delegator_testkit::postgres::PostgresServer;
use serde_json::{Value, json};

use super::{Session, stage_with_agent, task_id};

/// The answers of the five tools, by name.
pub(crate) static CLOUD: LazyLock<BTreeMap<&'static str, Value>> = LazyLock::new(record);

fn record() -> BTreeMap<&'static str, Value> {
    let mut session = Session::with_agent(&[]);
    session.stage.world.write("home/.config/mcp-delegator/environments.json", ENVIRONMENTS);
    answer_cloud_commands(&session.stage.root());
    let submitted = session.json("_codex_cloud_submit", json!({"task": "x", "env_id": "env_site"}));
    let task = json!({"task_id": submitted["data"]["task_id"]});
    // Before the wait: only a task that has not ended can be cancelled, and hosted Codex cannot do that.
    let calls = ["_codex_cloud_cancel", "_codex_cloud_wait", "_codex_cloud_results", "_codex_cloud_status"];
    let mut answers: BTreeMap<&'static str, Value> =
        calls.into_iter().map(|tool| (tool, session.json(tool, task.clone()))).collect();
    answers.insert("_codex_cloud_submit", submitted);
    answers
}

/// The cancellation of a queued task of a fleet.
pub(crate) static FLEET_CANCEL: LazyLock<Value> = LazyLock::new(|| {
    let server = PostgresServer::options().fast().start();
    let stage = stage_with_agent(&[]).variable("MCP_DELEGATOR_DATABASE_URL", &server.url());
    stage.run_json(&["fleet", "migrate"]);
    let environment =
        json!({"name": "Own", "repoUrl": "https://github.com/me/app", "stack": "rust", "provider": "fleet"});
    stage.world.write(
        "home/.config/mcp-delegator/environments.json",
        &json!({ "env_own": environment }).to_string(),
    );
    let mut session = Session::start(stage);
    let submitted = session.json("_codex_cloud_submit", json!({"task": "x", "env_id": "env_own"}));
    session.json("_codex_cloud_cancel", json!({"task_id": task_id(&submitted)}))
});
