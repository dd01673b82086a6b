//! Waits for tasks on behalf of many calls.
//!
//! A wait lives as long as its ticket: when the call is cancelled or its connection breaks, the future and
//! with it the ticket is dropped. The wait ends; the task continues.

use std::sync::Arc;
use std::time::Instant;

use delegator_engine::wait_thread::{GroupWaitOutcome, OpenQuestions, QuestionsCallback, WaitThread};
use delegator_engine::{Engine, EngineError};
use delegator_registry::Task;
use tokio::sync::{oneshot, watch};

use crate::commands::TaskWait;
use crate::error::AppError;
use crate::mcp::tools::progress::{ProgressReporter, report_at_once};
use crate::mcp::tools::progress_scale::TaskPosition;

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
        let tasks: Vec<Task> = ids.iter().filter_map(|id| engine.results().task(id).ok()).collect();
        match tasks.as_slice() {
            [] => TaskPosition::unknown("Waiting for tasks"),
            [task] if ids.len() == 1 => {
                let snapshot = engine.results().files(&task.id).ok().and_then(|files| files.snapshot);
                let now_ms = jiff::Timestamp::now().as_millisecond();
                let limit_sec = engine.results().hard_limit_sec(&task.id);
                TaskPosition::of_task(task, snapshot.as_ref(), limit_sec, now_ms)
            }
            several => TaskPosition::of_tasks(several),
        }
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}
