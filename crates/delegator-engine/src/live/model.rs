//! Keeps the state of all tasks up to date and records what changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use delegator_registry::ChangeMark;

use super::change_log::{ChangeLog, Cursor, Update};
use super::state::{LiveOverall, LiveState};
use crate::Engine;
use crate::error::Result;
use crate::shared::connection_pool::PooledConnection;

/// Tasks leave the list a day after their end, which nothing announces.
const LONGEST_KNOWN: Duration = Duration::from_secs(30);

/// Reads the tasks when they may have changed.
#[derive(Debug)]
pub(crate) struct TaskReader {
    engine: Engine,
    /// `None` until the registry exists.
    registry: Option<PooledConnection>,
    /// The change mark of the registry when the tasks were read, when that was, and whether they change by themselves.
    last: Option<(ChangeMark, Instant, bool)>,
}

impl TaskReader {
    pub(crate) fn new(engine: Engine) -> TaskReader {
        TaskReader { engine, registry: None, last: None }
    }

    /// The tasks, if they may be others than the last time.
    pub(crate) fn read(&mut self) -> Result<Option<LiveState>> {
        if self.registry.as_ref().is_none_or(|registry| !registry.is_current()) {
            self.registry = self.engine.find_registry()?;
            self.last = None;
        }
        let Some(registry) = &self.registry else { return Ok(Some(LiveState::default())) };
        // Before the tasks are read, so that a change meanwhile is noticed the next time.
        let mark = registry.change_mark()?;
        let is_known = |(known, at, changes): &(ChangeMark, Instant, bool)| {
            *known == mark && at.elapsed() < LONGEST_KNOWN && !changes
        };
        if self.last.as_ref().is_some_and(is_known) {
            return Ok(None);
        }
        let state = LiveState::read(&self.engine, registry)?;
        self.last = Some((mark, Instant::now(), state.changes_by_itself()));
        Ok(Some(state))
    }
}

/// What readers get: the state that was read last, and the changes that led to it.
#[derive(Debug)]
pub(crate) struct LiveModel {
    state: Arc<LiveState>,
    log: ChangeLog,
    /// Whether the state is that of now; not before it is read, and not while there is no reader.
    is_current: bool,
}

impl LiveModel {
    pub(crate) fn new(log: u64) -> LiveModel {
        LiveModel { state: Arc::default(), log: ChangeLog::new(log), is_current: false }
    }

    /// Shows the tasks as they were, and why they could not be read.
    pub(super) fn fail(&mut self, problem: String) -> bool {
        let overall = LiveOverall { problem: Some(problem), ..(*self.state.overall).clone() };
        self.set(LiveState { overall: Arc::new(overall), ..(*self.state).clone() })
    }

    /// The tasks as they are now, if a reader keeps them up to date.
    pub(super) fn current(&self) -> Option<Arc<LiveState>> {
        self.is_current.then(|| Arc::clone(&self.state))
    }

    /// Returns whether there is news for readers.
    pub(crate) fn set(&mut self, state: LiveState) -> bool {
        let changes = self.state.changes_to(&state);
        let has_news = !changes.is_empty() || !self.is_current;
        changes.into_iter().for_each(|change| self.log.push(change));
        self.state = Arc::new(state);
        self.is_current = true;
        has_news
    }

    /// No reader is left, so the state grows old.
    pub(super) fn rest(&mut self) {
        self.is_current = false;
    }

    /// What a reader at this place has to learn; `None` if that is nothing.
    pub(crate) fn update(&self, cursor: Option<Cursor>) -> Option<Update> {
        if !self.is_current {
            return None;
        }
        match cursor.map(|cursor| self.log.after(cursor)) {
            Some(Some(changes)) if changes.is_empty() => None,
            Some(Some(changes)) => Some(Update::Changes {
                changes,
                overall: Arc::clone(&self.state.overall),
                cursor: self.log.end(),
            }),
            gap => Some(Update::Snapshot {
                state: Arc::clone(&self.state),
                has_gap: gap.is_some(),
                cursor: self.log.end(),
            }),
        }
    }
}
