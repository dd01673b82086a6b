//! Sends notifications about the end of tasks, groups and chains, and about tasks that need a person: the only
//! crate that runs the user's command, calls the webhook or shows a desktop notification.
//!
//! [`send`] makes one attempt through one channel, within a time limit, and says why it failed. When to send,
//! how often to try again and what is recorded is decided by the engine. [`Notification`] is what is sent;
//! all of its texts are bounded and redacted when it is created. No error contains the URL or the secret of
//! the webhook.

mod command;
mod live;
#[cfg(test)]
mod live_tests;
mod notification;
mod settings;
mod subject;
mod text;
mod text_bounds;
mod webhook;
mod webhook_body;

use delegator_domain::notification::Channel;

pub use command::{NOTIFY_SEND, find_program};
pub use live::{LiveNeed, NeedyTask};
pub use notification::{MAX_MERGED, Notification};
pub use settings::{NotifySettings, Webhook, read_secret};
pub use subject::{Failure, NotifiedTask, NotifiedWork};
pub use webhook_body::check_webhook_url;

/// Why an attempt failed, in one line, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SendError(String);

impl SendError {
    fn new(reason: impl Into<String>) -> SendError {
        SendError(reason.into())
    }
}

pub fn send(
    channel: Channel,
    settings: &NotifySettings,
    notification: &Notification,
    now_ms: i64,
) -> Result<(), SendError> {
    let sent = match channel {
        Channel::Command => command::run_command(settings, notification),
        Channel::Desktop => command::show_on_desktop(settings, notification),
        Channel::Webhook => webhook::post(settings, notification, now_ms),
    };
    sent.map_err(|SendError(reason)| SendError(settings.redactor().redact_str(&reason).into_owned()))
}
