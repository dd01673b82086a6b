//! What is special about an agent: how it is found, started and cleaned up after.

pub mod codex;
pub mod environment;
pub mod leftovers;
pub mod locate;
pub mod probe;
pub mod project;
mod toml_text;
pub mod verification;
pub mod version;

pub use codex::{LaunchPlan, LaunchRequest, PlanError, plan};
pub use environment::{
    VariableRight, Variables, agent_environment, allowed_variables, task_marker, variable_right,
};
pub use locate::{LocateError, Located, locate};
pub use probe::{ProbeError, probe_sandbox, probe_version};
pub use project::ProjectTrust;
pub use verification::{Enclosure, VerifyPlan, VerifyRequest, verify_plan};
pub use version::CodexVersion;
