//! Distinguishes supervisors of other tasks from processes that an agent left behind.
//!
//! An agent may delegate, too. The supervisor of that task becomes our child when its launcher exits, because we are the
//! nearest subreaper; a sweep must not kill it. A command line proves nothing, since an agent can copy it: it only names
//! the row to look up. A supervisor is the process whose pid, start time, boot and pid namespace are in that row.
//!
//! The row has no process until it is `working`. A process that claims to be its supervisor before that is undecided: the
//! sweep waits for the decision, for a bounded time.

use delegator_domain::task::{State, TaskId};
use delegator_registry::Registry;
use delegator_supervisor::process::Owner;

use crate::submit::caller::{attempt_of, is_supervisor};

/// The task that a process below the supervisor of `own` belongs to.
pub(crate) fn owner_of(registry: &Registry, own: &TaskId, pid: i32) -> Owner {
    let Some((id, nonce)) = attempt_of(pid).filter(|(id, _)| id != own) else {
        return Owner::ThisTask;
    };
    let Ok(Some(task)) = registry.get(&id) else { return Owner::ThisTask };
    match task.state {
        State::Starting if task.nonce.as_ref() == Some(&nonce) => Owner::Undecided,
        // Also after the task has ended: its supervisor still starts the next tasks.
        _ if is_supervisor(pid, &task, &nonce) => Owner::AnotherTask,
        _ => Owner::ThisTask,
    }
}

#[cfg(test)]
mod tests;
