//! The effective values as one typed struct: what the program reads.
//!
//! A field's serde name is its key in [`KEYS`](crate::KEYS); a test compares both lists and converts every
//! value that the table accepts. Checks, defaults and rights belong to the table: this struct only gives each
//! key its type.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::agents::AgentProtocol;
use delegator_domain::budget::{Budget, BudgetScope, Caps};
use delegator_domain::named_enum;
use delegator_domain::notification::{Channel, NotifyEvent, NotifyPlan, WebhookFormat};
use delegator_domain::task::{EnclosureChoice, Mode};
use serde::de::{Deserialize, Deserializer};

/// The value of every key. The table in `keys` describes them.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub codex_bin: PathBuf,
    pub max_concurrent: usize,
    #[serde(rename = "idle_timeout_sec", deserialize_with = "seconds")]
    pub idle_timeout: Duration,
    #[serde(rename = "hard_timeout_sec", deserialize_with = "seconds")]
    pub hard_timeout: Duration,
    #[serde(rename = "interrupt_grace_sec", deserialize_with = "seconds")]
    pub interrupt_grace: Duration,
    #[serde(rename = "terminate_grace_sec", deserialize_with = "seconds")]
    pub terminate_grace: Duration,
    pub idle_counts: IdleCounts,
    #[serde(rename = "answer_timeout_sec", deserialize_with = "seconds")]
    pub answer_timeout: Duration,
    #[serde(rename = "notified_answer_timeout_sec", deserialize_with = "seconds")]
    pub notified_answer_timeout: Duration,
    #[serde(rename = "call_budget_sec", deserialize_with = "seconds")]
    pub call_budget: Duration,
    pub max_mode: Mode,
    pub default_agent: Option<String>,
    default_mode: Mode,
    pub max_stream_bytes: u64,
    pub max_processes: usize,
    pub containment: Containment,
    pub enclosure: EnclosureChoice,
    pub niceness: u8,
    pub sweep_exempt: Vec<String>,
    pub allowed_roots: Vec<PathBuf>,
    pub hide_state_dir: HideStateDir,
    pub redact_names: Vec<String>,
    pub agents: BTreeMap<String, AgentSettings>,
    #[serde(rename = "retention_hours", deserialize_with = "hours")]
    pub retention: Duration,
    #[serde(rename = "restore_point_retention_hours", deserialize_with = "hours")]
    pub restore_point_retention: Duration,
    pub worktree_quota_bytes: u64,
    repositories: BTreeMap<PathBuf, RepositorySettings>,
    pub verify_unsandboxed: bool,
    #[serde(rename = "budget.task_tokens")]
    budget_task_tokens: Option<u64>,
    #[serde(rename = "budget.task_turns")]
    budget_task_turns: Option<u64>,
    #[serde(rename = "budget.task_cost_cents")]
    budget_task_cost_cents: Option<u64>,
    #[serde(rename = "budget.day_tokens")]
    budget_day_tokens: Option<u64>,
    #[serde(rename = "budget.day_turns")]
    budget_day_turns: Option<u64>,
    #[serde(rename = "budget.day_cost_cents")]
    budget_day_cost_cents: Option<u64>,
    #[serde(rename = "budget.day_running_sec")]
    budget_day_running_sec: Option<u64>,
    #[serde(rename = "budget.label")]
    budget_label: Option<String>,
    #[serde(rename = "budget.label_tokens")]
    budget_label_tokens: Option<u64>,
    #[serde(rename = "budget.label_turns")]
    budget_label_turns: Option<u64>,
    #[serde(rename = "budget.label_cost_cents")]
    budget_label_cost_cents: Option<u64>,
    #[serde(rename = "budget.label_running_sec")]
    budget_label_running_sec: Option<u64>,
    pub max_depth: u32,
    pub max_children: usize,
    #[serde(rename = "notify.command")]
    pub notify_command: Option<Vec<String>>,
    #[serde(rename = "notify.webhook")]
    pub notify_webhook: Option<SecretText>,
    #[serde(rename = "notify.webhook_format")]
    pub notify_webhook_format: WebhookFormat,
    #[serde(rename = "notify.webhook_secret_file")]
    pub notify_webhook_secret_file: Option<PathBuf>,
    #[serde(rename = "notify.desktop")]
    pub notify_desktop: bool,
    #[serde(rename = "notify.each_task")]
    notify_each_task: bool,
    #[serde(rename = "notify.on")]
    notify_on: Vec<String>,
    #[serde(rename = "notify.template")]
    pub notify_template: Option<String>,
    /// Read it with [`Config::database_url`](crate::Config::database_url), which considers the file, too.
    pub(crate) database_url: Option<SecretText>,
    pub(crate) database_url_file: Option<PathBuf>,
    #[serde(rename = "fleet_lease_sec", deserialize_with = "seconds")]
    pub fleet_lease: Duration,
    #[serde(rename = "fleet_heartbeat_sec", deserialize_with = "seconds")]
    pub fleet_heartbeat: Duration,
    #[serde(rename = "fleet_cutoff_sec", deserialize_with = "seconds")]
    pub fleet_cutoff: Duration,
    #[serde(rename = "fleet_retention_hours", deserialize_with = "hours")]
    pub fleet_retention: Duration,
    pub fleet_max_bytes: u64,
    pub toolsets: Vec<String>,
    pub tools: Vec<String>,
    pub exclude_tools: Vec<String>,
    pub read_only: bool,
    pub output_schemas: bool,
    pub default_format: ToolFormat,
    pub tool_prefix: String,
    /// Of the command line; `None`: whether a person reads decides.
    pub format: Option<Format>,
    /// `None`: the surface (CLI, file or MCP) decides.
    pub envelope: Option<Envelope>,
    pub log_level: String,
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    pub protocol: AgentProtocol,
    /// Program and arguments; empty for a built-in agent that keeps its own.
    #[serde(default)]
    pub command: Vec<String>,
    pub env: Vec<String>,
    #[serde(default)]
    pub unsandboxed: bool,
    #[serde(default)]
    pub state_dirs: Vec<PathBuf>,
    #[serde(default, rename = "linger_sec", deserialize_with = "seconds")]
    pub linger: Duration,
    pub tool_command: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositorySettings {
    pub worktree_setup: Option<String>,
    pub worktree_copy: Vec<String>,
}

