//! The requests of `codex cloud` and their responses.

use serde_json::{Value, json};

use super::{Backend, FakeState, FakeTask, Fault};

/// One HTTP request. The body is null if it is not JSON.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Value,
}

/// 2026-11-16T00:00:00Z.
const CREATED_AT: f64 = 1_794_787_200.0;

/// Answers one request and records it.
pub(super) fn respond(request: &Request, backend: &mut Backend) -> Result<Value, Fault> {
    let path = request.path.strip_prefix("/backend-api/wham").unwrap_or(&request.path);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    backend.requests.push(format!("{} {path}", request.method));
    if let Some(fault) = backend.fault {
        return Err(fault);
    }
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (request.method.as_str(), parts.as_slice()) {
        // Environments that belong to a repository come with a longer path.
        ("GET", ["environments", ..]) => Ok(environments(backend)),
        ("POST", ["tasks"]) => submit(&request.body, backend),
        ("GET", ["tasks", "list"]) => Ok(list(query, backend)),
        ("GET", ["tasks", id]) => {
            let labels = backend.environments.clone();
            Ok(details(id, find(id, backend)?, &labels))
        }
        ("GET", ["tasks", id, "turns", _, "sibling_turns"]) => Ok(siblings(find(id, backend)?)),
        _ => Err(Fault::HttpError(404)),
    }
}

fn find<'a>(id: &str, backend: &'a mut Backend) -> Result<&'a mut FakeTask, Fault> {
    let found = backend.tasks.iter_mut().find(|(other, _)| other == id);
    let (_, task) = found.ok_or(Fault::HttpError(404))?;
    task.fault.map_or(Ok(task), Err)
}

fn environments(backend: &Backend) -> Value {
    let environment = |(id, label): &(String, String)| json!({"id": id, "label": label, "is_pinned": false});
    backend.environments.iter().map(environment).collect()
}

fn submit(body: &Value, backend: &mut Backend) -> Result<Value, Fault> {
    let prompt = body["input_items"][0]["content"][0]["text"].as_str().ok_or(Fault::HttpError(422))?;
    let environment = body["new_task"]["environment_id"].as_str().ok_or(Fault::HttpError(422))?;
    let mut task = FakeTask { environment: environment.to_owned(), ..backend.next_task.clone() };
    if task.title.is_empty() {
        task.title = prompt.trim().chars().take(40).collect();
    }
    let id = format!("task_e_{:032x}", 0x6950_526d_8258_8330_u64 + backend.submissions.len() as u64);
    backend.submissions.push(body.clone());
    // The newest task comes first in lists.
    backend.tasks.insert(0, (id.clone(), task));
    Ok(json!({"task": {"id": id}}))
}

fn list(query: &str, backend: &mut Backend) -> Value {
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    let number = |name: &str| parameter(name).and_then(|value| value.parse::<usize>().ok());
    let environment = parameter("environment_id");
    let start = number("cursor").unwrap_or(0);
    let size = number("limit").unwrap_or(20).min(backend.page_size);
    let labels = backend.environments.clone();
    let is_wanted = |task: &FakeTask| environment.as_ref().is_none_or(|wanted| *wanted == task.environment);
    let mut wanted = backend.tasks.iter_mut().filter(|(_, task)| is_wanted(task)).skip(start);
    let items: Vec<Value> =
        wanted.by_ref().take(size).map(|(id, task)| list_item(id, task, &labels)).collect();
    let cursor = wanted.next().map(|_| (start + size).to_string());
    json!({"items": items, "cursor": cursor})
}

fn list_item(id: &str, task: &mut FakeTask, labels: &[(String, String)]) -> Value {
    let state = next_state(task);
    json!({
        "id": id, "title": task.title, "created_at": CREATED_AT, "updated_at": CREATED_AT + 120.0, "archived": false,
        "has_unread_turn": false, "pull_requests": [], "task_status_display": display(task, state, labels),
    })
}

fn details(id: &str, task: &mut FakeTask, labels: &[(String, String)]) -> Value {
    let state = next_state(task);
    let mut assistant_turn = json!({
        "id": "turn_1", "attempt_placement": 0, "turn_status": turn_status(state), "sibling_turn_ids": sibling_ids(task, state),
        "output_items": [{
            "type": "message", "role": "assistant", "content": [{"content_type": "text", "text": "Done."}],
        }],
    });
    if state == FakeState::Failed {
        assistant_turn["error"] =
            json!({"code": "setup_failed", "message": "the setup script exited with 1"});
    }
    let mut value = json!({
        "task": {
            "id": id, "title": task.title, "created_at": CREATED_AT, "updated_at": CREATED_AT + 120.0, "archived": false,
            "environment_id": task.environment, "external_pull_requests": [],
            "task_status_display": display(task, state, labels),
        },
        "current_user_turn": {"id": "turn_0", "input_items": []},
        "current_assistant_turn": assistant_turn,
    });
    if let Some(diff) = shown_diffs(task, state).first() {
        value["current_diff_task_turn"] =
            json!({"id": "turn_1", "output_items": [{"type": "output_diff", "diff": diff}]});
    }
    value
}

/// The attempts after the first one.
fn siblings(task: &FakeTask) -> Value {
    let state = *task.states.first().unwrap_or(&FakeState::Queued);
    let turn = |(place, diff): (usize, &String)| {
        json!({
            "id": format!("turn_{}", place + 1), "attempt_placement": place, "created_at": CREATED_AT,
            "turn_status": turn_status(state), "output_items": [{"type": "output_diff", "diff": diff}],
        })
    };
    json!({"sibling_turns": shown_diffs(task, state).iter().enumerate().skip(1).map(turn).collect::<Vec<Value>>()})
}

fn next_state(task: &mut FakeTask) -> FakeState {
    if task.states.len() > 1 { task.states.remove(0) } else { task.states[0] }
}

fn shown_diffs(task: &FakeTask, state: FakeState) -> &[String] {
    if state == FakeState::Completed { &task.diffs } else { &[] }
}

fn sibling_ids(task: &FakeTask, state: FakeState) -> Vec<String> {
    (2..=shown_diffs(task, state).len()).map(|number| format!("turn_{number}")).collect()
}

fn display(task: &FakeTask, state: FakeState, labels: &[(String, String)]) -> Value {
    let label = labels.iter().find(|(id, _)| *id == task.environment).map(|(_, label)| label);
    let diff = shown_diffs(task, state).first().map_or("", String::as_str);
    let count = |sign: &str, header: &str| {
        diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(header)).count()
    };
    json!({
        "environment_label": label,
        "latest_turn_status_display": {
            "turn_status": turn_status(state), "created_at": CREATED_AT, "updated_at": CREATED_AT + 120.0,
            "sibling_turn_ids": sibling_ids(task, state),
            "diff_stats": {
                "files_modified": diff.matches("diff --git ").count(),
                "lines_added": count("+", "+++"), "lines_removed": count("-", "---"),
            },
        },
    })
}

fn turn_status(state: FakeState) -> &'static str {
    match state {
        FakeState::Queued => "pending",
        FakeState::Running => "in_progress",
        FakeState::Completed => "completed",
        FakeState::Failed => "failed",
        FakeState::Cancelled => "cancelled",
    }
}
