//! The live view in the model: after every step its readers show what the registry has, and nothing else.

use delegator_registry::Registry;

use super::invariants::{CheckResult, ensure};
use crate::live::{LiveModel, TaskReader};
use crate::{Cursor, Engine, LiveState, Update};

/// How many steps the slow reader lets pass.
const SLOW_STEPS: usize = 40;

#[derive(Debug)]
pub(super) struct LiveCheck {
    tasks: TaskReader,
    model: LiveModel,
    quick: Reader,
    slow: Reader,
}

#[derive(Debug, Default)]
struct Reader {
    cursor: Option<Cursor>,
    state: LiveState,
}

impl Reader {
    fn read(&mut self, model: &LiveModel) {
        match model.update(self.cursor) {
            None => {}
            Some(Update::Snapshot { state, cursor, .. }) => {
                (self.state, self.cursor) = ((*state).clone(), Some(cursor));
            }
            Some(Update::Changes { changes, cursor, .. }) => {
                changes.iter().for_each(|(_, change)| self.state.apply(change));
                self.cursor = Some(cursor);
            }
        }
    }
}

impl LiveCheck {
    pub(super) fn new(engine: &Engine) -> LiveCheck {
        let (tasks, model) = (TaskReader::new(engine.clone()), LiveModel::new(1));
        LiveCheck { tasks, model, quick: Reader::default(), slow: Reader::default() }
    }

    pub(super) fn check(&mut self, engine: &Engine, observer: &Registry, step: usize) -> CheckResult {
        let read = self.tasks.read().map_err(|error| format!("the live view: {error}"))?;
        read.map(|state| self.model.set(state));
        let stored = LiveState::read(engine, observer).map_err(|error| error.to_string())?;
        let reads_slowly = step.is_multiple_of(SLOW_STEPS);
        for reader in [Some(&mut self.quick), reads_slowly.then_some(&mut self.slow)].into_iter().flatten() {
            reader.read(&self.model);
            ensure(reader.state == stored, || {
                format!("a reader shows {:#?}, the registry has {stored:#?}", reader.state)
            })?;
        }
        Ok(())
    }
}
