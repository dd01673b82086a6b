//! Many tasks: submitting them side by side, and waiting until all of them are where they should be.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Trial;
use crate::clock::wall_ms;
use crate::engine_calls::Door;
use crate::error::LoadError;
use crate::server::handle::Server;
use crate::stage::Stage;

/// An agent that waits for a sign, tells its events as fast as it can, and is done; the sign is a file.
pub(super) fn chatter(
    stage: &Stage,
    events: u64,
    event_bytes: usize,
) -> Result<(PathBuf, PathBuf), LoadError> {
    let go = stage.root().join("go");
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"wait_for_file": go},
        {"events": {"count": events, "bytes": event_bytes}}, {"turn_completed": {}}
    ]);
    Ok((stage.agent("chatter", &steps)?, go))
}

/// Does something to every one of these, so many at a time; gives what was told, in their order.
pub(super) fn side_by_side<I: Sync, T: Send>(
    items: &[I],
    at_once: usize,
    act: impl Fn(&I) -> Result<T, LoadError> + Sync,
) -> Result<Vec<T>, LoadError> {
    let next = AtomicUsize::new(0);
    let told = Mutex::new(Vec::with_capacity(items.len()));
    let work = || -> Result<(), LoadError> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(()) };
            let answer = act(item)?;
            told.lock().unwrap_or_else(PoisonError::into_inner).push((index, answer));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once.min(items.len())).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Err(LoadError::ServerGone)))
    })?;
    let mut told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    told.sort_by_key(|(index, _)| *index);
    Ok(told.into_iter().map(|(_, answer)| answer).collect())
}

/// Submits one task for each agent of the list; their ids.
pub(super) fn submit_all(server: &Server, agents: &[&Path]) -> Result<Vec<String>, LoadError> {
    side_by_side(agents, 8, |agent| server.submit(agent, "do it", None))
}

/// Until every agent has said something.
pub(super) fn all_have_spoken(trial: &Trial, stage: &Stage, ids: &[String]) -> Result<(), LoadError> {
    let mut silent: Vec<&String> = ids.iter().collect();
    trial.patience.until("starting the agents", Duration::from_secs(180), || {
        silent.retain(|id| !stage.has_spoken(id));
        Ok(silent.is_empty())
    })
}

/// Until no task is open; how long that took.
pub(super) fn all_have_ended(
    trial: &Trial,
    door: &Door,
    at_most: Duration,
    mut meanwhile: impl FnMut(),
) -> Result<Duration, LoadError> {
    let begun = Instant::now();
    trial.patience.until("waiting for all ends", at_most, || {
        meanwhile();
        Ok(door.open_tasks()? == 0)
    })?;
    Ok(begun.elapsed())
}

/// When something was asked for, by the wall clock the registry uses.
pub(super) fn at_wall_ms<T>(act: impl FnOnce() -> Result<T, LoadError>) -> Result<i64, LoadError> {
    let at_ms = wall_ms();
    act().map(|_| at_ms)
}
