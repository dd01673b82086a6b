//! Decides which task a process belongs to: that of the nearest supervisor above it, else that of its cgroup,
//! else that of the marker in its environment, which alone the process itself can remove.
//!
//! A supervisor is the process whose pid, start time, boot and pid namespace are in the row of its task. A
//! command line only names the row to look up, since an agent can copy it.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;

use delegator_domain::task::{State, TaskId};
use delegator_registry::{Identity, Nonce, Registry, Task};
use delegator_supervisor::process::{
    Owner, ProcessIdentity, SocketOwner, socket_owner, task_by_cgroup, task_by_marker, with_ancestors,
};

use crate::Engine;
use crate::error::Result;

/// The argument that makes this program deliver notifications.
pub const DELIVER: &str = "deliver-notifications";

/// The argument that makes this program the launcher of a supervisor, and then the supervisor.
pub const SUPERVISE: &str = "supervise";

/// The key of the parent in the stored input.
pub(crate) const PARENT: &str = "parent_task_id";

/// More tasks above each other than any configuration allows.
const MAX_LINEAGE: usize = 1_000;

#[derive(Debug, Clone, PartialEq)]
pub struct CallerTask {
    pub id: TaskId,
    /// The number of tasks above it.
    pub depth: u32,
    /// `None` if this state directory does not have it.
    pub task: Option<Task>,
    /// The tasks above it, nearest first.
    parents: Vec<TaskId>,
}

impl CallerTask {
    pub fn is_inside(&self, id: &TaskId) -> bool {
        self.id == *id || self.parents.contains(id)
    }
}

/// The task whose agent called this process; `None` if the user did.
pub fn own_task(engine: &Engine) -> Result<Option<CallerTask>> {
    task_of(engine, rustix::process::getpid().as_raw_nonzero().get())
}

/// Whether the process at the other end of a connection belongs to a task, or may do so. A server that an
/// agent started has the rights of its task, so it may serve this task.
pub fn is_peer_in_task(engine: &Engine, peer: SocketAddr, own: SocketAddr) -> Result<bool> {
    let own_task = own_task(engine)?.map(|task| task.id);
    let is_in_task = |pid: i32| {
        let found = task_of(engine, pid)?;
        Ok(found.is_some_and(|found| Some(found.id) != own_task) || with_ancestors(pid).is_none())
    };
    match socket_owner(peer, own) {
        SocketOwner::Remote => Ok(false),
        SocketOwner::Process(pid) => is_in_task(pid),
        SocketOwner::Closed => Ok(true),
        SocketOwner::Hidden(candidates) if candidates.is_empty() => Ok(true),
        SocketOwner::Hidden(candidates) => {
            candidates.into_iter().try_fold(false, |found, pid| Ok(found || is_in_task(pid)?))
        }
    }
}

fn task_of(engine: &Engine, pid: i32) -> Result<Option<CallerTask>> {
    // Most processes belong to no task, and then the registry is not needed.
    let find = |id: &TaskId| -> Result<Option<Task>> {
        let Some(registry) = engine.find_registry()? else { return Ok(None) };
        Ok(registry.get(id)?)
    };
    let marker = task_by_marker(pid);
    let (id, task) = match nearest_supervisor(engine, pid, &find)? {
        Found::Task(task) => (task.id.clone(), Some(*task)),
        Found::Delivery => return Ok(None),
        Found::Nothing(elsewhere) => {
            let id = task_by_cgroup(pid).or(elsewhere).or(marker.as_ref().map(|(id, _)| id.clone()));
            let Some(id) = id else { return Ok(None) };
            let task = find(&id)?;
            (id, task)
        }
    };
    let parents = parents_of(task.as_ref(), &find)?;
    let known = u32::try_from(parents.len()).unwrap_or(u32::MAX);
    let marked = marker.filter(|(marked, _)| *marked == id).map_or(0, |(_, depth)| depth);
    Ok(Some(CallerTask { id, depth: known.max(marked), task, parents }))
}

type FindTask<'a> = &'a dyn Fn(&TaskId) -> Result<Option<Task>>;

enum Found {
    Task(Box<Task>),
    /// The user's own programs, which get notifications; or the supervisor of an ended task, which starts them.
    Delivery,
    /// No supervisor of this state directory, but perhaps one of another.
    Nothing(Option<TaskId>),
}

