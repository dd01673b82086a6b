//! What must hold after every single step, whoever was killed where.
//!
//! The law is told by the registry alone what has changed since it last looked, and judges that by rules of its own: it
//! shares no code with what it judges.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use delegator_domain::task::{End, FailureKind, Mode, State, TaskId};
use delegator_registry::{ChangeMark, Filter, Registry, Task, TaskFile};

use super::stage::{Scene, short};

#[derive(Debug, Default)]
pub(super) struct Law {
    known: BTreeMap<TaskId, Known>,
    /// Cleaned away after they had ended.
    forgotten: BTreeSet<TaskId>,
    is_paused: bool,
    /// What was there when last looked: most steps change nothing that is judged here.
    looked_at: Option<(ChangeMark, usize)>,
}

#[derive(Debug, Clone)]
struct Known {
    task: Task,
    path: Vec<State>,
}

type Verdict = Result<(), String>;

fn must(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl Law {
    /// Looks at everything and compares it with what was known.
    pub(super) fn observe(&mut self, registry: &Registry, scene: &Scene, max_concurrent: usize) -> Verdict {
        let mark = registry.change_mark().map_err(|error| error.to_string())?;
        let told = scene.starts.values().sum::<u32>() as usize + scene.acknowledged.len();
        if self.looked_at.replace((mark, told)) == Some((mark, told)) {
            return Ok(());
        }
        let rows = registry.list(&Filter::default(), 10_000, None).map_err(|error| error.to_string())?.tasks;
        let mut seen = BTreeMap::new();
        for task in rows {
            let known = self.known.get(&task.id);
            let path = match known {
                Some(known) if known.task == task => known.path.clone(),
                _ => path_of(registry, &task)?,
            };
            let now = Known { task, path };
            judge_change(known, &now, registry)?;
            judge_starts(&now, scene)?;
            judge_end(known, &now, scene)?;
            seen.insert(now.task.id.clone(), now);
        }
        self.judge_vanished(&seen)?;
        self.judge_promises(&seen, scene)?;
        judge_running(&seen, max_concurrent)?;
        self.judge_claims(&seen, max_concurrent)?;
        self.is_paused = registry.queue_paused().map_err(|error| error.to_string())?;
        self.known = seen;
        Ok(())
    }

    pub(super) fn all_ended(&self) -> bool {
        self.known.values().all(|known| known.task.state.is_terminal())
    }

    /// Every task there is, the oldest first.
    pub(super) fn ids(&self) -> Vec<TaskId> {
        let mut tasks: Vec<&Task> = self.known.values().map(|known| &known.task).collect();
        tasks.sort_by_key(|task| task.seq);
        tasks.into_iter().map(|task| task.id.clone()).collect()
    }

    fn judge_vanished(&mut self, seen: &BTreeMap<TaskId, Known>) -> Verdict {
        for (id, known) in self.known.iter().filter(|(id, _)| !seen.contains_key(*id)) {
            must(known.task.state.is_terminal(), || format!("{} was cleaned away alive", short(id)))?;
            self.forgotten.insert(id.clone());
        }
        Ok(())
    }

    fn judge_promises(&self, seen: &BTreeMap<TaskId, Known>, scene: &Scene) -> Verdict {
        for (id, _) in &scene.acknowledged {
            let is_there = seen.contains_key(id) || self.forgotten.contains(id);
            must(is_there, || format!("{} was acknowledged and is lost", short(id)))?;
        }
        let mut keys = BTreeMap::new();
        for known in seen.values() {
            let Some(idempotency) = &known.task.idempotency else { continue };
            if let Some(first) = keys.insert(idempotency.key.clone(), known.task.id.clone()) {
                return Err(format!("{} and {} have one key", short(&first), short(&known.task.id)));
            }
        }
        for (id, key) in &scene.acknowledged {
            let Some(first) = key.as_ref().and_then(|key| keys.get(key)) else { continue };
            let is_one = first == id || self.forgotten.contains(id);
            must(is_one, || format!("a key was answered with {} and {}", short(first), short(id)))?;
        }
        Ok(())
    }

    /// Those that were claimed are exactly those whose turn it was.
    fn judge_claims(&self, seen: &BTreeMap<TaskId, Known>, max_concurrent: usize) -> Verdict {
        let was_queued = |id: &TaskId| self.known.get(id).is_some_and(|k| k.task.state == State::Queued);
        let claimed: BTreeSet<&TaskId> = seen
            .values()
            .filter(|known| known.task.state == State::Starting && was_queued(&known.task.id))
            .map(|known| &known.task.id)
            .collect();
        if claimed.is_empty() {
            return Ok(());
        }
        must(!self.is_paused, || "a held queue was claimed from".to_owned())?;
        let running = seen.values().map(|known| &known.task).filter(|task| is_running(task));
        let mut ahead: Vec<&Task> = running.filter(|task| !claimed.contains(&task.id)).collect();
        let mut free = max_concurrent.saturating_sub(ahead.len());
        let mut queue: Vec<&Task> = self.known.values().map(|known| &known.task).collect();
        queue.retain(|task| task.state == State::Queued);
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
        must(claimed == expected, || {
            let names =
                |ids: &BTreeSet<&TaskId>| ids.iter().map(|id| short(id).to_owned()).collect::<Vec<_>>();
            format!("claimed were {:?}, the turn was {:?}'s", names(&claimed), names(&expected))
        })
    }
}

fn path_of(registry: &Registry, task: &Task) -> Result<Vec<State>, String> {
    let history = registry.history_of(&task.id).map_err(|error| error.to_string())?;
    let joined = history.windows(2).all(|pair| pair[1].from == Some(pair[0].to));
    must(joined, || format!("the history of {} has a gap", short(&task.id)))?;
    Ok(history.iter().map(|entry| entry.to).collect())
}

fn judge_change(before: Option<&Known>, now: &Known, registry: &Registry) -> Verdict {
    let name = short(&now.task.id);
    let old: &[State] = before.map_or(&[], |known| &known.path);
    must(now.path.starts_with(old), || format!("the past of {name} was changed"))?;
    must(now.path.last() == Some(&now.task.state), || format!("the history of {name} says otherwise"))?;
    must(now.path.len() <= old.len() + 1, || format!("{name} made two changes in one step: {:?}", now.path))?;
    must(now.path.first() == Some(&State::Queued), || format!("{name} was never queued"))?;
    must(now.path.windows(2).all(|pair| is_lawful(pair[0], pair[1])), || {
        format!("{name} went an unlawful way: {:?}", now.path)
    })?;
    if matches!(now.task.state, State::Queued | State::Starting) {
        let launch = registry.dir().task(&now.task.id).file(TaskFile::Launch);
        must(launch.exists(), || format!("{name} waits and has nothing to start from"))?;
    }
    Ok(())
}

fn is_lawful(from: State, to: State) -> bool {
    use State::{Cancelled, Completed, Failed, Queued, Starting, Timeout, Working};
    matches!(
        (from, to),
        (Queued, Starting | Cancelled)
            | (Starting, Queued | Working | Failed | Cancelled)
            | (Working, Completed | Failed | Cancelled | Timeout)
    )
}

fn judge_starts(now: &Known, scene: &Scene) -> Verdict {
    let (task, name) = (&now.task, short(&now.task.id));
    let starts = scene.starts.get(&task.id).copied().unwrap_or(0);
    must(starts <= 1, || format!("{name} was started {starts} times"))?;
    let worked = now.path.contains(&State::Working);
    must(starts == 0 || worked, || format!("{name} was started and never worked"))?;
    must(task.state != State::Completed || starts == 1, || format!("{name} completed and never began"))
}

fn judge_end(before: Option<&Known>, now: &Known, scene: &Scene) -> Verdict {
    let (task, name) = (&now.task, short(&now.task.id));
    let Some(before) = before else { return Ok(()) };
    if before.task.state.is_terminal() {
        return must(before.task.ended == task.ended, || format!("the end of {name} was changed"));
    }
    if before.task.state == task.state {
        return Ok(());
    }
    if task.state == State::Working {
        must(before.task.cancel.is_none(), || format!("{name} began after it was cancelled"))?;
        must(before.task.nonce == task.nonce, || format!("{name} was begun by another attempt"))?;
    }
    let is_lost = task.ended.as_ref().is_some_and(|ended| {
        matches!(
            ended.end,
            End::Failed { kind: FailureKind::SupervisorLost | FailureKind::SupervisorStartFailed, .. }
        )
    });
    if is_lost || task.state == State::Queued {
        let lives = before.task.nonce.as_ref().is_some_and(|nonce| scene.is_supervised(nonce));
        must(!lives, || format!("{name} was taken from a living supervisor"))?;
    }
    if task.state.is_terminal() {
        must(!scene.agents.contains_key(&task.id), || format!("{name} ended and its agent lives"))?;
        let asked = task.cancel.is_some();
        must(task.state != State::Cancelled || asked, || format!("{name} was cancelled by nobody"))?;
    }
    Ok(())
}

fn is_running(task: &Task) -> bool {
    matches!(task.state, State::Starting | State::Working)
}

fn judge_running(seen: &BTreeMap<TaskId, Known>, max_concurrent: usize) -> Verdict {
    let mut running: Vec<&Task> = seen.values().map(|k| &k.task).filter(|task| is_running(task)).collect();
    must(running.len() <= max_concurrent, || format!("{} run at once", running.len()))?;
    running.sort_by_key(|task| task.claimed_at_ms);
    for (index, one) in running.iter().enumerate() {
        for other in &running[index + 1..] {
            // Which of the two came first is known only if their times differ.
            let collide = must_wait(one, other) && must_wait(other, one);
            must(!collide, || format!("{} and {} run side by side", short(&one.id), short(&other.id)))?;
        }
    }
    Ok(())
}

/// Whether a task has to wait for another: one thread, or one tree for two that write.
fn must_wait(task: &Task, other: &Task) -> bool {
    let threads =
        |of: &Task| [of.resumed_thread.clone(), of.thread_id.clone()].into_iter().flatten().collect();
    let (own, taken): (Vec<String>, Vec<String>) = (threads(task), threads(other));
    if own.iter().any(|thread| taken.contains(thread)) {
        return true;
    }
    let writes = |of: &Task| of.mode != Mode::ReadOnly;
    let (one, two) = (Path::new(&task.working_dir), Path::new(&other.working_dir));
    let nested = one.starts_with(two) || two.starts_with(one);
    writes(task) && writes(other) && !task.allow_parallel_writes && nested
}
