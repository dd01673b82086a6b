//! Suggests the intended input for an unknown name: by synonym, then by spelling.
//!
//! Models guess input names they know from other tools, such as `prompt` or `cwd`. A synonym is never
//! accepted as input; the error names the input that was probably intended.

use delegator_domain::similar_names;

use crate::input::validation::{FORMAT, OPTIONS};
use crate::spec::{InputSchema, Marker};

/// Inputs (most likely first) and their names in other tools.
const SYNONYMS: [(&[&str], &[&str]); 13] = [
    (
        &["task", "text"],
        &["prompt", "message", "instruction", "instructions", "query", "description", "goal"],
    ),
    (
        &["working_dir"],
        &["cwd", "dir", "directory", "path", "workdir", "workspace", "folder", "project", "repo"],
    ),
    (
        &["hard_timeout_sec", "timeout_sec"],
        &["timeout", "timeout_sec", "timeout_seconds", "timeout_ms", "max_seconds", "hard_timeout"],
    ),
    (&["mode"], &["sandbox", "sandbox_mode", "approval_policy", "permissions", "access"]),
    (&["thread_id"], &["thread", "session", "session_id", "conversation", "conversation_id"]),
    (&["task_id"], &["id", "task", "job", "job_id"]),
    (&["task_ids"], &["ids", "tasks"]),
    (&["async"], &["background", "detach"]),
    (&["reasoning_effort"], &["effort", "reasoning"]),
    (&["output_schema"], &["schema", "json_schema", "response_format"]),
    (&["env_id"], &["environment", "environment_id"]),
    (&["labels"], &["tags", "metadata"]),
    (&["max_output_bytes"], &["max_bytes", "max_output"]),
];

pub fn intended_input<'a>(name: &str, inputs: &'a InputSchema) -> Option<&'a str> {
    let row = |(ours, theirs): &(&'static [&'static str], &[&str])| theirs.contains(&name).then_some(*ours);
    let mut synonyms = SYNONYMS.iter().filter_map(row).flatten();
    let by_synonym = synonyms.find_map(|ours| inputs.names().find(|served| served == ours));
    by_synonym.or_else(|| similar_names::nearest(name, inputs.names()))
}

/// The frequently used inputs, for a message about an unknown name.
pub fn common_inputs(inputs: &InputSchema) -> String {
    let properties = &inputs.properties;
    let common = properties
        .iter()
        .filter(|property| !property.has(&Marker::Advanced))
        .map(|property| property.name.as_str());
    let options = properties.iter().any(|property| property.has(&Marker::Advanced)).then_some(OPTIONS);
    common.chain(options).chain([FORMAT]).collect::<Vec<_>>().join(", ")
}
