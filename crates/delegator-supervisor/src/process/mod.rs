//! Processes: identities, descendants, and signals that cannot reach the wrong process.

pub mod cgroup;
pub mod identity;
pub mod marks;
pub(crate) mod niceness;
mod socket_owner;
mod stat;
pub mod sweep;
pub(crate) mod tree;

pub use cgroup::{Cgroup, task_by_cgroup};
pub use identity::{ProcessHandle, ProcessIdentity};
pub use marks::task_by_marker;
pub use socket_owner::{SocketOwner, socket_owner};
pub use stat::{ProcessStat, read_stat, with_ancestors};
pub use sweep::{Leftover, SweepLimits, SweepReport, sweep_lost};
pub use tree::{Owner, OwnerLookup};
