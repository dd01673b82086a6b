//! The fifteen tools, each called in both formats.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use delegator_testkit::cloud_script::answer_cloud_commands;
use serde_json::{Value, json};

use super::{Session, task_id};
use crate::client::{result, text};

/// The answers of every tool, by its name.
pub(crate) static ALL_TOOLS: LazyLock<AllTools> = LazyLock::new(record);

pub(crate) struct AllTools {
    /// The tools of `tools/list`.
    pub(crate) listed: Vec<Value>,
    /// The published schema of each category, from the resource of the server.
    pub(crate) schemas: BTreeMap<&'static str, Value>,
    answers: BTreeMap<&'static str, ToolAnswer>,
}

pub(crate) const CATEGORIES: [&str; 5] =
    ["execution_ack", "wait_result", "status_snapshot", "result_set", "registry_info"];

/// The answers of one tool to the same call in three formats.
pub(crate) struct ToolAnswer {
    /// The envelope of the call with `format: "json"`.
    pub(crate) envelope: Value,
    /// The envelope of the same call once more.
    pub(crate) second_envelope: Value,
    /// The text of that call, parsed.
    pub(crate) json_text: Value,
    /// The whole result of the call without a format.
    pub(crate) default: Value,
    /// The text of the call with `format: "markdown"`.
    pub(crate) markdown: String,
}

impl AllTools {
    #[track_caller]
    pub(crate) fn of(&self, tool: &str) -> &ToolAnswer {
        self.answers.get(tool).unwrap_or_else(|| panic!("{tool} was not called"))
    }

    /// The envelopes of all tools.
    pub(crate) fn envelopes(&self) -> impl Iterator<Item = &Value> {
        self.answers.values().map(|answer| &answer.envelope)
    }

    pub(crate) fn answers(&self) -> impl Iterator<Item = (&'static str, &ToolAnswer)> {
        self.answers.iter().map(|(tool, answer)| (*tool, answer))
    }
}

const ENVIRONMENTS: &str =
    r#"{"env_art": {"name": "Art", "repoUrl": "https://github.com/me/art", "stack": "python"}}"#;

fn record() -> AllTools {
    let mut session = Session::with_agent(&[json!({"message": "Done."}), json!({"turn_completed": {}})]);
    session.stage.world.write("home/.config/mcp-delegator/environments.json", ENVIRONMENTS);
    answer_cloud_commands(&session.stage.root());
    let ended = session.json("_codex_local_exec", json!({"task": "x"}));
    let ended = json!({"task_id": task_id(&ended)});
    let thread = session.json("_codex_local_wait", ended.clone());
    let thread = thread["data"]["metadata"]["thread_info"]["thread_id"].clone();
    let submission = json!({"task": "x", "env_id": "env_art"});
    let cloud_task = json!({"task_id": task_id(&session.json("_codex_cloud_submit", submission.clone()))});
    session.json("_codex_cloud_wait", cloud_task.clone());
    let mut arguments: BTreeMap<&'static str, Value> = BTreeMap::from([
        ("_codex_local_run", json!({"task": "x", "async": true})),
        ("_codex_local_exec", json!({"task": "x"})),
        ("_codex_local_resume", json!({"task": "x", "thread_id": thread})),
        ("_codex_cloud_submit", submission),
        ("_codex_local_status", json!({})),
        ("_codex_cloud_status", json!({})),
        ("_codex_cleanup_registry", json!({})),
        ("_codex_cloud_list_environments", json!({})),
        (
            "_codex_cloud_github_setup",
            json!({"repository": "https://github.com/user/repo", "tech_stack": "node"}),
        ),
    ]);
    for tool in ["_codex_local_wait", "_codex_local_results"] {
        arguments.insert(tool, ended.clone());
    }
    for tool in ["_codex_cloud_wait", "_codex_cloud_results", "_codex_cloud_cancel"] {
        arguments.insert(tool, cloud_task.clone());
    }
    let listed = result(session.client.request("tools/list", json!({})))["tools"].clone();
    let mut answers: BTreeMap<_, _> = arguments
        .into_iter()
        .map(|(tool, arguments)| (tool, record_tool(&mut session, tool, arguments)))
        .collect();
    // The first answer to a cancel is given again, so that all calls have the same one.
    session.stage.set_script(json!([{"thread_started": {}}, "turn_started", "silent"]));
    let running = session.json("_codex_local_exec", json!({"task": "x"}));
    let running = json!({"task_id": task_id(&running)});
    answers.insert("_codex_local_cancel", record_tool(&mut session, "_codex_local_cancel", running));
    let schemas = CATEGORIES.map(|category| (category, read_schema(&mut session, category)));
    AllTools { listed: serde_json::from_value(listed).unwrap(), schemas: schemas.into(), answers }
}

fn read_schema(session: &mut Session, category: &str) -> Value {
    let uri = format!("codex://schema/v3.6/{category}/v1");
    let read = result(session.client.request("resources/read", json!({"uri": uri})));
    serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
}

fn record_tool(session: &mut Session, tool: &str, arguments: Value) -> ToolAnswer {
    let mut in_json = arguments.clone();
    in_json["format"] = json!("json");
    let result = session.client.call(tool, in_json.clone());
    ToolAnswer {
        second_envelope: session.json(tool, in_json),
        envelope: result["structuredContent"].clone(),
        json_text: serde_json::from_str(text(&result)).unwrap(),
        default: session.client.call(tool, arguments.clone()),
        markdown: session.markdown(tool, arguments),
    }
}
