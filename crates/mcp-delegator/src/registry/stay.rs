//! Commands that stay with tasks until they end.
//!
//! Such a command says how it begins and what it answers when the wait is over; the waiting is done by whoever runs it:
//! in its own thread on the command line, all together in one thread in a server.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::resident::{Goal, Watched};
use serde_json::{Map, Value};

use crate::fault::AppError;
use crate::outcome::Answer;
use crate::run::Context;

#[derive(Debug, Clone, Copy)]
pub struct Stay {
    pub begin: fn(&Context<'_>, &Value) -> Result<Begun, AppError>,
    pub end: fn(&Context<'_>, &Value, Watched) -> Result<Answer, AppError>,
}

/// How it began.
#[derive(Debug)]
pub enum Begun {
    /// There is nothing to wait for.
    Over(Box<Answer>),
    Staying(Staying),
}

/// What is awaited.
#[derive(Debug, Clone)]
pub struct Staying {
    pub ids: Vec<TaskId>,
    pub goal: Goal,
    /// For how long; `None`: as long as it takes.
    pub within: Option<Duration>,
    /// What the beginning already knows about the answer.
    pub facts: Map<String, Value>,
}
