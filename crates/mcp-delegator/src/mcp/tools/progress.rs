//! Progress notifications of a call: the first is sent at once, the next ones every few seconds.
//! `progress_scale` computes their numbers.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};

use crate::mcp::RequestContext;
use crate::mcp::tools::progress_scale::{ProgressScale, TaskPosition};

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
    pub async fn start(context: &RequestContext, about: &str) -> Option<ProgressReporter> {
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
pub(super) async fn report_at_once<T, P: Future<Output = TaskPosition>>(
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