impl Settings {
    /// The mode of a task that names none. A project may have lowered only `max_mode`.
    pub fn default_mode(&self) -> Mode {
        self.default_mode.min(self.max_mode)
    }

    /// The innermost repository that contains the directory. Both paths may have symbolic links.
    pub fn repository(&self, directory: &Path) -> Option<&RepositorySettings> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let directory = real(directory);
        let containing = self.repositories.iter().filter(|(path, _)| directory.starts_with(real(path)));
        containing.max_by_key(|(path, _)| real(path).components().count()).map(|(_, settings)| settings)
    }

    /// When and through which channels notifications are sent; `None` if no channel is configured.
    pub fn notify_plan(&self) -> Option<NotifyPlan> {
        let is_configured = |channel: &Channel| match channel {
            Channel::Command => self.notify_command.is_some(),
            Channel::Webhook => self.notify_webhook.is_some(),
            Channel::Desktop => self.notify_desktop,
        };
        let channels: Vec<Channel> = Channel::ALL.into_iter().filter(is_configured).collect();
        let on: Vec<NotifyEvent> =
            self.notify_on.iter().filter_map(|name| NotifyEvent::from_name(name)).collect();
        (!channels.is_empty() && !on.is_empty()).then_some(NotifyPlan {
            on,
            channels,
            each_task: self.notify_each_task,
        })
    }

    /// The budgets of a task with these labels; `task` are the limits that its caller wants for it alone.
    pub fn budgets(&self, task: Caps, labels: &BTreeMap<String, String>) -> Vec<Budget> {
        let configured = Caps {
            tokens: self.budget_task_tokens,
            turns: self.budget_task_turns,
            cost_cents: self.budget_task_cost_cents,
            running_sec: None,
        };
        let day = Caps {
            tokens: self.budget_day_tokens,
            turns: self.budget_day_turns,
            cost_cents: self.budget_day_cost_cents,
            running_sec: self.budget_day_running_sec,
        };
        let label = Caps {
            tokens: self.budget_label_tokens,
            turns: self.budget_label_turns,
            cost_cents: self.budget_label_cost_cents,
            running_sec: self.budget_label_running_sec,
        };
        let label_scope = self.budget_label.as_ref().and_then(|key| {
            let value = labels.get(key)?.clone();
            Some(BudgetScope::Label { key: key.clone(), value })
        });
        let task = (Some(BudgetScope::Task), configured.lower(task));
        [task, (Some(BudgetScope::Day), day), (label_scope, label)]
            .into_iter()
            .filter_map(|(scope, caps)| Some(Budget { scope: scope?, caps }))
            .filter(|budget| !budget.caps.is_empty())
            .collect()
    }
}

/// A text that debug output omits.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct SecretText(pub(crate) String);

impl SecretText {
    /// The text itself; it must not be logged or shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// What resets the idle timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleCounts {
    Activity,
    Output,
}

/// How the processes of a task are tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Containment {
    Auto,
    Subreaper,
}

/// The sandbox modes in which commands cannot read the state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HideStateDir {
    Never,
    ReadOnly,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolFormat {
    Markdown,
    Json,
}

named_enum! {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Format {
        Human = "human",
        Markdown = "markdown",
        Json = "json",
        Jsonl = "jsonl",
    }
}

impl Format {
    /// The format with this name, or with the name that other programs use.
    pub fn named(name: &str) -> Option<Format> {
        match name {
            "human" | "text" | "plain" | "table" => Some(Format::Human),
            "markdown" | "md" => Some(Format::Markdown),
            "json" => Some(Format::Json),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            _ => None,
        }
    }
}

named_enum! {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Envelope {
        Agent = "agent",
        Standard = "standard",
        Tool = "tool",
        /// The data alone, without an envelope.
        Raw = "raw",
    }
}

fn seconds<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    u64::deserialize(value).map(Duration::from_secs)
}

fn hours<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    u64::deserialize(value).map(|hours| Duration::from_secs(hours * 3600))
}

#[cfg(test)]
pub(crate) mod tests;
