//! Inputs shared by several commands.
//!
//! Doc comments of fields are the descriptions in help and MCP tools, so they are short and have no final
//! period.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delegator_config::built_in_default;
use delegator_domain::task::{EnvPolicyName, Mode, RunSettings, TaskId};
use delegator_engine::VerifyCommand;
use jiff::{Span, SpanRelativeTo, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{ErrorCode, Problem};
use crate::spec::Marker;

/// Ids become parts of file names, so their alphabet is closed.
const TASK_ID: &str = "^([TG]-[a-z]{5}-)?[0-9A-Za-z]{4,10}$";
pub const THREAD_ID: &str = "^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$";
/// Model names may contain slashes. No part may be empty, `.` or `..`, so that a model name is never a path.
pub const MODEL: &str = "^[0-9A-Za-z_@]([./]?[0-9A-Za-z_:@+-]){0,127}$";
/// Codex uses the profile name as a file name.
pub const PLAIN_NAME: &str = "^[0-9A-Za-z_]([.]?[0-9A-Za-z_-]){0,63}$";
const ENVIRONMENT_VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

fn variable_names() -> Value {
    json!({"type": "string", "pattern": ENVIRONMENT_VARIABLE})
}

fn non_empty_strings() -> Value {
    json!({"type": "string", "minLength": 1})
}

/// The schema of a [`VerifyCommand`], without a type: `validation` checks the forms, and the tool schema
/// names them.
fn commands(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"items": {"type": "string"}})
}

/// The schema of [`AgentNames`], without a type: `validation` checks the forms.
fn agent_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"items": {"type": "string", "minLength": 1, "maxLength": 64}})
}

/// The schema of a task that follows another, without a type: `validation` checks its forms.
fn follower(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

pub fn choices(names: impl IntoIterator<Item = &'static str>) -> Schema {
    let names: Vec<&str> = names.into_iter().collect();
    json_schema!({"type": "string", "enum": names})
}

pub fn run_modes(_: &mut SchemaGenerator) -> Schema {
    choices(Mode::NAMES.into_iter().chain(["preview"]))
}

/// Sandbox mode, or `preview`: the agent only plans and may only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    Preview,
    #[serde(untagged)]
    Sandbox(Mode),
}

impl Default for RunMode {
    fn default() -> RunMode {
        RunMode::Sandbox(Mode::default())
    }
}

impl RunMode {
    pub fn sandbox(self) -> Mode {
        match self {
            RunMode::Preview => Mode::ReadOnly,
            RunMode::Sandbox(mode) => mode,
        }
    }
}

pub fn default_number<const N: u32>() -> u32 {
    N
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    #[default]
    None,
    Worktree,
}

/// Inputs of every command that submits a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionInputs {
    /// Task text
    #[serde(skip_serializing)]
    #[schemars(
        length(min = 1, max = 100_000),
        extend("x-markers" = [Marker::Positional, Marker::Stdin, Marker::ShowsLength, Marker::SelfExplanatory])
    )]
    pub task: String,
    /// Repeating a call with the same key and input returns the first task instead of starting another
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::Advanced]))]
    pub idempotency_key: Option<String>,
    /// Labels, for display and filters
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-markers" = [Marker::Advanced], "default" = null))]
    pub labels: BTreeMap<String, String>,
    /// Accept a task text that asks to rewrite git history
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub allow_destructive_git: bool,
}

/// The agent of a task, or several in order of preference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AgentNames {
    One(String),
    Several(Vec<String>),
}

impl AgentNames {
    pub fn names(&self) -> &[String] {
        match self {
            AgentNames::One(name) => std::slice::from_ref(name),
            AgentNames::Several(names) => names,
        }
    }
}

/// A task that follows another one: its text, or some of its inputs. `validation` checks its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FollowerInput {
    Text(String),
    Task(FollowerTask),
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FollowerTask {
    pub task: Option<String>,
    pub review: Option<bool>,
    pub mode: Option<Mode>,
    pub agent: Option<AgentNames>,
    pub model: Option<String>,
    pub verify: Option<VerifyCommand>,
    pub on_success: Option<Box<FollowerInput>>,
    pub on_failure: Option<Box<FollowerInput>>,
}

impl FollowerInput {
    pub fn to_task(&self) -> FollowerTask {
        match self {
            FollowerInput::Text(text) => FollowerTask { task: Some(text.clone()), ..FollowerTask::default() },
            FollowerInput::Task(task) => task.clone(),
        }
    }
}

