//! The TypeScript types of the document, compared with the published schemas.
//!
//! A schema agrees with an interface if it refuses an answer without a required field, and one with a value of another type
//! in any field.

use serde_json::{Value, json};

use crate::assertions::{at, equals, valid, violations};
use crate::recorded::{COMPLETED, FAILED, LONG_OUTPUT, stage_with_agent};
use crate::row::{Section, works};

const JSON_ENVELOPE: &str = r#"
  version: string;
  schema_id: string;
  tool: string;
  tool_category:
    | "execution_ack"
    | "wait_result"
    | "status_snapshot"
    | "result_set"
    | "registry_info";
  request_id: string;
  ts: string;
  status: "ok" | "error";
  meta: Record<string, any>;
  data?: T;
  error?: JsonError;
"#;
const JSON_ERROR: &str = r#"
  code:
    | "TIMEOUT"
    | "VALIDATION"
    | "TOOL_ERROR"
    | "NOT_FOUND"
    | "UNSUPPORTED"
    | "INTERNAL";
  message: string;
  details?: Record<string, any>;
  retryable: boolean;
  duration_ms?: number;
"#;
const EXECUTION_ACK_DATA: &str = r#"
  task_id: string;
  thread_id?: string;
  accepted: boolean;
  capability: "background" | "foreground";
  expected_duration?: string;
  started_at: string;
"#;
const WAIT_RESULT_DATA: &str = r#"
  task_id: string;
  state: "completed" | "failed" | "cancelled" | "timeout";
  summary: string;
  metadata: EnhancedMetadata;
  artifacts?: Array<{
    type: string;
    ref: string;
    size: number;
    sha256?: string;
  }>;
  output?: {
    included: boolean;
    stdout?: string;
    stderr?: string;
    truncated: boolean;
    max_bytes: number;
    original_size?: number;
  };
"#;

struct Field {
    pointer: String,
    is_optional: bool,
    /// A name such as `string`, the values of a union, or the end of an opening line.
    kind: String,
}

/// The fields of an interface at `base`, those of nested types included.
fn fields(interface: &str, base: &str) -> Vec<Field> {
    let (mut bases, mut fields) = (vec![base.to_owned()], Vec::<Field>::new());
    for line in
        interface.lines().map(|line| line.trim().trim_end_matches(';')).filter(|line| !line.is_empty())
    {
        if line.starts_with('|') {
            fields.last_mut().unwrap().kind += line;
        } else if line.starts_with('}') {
            bases.pop();
        } else {
            let (name, kind) = line.split_once(':').unwrap();
            let pointer = format!("{}/{}", bases.last().unwrap(), name.trim_end_matches('?'));
            let element = if kind.contains("Array<") { "/0" } else { "" };
            if kind.ends_with('{') {
                bases.push(format!("{pointer}{element}"));
            }
            fields.push(Field { pointer, is_optional: name.ends_with('?'), kind: kind.trim().to_owned() });
        }
    }
    fields
}

/// Whether a value has the type of a field.
fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        union if union.contains('"') => union.contains(&value.to_string()),
        list if list.starts_with("Array<") => value.is_array(),
        _ => value.is_object(),
    }
}

/// Asserts that the schema of a category agrees with an interface. Each field is in one of the answers.
#[track_caller]
fn agrees(category: &str, interface: &str, base: &str, answers: &[&Value]) {
    let schema = stage_with_agent(&[]).run_json(&["schema", category]);
    for field in fields(interface, base) {
        let Field { pointer, kind, .. } = &field;
        let answer = answers.iter().find(|answer| answer.pointer(pointer).is_some());
        let answer = *answer.unwrap_or_else(|| panic!("no answer has {pointer}"));
        assert!(has_type(at(answer, pointer), kind), "{pointer} is no {kind} in {answer}");
        valid(&schema, answer);
        for other in [json!("no such value"), json!(-1), json!(true), json!({}), json!([])] {
            let mut changed = answer.clone();
            *changed.pointer_mut(pointer).unwrap() = other.clone();
            let is_refused = !violations(&schema, &changed).is_empty();
            assert!(is_refused || has_type(&other, kind), "{pointer} may be {other}, which is no {kind}");
        }
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut changed = answer.clone();
        changed.pointer_mut(parent).unwrap().as_object_mut().unwrap().shift_remove(name).unwrap();
        let is_refused = !violations(&schema, &changed).is_empty();
        assert!(is_refused || field.is_optional, "{pointer} may be absent, and is required");
    }
}

/// Asserts that the schema of a category refuses an answer with this change.
#[track_caller]
fn is_refused(category: &str, answer: &Value, pointer: &str, value: Option<Value>) {
    let schema = stage_with_agent(&[]).run_json(&["schema", category]);
    valid(&schema, answer);
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let mut changed = answer.clone();
    let object = changed.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => drop(object.insert(name.to_owned(), value)),
        None => drop(object.shift_remove(name).unwrap()),
    }
    assert!(!violations(&schema, &changed).is_empty(), "{changed}");
}

pub(crate) const SECTIONS: &[Section] = &[Section {
    heading: "TypeScript types and guards",
    rows: &[
        works(
            210,
            "The published schemas declare the types of `JsonEnvelope` and `JsonError`",
            "They refuse an answer without a required field, and one with a value of another type in any field",
            || {
                agrees("wait_result", JSON_ENVELOPE, "", &[&COMPLETED.wait, &error_of_wait()]);
                agrees("execution_ack", JSON_ERROR, "/error", &[&FAILED.run]);
            },
        ),
        works(
            211,
            "The published schemas declare the types of `ExecutionAckData` and `WaitResultData`",
            "The same; only `state` may be another text, because a wait can expire",
            || {
                let acks = [&COMPLETED.later_ack, &COMPLETED.run];
                agrees("execution_ack", EXECUTION_ACK_DATA, "/data", &acks);
                let waits = [&COMPLETED.wait_with_output, &LONG_OUTPUT.stdout_only];
                agrees("wait_result", WAIT_RESULT_DATA, "/data", &waits);
            },
        ),
        works(
            212,
            "`status` guards `data` and `error`; `if (data.tasks)` guards the list",
            "The schemas refuse `data` or no `error` in an error, the reverse in any other answer, and `tasks` that is null \
             or empty",
            || {
                is_refused("execution_ack", &FAILED.run, "/error", None);
                is_refused("execution_ack", &FAILED.run, "/data", Some(json!({})));
                is_refused("wait_result", &COMPLETED.wait, "/data", None);
                is_refused("wait_result", &COMPLETED.wait, "/error", Some(FAILED.run["error"].clone()));
                let status = stage_with_agent(&[]).run_json(&["local", "status", "--envelope", "tool"]);
                equals(&status, "/data/summary/running", 0);
                is_refused("status_snapshot", &status, "/data/tasks", Some(Value::Null));
                is_refused("status_snapshot", &status, "/data/tasks", Some(json!([])));
            },
        ),
    ],
}];

/// An error of the wait tool.
fn error_of_wait() -> Value {
    stage_with_agent(&[]).run_json(&["local", "wait", "T-local-0000000000", "--envelope", "tool"])
}
