//! A run as it is requested of any agent, and the plan that an agent makes of it. Pure.
//!
//! The task text goes to standard input and nowhere else.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use delegator_domain::task::{Mode, RunSettings};

use crate::conversation::{ConversationPlan, PermissionPolicy};
use crate::ending::EndingRecipe;
use crate::program::{Version, version_text};

/// Prepended to the task text of a preview.
pub(super) const PREVIEW_INSTRUCTION: &str = "This is a preview. Make a plan and do not act: read whatever you need, but do \
not change, create or delete files, and do not run commands that change anything. Answer with the steps you would \
take, the files you would touch and the risks you see.\n\nThe task:\n\n";

/// A task as passed to an agent. Values are validated before.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    pub task: String,
    /// Its working directory is canonical.
    pub run: RunSettings,
    pub output_schema: Option<PathBuf>,
    /// Value of the task marker, see [`crate::variables::task_marker`].
    pub marker: String,
    /// A directory its commands must not read; enforced where the agent supports it.
    pub denied_dir: Option<PathBuf>,
    /// Time between the first and the second signal that end the agent, where its ending has three.
    pub interrupt_grace: Duration,
    /// Time before SIGKILL.
    pub terminate_grace: Duration,
}

impl LaunchRequest {
    /// The task text, with an instruction in front of it for a preview.
    pub(super) fn prompt(&self) -> String {
        let prefix = if self.run.preview { PREVIEW_INSTRUCTION } else { "" };
        [prefix, &self.task].concat()
    }

    pub(super) fn read_output_schema(
        &self,
        max_bytes: u64,
        too_long: &'static str,
    ) -> Result<Option<String>, PlanError> {
        let Some(path) = &self.output_schema else { return Ok(None) };
        let unreadable = |_| PlanError::value("output_schema", "it could not be read");
        if path.metadata().map_err(unreadable)?.len() > max_bytes {
            return Err(PlanError::value("output_schema", too_long));
        }
        std::fs::read_to_string(path).map(Some).map_err(unreadable)
    }
}

/// What permission requests of the agent are decided by. `is_enforced`: we enclose it.
pub(super) fn permission_policy(run: &RunSettings, mode: Mode, is_enforced: bool) -> PermissionPolicy {
    let writable_roots = std::iter::once(&run.working_dir).chain(&run.add_dirs).cloned().collect();
    PermissionPolicy { mode, ask: run.ask, is_enforced, writable_roots }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchPlan {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(String, String)>,
    pub conversation: ConversationPlan,
    /// How it is ended by force.
    pub ending: EndingRecipe,
    /// How it is ended after its last turn, if it does not exit by itself.
    pub finish: EndingRecipe,
    /// How long it may wait for another message after its last turn.
    pub linger: Duration,
    /// The thread the agent must announce.
    pub expected_thread: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "codex {} does not support {feature}; install codex {} or newer",
        version_text(*version),
        version_text(*since)
    )]
    TooOld { version: Version, feature: &'static str, since: Version },
    #[error("{field} cannot be passed to {recipient}: {problem}")]
    Value { field: &'static str, recipient: &'static str, problem: &'static str },
    #[error("{} has no sandbox", program.display())]
    NoSandbox { program: PathBuf },
}

impl PlanError {
    pub(super) fn value(field: &'static str, problem: &'static str) -> PlanError {
        PlanError::Value { field, recipient: "the agent", problem }
    }

    /// The input that cannot be passed to the agent. `None` if the agent's program is the problem.
    pub fn input(&self) -> Option<&'static str> {
        match self {
            PlanError::Value { field, .. } => Some(field),
            PlanError::TooOld { .. } | PlanError::NoSandbox { .. } => None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A request without options.
    pub(in crate::agent) fn request() -> LaunchRequest {
        request_with(|_| {})
    }

    /// A request whose only options are those that `set` sets.
    pub(in crate::agent) fn request_with(set: impl FnOnce(&mut RunSettings)) -> LaunchRequest {
        let mut run = RunSettings { working_dir: "/home/dev/project".into(), ..RunSettings::default() };
        set(&mut run);
        LaunchRequest {
            task: "fix the tests".to_owned(),
            run,
            output_schema: None,
            marker: "T-local-0:0".to_owned(),
            denied_dir: None,
            interrupt_grace: Duration::ZERO,
            terminate_grace: Duration::ZERO,
        }
    }
}
