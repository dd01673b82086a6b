//! Staying with a task: progress on a terminal, and letting go of it.

use std::time::{Duration, Instant};

use delegator_engine::resident::{Goal, Watched};
use delegator_engine::{Engine, Progressed, Waited};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::tasks::engine;
use crate::fault::AppError;
use crate::interrupt::Attached;
use crate::outcome::{Answer, WayBack};
use crate::registry::stay::{Begun, Stay, Staying};
use crate::run::Context;

/// A command that stays with tasks, in this very thread.
pub fn stay(context: &Context<'_>, input: &Value, stay: &Stay) -> Result<Answer, AppError> {
    let Staying { ids, goal, within, facts } = match (stay.begin)(context, input)? {
        Begun::Over(answer) => return Ok(*answer),
        Begun::Staying(staying) => staying,
    };
    let engine = engine(context)?;
    let deadline = within.map(|within| Instant::now() + within);
    let mut expired = false;
    let mut tasks = Vec::new();
    if let ([_, _, ..], Goal::Any) = (ids.as_slice(), goal) {
        expired = engine.wait_any(&ids, deadline)?.0.expired;
        tasks = ids.iter().map(|id| engine.task(id)).collect::<Result<_, _>>()?;
    } else {
        // One after the other: the last to end decides.
        for id in &ids {
            let waited = attach(context, &engine, WayBack::to(id), deadline)?;
            expired |= waited.expired;
            tasks.push(waited.task);
        }
    }
    let mut answer = (stay.end)(context, input, Watched { tasks, expired })?;
    answer.facts.extend(facts);
    Ok(answer)
}

/// Waits for a task and shows how far it is.
pub fn attach(
    context: &Context<'_>,
    engine: &Engine,
    way_back: WayBack,
    deadline: Option<Instant>,
) -> Result<Waited, AppError> {
    let (bar, id) = (bar(context), way_back.task.clone());
    let (engine, patience) = (engine.clone(), ending_may_take(context));
    let attached = Attached { engine: engine.clone(), way_back, patience, bar: bar.clone() };
    context.screen.attachment.set(Some(attached));
    tracing::debug!(task = id.as_str(), "staying with a task");
    let waited = engine.wait(&id, deadline, |progressed| {
        show(&bar, progressed);
        true
    });
    bar.finish_and_clear();
    context.screen.attachment.set(None);
    Ok(waited?)
}

/// The graces of the recipe, the sweep, and a little for a busy machine.
const BEYOND_THE_GRACES: u64 = 15;

/// How long ending a task may take.
pub fn ending_may_take(context: &Context<'_>) -> Duration {
    let graces = context.config.number("interrupt_grace_sec") + context.config.number("terminate_grace_sec");
    Duration::from_secs(graces + BEYOND_THE_GRACES)
}

fn bar(context: &Context<'_>) -> ProgressBar {
    if !context.screen.presentation.shows_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(100);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {elapsed}  {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, progressed: &Progressed<'_>) {
    let snapshot = progressed.snapshot.as_ref();
    let percent = snapshot.and_then(|snapshot| snapshot.pointer("/progress/percent")).and_then(Value::as_u64);
    let activity = snapshot.and_then(|snapshot| snapshot["current_activity"].as_str());
    bar.set_position(percent.unwrap_or(0));
    let words = activity.unwrap_or(match progressed.task.state {
        delegator_domain::task::State::Queued => "Waiting for a free slot",
        _ => "Starting",
    });
    bar.set_message(delegator_domain::terminal::sanitize(words).into_owned());
}
