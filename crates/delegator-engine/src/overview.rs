//! Everything at one moment: what runs, what waits and for what, what ended lately.

use std::collections::HashMap;

use delegator_domain::task::{State, TaskId};
use delegator_registry::{EndedPage, Filter, Registry, Task, Unread, WaitsFor};
use serde_json::Value;

use crate::Engine;
use crate::error::EngineError;
use crate::look::LongLog;

/// Which tasks somebody wants to see.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub filter: Filter,
    /// Only this one, however long ago it ended.
    pub only: Option<TaskId>,
    /// Whose unread results are counted: those in or below this directory.
    pub under: String,
    pub ended_since_ms: i64,
    pub ended_limit: u32,
    /// Where an earlier page of ended ones stopped.
    pub ended_before: Option<i64>,
}

#[derive(Debug)]
pub struct Overview {
    pub running: Vec<Running>,
    pub queued: Vec<Queued>,
    pub ended: EndedPage,
    pub unread: Unread,
    pub queue_paused: bool,
    /// The registry's log, if it has grown too long.
    pub long_log: Option<LongLog>,
}

/// A task in the queue.
#[derive(Debug)]
pub struct Queued {
    pub task: Task,
    /// 0: it is next.
    pub position: usize,
    pub waiting_for: Option<WaitsFor>,
}

/// A task that runs, and how far it is.
#[derive(Debug)]
pub struct Running {
    pub task: Task,
    /// The supervisor's last snapshot, if there is one.
    pub snapshot: Option<Value>,
}

impl Running {
    fn of(registry: &Registry, task: Task) -> Running {
        // One that cannot be read is one that is not known.
        let bytes = registry.dir().task(&task.id).read_snapshot().ok().flatten();
        let snapshot = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Running { task, snapshot }
    }
}

/// How many unread results are named.
const UNREAD_NAMED: u32 = 20;

impl Engine {
    /// Running, queued and lately ended tasks, after looking after them. `None`: there never was a task.
    pub fn overview(&self, wanted: &Wanted) -> Result<Option<Overview>, EngineError> {
        let Some(mut registry) = self.find()? else { return Ok(None) };
        self.rescue_unless_lately(&mut registry)?;
        let (mut active, ended) = match &wanted.only {
            Some(id) => split(registry.get(id)?),
            None => {
                let Wanted { ended_since_ms, ended_limit, ended_before, .. } = *wanted;
                let ended = registry.ended(&wanted.filter, ended_since_ms, ended_limit, ended_before)?;
                (living(&registry, &wanted.filter)?, ended)
            }
        };
        // The list is newest first; whoever waits longest stands first.
        active.reverse();
        let (queued, running): (Vec<Task>, Vec<Task>) =
            active.into_iter().partition(|task| task.state == State::Queued);
        Ok(Some(Overview {
            running: running.into_iter().map(|task| Running::of(&registry, task)).collect(),
            queued: placed(&registry, queued)?,
            ended,
            unread: registry.unread(&wanted.under, UNREAD_NAMED)?,
            queue_paused: registry.queue_paused()?,
            long_log: LongLog::of(&registry),
        }))
    }
}

impl Engine {
    /// The tasks that pass the filter, newest first.
    pub fn newest(&self, filter: &Filter, limit: u32) -> Result<Vec<Task>, EngineError> {
        match self.find()? {
            Some(registry) => Ok(registry.list(filter, limit, None)?.tasks),
            None => Ok(Vec::new()),
        }
    }
}

/// Every task that has not ended and passes the filter, newest first.
pub(crate) fn living(registry: &Registry, filter: &Filter) -> Result<Vec<Task>, EngineError> {
    let alive = [State::Queued, State::Starting, State::Working];
    let states: Vec<State> = match filter.states.as_slice() {
        [] => alive.to_vec(),
        asked => alive.into_iter().filter(|state| asked.contains(state)).collect(),
    };
    if states.is_empty() {
        return Ok(Vec::new());
    }
    let filter = Filter { states, ..filter.clone() };
    Ok(registry.list(&filter, u32::MAX, None)?.tasks)
}

fn split(task: Option<Task>) -> (Vec<Task>, EndedPage) {
    let (ended, active): (Vec<Task>, Vec<Task>) = task.into_iter().partition(|task| task.state.is_terminal());
    (active, EndedPage { total: ended.len() as u64, tasks: ended, next: None })
}

fn placed(registry: &Registry, queued: Vec<Task>) -> Result<Vec<Queued>, EngineError> {
    if queued.is_empty() {
        return Ok(Vec::new());
    }
    let line = registry.queue_waits()?.into_iter().enumerate();
    let mut places: HashMap<TaskId, (usize, Option<WaitsFor>)> =
        line.map(|(position, (id, waits))| (id, (position, waits))).collect();
    let place = |task: Task| {
        // One that was started between the two looks is not in the queue any more.
        let (position, waiting_for) = places.remove(&task.id)?;
        Some(Queued { task, position, waiting_for })
    };
    Ok(queued.into_iter().filter_map(place).collect())
}
