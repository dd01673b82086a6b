//! The launch file: everything a supervisor needs to start a task as its submitter requested, with the
//! *submitter's* environment, umask and limits. It has the task text and the secrets to redact, is private to
//! the user and is removed as soon as the agent has its input.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::budget::Budget;
use delegator_domain::redact::Redactor;
use delegator_domain::task::{EnclosureChoice, LimitKind, Mode, RunSettings, TaskId, WorkTree};
use delegator_supervisor::agent::{Agent, AgentInput, LaunchRequest, VerifyCommand, task_marker};
use delegator_supervisor::enclosure::Mechanism;
use delegator_supervisor::process::Cgroup;
use delegator_transcript::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{EngineError, Result};
use crate::shared::format_version::{FormatVersion, encode};
use crate::shared::mount_alias::{primary_path, shown_below};
use crate::shared::work_tree::work_tree_of;
use crate::shared::worker_contact::WorkerContact;
use crate::worktrees::plan::WorktreePlan;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(flatten)]
    pub run: RunSettings,
    pub allowed_roots: Vec<PathBuf>,
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub no_restore_point: bool,
    pub answer_timeout_sec: u64,
    pub budgets: Vec<Budget>,
    /// Let the agent report if a limit ends its work.
    #[serde(default)]
    pub salvage: bool,
    /// Token usage of the resumed thread before this run.
    pub usage_before: Option<Usage>,
    pub limits: Limits,
    pub ending: Ending,
    pub max_stream_bytes: u64,
    pub max_processes: usize,
    pub sweep_exempt: Vec<String>,
    pub niceness: u8,
    /// Nesting depth: the number of tasks above this one.
    pub depth: u32,
    /// Run without a control group.
    pub without_group: bool,
    /// What may enclose an agent that has no sandbox of its own.
    #[serde(default)]
    pub enclosure: EnclosureChoice,
    /// Deny the agent's commands to read the state directory.
    pub hide_state_dir: bool,
    /// Directories besides the state directory in which no task may write: the user's configuration.
    pub protected: Vec<PathBuf>,
    /// Files and directories besides the state directory that an enclosed agent must not read.
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
    pub verify: Option<Verify>,
    /// Ends the task if the worker that runs it loses its contact with the fleet.
    pub worker_contact: Option<WorkerContact>,
    /// The worktree in which the task works; `run.working_dir` is in it.
    #[serde(default)]
    pub worktree: Option<WorktreePlan>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub idle_sec: u64,
    pub hard_sec: u64,
    /// Only output counts as activity for the idle limit.
    pub only_output_counts: bool,
}

impl Limits {
    pub fn of(self, kind: LimitKind) -> u64 {
        match kind {
            LimitKind::Idle => self.idle_sec,
            LimitKind::Hard => self.hard_sec,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub interrupt_grace_sec: u64,
    pub terminate_grace_sec: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    pub command: VerifyCommand,
    /// The user allows to run it without a sandbox if there is none.
    #[serde(rename = "may_be_open")]
    pub allow_unsandboxed: bool,
    /// Decided at submission.
    pub is_sandboxed: bool,
}

impl Verify {
    pub fn new(command: VerifyCommand, allow_unsandboxed: bool) -> Verify {
        Verify { command, allow_unsandboxed, is_sandboxed: false }
    }
}

/// An agent that did not run, although it came first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedAgent {
    pub agent: String,
    /// Redacted.
    pub reason: String,
}

/// The part of a launch file that depends on the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fallback {
    agent: Agent,
    enclosure: Option<Mechanism>,
    variables: Vec<(OsString, OsString)>,
    verify: Option<Verify>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) version: FormatVersion<1>,
    pub(crate) task: String,
    pub(crate) settings: Settings,
    /// Located once, at submission.
    pub(crate) agent: Agent,
    #[serde(default)]
    pub(crate) enclosure: Option<Mechanism>,
    /// Agents that may run instead of the first one if it cannot run, in this order.
    #[serde(default)]
    pub(crate) fallbacks: Vec<Fallback>,
    /// Agents that came first and could not even be found.
    #[serde(default)]
    pub(crate) skipped: Vec<SkippedAgent>,
    /// The id of the task whose changes it reviews.
    #[serde(default)]
    pub(crate) reviews: Option<String>,
    /// The id of an ended task whose report the prompt quotes.
    #[serde(default)]
    pub(crate) report_of: Option<String>,
    pub(crate) umask: u32,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) secrets: Vec<String>,
    /// Values of variables listed in `redact_names`: redacted whatever they look like.
    pub(crate) named_secrets: Vec<String>,
}

