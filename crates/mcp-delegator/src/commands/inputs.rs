//! Inputs that several commands share. Doc comments are the descriptions every surface shows.

use std::collections::BTreeMap;

use delegator_domain::history_rewriting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{ErrorCode, Problem, truncate_text};
use crate::views::structured_output;

/// Ids are the only part of a path a caller ever names, so their alphabet is closed.
pub const TASK_ID: &str = "^T-(local|cloud)-[0-9A-Za-z_-]{1,64}$";
pub const THREAD_ID: &str = "^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$";
/// Providers put slashes into names of models; no part of one is empty, `.` or `..`, so that none reads as a path.
pub const MODEL: &str = "^[0-9A-Za-z_@]([./]?[0-9A-Za-z_:@+-]){0,127}$";
/// Codex makes a file name of a profile's name.
pub const PLAIN_NAME: &str = "^[0-9A-Za-z_]([.]?[0-9A-Za-z_-]){0,63}$";
const ENVIRONMENT_VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

fn variable_names() -> Value {
    json!({"type": "string", "pattern": ENVIRONMENT_VARIABLE})
}

fn non_empty_strings() -> Value {
    json!({"type": "string", "minLength": 1})
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModeInput {
    #[default]
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

impl From<ModeInput> for delegator_domain::task::Mode {
    fn from(mode: ModeInput) -> Self {
        match mode {
            ModeInput::ReadOnly => delegator_domain::task::Mode::ReadOnly,
            ModeInput::WorkspaceWrite => delegator_domain::task::Mode::WorkspaceWrite,
            ModeInput::DangerFullAccess => delegator_domain::task::Mode::DangerFullAccess,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnvPolicy {
    #[default]
    InheritNone,
    InheritAll,
    AllowList,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    #[default]
    None,
    Worktree,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    Node,
    Python,
    Go,
    Rust,
}

/// What to do, and for whom it is kept: inputs of every command that accepts a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionInputs {
    /// What to do
    #[schemars(
        length(min = 1, max = 100_000),
        extend("x-positional" = true, "x-stdin" = true, "x-length" = true)
    )]
    pub task: String,
    /// The same key with the same input returns the first task instead of starting another
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), extend("x-advanced" = true, "x-length" = true))]
    pub idempotency_key: Option<String>,
    /// Labels to keep, show and filter by
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-advanced" = true, "default" = null))]
    pub labels: BTreeMap<String, String>,
    /// Accept a task that plainly asks to rewrite git history
    #[serde(default)]
    #[schemars(extend("x-advanced" = true))]
    pub allow_destructive_git: bool,
    /// Run beside another writing task in the same work tree
    #[serde(default)]
    #[schemars(extend("x-advanced" = true))]
    pub allow_parallel_writes: bool,
}

/// How an agent is run on this machine: inputs of run, exec and resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentInputs {
    /// Absolute path (default: current or the thread's)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<String>,
    /// Model, 1..128 chars (default: the agent's)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = MODEL))]
    pub model: Option<String>,
    /// Seconds without activity
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400), extend("x-default" = 300))]
    pub idle_timeout_sec: Option<u32>,
    /// Seconds in all
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400), extend("x-default" = 1200))]
    pub hard_timeout_sec: Option<u32>,
    /// Name of a configured agent (default codex)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), extend("x-unbuilt" = true))]
    pub agent: Option<String>,
    /// Where the agent works: the directory itself, or a git worktree of its own
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unbuilt" = true))]
    pub isolation: Option<Isolation>,
    /// A command, as a list of words, run by us in the agent's sandbox once it has completed, to check its work
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = non_empty_strings(), "x-advanced" = true, "x-words" = true, "default" = null))]
    pub verify: Vec<String>,
    /// JSON Schema of the final answer
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-advanced" = true))]
    pub output_schema: Option<Map<String, Value>>,
    /// Profile of the agent's own configuration
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = PLAIN_NAME), extend("x-advanced" = true))]
    pub profile: Option<String>,
    /// How hard the model shall think, in the agent's own words
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = PLAIN_NAME), extend("x-advanced" = true))]
    pub reasoning_effort: Option<String>,
    /// Absolute paths of images to show the agent
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = non_empty_strings(), "x-advanced" = true, "default" = null))]
    pub images: Vec<String>,
    /// Further directories the agent may write to, as absolute paths
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = non_empty_strings(), "x-advanced" = true, "default" = null))]
    pub add_dirs: Vec<String>,
    /// Run outside a git repository too
    #[serde(default)]
    #[schemars(extend("x-advanced" = true))]
    pub skip_git_repo_check: bool,
    /// What the commands the agent runs see of the environment
    #[serde(default)]
    #[schemars(extend("x-advanced" = true))]
    pub env_policy: EnvPolicy,
    /// Variables of the agent that its commands may see under allow-list
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = variable_names(), "x-advanced" = true, "default" = null))]
    pub env_allow_list: Vec<String>,
    /// Carry uncommitted changes into the worktree
    #[serde(default)]
    #[schemars(extend("x-advanced" = true, "x-unbuilt" = true))]
    pub carry_dirty: bool,
    /// Tokens the task may use
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000u64), extend("x-advanced" = true, "x-unbuilt" = true))]
    pub budget: Option<u64>,
    /// Keep what a task cut by a limit has done
    #[serde(default)]
    #[schemars(extend("x-advanced" = true, "x-unbuilt" = true))]
    pub salvage: bool,
    /// Keep the agent open for messages
    #[serde(default)]
    #[schemars(extend("x-advanced" = true, "x-unbuilt" = true))]
    pub live: bool,
    /// Task to start when this one completes
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100_000), extend("x-advanced" = true, "x-unbuilt" = true))]
    pub on_success: Option<String>,
    /// Task to start when this one fails
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100_000), extend("x-advanced" = true, "x-unbuilt" = true))]
    pub on_failure: Option<String>,
}

