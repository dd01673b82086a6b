//! The invariants of chains: no follower starts before its predecessor has ended, one branch runs, and none
//! waits forever.

use std::collections::BTreeMap;

use delegator_domain::task::{ChainOutcome, State, TaskId};
use delegator_registry::Task;

use super::invariants::{CheckResult, KnownTask, ensure};
use crate::simulation::short;

/// The predecessor of a task, unless it was deleted. A later task may have got its id.
fn predecessor<'a>(task: &Task, current: &'a BTreeMap<TaskId, KnownTask>) -> Option<&'a KnownTask> {
    let follows = task.follows.as_ref()?;
    current.get(&follows.task).filter(|found| found.task.seq < task.seq)
}

/// Whether the task follows one that has not ended.
pub(super) fn awaits_predecessor(task: &Task, current: &BTreeMap<TaskId, KnownTask>) -> bool {
    predecessor(task, current).is_some_and(|predecessor| !predecessor.task.state.is_terminal())
}

pub(super) fn check_chains(current: &BTreeMap<TaskId, KnownTask>) -> CheckResult {
    let mut started = BTreeMap::new();
    for known in current.values() {
        let Some(follows) = &known.task.follows else { continue };
        let Some(predecessor) = predecessor(&known.task, current) else {
            ensure(!known.task.awaits_predecessor, || {
                format!("{} awaits a task that was deleted", short(&known.task.id))
            })?;
            continue;
        };
        check_follower(known, predecessor)?;
        if known.path.contains(&State::Starting) {
            let first = started.insert(predecessor.task.seq, follows.on).unwrap_or(follows.on);
            ensure(first == follows.on, || format!("both branches of {} ran", short(&predecessor.task.id)))?;
        }
    }
    Ok(())
}

fn check_follower(known: &KnownTask, predecessor: &KnownTask) -> CheckResult {
    let (task, name) = (&known.task, short(&known.task.id));
    let has_started = known.path.contains(&State::Starting);
    let is_cancelled = task.state == State::Cancelled;
    if !predecessor.task.state.is_terminal() {
        ensure(!has_started, || format!("{name} started before its predecessor ended"))?;
        return ensure(task.awaits_predecessor || is_cancelled, || format!("{name} does not wait"));
    }
    ensure(!task.awaits_predecessor, || format!("{name} awaits a task that has ended"))?;
    // The simulated agents have no verify command.
    let outcome = match predecessor.task.state {
        _ if predecessor.task.cancel.is_some() => None,
        State::Completed => Some(ChainOutcome::Success),
        State::Cancelled => None,
        _ => Some(ChainOutcome::Failure),
    };
    if task.follows.as_ref().map(|follows| follows.on) == outcome {
        let was_cancelled_by_request = task.cancel.is_some();
        ensure(!is_cancelled || was_cancelled_by_request, || format!("{name} was cancelled by mistake"))
    } else {
        ensure(is_cancelled && !has_started, || {
            format!("{name} follows another outcome and was not cancelled")
        })
    }
}
