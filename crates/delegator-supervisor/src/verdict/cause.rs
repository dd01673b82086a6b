//! Why the supervisor ends a run.

use delegator_domain::budget::BudgetFinding;
use delegator_domain::task::LimitKind;

/// Why the supervisor ended the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    Cancelled {
        reason: Option<String>,
    },
    Limit(LimitKind),
    TooManyProcesses {
        count: usize,
    },
    /// It is exhausted.
    Budget(BudgetFinding),
    WrongThread {
        expected: String,
        announced: String,
    },
    /// An error of the supervisor itself.
    Internal {
        message: String,
    },
}
