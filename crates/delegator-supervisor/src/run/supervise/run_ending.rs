//! Why and how a run is ended.

use std::time::Duration;

use super::RunContext;
use crate::ending::{EndSignal, Ending, EndingRecipe, EndingStep};
use crate::verdict::Cause;

#[derive(Debug, Default)]
pub(super) struct RunEnding {
    pub(super) cause: Option<Cause>,
    forced: Option<Ending>,
    /// The end of an agent that has ended its last turn.
    pub(super) finishing: Option<Ending>,
    /// Whether a step of the forced ending reached the agent.
    has_reached_agent: bool,
    pub(super) signals: Vec<EndSignal>,
}

impl RunEnding {
    pub(super) fn is_forced(&self) -> bool {
        self.forced.is_some()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.current().is_some()
    }

    pub(super) fn current(&self) -> Option<&Ending> {
        self.forced.as_ref().or(self.finishing.as_ref())
    }

    /// Ends the agent by force. An agent that has ended its last turn has its result: there is nothing left
    /// to cancel or to limit.
    pub(super) fn force(&mut self, cause: Cause, run: &RunContext<'_>) {
        if !self.has_begun() {
            let recipe = match cause {
                Cause::TooManyProcesses { .. } => EndingRecipe::kill(),
                _ => run.spec.plan.ending.clone(),
            };
            self.forced = Some(Ending::start(recipe, run.now()));
            self.cause = Some(cause);
        }
    }

    pub(super) fn turn_ended(&mut self, now: Duration) {
        if let Some(ending) = &mut self.forced {
            ending.turn_ended(now);
        }
    }

    pub(super) fn next_step(&mut self, now: Duration) -> Option<EndingStep> {
        self.forced.as_mut().or(self.finishing.as_mut())?.next_step(now)
    }

    pub(super) fn record_step(&mut self, signal: Option<EndSignal>) {
        if self.is_forced() {
            self.has_reached_agent = true;
            self.signals.extend(signal);
        }
    }

    /// The agent has exited. If that was before our first step reached it, its own end counts.
    pub(super) fn record_exit(&mut self) {
        if !self.has_reached_agent {
            self.cause = self.cause.take().filter(|cause| matches!(cause, Cause::Internal { .. }));
        }
    }
}
