//! The cloud tools that are not built yet.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::Session;

/// The answers of the five tools, by name.
pub(crate) static CLOUD: LazyLock<BTreeMap<&'static str, Value>> = LazyLock::new(record);

fn record() -> BTreeMap<&'static str, Value> {
    let mut session = Session::with_agent(&[]);
    let task = json!({"task_id": "T-cloud-0000000000"});
    let calls = [
        ("_codex_cloud_submit", json!({"task": "x", "env_id": "e"})),
        ("_codex_cloud_status", json!({})),
        ("_codex_cloud_wait", task.clone()),
        ("_codex_cloud_results", task.clone()),
        ("_codex_cloud_cancel", task),
    ];
    calls.into_iter().map(|(tool, arguments)| (tool, session.json(tool, arguments))).collect()
}
