//! The notifications of submitted tasks: when and how they are sent is stored with the task, because another
//! process may record its end and a third one delivers.

use delegator_domain::notification::NotifyPlan;
use delegator_notify::NotifySettings;
use delegator_registry::TaskNotify;

use super::format_version::encode;
use crate::Engine;
use crate::error::Result;

#[derive(Debug, Clone)]
pub struct Notifications {
    pub plan: NotifyPlan,
    pub settings: NotifySettings,
}

pub(crate) fn task_notify(engine: &Engine) -> Result<Option<TaskNotify>> {
    let Some(Notifications { plan, settings }) = engine.notifications.as_deref() else { return Ok(None) };
    Ok(Some(TaskNotify { plan: plan.clone(), settings: stored_settings(settings)? }))
}

pub(crate) fn stored_settings(settings: &NotifySettings) -> Result<Vec<u8>> {
    encode("write the notification settings", settings).map(String::into_bytes)
}
