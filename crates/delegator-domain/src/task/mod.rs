//! Task types: chain, group and their combined end, id, lifecycle, end, sandbox mode, provider, queue
//! conflicts, verification.

pub mod chain;
pub mod combined_end;
pub mod end;
pub mod group;
pub mod id;
pub mod lifecycle;
pub mod mode;
pub mod queue;
pub mod verification;

pub use chain::{ChainOutcome, Follows, MAX_CHAIN_DEPTH, MAX_CHAIN_TASKS};
pub use combined_end::{EndCounts, EndedMember, combined_end};
pub use end::{ExitStatus, FailureKind, LimitKind, TaskEnd};
pub use group::{AttemptFacts, GroupId, GroupMember, MAX_ATTEMPTS, Recommendation, TestCounts, recommend};
pub use id::{IdError, Provider, TaskId, TaskIdPrefix, TaskLocation};
pub use lifecycle::{State, Transition, TransitionError, transition};
pub use mode::{EnclosureChoice, EnvPolicy, EnvPolicyName, Mode, SandboxKind};
pub use queue::{Claimant, Obstacle, WorkTree};
pub use verification::Verification;
