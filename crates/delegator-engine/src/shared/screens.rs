//! Marks tasks as shown to a person, so that no notification about them is sent meanwhile.

use delegator_domain::task::TaskId;
use delegator_registry::LockGuard;

use crate::Screens;

/// The marks of some tasks, until it is dropped or the process ends.
#[derive(Debug)]
pub struct OpenScreens {
    _marks: Vec<LockGuard>,
}

impl Screens<'_> {
    /// An error only means that the person also gets a notification, so it is ignored.
    pub fn open(&self, ids: &[TaskId]) -> OpenScreens {
        let registry = self.engine.find_registry().ok().flatten();
        let mark = |id| registry.as_ref()?.dir().task(id).mark_screen();
        OpenScreens { _marks: ids.iter().filter_map(mark).collect() }
    }
}
