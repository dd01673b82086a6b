//! `notify`: the configured channels and the notifications that were not delivered; `--test` sends a test
//! notification, `--retry` sends the others again.
//!
//! A test is one attempt per channel, made by this process, so that its result is shown at once.

use delegator_domain::notification::Channel;
use delegator_engine::{Notifications, UndeliveredNotifications};
use delegator_registry::StoredNotification;

use crate::commands::local::tasks::notifications;
use crate::commands::prelude::*;

const RETRY_ADVICE: &str = "These keep the settings with which their tasks were submitted. After a correction, run: mcp-delegator notify --retry";
const MAX_LISTED: u32 = 20;

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Notify {
    /// Send a test notification through every configured channel
    pub test: bool,
    /// Send what was not delivered again now, with the current settings
    pub retry: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NotifyOutput {
    /// Notifications that are sent again because of this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried_count: Option<usize>,
    /// The configured channels.
    pub channels: Vec<ChannelData>,
    /// Notifications that are to be sent, the next one first.
    pub pending_notifications: Vec<NotificationData>,
    /// Notifications that were given up, the newest first.
    pub failed_notifications: Vec<NotificationData>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChannelData {
    /// `command`, `webhook` or `desktop`
    pub channel: &'static str,
    /// Whether the test notification was delivered.
    pub is_delivered: Option<bool>,
    /// Why it was not.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NotificationData {
    /// What has ended: `task`, `group` or `chain`
    pub subject: &'static str,
    /// The id of the task or the group; of a chain, that of its first task.
    pub subject_id: String,
    /// `command`, `webhook` or `desktop`
    pub channel: &'static str,
    pub attempt_count: u32,
    /// When it ended.
    pub created_at: UtcTime,
    /// When the next attempt may begin; not of failed ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<UtcTime>,
    pub last_error: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Shows the configured channels and the notifications that were not delivered. With --test, sends a test notification and fails if a channel fails. With --retry, sends what was not delivered again with the current settings: a pending notification otherwise keeps those of the time when its task was submitted.",
    shape: Shape::Show("delivery"),
    network: true,
    toolset: Toolset::Hidden,
    failures: &[ErrorCode::NetworkError, ErrorCode::DependencyMissing],
    examples: &[
        example("mcp-delegator notify", "what could not be delivered, and why"),
        example("mcp-delegator notify --test", "whether each channel works"),
        example("mcp-delegator notify --retry", "delivery after a wrong URL was corrected"),
    ],
    ..CommandSpec::new::<Notify, NotifyOutput>(
        &["notify"],
        "Show or retry undelivered notifications, or send a test notification",
    )
};

pub fn run(context: &Context<'_>, input: Notify) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let configured = notifications(context);
    let retried_count = match (&configured, input.retry) {
        (Some(configured), true) => Some(engine.outbox().retry(configured)?),
        (None, true) => return Err(no_channel()),
        (_, false) => None,
    };
    let UndeliveredNotifications { pending, failed } = engine.outbox().undelivered(MAX_LISTED)?;
    let listed = |found: &[StoredNotification]| found.iter().map(NotificationData::of).collect();
    let mut data = NotifyOutput {
        retried_count,
        channels: Vec::new(),
        pending_notifications: listed(&pending),
        failed_notifications: listed(&failed),
    };
    data.channels = match (&configured, input.test) {
        (Some(configured), true) => send_tests(context, &engine, configured)?,
        (Some(configured), false) => {
            configured.plan.channels.iter().map(|channel| untested(*channel)).collect()
        }
        (None, true) => return Err(no_channel()),
        (None, false) => Vec::new(),
    };
    let failed = data.channels.iter().find(|channel| channel.is_delivered == Some(false)).map(test_error);
    Ok(CommandOutput::of(data, failed))
}

fn send_tests(
    context: &Context<'_>,
    engine: &Engine,
    Notifications { plan, settings }: &Notifications,
) -> Result<Vec<ChannelData>, AppError> {
    let working_dir = context.process.current_dir.display().to_string();
    let send = |channel: &Channel| {
        let sent = engine.outbox().send_test(*channel, settings, &working_dir)?;
        let (is_delivered, error) = (Some(sent.is_ok()), sent.err().map(|error| error.to_string()));
        Ok(ChannelData { is_delivered, error, ..untested(*channel) })
    };
    plan.channels.iter().map(send).collect()
}

fn untested(channel: Channel) -> ChannelData {
    ChannelData { channel: channel.name(), is_delivered: None, error: None }
}

fn no_channel() -> AppError {
    AppError::new(ErrorCode::ConfigInvalid, "No notification is configured.")
        .suggest("Set notify.command, notify.webhook or notify.desktop in the configuration file.")
}

fn test_error(channel: &ChannelData) -> AppError {
    let code = if channel.channel == Channel::Webhook.name() {
        ErrorCode::NetworkError
    } else {
        ErrorCode::DependencyMissing
    };
    let reason = channel.error.as_deref().unwrap_or_default();
    AppError::new(code, format!("The test notification through {} failed: {reason}.", channel.channel))
        .suggest("Correct notify in the configuration file, then run the test again.")
}

impl NotificationData {
    fn of(found: &StoredNotification) -> NotificationData {
        let is_pending = found.state == delegator_domain::notification::DeliveryState::Pending;
        NotificationData {
            subject: found.subject.kind().name(),
            subject_id: found.subject.id().to_owned(),
            channel: found.channel.name(),
            attempt_count: found.attempts,
            created_at: UtcTime::from_ms(found.created_at_ms),
            next_attempt_at: is_pending.then(|| UtcTime::from_ms(found.due_at_ms)),
            last_error: found.last_error.clone(),
        }
    }
}

impl CommandData for NotifyOutput {
    fn document(&self) -> Document {
        let lists = [(&self.pending_notifications, "To be sent:"), (&self.failed_notifications, "Given up:")];
        if self.channels.is_empty() && lists.iter().all(|(list, _)| list.is_empty()) {
            return Document::titled("No notification is configured");
        }
        let channels = self.channels.iter().map(fact).collect();
        let mut document = Document::titled("Notifications").block(Block::Facts(channels));
        for (list, title) in lists.into_iter().filter(|(list, _)| !list.is_empty()) {
            let columns = vec!["subject", "id", "channel", "attempts", "last error"];
            let rows = list.iter().map(row).collect();
            document = document.text(title).block(Block::Table { columns, rows });
        }
        let has_error = lists.iter().flat_map(|(list, _)| *list).any(|found| found.last_error.is_some());
        match self.retried_count {
            Some(count) => document.text(format!("{} sent again.", plural(count, "notification"))),
            None if has_error => document.text(RETRY_ADVICE),
            None => document,
        }
    }
}

fn fact(channel: &ChannelData) -> (String, String) {
    let result = match channel.is_delivered {
        None => "configured".to_owned(),
        Some(true) => "test delivered".to_owned(),
        Some(false) => format!("test failed: {}", channel.error.as_deref().unwrap_or_default()),
    };
    (channel.channel.to_owned(), result)
}

fn row(found: &NotificationData) -> Vec<String> {
    vec![
        found.subject.to_owned(),
        found.subject_id.clone(),
        found.channel.to_owned(),
        found.attempt_count.to_string(),
        cell(found.last_error.as_ref()),
    ]
}
