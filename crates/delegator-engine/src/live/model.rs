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
const LONGEST_UNREAD: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct LiveModel {
    engine: Engine,
    /// `None` until the registry exists.
    registry: Option<PooledConnection>,
    state: Arc<LiveState>,
    log: ChangeLog,
    /// The change mark of the registry when the state was read, and when that was; `None` before the first time.
    read: Option<(Option<ChangeMark>, Instant)>,
}

impl LiveModel {
    pub(crate) fn new(engine: Engine) -> Result<LiveModel> {
        let [a, b, c, d, e, f, g, h, ..] = engine.random_bytes()?;
        Ok(LiveModel::with_log(engine, u64::from_be_bytes([a, b, c, d, e, f, g, h])))
    }

    pub(crate) fn with_log(engine: Engine, number: u64) -> LiveModel {
        let log = ChangeLog::new(number);
        LiveModel { engine, registry: None, state: Arc::default(), log, read: None }
    }

    /// Reads the tasks if they may have changed; returns whether they have.
    pub(crate) fn refresh(&mut self) -> Result<bool> {
        if self.registry.as_ref().is_none_or(|registry| !registry.is_current()) {
            self.registry = self.engine.find_registry()?;
            self.read = None;
        }
        let Some(registry) = &self.registry else { return Ok(self.set(LiveState::default(), None)) };
        // Before the tasks are read, so that a change meanwhile is noticed the next time.
        let mark = registry.change_mark()?;
        let is_known = self.read.as_ref().is_some_and(|(known, at)| {
            *known == Some(mark) && at.elapsed() < LONGEST_UNREAD && !self.state.changes_by_itself()
        });
        if is_known {
            return Ok(false);
        }
        let state = LiveState::read(&self.engine, registry)?;
        Ok(self.set(state, Some(mark)))
    }

    /// Shows the tasks as they were, and why they could not be read.
    pub(super) fn fail(&mut self, problem: String) {
        let overall = LiveOverall { problem: Some(problem), ..(*self.state.overall).clone() };
        self.set(LiveState { overall: Arc::new(overall), ..(*self.state).clone() }, None);
    }

    fn set(&mut self, state: LiveState, mark: Option<ChangeMark>) -> bool {
        let changes = self.state.changes_to(&state);
        let has_changed = !changes.is_empty() || self.read.is_none();
        changes.into_iter().for_each(|change| self.log.push(change));
        self.state = Arc::new(state);
        self.read = Some((mark, Instant::now()));
        has_changed
    }

    /// What a reader at this place has to learn; `None` if that is nothing.
    pub(crate) fn update(&self, cursor: Option<Cursor>) -> Option<Update> {
        // Nothing is known yet.
        self.read.as_ref()?;
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
