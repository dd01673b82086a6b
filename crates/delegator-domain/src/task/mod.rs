//! Task types: chain, group and their combined end, id, lifecycle, end, sandbox mode, settings of a run,
//! provider, queue conflicts, verification.

pub mod chain;
pub mod end;
pub mod group;
pub mod id;
pub mod lifecycle;
pub mod mode;
pub mod queue;
pub mod run_settings;

pub use chain::{
    ChainOutcome, EndCounts, Follows, MAX_CHAIN_DEPTH, MAX_CHAIN_TASKS, Member, combined_end, worst_of_each,
};
pub use end::{EndKind, ExitStatus, FailureKind, LimitKind, TaskEnd, Verification};
pub use group::{GroupId, GroupMember, MAX_ATTEMPTS, RankedAttempt, Recommendation, TestCounts, recommend};
pub use id::{IdError, Provider, TaskId, TaskIdPrefix, TaskLocation};
pub use lifecycle::{State, Transition, TransitionError, transition};
pub use mode::{EnclosureChoice, EnvPolicy, EnvPolicyName, Mode, SandboxKind};
pub use queue::{Claimant, Obstacle, WorkTree};
pub use run_settings::RunSettings;