fn nearest_supervisor(engine: &Engine, pid: i32, find: FindTask<'_>) -> Result<Found> {
    let mut elsewhere = None;
    for ancestor in with_ancestors(pid).unwrap_or_default() {
        if is_delivery_process(ancestor, || recorded_delivery(engine)) {
            return Ok(Found::Delivery);
        }
        let Some((id, nonce)) = claim_of(ancestor) else { continue };
        match find(&id)? {
            Some(task) if is_supervisor(ancestor, &task, &nonce) => {
                return Ok(if task.state.is_terminal() {
                    Found::Delivery
                } else {
                    Found::Task(Box::new(task))
                });
            }
            Some(_) => {}
            None => elsewhere = elsewhere.or(Some(id)),
        }
    }
    Ok(Found::Nothing(elsewhere))
}

fn recorded_delivery(engine: &Engine) -> Option<Vec<u8>> {
    let registry = engine.find_registry().ok()??;
    registry.dir().delivery_process()
}

fn parent_of(task: &Task) -> Option<TaskId> {
    task.input[PARENT].as_str()?.parse().ok()
}

fn parents_of(task: Option<&Task>, find: FindTask<'_>) -> Result<Vec<TaskId>> {
    let mut parents: Vec<TaskId> = Vec::new();
    let mut next = task.and_then(parent_of);
    while let Some(id) = next.filter(|_| parents.len() < MAX_LINEAGE) {
        next = find(&id)?.as_ref().and_then(parent_of);
        parents.push(id);
    }
    Ok(parents)
}

/// The task that a process below the supervisor of `own` belongs to: a sweep must not kill the supervisor of
/// another task.
///
/// An agent may delegate, too. The supervisor of that task becomes our child when its launcher exits, because
/// we are the nearest subreaper. Its row has no process until it is `working`; before that it is undecided,
/// and the sweep waits for the decision, for a bounded time.
///
/// The process that delivers notifications belongs to no task, also if our own task has started it.
pub(crate) fn owner_of(registry: &Registry, own: &TaskId, pid: i32) -> Owner {
    if is_delivery_process(pid, || registry.dir().delivery_process()) {
        return Owner::AnotherTask;
    }
    let Some((id, nonce)) = claim_of(pid).filter(|(id, _)| id != own) else {
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

fn is_supervisor(pid: i32, task: &Task, nonce: &Nonce) -> bool {
    let recorded = task.supervisor.as_ref().filter(|_| task.nonce.as_ref() == Some(nonce));
    let recorded = recorded.map(process_identity);
    recorded.is_some() && ProcessIdentity::in_own_namespace(pid) == recorded
}

/// The process of a recorded supervisor.
pub(crate) fn process_identity(recorded: &Identity) -> ProcessIdentity {
    ProcessIdentity {
        boot_id: recorded.boot_id.clone(),
        pid: recorded.pid.cast_signed(),
        start_time: recorded.start_time,
        pid_namespace: recorded.pid_ns,
    }
}

/// Whether the process is the one that has recorded itself with [`record_delivery_process`]: an agent can copy its
/// command line.
fn is_delivery_process(pid: i32, recorded: impl FnOnce() -> Option<Vec<u8>>) -> bool {
    let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    cmdline.ends_with(format!("\0{DELIVER}\0").as_bytes())
        && recorded()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .is_some_and(|recorded: ProcessIdentity| ProcessIdentity::in_own_namespace(pid) == Some(recorded))
}

/// Records in its locked file that this process delivers notifications.
pub(crate) fn record_delivery_process(mut lock: &File) -> io::Result<()> {
    let identity = serde_json::to_vec(&ProcessIdentity::of_self()?)?;
    lock.set_len(0)?;
    lock.write_all(&identity)
}

/// The task and the claim in the command line of a supervisor, which its launcher has, too.
fn claim_of(pid: i32) -> Option<(TaskId, Nonce)> {
    parse_claim(&std::fs::read(format!("/proc/{pid}/cmdline")).ok()?)
}

fn parse_claim(cmdline: &[u8]) -> Option<(TaskId, Nonce)> {
    let args: Vec<&[u8]> = cmdline.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
    let [_, mode, id, nonce] = args.as_slice() else { return None };
    let text = |arg| std::str::from_utf8(arg).ok();
    (text(mode)? == SUPERVISE)
        .then(|| Some((text(id)?.parse().ok()?, Nonce::from_text(text(nonce)?)?)))
        .flatten()
}

#[cfg(test)]
mod tests;
