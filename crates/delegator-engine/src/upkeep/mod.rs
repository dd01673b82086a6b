//! Keeping the registry in order, and removing what tasks leave in repositories.
//!
//! There is no daemon, so every process that is alive performs upkeep: waiting calls and servers every few
//! seconds, supervisors every half minute, every other call once. A pass touches nothing that a live process
//! owns: the lock of a task proves that its supervisor is gone.

pub(crate) mod background_process;
pub(crate) mod clean;
pub(crate) mod delivery;
mod delivery_content;
pub(crate) mod delivery_policy;
pub(crate) mod leftovers;
pub(crate) mod outbox;
pub(crate) mod queue_pause;
pub(crate) mod rescue;
pub(crate) mod retention;
mod retention_clock;