/// Agent settings: inputs of run, exec and resume.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentInputs {
    /// Directory (default: current or thread's)
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Path, Marker::SelfExplanatory]))]
    pub working_dir: Option<PathBuf>,
    /// Model (default: the agent's)
    #[schemars(regex(pattern = MODEL), extend("x-markers" = [Marker::SelfExplanatory]))]
    pub model: Option<String>,
    /// Idle limit in s
    #[schemars(range(min = 1, max = 86_400), extend("default" = built_in_default("idle_timeout_sec"), "x-markers" = [Marker::SelfExplanatory]))]
    pub idle_timeout_sec: Option<u32>,
    /// Hard limit in s
    #[schemars(range(min = 1, max = 86_400), extend("default" = built_in_default("hard_timeout_sec"), "x-markers" = [Marker::SelfExplanatory]))]
    pub hard_timeout_sec: Option<u32>,
    /// Agent (default: the thread's, or default_agent, or codex if installed); the next of a list runs if one cannot start or
    /// is out of usage
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "agent_names", extend("x-markers" = [Marker::Names, Marker::Advanced]))]
    pub agent: Option<AgentNames>,
    /// Where the agent works: in the directory itself, or in a git worktree of its own (a resumed task: in
    /// that of its thread)
    #[schemars(extend("x-markers" = [Marker::Advanced], "default" = Isolation::None))]
    pub isolation: Option<Isolation>,
    /// Branch, tag or commit that the worktree starts from (default: HEAD)
    #[schemars(length(min = 1, max = 250), extend("x-markers" = [Marker::Advanced]))]
    pub base: Option<String>,
    /// Check: sh line or words
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "commands", extend("x-markers" = [Marker::Command]))]
    pub verify: Option<VerifyCommand>,
    /// JSON Schema of the agent's final message
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub output_schema: Option<Map<String, Value>>,
    /// Profile in the agent's own configuration
    #[schemars(regex(pattern = PLAIN_NAME), extend("x-markers" = [Marker::Advanced]))]
    pub profile: Option<String>,
    /// Reasoning effort, passed to the agent unchanged
    #[schemars(regex(pattern = PLAIN_NAME), extend("x-markers" = [Marker::Advanced]))]
    pub reasoning_effort: Option<String>,
    /// Images to attach
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = non_empty_strings(), "x-markers" = [Marker::Path, Marker::Advanced], "default" = null))]
    pub images: Vec<PathBuf>,
    /// Additional directories the agent may write to
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = non_empty_strings(), "x-markers" = [Marker::Path, Marker::Advanced], "default" = null))]
    pub add_dirs: Vec<PathBuf>,
    /// Run in parallel with another writing task in the same work tree
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub allow_parallel_writes: bool,
    /// Allow running outside a git repository
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub skip_git_repo_check: bool,
    /// Create no restore point, and run where none can be created
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub no_restore_point: bool,
    /// Ask the user for each permission that the agent requests, instead of deciding by mode
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub ask: bool,
    /// Environment variables visible to the commands that the agent runs
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = EnvPolicyName::NAMES, "x-markers" = [Marker::Advanced], "default" = EnvPolicyName::default()))]
    pub env_policy: Option<EnvPolicyName>,
    /// Names of the visible variables for env_policy allow-list
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = variable_names(), "x-markers" = [Marker::Advanced], "default" = null))]
    pub env_allow_list: Vec<String>,
    /// Copy uncommitted and untracked changes into the worktree
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub carry_dirty: bool,
    /// Token limit of the task, input and output together
    #[schemars(range(min = 1), extend("x-markers" = [Marker::Advanced]))]
    pub budget: Option<u64>,
    /// Turn limit of the task, for agents that take messages
    #[schemars(range(min = 1, max = 1000), extend("x-markers" = [Marker::Advanced]))]
    pub max_turns: Option<u32>,
    /// Cost limit of the task in US cents, for agents that report it
    #[schemars(range(min = 1), extend("x-markers" = [Marker::Advanced]))]
    pub max_cost_cents: Option<u64>,
    /// Let the agent report what it has done if a limit ends its work
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub salvage: bool,
    /// Run the agent so that it takes messages and asks questions while it works: codex as codex-app-server
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::Advanced]))]
    pub live: bool,
    /// Task to start if this one succeeds: its text, or an object with task (or review: true), mode, agent,
    /// model, verify
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "follower", extend("x-markers" = [Marker::Advanced, Marker::Follower]))]
    pub on_success: Option<Box<FollowerInput>>,
    /// Task to start if this one fails or is not verified, in the same forms
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "follower", extend("x-markers" = [Marker::Advanced, Marker::Follower]))]
    pub on_failure: Option<Box<FollowerInput>>,
}

