//! A task of hosted Codex, as `codex cloud` shows it.

use delegator_domain::named_enum;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHostedTask {
    /// Id or label of the environment.
    pub environment: String,
    pub prompt: String,
    /// How often hosted Codex tries the task, 1 to 4 times; each attempt has its own diff.
    pub attempts: u8,
    /// The branch to start from. Without one Codex starts from `main`, whatever the repository's default
    /// branch is.
    pub branch: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedTaskRef {
    pub id: String,
    pub url: String,
}

named_enum! {
    /// `codex cloud` does not distinguish a queued task from a running one, or a cancelled task from a failed
    /// one. The names are those that `status` prints.
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum HostedState {
        Pending = "PENDING",
        /// Ended. Whether there is a diff says only the diff.
        Ready = "READY",
        /// Ended, and its diff was applied.
        Applied = "APPLIED",
        /// Failed or cancelled.
        Error = "ERROR",
    }
}

/// The size of a task's diff; all zero without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct DiffSize {
    pub files_changed: u64,
    pub lines_added: u64,
    pub lines_removed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct HostedTask {
    pub id: String,
    pub url: String,
    pub title: String,
    #[serde(rename = "status")]
    pub state: HostedState,
    /// RFC 3339.
    pub updated_at: String,
    pub environment_label: Option<String>,
    #[serde(rename = "summary")]
    pub diff_size: DiffSize,
    pub is_review: bool,
    pub attempt_total: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct HostedPage {
    pub tasks: Vec<HostedTask>,
    /// Where the next page begins; none on the last page.
    pub cursor: Option<String>,
}

/// The state of one task. Codex prints its age only, so there is no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedStatus {
    pub state: HostedState,
    pub title: String,
    /// Label of the environment, or its id if it has no label.
    pub environment: Option<String>,
    pub diff_size: DiffSize,
}
