//! A request to run a task, with its followers, and the checks that need nothing else.

use std::collections::BTreeMap;

use delegator_domain::task::{ChainOutcome, EnvPolicy, Mode, SandboxKind, TaskId};
use delegator_registry::Idempotency;
use delegator_supervisor::agent::{Agent, VariableAccess, Variables, variable_access};
use serde_json::Value;

use super::launch_file::{Settings, SkippedAgent};
use super::nesting::{Nesting, check_mode, writable_roots};
use crate::error::{EngineError, Result};

/// Values are validated; directories, files and limits are checked at submission.
#[derive(Debug, Clone)]
pub struct Submission {
    pub text: String,
    pub settings: Settings,
    pub agent: Agent,
    /// Agents that may run instead if it cannot run, in this order.
    pub fallbacks: Vec<AgentChoice>,
    /// Agents that came first and could not even be found.
    pub skipped: Vec<SkippedAgent>,
    pub max_mode: Mode,
    /// The complete environment of the submitter.
    pub environment: Variables,
    /// Names of variables that the user's configuration passes to the agent, or marks as secret.
    pub passed_variables: Vec<String>,
    pub secret_names: Vec<String>,
    pub umask: u32,
    /// The first line of the text, redacted.
    pub title: String,
    pub labels: BTreeMap<String, String>,
    /// The validated input without the text, for display and for retries.
    pub input: Value,
    pub allow_parallel_writes: bool,
    pub nesting: Nesting,
    pub idempotency: Option<Idempotency>,
    pub isolation: Isolation,
    pub reviews: Option<Reviewed>,
    /// An ended task whose report is added to the prompt, besides that of the predecessor.
    pub report_of: Option<TaskId>,
    pub followers: Vec<Follower>,
}

/// A task that starts when the one it follows has ended with this outcome.
#[derive(Debug, Clone)]
pub struct Follower {
    pub on: ChainOutcome,
    pub submission: Submission,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    Task(TaskId),
    /// The task that the review follows.
    Predecessor,
}

#[derive(Debug, Clone)]
pub struct AgentChoice {
    pub agent: Agent,
    pub passed_variables: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Isolation {
    /// In the directory of the user.
    #[default]
    None,
    /// In a worktree of its own.
    New(WorktreeRequest),
    /// In the worktree that was created for another task.
    Of(TaskId),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeRequest {
    /// A branch, tag or commit; `None`: HEAD.
    pub base: Option<String>,
    /// With the uncommitted and untracked changes of the user.
    pub carry_dirty: bool,
    /// Patterns of untracked files to copy from the user's work tree.
    pub copy: Vec<String>,
    pub setup: Option<String>,
}

impl Submission {
    /// A caller may select among the variables that the agent gets, but may not add any.
    pub(super) fn check_variables(&self) -> Result<()> {
        let EnvPolicy::AllowList(names) = &self.settings.run.env_policy else { return Ok(()) };
        for name in names {
            match variable_access(self.agent.kind(), name, &self.passed_variables) {
                VariableAccess::Passed => {}
                right => {
                    let agent = self.agent.name.clone();
                    return Err(EngineError::VariableNotAllowed { agent, name: name.clone(), right });
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_capabilities(&self) -> Result<()> {
        let (agent, settings) = (|| self.agent.name.clone(), &self.settings);
        let capabilities = self.agent.capabilities();
        if settings.run.resume.is_some() && !capabilities.threads {
            return Err(EngineError::NoThreads { agent: agent() });
        }
        let unsupported = capabilities.unsupported_inputs.iter().find(|input| settings.is_given(**input));
        unsupported.map_or(Ok(()), |input| {
            Err(EngineError::UnsupportedInput { agent: agent(), input: input.name() })
        })
    }

    /// Refuses rights that the parent does not have. The directories are resolved.
    pub(super) fn check_rights(&mut self) -> Result<()> {
        let Some(parent) = self.nesting.parent.as_ref().and_then(|parent| parent.task.clone()) else {
            return Ok(());
        };
        let mode = self.settings.run.effective_mode();
        check_mode(&parent, mode)?;
        let exceeds = |right| Err(EngineError::ExceedsParent { parent: parent.id.clone(), right });
        if parent.sandbox.is_none_or(SandboxKind::enforces_mode) {
            if let Some(open) = self.per_agent().find(|it| !it.agent.sandbox(mode).enforces_mode()) {
                return exceeds(format!("to run {} without a sandbox", open.agent.name));
            }
            if let Some(verify) = &mut self.settings.verify {
                verify.allow_unsandboxed = false;
            }
        }
        let roots = writable_roots(&parent);
        let mut directories = self.settings.run.add_dirs.iter().chain([&self.settings.run.working_dir]);
        let outside = directories.find(|directory| !roots.iter().any(|root| directory.starts_with(root)));
        match outside {
            Some(outside) if mode == Mode::WorkspaceWrite && parent.mode == mode => {
                exceeds(format!("to write in {}", outside.display()))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn per_agent(&self) -> impl Iterator<Item = Submission> + '_ {
        let choice = |choice: &AgentChoice| Submission {
            agent: choice.agent.clone(),
            passed_variables: choice.passed_variables.clone(),
            fallbacks: Vec::new(),
            ..self.clone()
        };
        std::iter::once(self.clone()).chain(self.fallbacks.iter().map(choice))
    }
}
