//! Asks an agent to stop and report shortly before a limit, if it takes messages during a turn.
//!
//! The task of an agent that ends its turn then still counts as ended by the limit: what the agent would have done without
//! the request is unknown.

use std::time::Duration;

use delegator_domain::budget::BudgetLevel;
use delegator_domain::message::{Delivery, MessageNumber, OWN_MESSAGE};
use delegator_domain::task::LimitKind;

use super::Run;
use crate::conversation::Control;
use crate::verdict::Cause;

const REQUEST: &str = "Stop working now: a limit of this task is nearly reached. Start nothing new. \
                       Reply with a short report: what is done, what is not, and what to do next.";

/// The request for a report. A cause is the limit that is near.
#[derive(Debug, Default)]
pub(super) enum Salvage {
    #[default]
    NotRequested,
    Requested(Cause),
    Refused,
    /// The agent has the request; its turn still runs.
    Accepted(Cause),
    /// It has ended the turn.
    Reported(Cause),
}

impl Salvage {
    /// Why the task ended, if the agent has reported.
    pub(super) fn cause(&self) -> Option<&Cause> {
        if let Salvage::Reported(cause) = self { Some(cause) } else { None }
    }

    /// Whether this message is the request, for which the agent's response is recorded here.
    pub(super) fn settle(&mut self, message: MessageNumber, is_accepted: bool) -> bool {
        if message != OWN_MESSAGE {
            return false;
        }
        *self = match std::mem::take(self) {
            Salvage::Requested(cause) if is_accepted => Salvage::Accepted(cause),
            _ => Salvage::Refused,
        };
        true
    }

    /// The turn has ended. Returns whether it was the last one.
    pub(super) fn end_turn(&mut self) -> bool {
        match std::mem::take(self) {
            Salvage::Accepted(cause) => *self = Salvage::Reported(cause),
            other => *self = other,
        }
        matches!(self, Salvage::Reported(_))
    }
}

impl Run<'_> {
    pub(super) fn request_report_if_due(&mut self, now: Duration) {
        let is_possible = self.spec.salvage
            && matches!(self.salvage, Salvage::NotRequested)
            && self.ending.is_none()
            && self.finishing.is_none()
            && self.dialogue.can_take(Delivery::Now)
            // While no turn runs, there is nothing to stop.
            && !self.dialogue.can_take(Delivery::Next);
        if !is_possible {
            return;
        }
        if let Some(cause) = self.near_limit(now) {
            self.salvage = Salvage::Requested(cause);
            let text = REQUEST.to_owned();
            self.control(Control::Message { number: OWN_MESSAGE, text, delivery: Delivery::Now });
        }
    }

    fn near_limit(&self, now: Duration) -> Option<Cause> {
        if self.limit_timers.is_hard_limit_near(now) {
            return Some(Cause::Limit(LimitKind::Hard));
        }
        let near = self.budgets.findings().iter().find(|finding| finding.level == BudgetLevel::Near);
        near.cloned().map(Cause::Budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSE: Cause = Cause::Limit(LimitKind::Hard);

    #[test]
    fn the_end_of_the_turn_counts_only_after_the_agent_took_the_request() {
        let mut salvage = Salvage::Requested(CAUSE);
        assert!(!salvage.end_turn() && salvage.cause().is_none());
        assert!(!salvage.settle(MessageNumber(1), true), "a message of a user");
        assert!(salvage.settle(OWN_MESSAGE, true));
        assert!(salvage.cause().is_none());
        assert!(salvage.end_turn());
        assert_eq!(salvage.cause(), Some(&CAUSE));
    }

    #[test]
    fn a_refused_request_changes_nothing() {
        let mut salvage = Salvage::Requested(CAUSE);
        assert!(salvage.settle(OWN_MESSAGE, false));
        assert!(!salvage.end_turn() && salvage.cause().is_none());
    }
}
