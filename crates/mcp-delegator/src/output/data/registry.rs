//! The data of the registry tools: environments, cleanup and cancellation.

use delegator_domain::environment::Environment;

use crate::output::data::batch::BatchResult;
use crate::output::documents::github_guide::GithubGuide;
use crate::output::prelude::*;

/// The data of the category; each command writes its own part.
#[derive(Debug, JsonSchema)]
pub struct RegistryInfo {
    #[serde(flatten)]
    pub environments: Option<EnvironmentList>,
    #[serde(flatten)]
    pub guide: Option<GithubGuide>,
    #[serde(flatten)]
    pub cleanup: Option<CleanupCounts>,
    #[serde(flatten)]
    pub cancelled: Option<CancelledTask>,
    #[serde(flatten)]
    pub batch: Option<BatchResult>,
}

#[serde_with::apply(Option => #[serde(skip_serializing_if = "Option::is_none")])]
#[derive(Debug, JsonSchema)]
pub struct RegistryMeta {
    pub count: Option<u64>,
    pub source: Option<String>,
    pub dry_run: Option<bool>,
    pub ack_ts: Option<UtcTime>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EnvironmentList {
    pub environments: Vec<EnvironmentData>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangedEnvironment {
    pub environment: EnvironmentData,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EnvironmentData {
    pub id: String,
    pub name: String,
    pub repository: String,
    pub tech_stack: String,
    #[schemars(extend("x-optional" = true))]
    pub provider: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

impl From<&Environment> for EnvironmentData {
    fn from(environment: &Environment) -> EnvironmentData {
        EnvironmentData {
            id: environment.id.clone(),
            name: environment.name.clone(),
            repository: environment.repo_url.clone(),
            tech_stack: environment.stack.clone(),
            provider: environment.provider.name(),
            created_at: environment.created_at.clone(),
        }
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cleanup {
    /// Nothing was changed; the other fields state what would be done.
    pub dry_run: bool,
    #[serde(flatten)]
    pub counts: CleanupCounts,
    pub leftovers: Leftovers,
    /// Task directories with results that are not in the registry; they are retained.
    pub unclaimed: Vec<String>,
    pub restore_points: RestorePointCounts,
    pub summary: String,
    /// Only if something could not be cleaned.
    #[serde(flatten)]
    pub batch: Option<BatchResult>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CleanupCounts {
    pub stuck_tasks: StuckTasks,
    pub old_tasks: OldTasks,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StuckTasks {
    pub found: usize,
    pub cleaned: usize,
    pub task_ids: Vec<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OldTasks {
    pub found: u64,
    pub deleted: u64,
    pub oldest_age_hours: Option<i64>,
}

/// Files that crashes left behind.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Leftovers {
    pub found: usize,
    pub removed_count: usize,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RestorePointCounts {
    pub retained_count: u64,
    pub dropped_count: usize,
    pub items: Vec<TaskRestorePoint>,
    pub dropped_items: Vec<TaskRestorePoint>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskRestorePoint {
    pub task_id: String,
    pub repository: String,
    #[serde(rename = "ref")]
    pub reference: String,
    pub reason: String,
    pub expires_ts: Option<UtcTime>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CancelledTask {
    pub operation: &'static str,
    pub task_id: String,
    pub state: &'static str,
    pub previous_state: &'static str,
    /// Processes that could not be killed.
    pub survivors: Vec<i32>,
    /// The tasks that followed it in a chain and were cancelled with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-optional" = true))]
    pub cancelled_followers: Vec<String>,
    /// Signals that were sent to the agent, in order.
    pub signals: Option<Vec<String>>,
    pub swept: Option<Swept>,
}

/// Processes that outlived the agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Swept {
    #[schemars(range(min = 1))]
    pub process_count: usize,
    /// Some of them needed SIGKILL.
    pub has_killed_processes: bool,
}
