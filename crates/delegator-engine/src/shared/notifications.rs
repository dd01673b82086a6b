//! The notifications of submitted tasks: when and how they are sent is stored with the task, because another
//! process may record its end and a third one delivers.

use delegator_domain::notification::NotifyPlan;
use delegator_notify::NotifySettings;
use delegator_registry::TaskNotify;

use super::format_version::encode;
use crate::Engine;
use crate::error::EngineError;

/// The notifications of tasks that are submitted from now on.
#[derive(Debug, Clone)]
pub struct Notifications {
    pub plan: NotifyPlan,
    pub settings: NotifySettings,
}

impl Engine {
    /// The notifications of a new task; `None` without configured ones.
    pub(crate) fn task_notify(&self) -> Result<Option<TaskNotify>, EngineError> {
        let Some(Notifications { plan, settings }) = self.notifications.as_deref() else { return Ok(None) };
        Ok(Some(TaskNotify { plan: plan.clone(), settings: stored_settings(settings)? }))
    }
}

/// The content of the file in which the settings of a task's notifications are stored.
pub(crate) fn stored_settings(settings: &NotifySettings) -> Result<Vec<u8>, EngineError> {
    encode("write the notification settings", settings).map(String::into_bytes)
}
