//! Telling supervisors of other tasks from what an agent left behind.
//!
//! An agent may delegate, too: the supervisor of that task comes to us when its launcher ends, because we are the nearest
//! subreaper. What a process says of itself proves nothing, since an agent can copy it: a supervisor is the process whose
//! pid, start time, boot and pid namespace the registry has. Its command line only says which row to look at.
//!
//! Before its row says `working` a supervisor is not recorded yet. A process that claims to be one is then undecided: the
//! sweep waits for the decision, for a bounded time.

use delegator_domain::task::{State, TaskId};
use delegator_registry::{Identity, Nonce, Registry};
use delegator_supervisor::process::{Owner, ProcessIdentity};

use crate::submit::detach::{LAUNCH, SUPERVISE};

/// To which task a process below the supervisor of `own` belongs.
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
        // Also after the end: it has yet to start its successors.
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

/// The attempt a command line names, if it is that of a supervisor or its launcher.
fn parse_attempt(cmdline: &[u8]) -> Option<(TaskId, Nonce)> {
    let args: Vec<&[u8]> = cmdline.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
    let [_, mode, id, nonce] = args.as_slice() else { return None };
    let text = |arg| std::str::from_utf8(arg).ok();
    [SUPERVISE, LAUNCH]
        .contains(&text(mode)?)
        .then(|| Some((text(id)?.parse().ok()?, Nonce::from_text(text(nonce)?)?)))
        .flatten()
}

#[cfg(test)]
mod tests;
