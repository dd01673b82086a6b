//! Checks of notifications, if a channel is configured or one was not delivered: programs, the secret, and
//! the last error.

use std::ffi::OsStr;

use delegator_domain::notification::Channel;
use delegator_engine::{NOTIFY_SEND, find_program, read_webhook_secret};
use delegator_registry::StoredNotification;

use super::check::Check;
use crate::commands::local::tasks::notifications;
use crate::commands::notify::webhook_problem;
use crate::commands::prelude::*;

const NAME: &str = "notifications";
const MAX_COUNTED: u32 = 1_000;

pub fn checks(context: &Context<'_>) -> Vec<Check> {
    let mut checks: Vec<Check> = [program(context), url(context), secret(context), undelivered(context)]
        .into_iter()
        .flatten()
        .collect();
    if let Some(notifications) = notifications(context)
        && checks.is_empty()
    {
        let names: Vec<&str> = notifications.plan.channels.iter().map(|channel| channel.name()).collect();
        checks.push(Check::ok(NAME, format!("sent through: {}", names.join(", "))));
    }
    checks
}

fn program(context: &Context<'_>) -> Option<Check> {
    let path = context.process.environment.get(OsStr::new("PATH")).map(|path| path.as_os_str());
    let settings = &context.config.settings;
    let command = settings.notify_command.as_ref().and_then(|command| command.first());
    if let Some(program) = command.filter(|program| find_program(program, path).is_none()) {
        let message = format!("the program of notify.command was not found: {program}");
        let advice = "Install it, or correct notify.command.";
        return Some(Check::problem(NAME, ErrorCode::DependencyMissing, message, advice));
    }
    (settings.notify_desktop && find_program(NOTIFY_SEND, path).is_none()).then(|| {
        let message = format!("notify.desktop needs {NOTIFY_SEND}, which is not installed");
        let advice = "Install it (package libnotify-bin or libnotify), or remove notify.desktop.";
        Check::problem(NAME, ErrorCode::DependencyMissing, message, advice)
    })
}

fn url(context: &Context<'_>) -> Option<Check> {
    let problem = webhook_problem(&notifications(context)?)?;
    Some(Check::problem(NAME, ErrorCode::ConfigInvalid, problem, "Correct notify.webhook or its format."))
}

fn secret(context: &Context<'_>) -> Option<Check> {
    let path = context.config.settings.notify_webhook_secret_file.as_deref()?;
    if context.config.settings.notify_webhook.is_none() {
        let message = "notify.webhook_secret_file has no effect without notify.webhook";
        return Some(Check::warning(NAME, message, "Set notify.webhook, or remove it."));
    }
    if let Err(error) = read_webhook_secret(path) {
        let advice = "Write the secret into the file, or correct notify.webhook_secret_file.";
        return Some(Check::problem(NAME, ErrorCode::ConfigInvalid, error.to_string(), advice));
    }
    Check::readable_by_others(NAME, path, "the webhook secret")
}

fn undelivered(context: &Context<'_>) -> Option<Check> {
    // An error here is one of the state directory, too, which reports it.
    let found = engine(context).ok()?.outbox().notifications(MAX_COUNTED).ok()?;
    let is_retried = |notification: &&StoredNotification| notification.last_error.is_some();
    let retried: Vec<&StoredNotification> = found.pending.iter().filter(is_retried).collect();
    let last = found.failed.first().or(retried.first().copied())?;
    let counts = format!(
        "{} given up, {} tried again",
        plural(found.failed.len(), "notification"),
        plural(retried.len(), "notification")
    );
    let channel: Channel = last.channel;
    let reason = last.last_error.as_deref().unwrap_or_default();
    let message = format!("{counts}; last error of {}: {reason}", channel.name());
    Some(Check::warning(NAME, message, "Run: mcp-delegator notify --test"))
}
