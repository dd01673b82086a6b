//! The invariants that must hold after every step, whichever actor was killed at which point.
//!
//! They compare the registry with its previous state and with the simulated machine. The rules are written
//! here a second time on purpose: they share no code with the engine that they check.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use delegator_domain::task::{FailureKind, Mode, State, TaskEnd, TaskId};
use delegator_registry::{ChangeMark, Filter, Registry, Task, TaskFile};

use super::chains::{awaits_predecessor, check_chains};
use super::messages::check_messages;
use super::notifications::check_notifications;
use crate::simulation::{SimulatorState, short};

#[derive(Debug, Default)]
pub(super) struct Invariants {
    known: BTreeMap<TaskId, KnownTask>,
    /// Tasks that were deleted after they had ended, and what had happened until then: a later task may get
    /// the id.
    deleted: BTreeMap<TaskId, PastEvents>,
    is_paused: bool,
    /// Most steps change nothing that is checked here; then the checks are skipped.
    last_observed: Option<(ChangeMark, usize)>,
}

/// How many events of the machine belong to a task that was deleted, or to others before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PastEvents {
    starts: u32,
    pub(super) sent: usize,
    pub(super) delivered: usize,
}

#[derive(Debug, Clone)]
pub(super) struct KnownTask {
    pub(super) task: Task,
    pub(super) path: Vec<State>,
}

pub(super) type CheckResult = Result<(), String>;

pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl Invariants {
    /// Checks the registry against its previous state.
    pub(super) fn observe(
        &mut self,
        registry: &Registry,
        machine: &SimulatorState,
        max_concurrent: usize,
    ) -> CheckResult {
        let mark = registry.change_mark().map_err(|error| error.to_string())?;
        let event_count = machine.starts.values().sum::<u32>() as usize
            + machine.acknowledged.len()
            + machine.sent.len()
            + machine.delivered.len();
        if self.last_observed.replace((mark, event_count)) == Some((mark, event_count)) {
            return Ok(());
        }
        let rows = registry.list(&Filter::default(), 10_000, None).map_err(|error| error.to_string())?.tasks;
        let (pending, _) = registry.undelivered_notifications(10_000).map_err(|error| error.to_string())?;
        let mut current = BTreeMap::new();
        for task in rows {
            let known = self.known.get(&task.id);
            let path = match known {
                Some(known) if known.task == task => known.path.clone(),
                _ => state_path(registry, &task)?,
            };
            let now = KnownTask { task, path };
            check_transition(known, &now, registry)?;
            let past = self.deleted.get(&now.task.id).copied().unwrap_or_default();
            check_starts(&now, machine, past)?;
            check_end(known, &now, machine)?;
            check_messages(registry, &now.task, machine, past)?;
            current.insert(now.task.id.clone(), now);
        }
        self.check_deleted(&current, machine)?;
        self.check_acknowledged(&current, machine)?;
        check_chains(&current)?;
        check_notifications(&current, &pending, self.deleted.is_empty())?;
        check_running(&current, max_concurrent)?;
        self.check_claims(&current, max_concurrent)?;
        self.is_paused = registry.queue_paused().map_err(|error| error.to_string())?;
        self.known = current;
        Ok(())
    }

    pub(super) fn all_ended(&self) -> bool {
        self.known.values().all(|known| known.task.state.is_terminal())
    }

    /// All tasks, oldest first.
    pub(super) fn ids(&self) -> Vec<TaskId> {
        let mut tasks: Vec<&Task> = self.known.values().map(|known| &known.task).collect();
        tasks.sort_by_key(|task| task.seq);
        tasks.into_iter().map(|task| task.id.clone()).collect()
    }

    fn check_deleted(
        &mut self,
        current: &BTreeMap<TaskId, KnownTask>,
        machine: &SimulatorState,
    ) -> CheckResult {
        for (id, known) in self.known.iter().filter(|(id, _)| !current.contains_key(*id)) {
            ensure(known.task.state.is_terminal(), || format!("{} was deleted before it ended", short(id)))?;
            let starts = machine.starts.get(id).copied().unwrap_or(0);
            let past = PastEvents { starts, sent: machine.sent.len(), delivered: machine.delivered.len() };
            self.deleted.insert(id.clone(), past);
        }
        Ok(())
    }

    fn check_acknowledged(
        &self,
        current: &BTreeMap<TaskId, KnownTask>,
        machine: &SimulatorState,
    ) -> CheckResult {
        for (id, _) in &machine.acknowledged {
            let is_there = current.contains_key(id) || self.deleted.contains_key(id);
            ensure(is_there, || format!("{} was acknowledged but is lost", short(id)))?;
        }
        let mut keys = BTreeMap::new();
        for known in current.values() {
            let Some(idempotency) = &known.task.idempotency else { continue };
            if let Some(first) = keys.insert(idempotency.key.clone(), known.task.id.clone()) {
                return Err(format!("{} and {} have the same key", short(&first), short(&known.task.id)));
            }
        }
        for (id, key) in &machine.acknowledged {
            let Some(first) = key.as_ref().and_then(|key| keys.get(key)) else { continue };
            let is_same = first == id || self.deleted.contains_key(id);
            ensure(is_same, || format!("one key returned {} and {}", short(first), short(id)))?;
        }
        Ok(())
    }

    /// The claimed tasks are exactly those that were next in the queue.
    fn check_claims(&self, current: &BTreeMap<TaskId, KnownTask>, max_concurrent: usize) -> CheckResult {
        // A new task was submitted by the same transaction.
        let was_queued = |id: &TaskId| self.known.get(id).is_none_or(|k| k.task.state == State::Queued);
        let claimed: BTreeSet<&TaskId> = current
            .values()
            .filter(|known| known.task.state == State::Starting && was_queued(&known.task.id))
            .map(|known| &known.task.id)
            .collect();
        if claimed.is_empty() {
            return Ok(());
        }
        ensure(!self.is_paused, || "a task of a paused queue was claimed".to_owned())?;
        let running = current.values().map(|known| &known.task).filter(|task| is_running(task));
        let mut ahead: Vec<&Task> = running.filter(|task| !claimed.contains(&task.id)).collect();
        let mut free = max_concurrent.saturating_sub(ahead.len());
        let mut queue: Vec<&Task> = current.values().map(|known| &known.task).collect();
        queue.retain(|task| {
            let is_open = matches!(task.state, State::Queued | State::Starting);
            is_open && was_queued(&task.id) && !awaits_predecessor(task, current)
        });
        queue.sort_by_key(|task| task.seq);
        let mut expected = BTreeSet::new();
        for task in queue {
            let may_start = free > 0 && !ahead.iter().any(|other| must_wait(task, other));
            if may_start {
                expected.insert(&task.id);
                free -= 1;
            }
            ahead.push(task);
        }
        ensure(claimed == expected, || {
            let names =
                |ids: &BTreeSet<&TaskId>| ids.iter().map(|id| short(id).to_owned()).collect::<Vec<_>>();
            format!("{:?} were claimed, expected {:?}", names(&claimed), names(&expected))
        })
    }
}

