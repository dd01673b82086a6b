//! The tools that report on environments, and clean the registry.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use delegator_registry::{OpenOptions, Registry, StateDir};
use serde_json::{Value, json};

use super::{Session, done};
use crate::old_tasks::{HOUR_MS, abandoned_task, ended_task, now_ms};

pub(crate) static REGISTRY: LazyLock<RegistryAnswers> = LazyLock::new(record);

pub(crate) struct RegistryAnswers {
    pub(crate) environments: Value,
    pub(crate) environments_path: String,
    /// The list of [`MANY_ENVIRONMENTS`] environments, over MCP and on the command line.
    pub(crate) many_environments: Value,
    pub(crate) many_environments_cli: Value,
    pub(crate) github_setup: Value,
    /// A cleanup that changes nothing, of one stuck and three old tasks.
    pub(crate) dry_run: Value,
    pub(crate) stuck: String,
    pub(crate) cleanup: Value,
    /// A cleanup with nothing to do, without inputs.
    pub(crate) second_cleanup: Value,
}

const ENVIRONMENTS: &str = r#"{
  "env_illustrations": {"name": "Illustrations Training", "repoUrl": "https://github.com/me/illustrations",
    "stack": "python", "createdAt": "2025-11-01T00:00:00Z"},
  "env_myproject": {"name": "My Project", "repoUrl": "https://github.com/user/myproject", "stack": "node"}
}"#;

pub(crate) const MANY_ENVIRONMENTS: usize = 400;

fn record() -> RegistryAnswers {
    let mut session = Session::with_agent(&done());
    session.stage.world.write("home/.config/mcp-delegator/environments.json", ENVIRONMENTS);
    session.json("_codex_local_run", json!({"task": "recent"}));
    let state = session.stage.world.home().join("state");
    let mut registry = Registry::open(&StateDir::open(&state, &OpenOptions::default()).unwrap()).unwrap();
    for hours in [30, 40, 48] {
        ended_task(&mut registry, now_ms() - hours * HOUR_MS);
    }
    let stuck = abandoned_task(&mut registry, now_ms() - 2 * HOUR_MS).task.id.to_string();
    let setup = json!({"repository": "https://github.com/user/repo", "tech_stack": "node"});
    let path = session.stage.world.home().join(".config/mcp-delegator/environments.json");
    let mut answers = RegistryAnswers {
        many_environments: Value::Null,
        many_environments_cli: Value::Null,
        environments: session.json("_codex_cloud_list_environments", json!({})),
        environments_path: path.display().to_string(),
        github_setup: session.json("_codex_cloud_github_setup", setup),
        dry_run: session.json("_codex_cleanup_registry", json!({"dry_run": true})),
        stuck,
        cleanup: session.json("_codex_cleanup_registry", json!({"old_task_max_age_hours": 24})),
        second_cleanup: session.json("_codex_cleanup_registry", json!({})),
    };
    let environment =
        json!({"name": "One of many", "repoUrl": "https://github.com/user/myproject", "stack": "node"});
    let many: BTreeMap<String, &Value> =
        (0..MANY_ENVIRONMENTS).map(|number| (format!("env_{number}"), &environment)).collect();
    std::fs::write(path, json!(many).to_string()).unwrap();
    answers.many_environments = session.json("_codex_cloud_list_environments", json!({}));
    answers.many_environments_cli = session.stage.run_json(&["cloud", "list-environments"]);
    answers
}
