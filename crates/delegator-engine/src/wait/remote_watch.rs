//! Queries providers about awaited tasks, in a thread of its own, so that a slow provider delays no wait for
//! other tasks. The answers are recorded in the registry, where the wait finds them.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use delegator_registry::Task;

use crate::Engine;
use crate::error::{EngineError, Result};
use crate::remote::refresh::{ProviderProblem, query_due_in, refresh_remote};

/// How long to wait after a provider did not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// After this many failures in a row, the wait ends with an error.
const MAX_FAILURES: u32 = 12;

#[derive(Debug)]
pub(super) struct RemoteWatch {
    query: Option<JoinHandle<Result<Vec<ProviderProblem>>>>,
    failures: u32,
    not_before: Instant,
    /// Why waiting for some tasks makes no sense.
    problems: Vec<ProviderProblem>,
}

impl RemoteWatch {
    pub(super) fn new() -> RemoteWatch {
        RemoteWatch { query: None, failures: 0, not_before: Instant::now(), problems: Vec::new() }
    }

    /// Collects a query that has ended, and starts one if it is due. `awaited` are unfinished tasks.
    pub(super) fn step<'a>(
        &mut self,
        engine: &Engine,
        awaited: impl Iterator<Item = &'a Task>,
    ) -> Result<()> {
        if self.query.as_ref().is_some_and(|query| !query.is_finished()) {
            return Ok(());
        }
        if let Some(query) = self.query.take() {
            let panicked = || EngineError::WatchFailed {
                detail: "the query of a provider panicked".to_owned(),
                os_error: None,
            };
            self.note(query.join().map_err(|_| panicked())??);
        }
        if Instant::now() < self.not_before {
            return Ok(());
        }
        let is_due =
            |task: &&Task| task.remote.as_ref().is_some_and(|remote| query_due_in(engine, remote).is_zero());
        let due: Vec<Task> = awaited.filter(is_due).cloned().collect();
        if due.is_empty() {
            return Ok(());
        }
        let engine = engine.clone();
        let query = std::thread::Builder::new().name("provider".to_owned()).spawn(move || {
            let Some(mut registry) = engine.find_registry()? else { return Ok(Vec::new()) };
            refresh_remote(&engine, &mut registry, &due)
        });
        self.query = Some(query.map_err(EngineError::io("start a thread"))?);
        Ok(())
    }

    /// A provider that does not answer may answer later; one that refuses to answer does not.
    fn note(&mut self, problems: Vec<ProviderProblem>) {
        self.failures = if problems.is_empty() { 0 } else { self.failures + 1 };
        if !problems.is_empty() {
            self.not_before = Instant::now() + RETRY_INTERVAL;
        }
        self.problems = problems;
        if self.failures < MAX_FAILURES {
            self.problems.retain(|problem| !problem.error.is_transient());
        }
    }

    /// The error of a wait for this task, if its provider cannot be queried.
    pub(super) fn error_for(&self, task: &Task) -> Option<EngineError> {
        let problem = self.problems.iter().find(|problem| problem.concerns(task))?;
        (!task.state.is_terminal()).then(|| problem.for_task(&task.id))
    }
}
