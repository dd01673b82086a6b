//! Restore points: what the record of a task and a repository say about them, and which are retained without
//! their task. The supervisor creates them (`supervise`), `changes` restores them.

pub(crate) mod lookup;
pub(crate) mod record;
pub(crate) mod retained;
