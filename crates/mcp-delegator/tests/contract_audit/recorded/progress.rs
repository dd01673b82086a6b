//! The progress notifications of a call that waits for a task.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Session, task_id};

/// A `wait` with a progress token, for a task without a plan, then for one that has done one of two steps of its plan.
pub(crate) static PROGRESS: LazyLock<Progress> = LazyLock::new(record);

pub(crate) struct Progress {
    pub(crate) token: &'static str,
    /// The parameters of a notification before the agent has a plan.
    pub(crate) without_plan: Value,
    /// The parameters of the first notification, and of the first one with a percentage.
    pub(crate) first: Value,
    pub(crate) with_percentage: Value,
    /// The answer of the call, and when the agent was allowed to end.
    pub(crate) answer: Value,
    pub(crate) released: Timestamp,
    /// `wait` for the running task with a limit of one second.
    pub(crate) expired_wait: Value,
}

fn record() -> Progress {
    let token = "the token of the caller";
    let mut session = Session::with_agent(&[
        json!({"wait_for_file": "plan"}),
        json!({"plan": {"steps": ["Read", "Test"], "done": 1}}),
        json!({"wait_for_file": "go"}),
        json!({"message": "All done."}),
        json!({"turn_completed": {}}),
    ]);
    let ack = session.json("_codex_local_exec", json!({"task": "x"}));
    let call = |token: &str, more: Value| {
        let mut arguments = json!({"task_id": task_id(&ack), "format": "json"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"name": "_codex_local_wait", "arguments": arguments, "_meta": {"progressToken": token}})
    };
    let early = session.client.send_request("tools/call", call("early", json!({"timeout_sec": 1})));
    let is_early = |message: &Value| message["params"]["progressToken"] == "early";
    let without_plan = session.client.wait_for("a notification", is_early)["params"].clone();
    session.client.response(early);
    session.stage.world.write("project/plan", "");
    session.status_when("the plan is known", |data| data["tasks"][0]["progress"]["percent"] == 50);
    let short = json!({"task_id": task_id(&ack), "timeout_sec": 1});
    let expired_wait = session.json("_codex_local_wait", short);
    let id = session.client.send_request("tools/call", call(token, json!({})));
    let is_progress = |message: &Value| {
        message["method"] == "notifications/progress" && message["params"]["progressToken"] == token
    };
    let first = session.client.wait_for("a notification", is_progress)["params"].clone();
    let has_percentage = |params: &Value| params["message"].as_str().is_some_and(|text| text.contains('%'));
    let with_percentage = match has_percentage(&first) {
        true => first.clone(),
        false => {
            let wanted = |message: &Value| is_progress(message) && has_percentage(&message["params"]);
            session.client.wait_for("a percentage", wanted)["params"].clone()
        }
    };
    let released = Timestamp::now();
    crate::client::release_agents(&session.stage);
    let answer = session.client.response(id)["result"]["structuredContent"].clone();
    session.finish();
    Progress { token, without_plan, first, with_percentage, answer, released, expired_wait }
}