impl Launch {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        encode("write the launch file", self).map(String::into_bytes)
    }

    /// The supervisor replaces the names of directories and files by what it opened.
    pub(crate) fn request(&self, id: &TaskId, state_dir: &Path) -> LaunchRequest {
        let settings = &self.settings;
        LaunchRequest {
            task: self.task.clone(),
            run: RunSettings { add_dirs: settings.writable_dirs(), ..settings.run.clone() },
            output_schema: settings.output_schema.as_ref().map(|_| state_dir.join("output-schema")),
            marker: task_marker(id, settings.depth),
            denied_dir: self.denied_dir(state_dir),
            interrupt_grace: Duration::from_secs(settings.ending.interrupt_grace_sec),
            terminate_grace: Duration::from_secs(settings.ending.terminate_grace_sec),
        }
    }

    pub(crate) fn create_group(&self, id: &TaskId) -> Option<Cgroup> {
        if self.settings.without_group { None } else { Cgroup::create(id) }
    }

    pub(crate) fn redactor(&self) -> Redactor {
        let builder = self.secrets.iter().fold(Redactor::builder(), |builder, secret| builder.secret(secret));
        self.named_secrets.iter().fold(builder, |builder, secret| builder.named_secret(secret)).build()
    }

    /// Whether the agent, or one that may run instead of it, can write.
    pub(crate) fn may_write(&self) -> bool {
        let mode = self.settings.run.mode;
        self.agent.may_write(mode) || self.fallbacks.iter().any(|fallback| fallback.agent.may_write(mode))
    }

    /// Replaces the agent by the next one; false if there is none.
    pub(crate) fn use_next_agent(&mut self) -> bool {
        if self.fallbacks.is_empty() {
            return false;
        }
        let Fallback { agent, enclosure, variables, verify } = self.fallbacks.remove(0);
        (self.agent, self.enclosure, self.variables) = (agent, enclosure, variables);
        self.settings.verify = verify;
        true
    }

    pub(crate) fn from_bytes(task: &TaskId, bytes: &[u8]) -> Result<Launch> {
        serde_json::from_slice(bytes)
            .map_err(|error| EngineError::Launch { task: task.clone(), detail: error.to_string() })
    }
}

impl Fallback {
    pub(super) fn of(launch: Launch) -> Fallback {
        let Launch { agent, enclosure, variables, settings, .. } = launch;
        Fallback { agent, enclosure, variables, verify: settings.verify }
    }
}

impl Settings {
    pub fn plain(mode: Mode, working_dir: PathBuf) -> Settings {
        Settings {
            run: RunSettings { mode, working_dir, ..RunSettings::default() },
            answer_timeout_sec: 300,
            limits: Limits { idle_sec: 300, hard_sec: 1200, only_output_counts: false },
            ending: Ending { interrupt_grace_sec: 5, terminate_grace_sec: 5 },
            max_stream_bytes: 64 << 20,
            max_processes: 4096,
            niceness: 10,
            hide_state_dir: mode == Mode::ReadOnly,
            ..Settings::default()
        }
    }

    /// The directories besides the working directory in which the agent may write.
    pub(crate) fn writable_dirs(&self) -> Vec<PathBuf> {
        self.run.add_dirs.iter().cloned().chain(self.commit_dirs()).collect()
    }

    /// What git writes when the agent commits in its worktree.
    pub(crate) fn commit_dirs(&self) -> Vec<PathBuf> {
        match &self.worktree {
            Some(plan) if self.run.effective_mode() == Mode::WorkspaceWrite => plan.worktree.commit_dirs(),
            _ => Vec::new(),
        }
    }

