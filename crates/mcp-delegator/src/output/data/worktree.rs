//! The worktree of an isolated task.

use delegator_engine::{WorktreeInfo, WorktreeState};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorktreeData {
    /// The directory in which an isolated task works.
    #[schemars(extend("x-optional" = true))]
    pub worktree: String,
    #[schemars(extend("enum" = ["planned", "present", "applied", "discarded"], "x-optional" = true))]
    pub worktree_state: &'static str,
    /// Takes the changes, while the worktree exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_command: Option<String>,
}

impl From<&WorktreeInfo> for WorktreeData {
    fn from(worktree: &WorktreeInfo) -> WorktreeData {
        let is_present = worktree.state == WorktreeState::Present;
        WorktreeData {
            worktree: worktree.path.display().to_string(),
            worktree_state: worktree.state.name(),
            apply_command: is_present.then(|| format!("mcp-delegator apply {}", worktree.owner)),
        }
    }
}
