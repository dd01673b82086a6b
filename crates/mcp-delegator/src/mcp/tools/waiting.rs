//! Progress notifications of calls, and waiting for tasks on behalf of many calls.
//!
//! The first notification is sent at once, the next ones every few seconds; `progress` computes their
//! numbers. A wait lives as long as its ticket: when the call is cancelled or its connection breaks, the
//! future and with it the ticket is dropped. The wait ends; the task continues.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use delegator_engine::wait_thread::{GroupWaitOutcome, OpenQuestions, QuestionsCallback, WaitThread};
use delegator_engine::{Engine, EngineError};
use delegator_registry::Task;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::{oneshot, watch};

use crate::commands::blocking::TaskWait;
use crate::error::AppError;
use crate::mcp::tools::progress::{ProgressScale, TaskPosition};

/// Well within the 15 s that clients may expect.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct ProgressReporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    scale: Mutex<ProgressScale>,
}

impl ProgressReporter {
    /// `None` if the request has no progress token. Otherwise sends the first notification.
    pub async fn start(context: &RequestContext<RoleServer>, about: &str) -> Option<ProgressReporter> {
        let token = context.meta.get_progress_token()?;
        let reporter = ProgressReporter { peer: context.peer.clone(), token, scale: Mutex::default() };
        reporter.report(&TaskPosition::unknown(about)).await;
        Some(reporter)
    }

    async fn report(&self, position: &TaskPosition) {
        let value = self.scale.lock().unwrap_or_else(PoisonError::into_inner).next(position);
        let mut note = ProgressNotificationParam::new(self.token.clone(), value.progress);
        (note.total, note.message) = (value.total, Some(value.message));
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
    let mut work = std::pin::pin!(work);
    match tokio::time::timeout(PROGRESS_INTERVAL, &mut work).await {
        Ok(done) => done,
        Err(_) => report_at_once(reporter, || std::future::ready(TaskPosition::unknown(about)), work).await,
    }
}

/// Awaits `work`, which ends within `limit`, and reports the seconds since its begin, at once and in every
/// interval.
pub async fn report_seconds_while<T>(
    reporter: Option<&ProgressReporter>,
    about: &str,
    limit: Duration,
    work: impl Future<Output = T>,
) -> T {
    let begin = Instant::now();
    let position = || std::future::ready(TaskPosition::before_tasks(about, begin.elapsed(), limit));
    report_at_once(reporter, position, work).await
}

/// Awaits `work`, and reports the position at once and in every interval until it is done.
async fn report_at_once<T, P: Future<Output = TaskPosition>>(
    reporter: Option<&ProgressReporter>,
    position: impl Fn() -> P,
    work: impl Future<Output = T>,
) -> T {
    let Some(reporter) = reporter else { return work.await };
    let mut work = std::pin::pin!(work);
    loop {
        reporter.report(&position().await).await;
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(PROGRESS_INTERVAL) => {}
        }
    }
}

/// Waits until the goal is reached or the timeout expires. `questions` gets the open questions of the tasks
/// meanwhile.
pub async fn wait_for_tasks(
    wait_thread: &WaitThread,
    engine: Engine,
    wait: &TaskWait,
    reporter: Option<&ProgressReporter>,
    questions: Option<watch::Sender<OpenQuestions>>,
) -> Result<GroupWaitOutcome, AppError> {
    let (sender, receiver) = oneshot::channel();
    let deadline = wait.timeout.map(|timeout| Instant::now() + timeout);
    let on_end = Box::new(move |outcome: Result<GroupWaitOutcome, EngineError>| drop(sender.send(outcome)));
    let on_questions = questions
        .map(|sender| -> QuestionsCallback { Box::new(move |open: OpenQuestions| drop(sender.send(open))) });
    let _ticket = wait_thread.wait(wait.ids.clone(), wait.goal, deadline, on_end, on_questions);
    let engine = Arc::new(engine);
    let outcome = report_at_once(reporter, || position(Arc::clone(&engine), wait), receiver).await;
    let lost = |_| Err(EngineError::WatchFailed { detail: "the watcher is gone".to_owned(), os_error: None });
    Ok(outcome.unwrap_or_else(lost)?)
}

/// What is known about the tasks. Errors are not reported here: the wait itself fails with them.
async fn position(engine: Arc<Engine>, wait: &TaskWait) -> TaskPosition {
    let ids = wait.ids.clone();
    let read = move || {
        let tasks: Vec<Task> = ids.iter().filter_map(|id| engine.task(id).ok()).collect();
        match tasks.as_slice() {
            [] => TaskPosition::unknown("Waiting for tasks"),
            [task] if ids.len() == 1 => {
                let snapshot = engine.files(&task.id).ok().and_then(|files| files.snapshot);
                let now_ms = jiff::Timestamp::now().as_millisecond();
                let limit_sec = engine.hard_limit_sec(&task.id);
                TaskPosition::of_task(task, snapshot.as_ref(), limit_sec, now_ms)
            }
            several => TaskPosition::of_tasks(several),
        }
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}