fn state_path(registry: &Registry, task: &Task) -> Result<Vec<State>, String> {
    let history = registry.history_of(&task.id).map_err(|error| error.to_string())?;
    let joined = history.windows(2).all(|pair| pair[1].from == Some(pair[0].to));
    ensure(joined, || format!("the history of {} has a gap", short(&task.id)))?;
    Ok(history.iter().map(|entry| entry.to).collect())
}

fn check_transition(before: Option<&KnownTask>, now: &KnownTask, registry: &Registry) -> CheckResult {
    let name = short(&now.task.id);
    let old: &[State] = before.map_or(&[], |known| &known.path);
    ensure(now.path.starts_with(old), || format!("the history of {name} was changed"))?;
    ensure(now.path.last() == Some(&now.task.state), || {
        format!("the history of {name} does not end with its state")
    })?;
    // The transaction that submits a task may also claim it.
    let max_changes = if old.is_empty() { 2 } else { 1 };
    ensure(now.path.len() <= old.len() + max_changes, || {
        format!("{name} made two changes in one step: {:?}", now.path)
    })?;
    ensure(now.path.first() == Some(&State::Queued), || format!("{name} was never queued"))?;
    ensure(now.path.windows(2).all(|pair| is_allowed_transition(pair[0], pair[1])), || {
        format!("{name} made a transition that is not allowed: {:?}", now.path)
    })?;
    if matches!(now.task.state, State::Queued | State::Starting) {
        let launch = registry.dir().task(&now.task.id).file(TaskFile::Launch);
        ensure(launch.exists(), || format!("{name} is not started but has no launch file"))?;
    }
    Ok(())
}

