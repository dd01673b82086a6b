//! Telling whoever asked how far a call is, at once and every few seconds, and staying with tasks on behalf of many calls.
//!
//! The wait hangs on a ticket. When the call is cancelled, or its connection is gone, the future is dropped and the
//! ticket with it: the wait is over, the task goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use delegator_engine::wait_thread::{GroupWaitOutcome, WaitThread};
use delegator_engine::{Engine, EngineError};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::oneshot;

use crate::error::AppError;
use crate::spec::waiting::TaskWait;
use crate::views::task as view;

/// Well within the 15 s a host may expect.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Who is told how far a call is.
#[derive(Debug, Clone)]
pub struct ProgressReporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// What is told never decreases: it is how long the call has taken.
    since: Instant,
}

impl ProgressReporter {
    /// Whoever asks with a token; told what is done before it is.
    pub async fn start(context: &RequestContext<RoleServer>, about: &str) -> Option<ProgressReporter> {
        let token = context.meta.get_progress_token()?;
        let listener = ProgressReporter { peer: context.peer.clone(), token, since: Instant::now() };
        listener.report(about).await;
        Some(listener)
    }

    async fn report(&self, message: impl Into<String>) {
        let elapsed = self.since.elapsed().as_secs_f64();
        let note = ProgressNotificationParam::new(self.token.clone(), elapsed).with_message(message);
        // Somebody who does not listen any more is found out by the transport.
        let _ = self.peer.notify_progress(note).await;
    }
}

/// Does something that says nothing about itself, and tells of it again and again until it is done.
pub async fn report_while<T>(
    listener: Option<&ProgressReporter>,
    about: &str,
    work: impl Future<Output = T>,
) -> T {
    let Some(listener) = listener else { return work.await };
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(PROGRESS_INTERVAL) => listener.report(about).await,
        }
    }
}

/// Until the goal is reached or the time is over.
pub async fn wait_for_tasks(
    resident: &WaitThread,
    engine: Engine,
    staying: &TaskWait,
    listener: Option<&ProgressReporter>,
) -> Result<GroupWaitOutcome, AppError> {
    let (tell, mut told) = oneshot::channel();
    let deadline = staying.timeout.map(|within| Instant::now() + within);
    let when_over = Box::new(move |how: Result<GroupWaitOutcome, EngineError>| drop(tell.send(how)));
    let _ticket = resident.wait(staying.ids.clone(), staying.goal, deadline, when_over);
    let Some(listener) = listener else { return watch_result(told.await) };
    let engine = Arc::new(engine);
    loop {
        listener.report(activity(Arc::clone(&engine), staying).await).await;
        tokio::select! {
            how = &mut told => return watch_result(how),
            () = tokio::time::sleep(PROGRESS_INTERVAL) => {}
        }
    }
}

fn watch_result(
    how: Result<Result<GroupWaitOutcome, EngineError>, oneshot::error::RecvError>,
) -> Result<GroupWaitOutcome, AppError> {
    match how {
        Ok(told) => Ok(told?),
        Err(_) => {
            Err(EngineError::WatchFailed { detail: "the watcher is gone".to_owned(), os_error: None }.into())
        }
    }
}

/// What is being done, in words a person understands.
async fn activity(engine: Arc<Engine>, staying: &TaskWait) -> String {
    let ids = staying.ids.clone();
    let read = move || {
        let one = match ids.as_slice() {
            [one] => one,
            several => return format!("Waiting for {} tasks", several.len()),
        };
        let snapshot = engine.files(one).ok().and_then(|files| files.snapshot);
        let words = snapshot.as_ref().and_then(|snapshot| snapshot["current_activity"].as_str());
        match (words, snapshot.as_ref().and_then(view::percent)) {
            (Some(words), Some(percent)) => format!("{words} ({percent} %)"),
            (Some(words), None) => words.to_owned(),
            _ => format!("Waiting for {one}"),
        }
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}
