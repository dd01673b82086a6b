//! The settings of a run that its agent is started with.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::mode::{EnvPolicy, Mode};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    pub mode: Mode,
    /// Read-only, with the instruction to plan and not act.
    pub preview: bool,
    pub working_dir: PathBuf,
    pub model: Option<String>,
    pub profile: Option<String>,
    pub reasoning_effort: Option<String>,
    pub images: Vec<PathBuf>,
    pub add_dirs: Vec<PathBuf>,
    pub skip_git_repo_check: bool,
    /// Ask the user for each permission that the agent requests.
    pub ask: bool,
    #[serde(flatten)]
    pub env_policy: EnvPolicy,
    /// The thread to resume.
    pub resume: Option<String>,
}

impl RunSettings {
    /// The mode that the sandbox enforces.
    pub fn effective_mode(&self) -> Mode {
        if self.preview { Mode::ReadOnly } else { self.mode }
    }
}
