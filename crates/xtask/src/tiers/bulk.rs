//! Many tasks: submitting them in parallel, and waiting until all have started or ended.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Trial;
use crate::clock::wall_ms;
use crate::engine_calls::EngineClient;
use crate::error::LoadError;
use crate::server::handle::Server;
use crate::testbed::Testbed;

/// An agent that waits for a file, prints its events as fast as it can, and completes. Returns the agent and the file.
pub(super) fn event_agent(
    testbed: &Testbed,
    events: u64,
    event_bytes: usize,
) -> Result<(PathBuf, PathBuf), LoadError> {
    let go_file = testbed.root().join("go");
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"wait_for_file": go_file},
        {"events": {"count": events, "bytes": event_bytes}}, {"turn_completed": {}}
    ]);
    Ok((testbed.agent("events", &steps)?, go_file))
}

/// Agents that print an event so often. Returns the agent and the ids of their tasks.
pub(super) fn start_slow_agents(
    trial: &Trial,
    testbed: &Testbed,
    server: &Server,
    (agents, events_per_second): (usize, f64),
) -> Result<(PathBuf, Vec<String>), LoadError> {
    let agent = testbed.agent(
        "slow",
        &json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started",
            {"events": {"per_second": events_per_second, "timed": true, "bytes": 200}}
        ]),
    )?;
    let ids = submit_all(server, &vec![agent.as_path(); agents])?;
    wait_all_started(trial, testbed, &ids)?;
    Ok((agent, ids))
}

/// Applies `action` to every item, `at_once` in parallel. Returns the results in the order of the items.
pub(super) fn run_parallel<I: Sync, T: Send>(
    items: &[I],
    at_once: usize,
    action: impl Fn(&I) -> Result<T, LoadError> + Sync,
) -> Result<Vec<T>, LoadError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let work = || -> Result<(), LoadError> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(()) };
            let result = action(item)?;
            results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once.min(items.len())).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Err(LoadError::ServerGone)))
    })?;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Submits one task for each agent. Returns their ids.
pub(super) fn submit_all(server: &Server, agents: &[&Path]) -> Result<Vec<String>, LoadError> {
    run_parallel(agents, 8, |agent| server.submit(agent, "do it", None))
}

/// Waits until every agent has printed an event.
pub(super) fn wait_all_started(trial: &Trial, testbed: &Testbed, ids: &[String]) -> Result<(), LoadError> {
    let mut silent: Vec<&String> = ids.iter().collect();
    trial.deadline.wait_until("starting the agents", Duration::from_secs(180), || {
        silent.retain(|id| !testbed.has_output(id));
        Ok(silent.is_empty())
    })
}

/// Waits until no task is open. Returns how long that took.
pub(super) fn wait_all_ended(
    trial: &Trial,
    engine: &EngineClient,
    limit: Duration,
    mut meanwhile: impl FnMut(),
) -> Result<Duration, LoadError> {
    let started = Instant::now();
    trial.deadline.wait_until("waiting for all tasks to end", limit, || {
        meanwhile();
        Ok(engine.open_tasks()? == 0)
    })?;
    Ok(started.elapsed())
}

/// Runs `action` and returns when it was called, by the wall clock the registry uses.
pub(super) fn requested_at_ms<T>(action: impl FnOnce() -> Result<T, LoadError>) -> Result<i64, LoadError> {
    let at_ms = wall_ms();
    action().map(|_| at_ms)
}
