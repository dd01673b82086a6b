//! `notify`: the configured channels, the notifications that were not delivered and the last ones that were;
//! `--test` sends a test notification, `--retry` sends what was not delivered again.
//!
//! A test is one attempt per channel, made by this process, so that its result is shown at once.

use delegator_domain::notification::Channel;
use delegator_engine::{ListedNotifications, Notifications, check_webhook_url};

use crate::commands::local::tasks::notifications;
use crate::commands::prelude::*;
use crate::output::data::notification::{NotificationData, append_notifications};

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
    /// The last ones that were delivered or dropped, the newest first.
    pub recent_notifications: Vec<NotificationData>,
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

pub const SPEC: CommandSpec = CommandSpec {
    details: "Shows the configured channels, the notifications that were not delivered and the last ones that were delivered or dropped. With --test, sends a test notification and fails if a channel fails. With --retry, sends what was not delivered again with the current settings: a pending notification otherwise keeps those of the time when its task was submitted.",
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
    let is_used = input.test || input.retry;
    if let Some(problem) = configured.as_ref().filter(|_| is_used).and_then(webhook_problem) {
        return Err(AppError::new(ErrorCode::ConfigInvalid, format!("{problem}."))
            .suggest("Correct notify.webhook or its format."));
    }
    let retried_count = match (&configured, input.retry) {
        (Some(configured), true) => Some(engine.outbox().retry(configured)?),
        (None, true) => return Err(no_channel()),
        (_, false) => None,
    };
    let ListedNotifications { pending, failed, recent } = engine.outbox().notifications(MAX_LISTED)?;
    let mut data = NotifyOutput {
        retried_count,
        channels: Vec::new(),
        pending_notifications: pending.iter().map(Into::into).collect(),
        failed_notifications: failed.iter().map(Into::into).collect(),
        recent_notifications: recent.iter().map(Into::into).collect(),
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

/// Why the URL of the webhook cannot be one of a service with the configured format.
pub fn webhook_problem(Notifications { settings, .. }: &Notifications) -> Option<String> {
    let webhook = settings.webhook.as_ref()?;
    let problem = check_webhook_url(webhook.format, &webhook.url).err()?;
    Some(format!("notify.webhook does not fit notify.webhook_format: {problem}"))
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

impl CommandData for NotifyOutput {
    fn document(&self) -> Document {
        let lists = [
            ("To be sent:", &self.pending_notifications),
            ("Given up:", &self.failed_notifications),
            ("Recent:", &self.recent_notifications),
        ];
        if self.channels.is_empty() && lists.iter().all(|(_, list)| list.is_empty()) {
            return Document::titled("No notification is configured");
        }
        let channels = self.channels.iter().map(fact).collect();
        let document = Document::titled("Notifications").block(Block::Facts(channels));
        let document = lists
            .into_iter()
            .fold(document, |document, (title, list)| append_notifications(document, title, list));
        let undelivered = self.pending_notifications.iter().chain(&self.failed_notifications);
        match self.retried_count {
            Some(count) => document.text(format!("{} sent again.", plural(count, "notification"))),
            None if undelivered.into_iter().any(|found| found.last_error.is_some()) => {
                document.text(RETRY_ADVICE)
            }
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
