//! The fields that a case can state, and how each is read from an envelope.
//!
//! Values are normalised before they are compared: an absent list is empty, locations are file, line and column, warnings
//! are their codes. Our own texts that callers act on (summaries, suggestions) are compared literally.

use serde_json::{Map, Value, json};

use crate::run::Outputs;

pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// For `docs/reports/extraction.md`.
    pub(crate) description: &'static str,
    pub(crate) location: Location,
}

/// Which outputs contain the field.
pub(crate) enum Location {
    /// Every envelope of a finished task, including that of `local run`.
    Everywhere(fn(&Value) -> Value),
    /// The envelopes of `wait` and `results`.
    Results(fn(&Value) -> Value),
    /// All outputs together.
    Whole(fn(&Outputs) -> Value),
}

use Location::{Everywhere, Results, Whole};

const fn field(name: &'static str, means: &'static str, found: Location) -> Field {
    Field { name, description: means, location: found }
}

pub(crate) const FIELDS: &[Field] = &[
    field("state", "terminal state of the task", Everywhere(|output| at(output, "/data/state"))),
    field("summary", "our summary, compared literally", Everywhere(|output| at(output, "/data/summary"))),
    field(
        "final_message",
        "last message of the agent",
        Everywhere(|output| at(output, "/data/final_message")),
    ),
    field("modified_files", "changed files", Everywhere(|output| operation(output, "modified_files"))),
    field("added_files", "new files", Everywhere(|output| operation(output, "added_files"))),
    field("deleted_files", "deleted files", Everywhere(|output| operation(output, "deleted_files"))),
    field(
        "renamed_files",
        "pairs of old and new path",
        Everywhere(|output| list(operation(output, "renamed_files"))),
    ),
    field("lines_added", "as git counts them", Everywhere(|output| operation(output, "lines_added"))),
    field("lines_deleted", "as git counts them", Everywhere(|output| operation(output, "lines_deleted"))),
    field(
        "source",
        "how changes were found: git or a scan",
        Everywhere(|output| operation(output, "source")),
    ),
    field("scope", "whether all files were examined", Everywhere(|output| operation(output, "scope"))),
    field("artifacts", "path, size and SHA-256 of written files", Results(artifacts)),
    field("commit_count", "commits the agent made", Results(|output| at(output, "/data/git/commit_count"))),
    field("commits", "their first lines, newest first", Results(|output| at(output, "/data/git/commits"))),
    field("branch_after", "where HEAD is afterwards", Results(|output| at(output, "/data/git/branch_after"))),
    field(
        "has_restore_point",
        "whether a restore point exists",
        Everywhere(|output| output.pointer("/data/restore_point/ref").is_some().into()),
    ),
    field(
        "test_results",
        "passed, failed, skipped, names of failed tests; null if no test was counted",
        Everywhere(|output| at(output, "/data/metadata/test_results")),
    ),
    field(
        "has_error_context",
        "whether an error context exists",
        Everywhere(|output| at(output, CONTEXT).is_object().into()),
    ),
    field("failure_kind", "failure kind", Everywhere(|output| context(output, "failure_kind"))),
    field("error_type", "error type", Everywhere(|output| context(output, "error_type"))),
    field("error_message", "error message", Everywhere(|output| context(output, "error_message"))),
    field(
        "failed_files",
        "files named in command errors",
        Everywhere(|output| context(output, "failed_files")),
    ),
    field("error_locations", "file, line and column of each command error", Everywhere(locations)),
    field(
        "suggestions",
        "suggestions, compared literally",
        Everywhere(|output| context(output, "suggestions")),
    ),
    field("retry_at", "earliest retry time", Everywhere(|output| context(output, "retry_at"))),
    field(
        "token_usage",
        "tokens of this task alone",
        Everywhere(|output| at(output, "/data/metadata/thread_info/token_usage")),
    ),
    field(
        "cache_hit_rate",
        "cached over all input tokens",
        Everywhere(|output| at(output, "/data/metadata/thread_info/cache_hit_rate")),
    ),
    field(
        "has_thread",
        "whether the thread can be resumed",
        Everywhere(|output| at(output, "/data/metadata/thread_info/thread_id").is_string().into()),
    ),
    field(
        "structured_output",
        "final message as JSON",
        Everywhere(|output| at(output, "/data/structured_output")),
    ),
    field("violations", "paths that violate the output schema", Everywhere(violations)),
    field(
        "verification_status",
        "result of the verify command; null without one",
        Everywhere(|output| at(output, "/data/verification/status")),
    ),
    field(
        "verification_exit_code",
        "exit code of the verify command",
        Everywhere(|output| at(output, "/data/verification/exit_code")),
    ),
    field("warnings", "warning codes", Results(warnings)),
    field(
        "plan",
        "steps of the agent's plan, and which are completed",
        Whole(|output| list(output.summary["plan"].clone())),
    ),
    field("run_exit", "exit code of `local run`", Whole(|output| json!(output.run_exit))),
    field("run_error", "error of `local run`: code, kind, file, line, column", Whole(run_error)),
];

const CONTEXT: &str = "/data/metadata/error_context";

fn at(output: &Value, pointer: &str) -> Value {
    output.pointer(pointer).cloned().unwrap_or_default()
}

fn operation(output: &Value, name: &str) -> Value {
    at(output, &format!("/data/metadata/file_operations/{name}"))
}

fn context(output: &Value, name: &str) -> Value {
    at(output, &format!("{CONTEXT}/{name}"))
}

fn list(value: Value) -> Value {
    if value.is_null() { json!([]) } else { value }
}

fn select_keys(value: &Value, keys: &[&str]) -> Value {
    let selected = keys.iter().filter_map(|key| Some(((*key).to_owned(), value.get(*key)?.clone())));
    Value::Object(selected.collect::<Map<String, Value>>())
}

fn map_items(value: &Value, read: impl Fn(&Value) -> Value) -> Value {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(read).collect()
}

fn artifacts(output: &Value) -> Value {
    map_items(&output["data"]["artifacts"], |file| {
        select_keys(file, &["ref", "size", "sha256", "not_hashed"])
    })
}

fn locations(output: &Value) -> Value {
    map_items(&context(output, "error_locations"), |location| {
        select_keys(location, &["file", "line", "column"])
    })
}

fn violations(output: &Value) -> Value {
    sorted(map_items(&output["data"]["structured_output_violations"], |violation| violation["path"].clone()))
}

fn warnings(output: &Value) -> Value {
    sorted(map_items(&output["meta"]["warnings"], |warning| warning["code"].clone()))
}

fn sorted(list: Value) -> Value {
    let mut texts: Vec<String> = serde_json::from_value(list).expect("texts");
    texts.sort_unstable();
    json!(texts)
}

fn run_error(output: &Outputs) -> Value {
    let Some(error) = output.run.as_ref().and_then(|run| run.get("error")) else { return Value::Null };
    let mut fields = select_keys(&error["details"], &["failure_kind", "file", "line", "column"]);
    fields["code"] = error["code"].clone();
    fields
}

/// A pseudo field: these texts must not appear in any output.
pub(crate) const NEVER_SHOWN: &str = "never_shown";
