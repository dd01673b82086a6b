//! `cleanup-registry`: end what is stuck, forget what is old.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::ErrorCode;
use crate::registry::{CommandSpec, Danger, FormerName, Shape, Toolset};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupRegistry {
    /// Active for longer with no living supervisor is stuck
    #[serde(default = "one_hour")]
    #[schemars(range(min = 1, max = 31_536_000))]
    pub stuck_task_max_age_seconds: u32,
    /// Finished for longer is old
    #[serde(default = "one_day")]
    #[schemars(range(min = 1, max = 87_600))]
    pub old_task_max_age_hours: u32,
    /// Only say what would be done
    #[serde(default)]
    pub dry_run: bool,
}

fn one_hour() -> u32 {
    3600
}

fn one_day() -> u32 {
    24
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Action("registry_cleaned"),
    danger: Danger::Destructive,
    idempotent: true,
    toolset: Toolset::Registry,
    failures: &[ErrorCode::LockHeld],
    former_names: &[FormerName { path: &["cleanup"], code: ErrorCode::CommandRenamed }],
    ..CommandSpec::declare::<CleanupRegistry>(
        &["cleanup-registry"],
        "End tasks that are stuck and forget finished ones that are old",
    )
};
