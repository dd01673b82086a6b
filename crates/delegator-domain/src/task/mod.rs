//! Task types: id, lifecycle, end, sandbox mode, provider, queue conflicts, verification.

pub mod end;
pub mod id;
pub mod lifecycle;
pub mod mode;
pub mod provider;
pub mod queue;
pub mod verification;

pub use end::{ExitStatus, FailureKind, LimitKind, TaskEnd};
pub use id::{IdError, TaskId, TaskIdPrefix, TaskLocation};
pub use lifecycle::{State, Transition, TransitionError, transition};
pub use mode::{EnclosureChoice, EnvPolicy, EnvPolicyName, Mode, SandboxKind};
pub use provider::Provider;
pub use queue::{Claimant, Obstacle, WorkTree};
pub use verification::Verification;
