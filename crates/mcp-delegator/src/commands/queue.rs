//! `queue pause` and `queue resume`: hold the queue, and let it go.

use serde_json::{Value, json};

use super::inputs::NoInputs;
use super::local::tasks::engine;
use crate::fault::AppError;
use crate::outcome::Answer;
use crate::registry::{CommandSpec, Shape, typed};
use crate::run::Context;
use crate::views::document::Document;

pub const PAUSE: CommandSpec = CommandSpec {
    details: "What runs goes on, and tasks are still accepted. It holds for everybody who uses this state directory.",
    shape: Shape::Action("queue_paused"),
    idempotent: true,
    describe,
    run: Some(|context, input| typed(context, input, pause)),
    ..CommandSpec::declare::<NoInputs>(&["queue", "pause"], "Start no queued task until resumed")
};

pub const RESUME: CommandSpec = CommandSpec {
    shape: Shape::Action("queue_resumed"),
    idempotent: true,
    describe,
    run: Some(|context, input| typed(context, input, resume)),
    ..CommandSpec::declare::<NoInputs>(&["queue", "resume"], "Start queued tasks again")
};

fn pause(context: &Context<'_>, _: NoInputs) -> Result<Answer, AppError> {
    hold(context, true)
}

fn resume(context: &Context<'_>, _: NoInputs) -> Result<Answer, AppError> {
    hold(context, false)
}

fn hold(context: &Context<'_>, paused: bool) -> Result<Answer, AppError> {
    let held = engine(context)?.hold_queue(paused)?;
    Ok(Answer::done(json!({
        "paused": paused,
        "was_paused": held.was_paused,
        "running": held.running,
        "queued": held.queued,
    })))
}

fn describe(data: &Value) -> Document {
    let paused = data["paused"].as_bool().unwrap_or_default();
    let unchanged = data["was_paused"].as_bool() == Some(paused);
    let already = if unchanged { "already " } else { "" };
    let state = if paused { "paused" } else { "open" };
    let counts = format!("{} running, {} queued", data["running"], data["queued"]);
    Document::titled(format!("The queue is {already}{state}: {counts}"))
}