impl AgentInputs {
    /// The settings of a run with these inputs, except for its directory and thread.
    pub fn run_settings(&self, mode: RunMode, current_dir: &Path) -> RunSettings {
        let absolute = |paths: &[PathBuf]| paths.iter().map(|path| current_dir.join(path)).collect();
        RunSettings {
            mode: mode.sandbox(),
            preview: mode == RunMode::Preview,
            model: self.model.clone(),
            profile: self.profile.clone(),
            reasoning_effort: self.reasoning_effort.clone(),
            images: absolute(&self.images),
            add_dirs: absolute(&self.add_dirs),
            skip_git_repo_check: self.skip_git_repo_check,
            ask: self.ask,
            env_policy: self.env_policy.unwrap_or_default().with(self.env_allow_list.clone()),
            ..RunSettings::default()
        }
    }

    /// The inputs of a follower as if it had been submitted by itself.
    pub fn follower(&self, given: &FollowerTask) -> AgentInputs {
        let mut inputs = AgentInputs {
            verify: given.verify.clone(),
            output_schema: None,
            images: Vec::new(),
            on_success: None,
            on_failure: None,
            ..self.clone()
        };
        if given.agent.is_some() {
            inputs = AgentInputs {
                agent: given.agent.clone(),
                model: None,
                profile: None,
                reasoning_effort: None,
                live: false,
                salvage: false,
                env_policy: None,
                env_allow_list: Vec::new(),
                ..inputs
            };
        }
        inputs.model = given.model.clone().or(inputs.model);
        inputs
    }
}

// A task id or group id, or the beginning of one: the engine resolves it. No doc comment, which would be a
// description in the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TaskRef(#[schemars(regex(pattern = TASK_ID))] String);

impl TaskRef {
    /// The reference in a text that no schema has checked.
    pub fn from_text(text: &str) -> Option<TaskRef> {
        jsonschema::is_valid(&json!({"pattern": TASK_ID}), &json!(text)).then(|| TaskRef(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<TaskId> for TaskRef {
    fn from(id: TaskId) -> TaskRef {
        TaskRef(id.to_string())
    }
}

/// The task that a command refers to.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct TaskIdInput {
    /// Task id
    #[schemars(extend("x-markers" = [Marker::Positional, Marker::SelfExplanatory]))]
    pub task_id: TaskRef,
}

/// The time before which this much has passed, such as `7d` or `1h 30m`; a day has 24 hours.
pub fn since_ms(given: &str) -> Option<i64> {
    let span: Span = given.trim().parse().ok()?;
    let length =
        span.to_duration(SpanRelativeTo::days_are_24_hours()).ok().filter(|length| !length.is_negative())?;
    Timestamp::now().checked_sub(length).ok().map(Timestamp::as_millisecond)
}

pub fn since_problem(given: Option<&str>) -> Option<Problem> {
    let given = given.filter(|given| since_ms(given).is_none())?;
    let problem = Problem::invalid("since", "must be a duration").value(given.into());
    Some(problem.suggest(Some("Give for example 7d or 12h.")))
}

/// Whether a command that starts a task returns at once.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
pub struct DetachInput {
    /// Return at once, also on a terminal, where the command otherwise waits for the task
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::CommandLineOnly]))]
    pub detach: bool,
}

/// The problem of a destructive call without consent, for example because `the worktree is deleted`.
pub fn unconfirmed_removal(is_confirmed: bool, reason: &'static str, advice: &str) -> Vec<Problem> {
    if is_confirmed {
        return Vec::new();
    }
    let message = format!("must be true, because {reason}");
    let problem = Problem::new(ErrorCode::ConfirmationRequired, "confirm_destructive", message);
    vec![Problem { consent: Some(reason), ..problem.suggest(Some(advice)) }]
}

pub fn blank_task_problem(task: &str) -> Option<Problem> {
    task.trim().is_empty().then(|| {
        Problem::new(ErrorCode::InvalidValue, "task", "must not be blank")
            .value(task.into())
            .suggest(Some("Describe what the agent should do."))
    })
}
