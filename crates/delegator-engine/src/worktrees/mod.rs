//! The worktrees of isolated tasks: what is recorded about one, what changed in it, its removal, and the disk
//! space of all. The supervisor creates them (`supervise`), `changes` applies them.

pub(crate) mod content;
pub(crate) mod plan;
pub(crate) mod quota;
pub(crate) mod recorded;