    /// The distinct trees that a task works in, by their primary paths; that of its working directory first.
    /// A task that cannot write has only that one.
    pub(super) fn work_trees(&self, may_write: bool) -> Vec<WorkTree> {
        let mut trees = vec![match &self.worktree {
            // It may not exist yet.
            Some(plan) => WorkTree::linked(plan.worktree.path.clone()),
            None => work_tree_of(&self.run.working_dir),
        }];
        if may_write {
            trees.extend(self.run.add_dirs.iter().map(|directory| work_tree_of(directory)));
            let shown: Vec<PathBuf> = trees.iter().flat_map(|tree| shown_below(tree.root())).collect();
            trees.extend(shown.into_iter().map(WorkTree::directory));
        }
        let mut distinct = Vec::new();
        for tree in trees {
            let root = primary_path(tree.root());
            let tree = if tree.is_linked() { WorkTree::linked(root) } else { WorkTree::directory(root) };
            if !distinct.contains(&tree) {
                distinct.push(tree);
            }
        }
        distinct
    }

    /// Our own directory that contains `path` or is inside of it.
    pub(super) fn reserved_overlap(&self, path: &Path, state_dir: &Path) -> Option<PathBuf> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let own = self.protected.iter().map(PathBuf::as_path).chain([state_dir]).map(real);
        own.into_iter().find(|own| own.starts_with(path) || path.starts_with(own))
    }

    pub(crate) fn run_limits(&self) -> delegator_supervisor::run::Limits {
        delegator_supervisor::run::Limits {
            idle: Duration::from_secs(self.limits.idle_sec),
            hard: Duration::from_secs(self.limits.hard_sec),
            only_output_counts: self.limits.only_output_counts,
        }
    }

    pub(crate) fn is_given(&self, input: AgentInput) -> bool {
        match input {
            AgentInput::OutputSchema => self.output_schema.is_some(),
            AgentInput::Salvage => self.salvage,
            other => other.is_set_in(&self.run),
        }
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::{EnvPolicy, TaskLocation};
    use serde_json::json;

    use super::*;

    fn launch(settings: Settings) -> Launch {
        Launch {
            version: FormatVersion,
            task: "do it".to_owned(),
            settings,
            agent: Agent::built_in("/bin/true", None),
            enclosure: Some(Mechanism::Landlock),
            fallbacks: Vec::new(),
            skipped: Vec::new(),
            reviews: None,
            report_of: None,
            umask: 0o022,
            variables: Vec::new(),
            secrets: Vec::new(),
            named_secrets: Vec::new(),
        }
    }

    #[test]
    fn a_launch_file_is_read_as_it_was_written() {
        let id = TaskId::from_random(TaskLocation::Local, [7; 16]);
        let listed = EnvPolicy::AllowList(vec!["CI".to_owned()]);
        for env_policy in [EnvPolicy::InheritNone, EnvPolicy::InheritAll, listed] {
            let schema = Some(json!({"maximum": 1.5, "enum": [1, null]}));
            let mut settings = Settings::plain(Mode::WorkspaceWrite, "/p".into());
            (settings.run.env_policy, settings.output_schema) = (env_policy, schema);
            let launch = launch(settings);
            assert_eq!(Launch::from_bytes(&id, &launch.to_bytes().unwrap()).unwrap(), launch);
        }
    }

    #[test]
    fn unknown_modes_and_policies_are_errors() {
        let id = TaskId::from_random(TaskLocation::Local, [7; 16]);
        let launch = launch(Settings::plain(Mode::DangerFullAccess, "/p".into()));
        let stored = serde_json::to_value(&launch).unwrap();
        assert_eq!(
            (&stored["settings"]["mode"], &stored["version"]),
            (&json!("danger-full-access"), &json!(1))
        );
        assert_eq!(stored["settings"]["env_policy"], "inherit-none");
        assert_eq!(stored["settings"]["env_allow_list"], json!([]));
        for (pointer, unknown) in [
            ("/settings/mode", json!("sudo")),
            ("/settings/env_policy", json!("all")),
            ("/version", json!(2)),
        ] {
            let mut changed = stored.clone();
            *changed.pointer_mut(pointer).unwrap() = unknown;
            let read = Launch::from_bytes(&id, changed.to_string().as_bytes());
            assert!(matches!(read, Err(EngineError::Launch { .. })), "{pointer}: {read:?}");
        }
    }
}
