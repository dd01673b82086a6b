//! Processes: identities, descendants, and signals that cannot reach the wrong process.

pub mod cgroup;
pub mod identity;
pub mod marks;
pub(crate) mod niceness;
mod stat;
pub mod sweep;
pub(crate) mod tree;

pub use cgroup::Cgroup;
pub use identity::{ProcessHandle, ProcessIdentity};
pub use stat::{ProcessStat, read_stat};
pub use sweep::{Leftover, Owner, OwnerLookup, SweepLimits, SweepReport, sweep_lost};
