//! What is specific to an agent: how its program is found, started and cleaned up after.

pub mod codex;
pub mod environment;
pub mod locate;
mod permissions;
pub mod probe;
pub mod project;
pub mod shell_snapshots;
mod toml_text;
pub mod verification;
pub mod version;

pub use codex::{LaunchPlan, LaunchRequest, PlanError, plan};
pub use environment::{
    VariableAccess, Variables, agent_environment, allowed_variables, task_marker, variable_access,
};
pub use locate::{LocateError, ProgramLocation, locate};
pub use permissions::Confinement;
pub use probe::{ProbeError, probe_sandbox, probe_version};
pub use project::ProjectTrust;
pub use verification::{Enclosure, VerifyPlan, VerifyRequest, verify_plan};
pub use version::CodexVersion;
