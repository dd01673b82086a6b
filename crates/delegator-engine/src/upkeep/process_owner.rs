//! Distinguishes supervisors of other tasks from processes that an agent left behind.
//!
//! An agent may delegate, too. The supervisor of that task becomes our child when its launcher exits, because we are the
//! nearest subreaper; a sweep must not kill it. A command line proves nothing, since an agent can copy it: it only names
//! the row to look up. A supervisor is the process whose pid, start time, boot and pid namespace are in that row.
//!
//! The row has no process until it is `working`. A process that claims to be its supervisor before that is undecided: the
//! sweep waits for the decision, for a bounded time.

use delegator_domain::task::{State, TaskId};
use delegator_registry::{Identity, Nonce, Registry};
use delegator_supervisor::process::{Owner, ProcessIdentity};

use crate::submit::detach::SUPERVISE;

/// The task that a process below the supervisor of `own` belongs to.
pub(crate) fn owner_of(registry: &Registry, own: &TaskId, pid: i32) -> Owner {
    let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let Some((id, nonce)) = parse_attempt(&cmdline).filter(|(id, _)| id != own) else {
        return Owner::ThisTask;
    };
    let Ok(Some(task)) = registry.get(&id) else { return Owner::ThisTask };
    if task.nonce.as_ref() != Some(&nonce) {
        return Owner::ThisTask;
    }
    match (task.state, &task.supervisor) {
        (State::Starting, _) => Owner::Undecided,
        // Also after the task has ended: its supervisor still starts the next tasks.
        (_, Some(supervisor)) if is_same_process(pid, supervisor) => Owner::AnotherTask,
        _ => Owner::ThisTask,
    }
}

fn is_same_process(pid: i32, recorded: &Identity) -> bool {
    ProcessIdentity::in_own_namespace(pid).is_some_and(|found| {
        found.pid.unsigned_abs() == recorded.pid
            && found.start_time == recorded.start_time
            && found.boot_id == recorded.boot_id
            && found.pid_namespace == recorded.pid_ns
    })
}

/// The attempt in the command line of a supervisor, which its launcher has, too.
fn parse_attempt(cmdline: &[u8]) -> Option<(TaskId, Nonce)> {
    let args: Vec<&[u8]> = cmdline.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
    let [_, mode, id, nonce] = args.as_slice() else { return None };
    let text = |arg| std::str::from_utf8(arg).ok();
    (text(mode)? == SUPERVISE)
        .then(|| Some((text(id)?.parse().ok()?, Nonce::from_text(text(nonce)?)?)))
        .flatten()
}

#[cfg(test)]
mod tests;
