//! The cloud tools, with a program that answers `codex cloud`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use delegator_testkit::cloud_script::{ENVIRONMENTS, answer_cloud_commands};
use serde_json::{Value, json};

use super::Session;

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
