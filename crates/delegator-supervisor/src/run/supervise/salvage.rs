//! Asks an agent to stop and report shortly before a limit, if it takes messages during a turn.
//!
//! The task of an agent that ends its turn then still counts as ended by the limit: what the agent would have
//! done without the request is unknown.

use delegator_domain::message::{Delivery, MessageNumber, OWN_MESSAGE};

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
    Reported(Cause),
}

impl Salvage {
    pub(super) fn is_requested(&self) -> bool {
        !matches!(self, Salvage::NotRequested)
    }

    /// Records the limit that is near and returns the request.
    pub(super) fn request(&mut self, cause: Cause) -> Control {
        *self = Salvage::Requested(cause);
        Control::Message { number: OWN_MESSAGE, text: REQUEST.to_owned(), delivery: Delivery::Now }
    }

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

#[cfg(test)]
mod tests {
    use delegator_domain::task::LimitKind;

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