/// The one task a command is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskIdInput {
    /// The task
    #[schemars(regex(pattern = TASK_ID), extend("x-positional" = true))]
    pub task_id: String,
}

/// Which part of a list: inputs of every command that lists something small and known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Paging {
    /// Items per page (default all)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// Where to go on, from an earlier answer
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoInputs {}

/// Text that is going to an agent must say something.
pub fn check_task_text(input: &Value) -> Vec<Problem> {
    match input.get("task").and_then(Value::as_str) {
        Some(task) if task.trim().is_empty() => vec![
            Problem::new(ErrorCode::InvalidValue, "task", "must not be blank")
                .suggest(Some("Say what the agent shall do.")),
        ],
        _ => Vec::new(),
    }
}

/// A task that may write must not plainly ask for history to be thrown away, unless the caller says that it may.
fn history_rewrite_problem(input: &Value) -> Option<Problem> {
    let writes =
        matches!(input.get("mode").and_then(Value::as_str), Some("workspace-write" | "danger-full-access"));
    if !writes || input.get("allow_destructive_git") == Some(&Value::Bool(true)) {
        return None;
    }
    let found = history_rewriting::find(input.get("task")?.as_str()?)?;
    let problem = format!(
        "plainly asks for {} (\"{}\", at character {})",
        found.description,
        truncate_text(&found.phrase),
        found.position
    );
    let suggestion =
        format!("Instead, {}. If it is meant, set allow_destructive_git to true.", found.alternative);
    let mut problem = Problem::new(ErrorCode::PolicyBlocked, "task", problem).suggest(Some(suggestion));
    problem.context.insert("found".into(), truncate_text(&found.phrase).into());
    problem.context.insert("position".into(), found.position.into());
    Some(problem)
}

/// An answer can be held only to a schema that is one.
fn output_schema_problem(input: &Value) -> Option<Problem> {
    let unusable =
        structured_output::schema_problem(input.get("output_schema").filter(|given| given.is_object())?)?;
    let message = format!("is not a JSON Schema: {}", truncate_text(&unusable));
    let suggestion = "Give a JSON Schema that refers to nothing outside itself.";
    Some(Problem::new(ErrorCode::InvalidValue, "output_schema", message).suggest(Some(suggestion)))
}

/// Labels are printed, and filtered by on command lines.
pub fn check_labels(input: &Value) -> Vec<Problem> {
    let labels = input.get("labels").and_then(Value::as_object).into_iter().flatten();
    let problems = labels.filter_map(|(key, value)| {
        let has_control = |text: &str| text.chars().any(char::is_control);
        let problem = if key.is_empty() || key.starts_with('-') {
            "has a name that is empty or begins with -"
        } else if key.contains('=') {
            "has a name with = in it, which ends a name where labels are filtered by"
        } else if has_control(key) || value.as_str().is_some_and(has_control) {
            "has a control character in its name or value"
        } else {
            return None;
        };
        let field = format!("labels.{}", truncate_text(&key.escape_debug().to_string()));
        Some(Problem::new(ErrorCode::InvalidValue, field, problem))
    });
    problems.collect()
}

/// The rules between the inputs of one agent run.
pub fn check_agent_inputs(input: &Value) -> Vec<Problem> {
    let mut problems = check_task_text(input);
    problems.extend(check_labels(input));
    let allow_list = input.get("env_policy").and_then(Value::as_str) == Some("allow-list");
    let has_allow_list =
        input.get("env_allow_list").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    if has_allow_list && !allow_list {
        problems.push(
            Problem::new(
                ErrorCode::InvalidValue,
                "env_allow_list",
                "has no effect without env_policy allow-list",
            )
            .suggest(Some("Set env_policy to allow-list.")),
        );
    }
    problems.extend(history_rewrite_problem(input));
    problems.extend(output_schema_problem(input));
    match input.get("working_dir").and_then(Value::as_str) {
        Some(path) if !path.starts_with('/') => {
            problems.push(
                Problem::new(ErrorCode::InvalidValue, "working_dir", "must be an absolute path")
                    .value(path.into())
                    .suggest(Some("Give the path from the root, as in /home/me/project.")),
            );
        }
        _ => {}
    }
    problems
}
