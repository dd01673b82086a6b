//! Answers of the real program, each with its TypeScript type and the guard that accepts it; and what they must not be.

use std::collections::BTreeSet;
use std::path::Path;

use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use super::converter::type_name;
use crate::PROGRAM;
use crate::assertions::text;
use crate::http_client::HttpServer;
use crate::recorded::{
    ALL_TOOLS, CLI_ANSWERS, COMPLETED, FAILED, REFUSALS, REGISTRY, STANDARD_ANSWERS, STATUS, TIMED_OUT,
};

pub(super) const GUARDS: [&str; 6] =
    ["isExecutionAck", "isWaitResult", "isStatusSnapshot", "isResultSet", "isRegistryInfo", "isToolFailure"];

const STANDARD: &str = "t.StandardEnvelope<object>";

pub(super) struct TypedAnswer {
    /// In terms of the package `t`.
    pub(super) kind: String,
    /// The only guard that accepts it.
    pub(super) guard: Option<&'static str>,
    pub(super) value: Value,
}

impl TypedAnswer {
    fn new(kind: impl Into<String>, value: &Value) -> TypedAnswer {
        TypedAnswer { kind: kind.into(), guard: None, value: value.clone() }
    }

    fn of_tool(value: &Value) -> TypedAnswer {
        let name = type_name(text(value, "/tool_category"));
        let has = |pointer: &str| value.pointer(pointer).is_some();
        let guard = match () {
            () if has("/error") => Some("isToolFailure".to_owned()),
            // Several tasks, attempts, or a task that has not ended.
            () if has("/meta/wait_expired") || has("/data/attempts") => None,
            () if name == "WaitResult" && has("/data/tasks") => None,
            () => Some(format!("is{name}")),
        };
        let guard = guard.map(|guard| *GUARDS.iter().find(|known| **known == guard).unwrap());
        TypedAnswer { kind: format!("t.{name}Answer"), guard, value: value.clone() }
    }

    fn of_command(value: &Value) -> TypedAnswer {
        let data = format!("t.CommandData[\"{}\"]", text(value, "/meta/command"));
        let is_reduced = value.pointer("/meta/truncated").is_some();
        let data = if is_reduced { format!("Partial<{data}>") } else { data };
        TypedAnswer::new(format!("t.ResponseEnvelope<{data}>"), value)
    }
}

pub(super) fn all() -> Vec<TypedAnswer> {
    let tools = [
        &COMPLETED.ack,
        &COMPLETED.later_ack,
        &COMPLETED.run,
        &COMPLETED.background_run,
        &COMPLETED.resume,
        &COMPLETED.wait,
        &COMPLETED.wait_with_output,
        &COMPLETED.wait_any,
        &COMPLETED.results,
        &COMPLETED.results_with_output,
        &COMPLETED.results_with_events,
        &FAILED.run,
        &FAILED.run_rate_limited,
        &FAILED.wait,
        &FAILED.results,
        &TIMED_OUT.idle_run,
        &TIMED_OUT.idle_wait,
        &TIMED_OUT.idle_results,
        &STATUS.empty,
        &STATUS.full,
        &STATUS.verbose,
        &STATUS.queued_wait,
        &REGISTRY.environments,
        &REGISTRY.github_setup,
        &REGISTRY.dry_run,
        &REGISTRY.cleanup,
        &REFUSALS.several_problems,
        &REFUSALS.unknown_task,
        &REFUSALS.early_results,
        &REFUSALS.missing_agent,
    ];
    let mut answers: Vec<TypedAnswer> = tools.into_iter().map(TypedAnswer::of_tool).collect();
    answers.extend(ALL_TOOLS.envelopes().map(TypedAnswer::of_tool));
    answers.extend(CLI_ANSWERS.all().into_iter().map(|answer| TypedAnswer::of_command(&answer.json)));
    let standard = STANDARD_ANSWERS.successes().into_iter().chain(STANDARD_ANSWERS.failures());
    answers.extend(standard.map(|answer| TypedAnswer::new(STANDARD, answer)));
    answers.extend(of_the_api_and_the_events());
    answers
}

