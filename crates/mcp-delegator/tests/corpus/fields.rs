//! The fields truth is stated in, and where an answer has them.
//!
//! A field is read out of an answer in its plainest form: a list that may be absent is empty, places are file, line and
//! column, warnings are their codes. Texts of ours that callers act on (summaries, suggestions) are compared word by word.

use serde_json::{Map, Value, json};

use crate::run::Outputs;

pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// For the page.
    pub(crate) description: &'static str,
    pub(crate) location: Location,
}

/// Where it is found.
pub(crate) enum Location {
    /// In every answer about a task's end, `local run` included.
    Everywhere(fn(&Value) -> Value),
    /// In those of `wait` and `results`.
    Results(fn(&Value) -> Value),
    /// In all there is.
    Whole(fn(&Outputs) -> Value),
}

use Location::{Everywhere, Results, Whole};

const fn field(name: &'static str, means: &'static str, found: Location) -> Field {
    Field { name, description: means, location: found }
}

pub(crate) const FIELDS: &[Field] = &[
    field("state", "how the task ended", Everywhere(|told| at(told, "/data/state"))),
    field("summary", "our sentence about it, word by word", Everywhere(|told| at(told, "/data/summary"))),
    field("final_message", "the agent's last words", Everywhere(|told| at(told, "/data/final_message"))),
    field("modified_files", "seen to be changed", Everywhere(|told| operation(told, "modified_files"))),
    field("added_files", "seen to be new", Everywhere(|told| operation(told, "added_files"))),
    field("deleted_files", "seen to be gone", Everywhere(|told| operation(told, "deleted_files"))),
    field("renamed_files", "pairs of the two", Everywhere(|told| list(operation(told, "renamed_files")))),
    field("lines_added", "as git counts them", Everywhere(|told| operation(told, "lines_added"))),
    field("lines_deleted", "as git counts them", Everywhere(|told| operation(told, "lines_deleted"))),
    field("source", "who saw it: git or a scan", Everywhere(|told| operation(told, "source"))),
    field("scope", "whether all was looked at", Everywhere(|told| operation(told, "scope"))),
    field("artifacts", "path, size and SHA-256 of what was written", Results(artifacts)),
    field("commit_count", "commits the agent made", Results(|told| at(told, "/data/git/commit_count"))),
    field("commits", "their first lines, newest first", Results(|told| at(told, "/data/git/commits"))),
    field("branch_after", "where HEAD is afterwards", Results(|told| at(told, "/data/git/branch_after"))),
    field(
        "has_restore_point",
        "whether the state before can be brought back",
        Everywhere(|told| told.pointer("/data/restore_point/ref").is_some().into()),
    ),
    field(
        "test_results",
        "passed, failed, skipped, the failed ones by name; null where no test was counted",
        Everywhere(|told| at(told, "/data/metadata/test_results")),
    ),
    field(
        "has_error_context",
        "whether there is one",
        Everywhere(|told| at(told, CONTEXT).is_object().into()),
    ),
    field("failure_kind", "why it failed", Everywhere(|told| context(told, "failure_kind"))),
    field("error_type", "the kind of the error", Everywhere(|told| context(told, "error_type"))),
    field("error_message", "what the failure says", Everywhere(|told| context(told, "error_message"))),
    field(
        "failed_files",
        "files its commands complained about",
        Everywhere(|told| context(told, "failed_files")),
    ),
    field("error_locations", "file, line and column of each complaint", Everywhere(locations)),
    field("suggestions", "what could be done, word by word", Everywhere(|told| context(told, "suggestions"))),
    field("retry_at", "when it may be tried again", Everywhere(|told| context(told, "retry_at"))),
    field(
        "token_usage",
        "tokens of this task alone",
        Everywhere(|told| at(told, "/data/metadata/thread_info/token_usage")),
    ),
    field(
        "cache_hit_rate",
        "cached over all input tokens",
        Everywhere(|told| at(told, "/data/metadata/thread_info/cache_hit_rate")),
    ),
    field(
        "has_thread",
        "whether it can be resumed",
        Everywhere(|told| at(told, "/data/metadata/thread_info/thread_id").is_string().into()),
    ),
    field("structured_output", "the answer as JSON", Everywhere(|told| at(told, "/data/structured_output"))),
    field("violations", "paths of what breaks the output schema", Everywhere(violations)),
    field(
        "verification_status",
        "what the verify command found; null where none was asked for",
        Everywhere(|told| at(told, "/data/verification/status")),
    ),
    field(
        "verification_exit_code",
        "what it ended with",
        Everywhere(|told| at(told, "/data/verification/exit_code")),
    ),
    field("warnings", "their codes", Results(warnings)),
    field(
        "plan",
        "steps of the agent's plan, and which are done",
        Whole(|told| list(told.summary["plan"].clone())),
    ),
    field("run_exit", "the exit code of `local run`", Whole(|told| json!(told.run_exit))),
    field(
        "run_error",
        "what `local run` says of a failure: code, kind, file, line, column",
        Whole(run_error),
    ),
];

const CONTEXT: &str = "/data/metadata/error_context";

fn at(told: &Value, pointer: &str) -> Value {
    told.pointer(pointer).cloned().unwrap_or_default()
}

fn operation(told: &Value, name: &str) -> Value {
    at(told, &format!("/data/metadata/file_operations/{name}"))
}

fn context(told: &Value, name: &str) -> Value {
    at(told, &format!("{CONTEXT}/{name}"))
}

fn list(value: Value) -> Value {
    if value.is_null() { json!([]) } else { value }
}

fn select_keys(value: &Value, keys: &[&str]) -> Value {
    let kept = keys.iter().filter_map(|key| Some(((*key).to_owned(), value.get(*key)?.clone())));
    Value::Object(kept.collect::<Map<String, Value>>())
}

fn map_items(value: &Value, read: impl Fn(&Value) -> Value) -> Value {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(read).collect()
}

fn artifacts(told: &Value) -> Value {
    map_items(&told["data"]["artifacts"], |file| select_keys(file, &["ref", "size", "sha256", "not_hashed"]))
}

fn locations(told: &Value) -> Value {
    map_items(&context(told, "error_locations"), |place| select_keys(place, &["file", "line", "column"]))
}

fn violations(told: &Value) -> Value {
    sorted(map_items(&told["data"]["structured_output_violations"], |violation| violation["path"].clone()))
}

fn warnings(told: &Value) -> Value {
    sorted(map_items(&told["meta"]["warnings"], |warning| warning["code"].clone()))
}

fn sorted(list: Value) -> Value {
    let mut texts: Vec<String> = serde_json::from_value(list).expect("texts");
    texts.sort_unstable();
    json!(texts)
}

fn run_error(told: &Outputs) -> Value {
    let Some(error) = told.run.as_ref().and_then(|run| run.get("error")) else { return Value::Null };
    let mut kept = select_keys(&error["details"], &["failure_kind", "file", "line", "column"]);
    kept["code"] = error["code"].clone();
    kept
}

/// A statement about all that was said: these words are nowhere in it.
pub(crate) const NEVER_SHOWN: &str = "never_told";
