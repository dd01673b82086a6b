//! The states of a task and the only transition table.
//!
//! ```text
//! queued → starting → working → completed | failed | cancelled | timeout
//! queued → cancelled
//! starting → queued                      only when the supervisor provably never ran
//! starting → failed | cancelled
//! ```
//!
//! A terminal state never changes. An illegal transition is an error value, not a panic: two processes may
//! always try at the same time.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum State {
        Queued = "queued",
        Starting = "starting",
        Working = "working",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Timeout = "timeout",
    }
}

impl State {
    /// All states that have the public name of this one.
    pub fn with_same_public_name(self) -> Vec<State> {
        State::ALL.into_iter().filter(|state| state.public_name() == self.public_name()).collect()
    }

    /// The name shown to callers: `starting` is internal and shown as `working`.
    pub fn public_name(self) -> &'static str {
        match self {
            State::Starting => State::Working.name(),
            other => other.name(),
        }
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled | State::Timeout)
    }
}

/// A legal change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transition {
    pub from: State,
    pub to: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task cannot go from {} to {}", from.name(), to.name())]
pub struct TransitionError {
    pub from: State,
    pub to: State,
}

/// The transition, if the table allows it.
pub fn transition(from: State, to: State) -> Result<Transition, TransitionError> {
    let allowed = match from {
        State::Queued => matches!(to, State::Starting | State::Cancelled),
        State::Starting => matches!(to, State::Working | State::Queued | State::Failed | State::Cancelled),
        State::Working => to.is_terminal(),
        State::Completed | State::Failed | State::Cancelled | State::Timeout => false,
    };
    if allowed { Ok(Transition { from, to }) } else { Err(TransitionError { from, to }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_states_never_change() {
        for from in State::ALL.into_iter().filter(|state| state.is_terminal()) {
            for to in State::ALL {
                assert_eq!(transition(from, to), Err(TransitionError { from, to }));
            }
        }
    }

    #[test]
    fn live_tasks_can_be_cancelled_and_only_working_ones_complete() {
        for from in [State::Queued, State::Starting, State::Working] {
            assert!(transition(from, State::Cancelled).is_ok());
            assert_eq!(transition(from, State::Completed).is_ok(), from == State::Working);
        }
    }

    #[test]
    fn state_names_round_trip() {
        for state in State::ALL {
            assert_eq!(State::from_name(state.name()), Some(state));
        }
        assert_eq!(State::Starting.public_name(), "working");
    }
}
