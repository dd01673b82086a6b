//! `cloud github-setup`: how to give an environment access to a repository.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::inputs::Stack;
use crate::registry::{CommandSpec, Danger, Shape, Toolset};

const REPOSITORY_URL: &str = r"^https://github\.com/[0-9A-Za-z_.-]+/[0-9A-Za-z_.-]+/?$";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GithubSetup {
    /// https://github.com/owner/name
    #[schemars(regex(pattern = REPOSITORY_URL), extend("x-positional" = true))]
    pub repo_url: String,
    /// What the repository is built with
    pub stack: Stack,
    /// Name for commits
    #[schemars(length(min = 1, max = 128))]
    pub git_user_name: String,
    /// Address for commits
    #[schemars(regex(pattern = r"^[^@\s]+@[^@\s]+$"))]
    pub git_user_email: String,
    /// The environment
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub env_id: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Three steps: token, environment, verification task.",
    shape: Shape::Show("guide"),
    danger: Danger::Safe,
    idempotent: true,
    toolset: Toolset::Cloud,
    ..CommandSpec::declare::<GithubSetup>(
        &["cloud", "github-setup"],
        "How to give an environment access to a repository",
    )
};
