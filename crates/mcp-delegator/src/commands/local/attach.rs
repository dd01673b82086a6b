//! Waits for tasks on the command line. A person sees what their agents do, and answers their questions.
//!
//! While a call waits, the signal handler knows all tasks of the call (`Attachment`): Ctrl-C detaches from
//! them and never cancels them at once (see `app::signals`).

use std::time::Instant;

use delegator_domain::task::State;
use delegator_engine::WaitOutcome;
use delegator_engine::wait_thread::{GroupWaitOutcome, WaitGoal};
use indicatif::ProgressBar;

use crate::commands::local::question_prompt::QuestionPrompt;
use crate::commands::local::wait_progress::WaitProgress;
use crate::commands::prelude::*;
use crate::commands::{Started, TaskWait};
use crate::output::awaited_task::AttachedTasks;
use crate::output::data::warnings;
use crate::output::outcome::WaitHint;

pub fn complete(context: &Context<'_>, started: Started) -> Result<CommandOutput, AppError> {
    let (TaskWait { ids, goal, timeout }, after) = match started {
        Started::Finished(output) => return Ok(*output),
        Started::Waiting(wait, after) => (wait, after),
    };
    let engine = engine(context)?;
    let deadline = timeout.map(|within| Instant::now() + within);
    let reattach = WaitHint::for_tasks(&ids);
    let mut questions = QuestionPrompt::new(context, &engine, &ids);
    if timeout.is_none() {
        announce_paused_queue(context, &engine, &ids);
    }
    if let ([_, _, ..], WaitGoal::Any) = (ids.as_slice(), goal) {
        context.screen.attachment.set(Some(attached(context, &engine, reattach, ProgressBar::hidden())));
        tracing::debug!(tasks = ids.len(), "waiting for a task");
        let outcome =
            engine.waits().for_group(&ids, goal, deadline, || questions.step(&ProgressBar::hidden()));
        context.screen.attachment.set(None);
        return after.output(context, outcome?);
    }
    // Waits for one task after the other; together this takes as long as the slowest.
    let mut outcome = GroupWaitOutcome { tasks: Vec::new(), expired: false };
    for id in &ids {
        let waited = attach_and_ask(context, &engine, id, reattach.clone(), deadline, &mut questions)?;
        outcome.expired |= waited.expired;
        outcome.tasks.push(waited.task);
    }
    after.output(context, outcome)
}

/// Tells the user at once that a task cannot start, because the wait has no end otherwise.
fn announce_paused_queue(context: &Context<'_>, engine: &Engine, ids: &[TaskId]) {
    let is_waiting = |task: &Task| task.state == State::Queued && task.remote.is_none();
    let is_queued = |id: &TaskId| engine.results().task(id).is_ok_and(|task| is_waiting(&task));
    // An error here is one of the wait, too, which reports it.
    if engine.queue().is_paused().unwrap_or(false) && ids.iter().any(is_queued) {
        context.screen.announce(&format!("warning: {}", warnings::queue_paused().message));
    }
    for pause in engine.queue().agent_pauses().unwrap_or_default() {
        let waits =
            |id| engine.results().task(id).is_ok_and(|task| is_waiting(&task) && task.agent == pause.agent);
        if ids.iter().any(waits) {
            context.screen.announce(&format!("warning: {}", warnings::agent_paused(&pause).message));
        }
    }
}

pub fn attach(
    context: &Context<'_>,
    engine: &Engine,
    id: &TaskId,
    reattach: WaitHint,
) -> Result<WaitOutcome, AppError> {
    let mut questions = QuestionPrompt::new(context, engine, std::slice::from_ref(id));
    attach_and_ask(context, engine, id, reattach, None, &mut questions)
}

/// `reattach` and `questions` are about all tasks that the call waits for.
fn attach_and_ask(
    context: &Context<'_>,
    engine: &Engine,
    id: &TaskId,
    reattach: WaitHint,
    deadline: Option<Instant>,
    questions: &mut QuestionPrompt<'_>,
) -> Result<WaitOutcome, AppError> {
    let progress = WaitProgress::new(context, engine);
    context.screen.attachment.set(Some(attached(context, engine, reattach, progress.bar.clone())));
    tracing::debug!(task = id.as_str(), "waiting for a task");
    let waited = engine.waits().for_task(id, deadline, |progressed| {
        if !questions.is_asking() {
            progress.show(progressed);
        }
        questions.step(&progress.bar);
        if questions.is_asking() {
            progress.hide();
        }
    });
    progress.bar.finish_and_clear();
    context.screen.attachment.set(None);
    Ok(waited?)
}

fn attached(context: &Context<'_>, engine: &Engine, reattach: WaitHint, bar: ProgressBar) -> AttachedTasks {
    AttachedTasks { engine: engine.clone(), reattach, cancel_timeout: max_cancel_time(context), bar }
}

/// Time for the sweep and for a busy machine, in addition to the grace periods.
const SWEEP_ALLOWANCE: Duration = Duration::from_secs(15);

pub fn max_cancel_time(context: &Context<'_>) -> Duration {
    let settings = &context.config.settings;
    settings.interrupt_grace + settings.terminate_grace + SWEEP_ALLOWANCE
}