/// The events of a run in the documented form, and answers about its task over HTTP.
fn of_the_api_and_the_events() -> Vec<TypedAnswer> {
    let steps =
        [json!({"write_file": {"path": "new.txt", "text": "x\n"}}), json!({"command": {"run": "true"}})];
    let stage = Stage::with_script(PROGRAM, successful_turn(&steps));
    let commit =
        "git init -q && git -c user.name=T -c user.email=t@localhost commit -q --allow-empty -m First";
    assert_eq!(stage.world.run_as(Path::new("/bin/sh"), ["-c", commit]).exit, Some(0));
    let id = stage.exec(&["--mode", "workspace-write"]);
    stage.wait(&id);
    let events = stage.world.run(["events", "normalize", "--strict", &id]).stdout;
    let event = |line: &str| TypedAnswer::new("t.ThreadEvent", &serde_json::from_str(line).unwrap());
    let mut answers: Vec<TypedAnswer> = events.lines().map(event).collect();
    assert!(answers.len() > 5, "{events}");
    let server = HttpServer::start(&stage);
    let request = |method: &str, path: &str, body: &str| -> Value {
        let path = path.replace("{id}", &id);
        let response = server.request(method, &path, &server.default_headers(), body);
        serde_json::from_str(&response.body).unwrap()
    };
    for (method, path, body) in [
        ("GET", "/api/v1/tasks", ""),
        ("GET", "/api/v1/history", ""),
        ("GET", "/api/v1/tasks/{id}", ""),
        ("GET", "/api/v1/tasks/{id}/events", ""),
        ("GET", "/api/v1/tasks/{id}/log", ""),
        ("GET", "/api/v1/tasks/{id}/timeline", ""),
        ("GET", "/api/v1/tasks/{id}/messages", ""),
        ("GET", "/api/v1/tasks/{id}/diff", ""),
        ("GET", "/api/v1/worktrees", ""),
        ("GET", "/api/v1/usage", ""),
        ("GET", "/api/v1/agents", ""),
        ("GET", "/api/v1/session", ""),
        ("POST", "/api/v1/tasks/{id}/read", "{}"),
        ("POST", "/api/v1/tasks", r#"{"task": "x"}"#),
    ] {
        let kind = format!("t.ResponseEnvelope<t.Api[\"{method} {path}\"][\"data\"]>");
        answers.push(TypedAnswer::new(kind, &request(method, path, body)));
    }
    stage.wait(text(&answers.last().unwrap().value, "/data/task_id"));
    for path in ["/api/v1/tasks/T-local-0000000000", "/api/v1/tasks?section=nowhere"] {
        answers.push(TypedAnswer::new("t.Problem", &request("GET", path, "")));
    }
    answers
}

/// Parts that may have any value: what an agent printed, the input with a problem, the data beside an error.
const UNTYPED: [&str; 6] =
    ["/context/", "/event/", "/events/items/", "/failure_data/", "/last_events/", "/value"];
/// Keys that `meta` always has; each command adds others.
const TYPED_META: [&str; 9] = [
    "command",
    "completed_ts",
    "duration_ms",
    "exit_code",
    "request_id",
    "schema_version",
    "started_ts",
    "timestamp",
    "warnings",
];
/// The same for `metadata` of the standard envelope.
const TYPED_METADATA: [&str; 5] = ["execution_time", "exit_code", "request_id", "version", "warnings"];
/// A larger answer has no types that a smaller one does not have.
const MAX_BYTES: usize = 8_000;

/// The places of the values in an answer that are neither lists nor objects.
fn collect_scalars(value: &Value, place: String, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_scalars(inner, format!("{place}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                collect_scalars(inner, format!("{place}/{index}"), found);
            }
        }
        Value::Null => {}
        _ => found.push(place),
    }
}

/// What is in this place, the same for each answer that has it: a key of an envelope, or a key of some object.
fn subject(kind: &str, place: &str) -> String {
    let parts: Vec<&str> = place.split('/').filter(|part| part.parse::<usize>().is_err()).collect();
    match parts.len() {
        ..=3 => format!("{kind} {}", parts.join("/")),
        length => parts[length - 2..].join("/"),
    }
}

