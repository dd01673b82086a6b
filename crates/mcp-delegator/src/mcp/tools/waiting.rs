//! Progress notifications of calls, and waiting for tasks on behalf of many calls.
//!
//! The first notification is sent at once, the next ones every few seconds. A wait lives as long as its ticket: when the
//! call is cancelled or its connection breaks, the future and with it the ticket is dropped. The wait ends; the task
//! continues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use delegator_engine::wait_thread::{GroupWaitOutcome, WaitThread};
use delegator_engine::{Engine, EngineError};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::oneshot;

use crate::commands::blocking::TaskWait;
use crate::error::AppError;
use crate::output::data::task as task_data;

/// Well within the 15 s that clients may expect.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Sends the progress of one call to its client.
#[derive(Debug, Clone)]
pub struct ProgressReporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// The elapsed time is the progress value, because MCP requires a value that never decreases.
    since: Instant,
}

impl ProgressReporter {
    /// `None` if the request has no progress token. Otherwise sends the first notification.
    pub async fn start(context: &RequestContext<RoleServer>, about: &str) -> Option<ProgressReporter> {
        let token = context.meta.get_progress_token()?;
        let reporter = ProgressReporter { peer: context.peer.clone(), token, since: Instant::now() };
        reporter.report(about).await;
        Some(reporter)
    }

    async fn report(&self, message: impl Into<String>) {
        let elapsed = self.since.elapsed().as_secs_f64();
        let note = ProgressNotificationParam::new(self.token.clone(), elapsed).with_message(message);
        // The transport detects a client that is gone.
        let _ = self.peer.notify_progress(note).await;
    }
}

/// Awaits `work` and reports `about` in every interval until it is done.
pub async fn report_while<T>(
    reporter: Option<&ProgressReporter>,
    about: &str,
    work: impl Future<Output = T>,
) -> T {
    let Some(reporter) = reporter else { return work.await };
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(PROGRESS_INTERVAL) => reporter.report(about).await,
        }
    }
}

/// Waits until the goal is reached or the timeout expires.
pub async fn wait_for_tasks(
    wait_thread: &WaitThread,
    engine: Engine,
    wait: &TaskWait,
    reporter: Option<&ProgressReporter>,
) -> Result<GroupWaitOutcome, AppError> {
    let (sender, mut receiver) = oneshot::channel();
    let deadline = wait.timeout.map(|timeout| Instant::now() + timeout);
    let on_end = Box::new(move |outcome: Result<GroupWaitOutcome, EngineError>| drop(sender.send(outcome)));
    let _ticket = wait_thread.wait(wait.ids.clone(), wait.goal, deadline, on_end);
    let Some(reporter) = reporter else { return watch_result(receiver.await) };
    let engine = Arc::new(engine);
    loop {
        reporter.report(activity(Arc::clone(&engine), wait).await).await;
        tokio::select! {
            outcome = &mut receiver => return watch_result(outcome),
            () = tokio::time::sleep(PROGRESS_INTERVAL) => {}
        }
    }
}

fn watch_result(
    outcome: Result<Result<GroupWaitOutcome, EngineError>, oneshot::error::RecvError>,
) -> Result<GroupWaitOutcome, AppError> {
    match outcome {
        Ok(outcome) => Ok(outcome?),
        Err(_) => {
            Err(EngineError::WatchFailed { detail: "the watcher is gone".to_owned(), os_error: None }.into())
        }
    }
}

/// The current activity of the tasks, for a person.
async fn activity(engine: Arc<Engine>, wait: &TaskWait) -> String {
    let ids = wait.ids.clone();
    let read = move || {
        let id = match ids.as_slice() {
            [id] => id,
            several => return format!("Waiting for {} tasks", several.len()),
        };
        let snapshot = engine.files(id).ok().and_then(|files| files.snapshot);
        let activity = snapshot.as_ref().and_then(|snapshot| snapshot.current_activity.as_deref());
        match (activity, snapshot.as_ref().and_then(task_data::percent)) {
            (Some(activity), Some(percent)) => format!("{activity} ({percent} %)"),
            (Some(activity), None) => activity.to_owned(),
            _ => format!("Waiting for {id}"),
        }
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}
