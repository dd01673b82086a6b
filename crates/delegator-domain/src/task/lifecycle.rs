//! The states of a task and the only table of what may follow what.
//!
//! ```text
//! queued → starting → working → completed | failed | cancelled | timeout
//! queued → cancelled
//! starting → queued                      only when the supervisor provably never ran
//! starting → failed | cancelled
//! ```
//!
//! A terminal state never changes. An illegal transition is a value, not a panic: two actors may always try at once.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    Queued,
    Starting,
    Working,
    Completed,
    Failed,
    Cancelled,
    Timeout,
}

impl State {
    pub const ALL: [State; 7] = [
        State::Queued,
        State::Starting,
        State::Working,
        State::Completed,
        State::Failed,
        State::Cancelled,
        State::Timeout,
    ];

    /// The word it is stored under.
    pub fn name(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Starting => "starting",
            State::Working => "working",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Timeout => "timeout",
        }
    }

    pub fn from_name(name: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The word callers see: that a supervisor is being started is nobody's business.
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

/// A change of state that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transition {
    pub from: State,
    pub to: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransitionError {
    pub from: State,
    pub to: State,
}

impl std::fmt::Display for TransitionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a task cannot go from {} to {}", self.from.name(), self.to.name())
    }
}

impl std::error::Error for TransitionError {}

/// Whether a task may go from one state to another.
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