/// Whether the type of an answer says what is in this place.
fn is_typed(kind: &str, place: &str) -> bool {
    let mut parts = place.split('/').skip(1);
    let is_declared = match (parts.next(), parts.next()) {
        (Some("meta"), Some(key)) => TYPED_META.contains(&key),
        (Some("metadata"), Some(key)) => TYPED_METADATA.contains(&key),
        (Some("data"), Some(_)) => !["t.RegistryInfoAnswer", STANDARD].contains(&kind),
        _ => true,
    };
    is_declared && !UNTYPED.iter().any(|part| place.contains(part))
}

/// Answers with a wrong value in one place, with a key that their data does not have, or without one of the keys of their
/// envelope: no values of their types. Each key is changed once.
pub(super) fn wrong(answers: &[TypedAnswer]) -> Vec<(String, Value)> {
    let (mut wrong, mut changed_subjects) = (Vec::new(), BTreeSet::new());
    for TypedAnswer { kind, value, .. } in
        answers.iter().filter(|answer| answer.value.to_string().len() < MAX_BYTES)
    {
        let mut change = |subject: String, change: &dyn Fn(&mut Value)| {
            if changed_subjects.insert(subject) {
                let mut changed = value.clone();
                change(&mut changed);
                wrong.push((kind.clone(), changed));
            }
        };
        let mut places = Vec::new();
        collect_scalars(value, String::new(), &mut places);
        for place in places.iter().filter(|place| is_typed(kind, place)) {
            change(subject(kind, place), &|answer| {
                let found = answer.pointer_mut(place).unwrap();
                *found = if found.is_string() { json!(5) } else { json!("no such value") };
            });
        }
        let head = kind.split('<').next().unwrap();
        for key in value.as_object().unwrap().keys().filter(|_| head != "t.Problem") {
            change(format!("{head} without {key}"), &|answer| {
                drop(answer.as_object_mut().unwrap().shift_remove(key))
            });
        }
        if kind.ends_with("Answer") && head != "t.RegistryInfoAnswer" && value.get("data").is_some() {
            change(format!("{head} with another key"), &|answer| answer["data"]["no_such_key"] = json!(1));
        }
    }
    wrong
}

/// What a complete answer must have, by its guard.
const REQUIRED: [(&str, &[&str]); 6] = [
    ("isExecutionAck", &["/data/task_id", "/data/accepted", "/data/capability", "/data/started_at"]),
    (
        "isWaitResult",
        &[
            "/meta/started_ts",
            "/meta/completed_ts",
            "/meta/duration_ms",
            "/data/task_id",
            "/data/state",
            "/data/summary",
            "/data/metadata",
        ],
    ),
    ("isStatusSnapshot", &["/meta/snapshot_ts", "/meta/total", "/data/summary"]),
    ("isResultSet", &["/meta/count", "/data/task_id", "/data/state", "/data/summary", "/data/metadata"]),
    ("isRegistryInfo", &["/data"]),
    ("isToolFailure", &["/error", "/error/code", "/error/message", "/error/retryable"]),
];
const REQUIRED_IN_EVERY_ENVELOPE: [&str; 8] =
    ["/version", "/schema_id", "/tool", "/tool_category", "/request_id", "/ts", "/status", "/meta"];

/// An answer without one of the parts that it must have, and with a list in its place.
pub(super) fn damaged(answer: &TypedAnswer) -> Vec<Value> {
    let (_, own) = REQUIRED.into_iter().find(|(guard, _)| Some(*guard) == answer.guard).unwrap();
    let mut damaged = Vec::new();
    for place in REQUIRED_IN_EVERY_ENVELOPE.iter().chain(own) {
        let (parent, key) = place.rsplit_once('/').unwrap();
        let mut changed = answer.value.clone();
        *changed.pointer_mut(place).unwrap() = json!([]);
        damaged.push(changed.clone());
        changed.pointer_mut(parent).unwrap().as_object_mut().unwrap().shift_remove(key);
        damaged.push(changed);
    }
    damaged
}