fn is_allowed_transition(from: State, to: State) -> bool {
    use State::{Cancelled, Completed, Failed, Queued, Starting, Timeout, Working};
    matches!(
        (from, to),
        (Queued, Starting | Cancelled)
            | (Starting, Queued | Working | Failed | Cancelled)
            | (Working, Completed | Failed | Cancelled | Timeout)
    )
}

fn check_starts(now: &KnownTask, machine: &SimulatorState, past: PastEvents) -> CheckResult {
    let (task, name) = (&now.task, short(&now.task.id));
    let starts = machine.starts.get(&task.id).copied().unwrap_or(0) - past.starts;
    ensure(starts <= 1, || format!("{name} was started {starts} times"))?;
    let worked = now.path.contains(&State::Working);
    ensure(starts == 0 || worked, || format!("{name} was started and never worked"))?;
    ensure(task.state != State::Completed || starts == 1, || format!("{name} completed and never began"))
}

fn check_end(before: Option<&KnownTask>, now: &KnownTask, machine: &SimulatorState) -> CheckResult {
    let (task, name) = (&now.task, short(&now.task.id));
    let Some(before) = before else { return Ok(()) };
    if before.task.state.is_terminal() {
        return ensure(before.task.ended == task.ended, || format!("the end of {name} was changed"));
    }
    if before.task.state == task.state {
        return Ok(());
    }
    if task.state == State::Working {
        ensure(before.task.cancel.is_none(), || format!("{name} began after a cancel request"))?;
        ensure(before.task.nonce == task.nonce, || format!("{name} was begun by another attempt"))?;
    }
    let is_lost = task.ended.as_ref().is_some_and(|ended| {
        matches!(
            ended.end,
            TaskEnd::Failed { kind: FailureKind::SupervisorLost | FailureKind::SupervisorStartFailed, .. }
        )
    });
    if is_lost || task.state == State::Queued {
        let is_alive = before.task.nonce.as_ref().is_some_and(|nonce| machine.is_supervised(nonce));
        ensure(!is_alive, || format!("{name} was taken from a live supervisor"))?;
    }
    if task.state.is_terminal() {
        ensure(!machine.agents.contains_key(&task.id), || format!("{name} ended but its agent is alive"))?;
        // The end of its predecessor may cancel a follower that has not started; `check_chains` checks when.
        let may_be_cancelled =
            task.cancel.is_some() || task.follows.is_some() && before.task.state == State::Queued;
        ensure(task.state != State::Cancelled || may_be_cancelled, || {
            format!("{name} was cancelled without a request")
        })?;
    }
    Ok(())
}

fn is_running(task: &Task) -> bool {
    matches!(task.state, State::Starting | State::Working)
}

fn check_running(current: &BTreeMap<TaskId, KnownTask>, max_concurrent: usize) -> CheckResult {
    let mut running: Vec<&Task> = current.values().map(|k| &k.task).filter(|task| is_running(task)).collect();
    ensure(running.len() <= max_concurrent, || format!("{} run at once", running.len()))?;
    running.sort_by_key(|task| task.claimed_at_ms);
    for (index, task) in running.iter().enumerate() {
        for other in &running[index + 1..] {
            // Which of the two started first is known only if their claim times differ.
            let collide = must_wait(task, other) && must_wait(other, task);
            ensure(!collide, || {
                format!("{} and {} run at the same time", short(&task.id), short(&other.id))
            })?;
        }
    }
    Ok(())
}

/// Whether a task must wait for another: the same thread, or the same tree if both write.
fn must_wait(task: &Task, other: &Task) -> bool {
    let threads =
        |of: &Task| [of.resumed_thread.clone(), of.thread_id.clone()].into_iter().flatten().collect();
    let (own, taken): (Vec<String>, Vec<String>) = (threads(task), threads(other));
    if own.iter().any(|thread| taken.contains(thread)) {
        return true;
    }
    let writes = |of: &Task| of.mode != Mode::ReadOnly;
    let (own_dir, other_dir) = (Path::new(&task.working_dir), Path::new(&other.working_dir));
    let nested = own_dir.starts_with(other_dir) || other_dir.starts_with(own_dir);
    writes(task) && writes(other) && !task.allow_parallel_writes && nested
}
