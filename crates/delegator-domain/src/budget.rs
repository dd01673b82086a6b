//! Budgets: how much tasks may use, and whether they have.
//!
//! A budget covers one task, all tasks of a day, or all tasks with a label. A task that reaches 80 % of one
//! is warned about, a task that exhausts one is ended. Amounts that an agent does not report cannot be
//! limited.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Measure {
        Tokens = "tokens",
        Turns = "turns",
        /// In US cents.
        Cost = "cost_cents",
        /// In seconds.
        RunningTime = "running_sec",
    }
}

/// The tasks that share a budget. A day is one in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    Task,
    Day,
    Label { key: String, value: String },
}

impl std::fmt::Display for BudgetScope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BudgetScope::Task => formatter.write_str("the task"),
            BudgetScope::Day => formatter.write_str("the day"),
            BudgetScope::Label { key, value } => write!(formatter, "the label {key}={value}"),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    /// Input and output.
    pub tokens: u64,
    pub turns: u64,
    /// Millionths of a US dollar.
    pub cost_microdollars: u64,
    pub running_ms: u64,
}

impl Amounts {
    pub fn plus(self, other: Amounts) -> Amounts {
        Amounts {
            tokens: self.tokens.saturating_add(other.tokens),
            turns: self.turns.saturating_add(other.turns),
            cost_microdollars: self.cost_microdollars.saturating_add(other.cost_microdollars),
            running_ms: self.running_ms.saturating_add(other.running_ms),
        }
    }

    /// In millionths of the unit of the measure.
    fn of(self, measure: Measure) -> u128 {
        match measure {
            Measure::Tokens => u128::from(self.tokens) * MILLION,
            Measure::Turns => u128::from(self.turns) * MILLION,
            Measure::Cost => u128::from(self.cost_microdollars) * 100,
            Measure::RunningTime => u128::from(self.running_ms) * 1000,
        }
    }
}

const MILLION: u128 = 1_000_000;

/// The limits of a budget; an absent one limits nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    pub tokens: Option<u64>,
    pub turns: Option<u64>,
    pub cost_cents: Option<u64>,
    pub running_sec: Option<u64>,
}

impl Caps {
    pub fn is_empty(self) -> bool {
        self == Caps::default()
    }

    pub fn of(self, measure: Measure) -> Option<u64> {
        match measure {
            Measure::Tokens => self.tokens,
            Measure::Turns => self.turns,
            Measure::Cost => self.cost_cents,
            Measure::RunningTime => self.running_sec,
        }
    }

    pub fn lower(self, other: Caps) -> Caps {
        let lower = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Caps {
            tokens: lower(self.tokens, other.tokens),
            turns: lower(self.turns, other.turns),
            cost_cents: lower(self.cost_cents, other.cost_cents),
            running_sec: lower(self.running_sec, other.running_sec),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub scope: BudgetScope,
    pub caps: Caps,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetLevel {
    /// At least 80 %.
    Near,
    Exhausted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetFinding {
    pub level: BudgetLevel,
    pub scope: BudgetScope,
    pub measure: Measure,
    pub used: u64,
    pub cap: u64,
}

impl std::fmt::Display for BudgetFinding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BudgetFinding { scope, used, cap, .. } = self;
        match self.measure {
            Measure::Tokens => write!(formatter, "{used} of {cap} tokens of {scope} are used"),
            Measure::Turns => write!(formatter, "{used} of {cap} turns of {scope} are used"),
            Measure::Cost => write!(formatter, "{used} of {cap} US cents of {scope} are used"),
            Measure::RunningTime => {
                write!(formatter, "{used} of {cap} s of running time of {scope} are used")
            }
        }
    }
}

/// What each measure of a budget says, given what its scope has used.
pub fn check(budget: &Budget, used: Amounts) -> impl Iterator<Item = BudgetFinding> + '_ {
    Measure::ALL.into_iter().filter_map(move |measure| {
        let cap = budget.caps.of(measure)?;
        let used = used.of(measure);
        let limit = u128::from(cap) * MILLION;
        let level = if used >= limit {
            BudgetLevel::Exhausted
        } else if used * 5 >= limit * 4 {
            BudgetLevel::Near
        } else {
            return None;
        };
        let used = u64::try_from(used / MILLION).unwrap_or(u64::MAX);
        Some(BudgetFinding { level, scope: budget.scope.clone(), measure, used, cap })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(caps: Caps, used: Amounts) -> Vec<(Measure, BudgetLevel)> {
        let budget = Budget { scope: BudgetScope::Task, caps };
        check(&budget, used).map(|finding| (finding.measure, finding.level)).collect()
    }

    #[test]
    fn a_budget_is_near_at_80_percent_and_exhausted_at_100() {
        let caps = Caps { tokens: Some(1000), ..Caps::default() };
        let used = |tokens| Amounts { tokens, ..Amounts::default() };
        assert_eq!(levels(caps, used(799)), []);
        assert_eq!(levels(caps, used(800)), [(Measure::Tokens, BudgetLevel::Near)]);
        assert_eq!(levels(caps, used(999)), [(Measure::Tokens, BudgetLevel::Near)]);
        assert_eq!(levels(caps, used(1000)), [(Measure::Tokens, BudgetLevel::Exhausted)]);
    }

    #[test]
    fn fractions_of_a_cent_and_of_a_second_count() {
        let caps = Caps { cost_cents: Some(1), running_sec: Some(1), ..Caps::default() };
        let used = Amounts { cost_microdollars: 8_000, running_ms: 999, ..Amounts::default() };
        let near = [(Measure::Cost, BudgetLevel::Near), (Measure::RunningTime, BudgetLevel::Near)];
        assert_eq!(levels(caps, used), near);
        let exhausted = Amounts { cost_microdollars: 10_000, running_ms: 1000, ..used };
        assert_eq!(
            levels(caps, exhausted),
            [(Measure::Cost, BudgetLevel::Exhausted), (Measure::RunningTime, BudgetLevel::Exhausted)]
        );
    }

    #[test]
    fn the_lower_of_two_limits_applies() {
        let a = Caps { tokens: Some(5), turns: Some(2), ..Caps::default() };
        let b = Caps { tokens: Some(3), cost_cents: Some(9), ..Caps::default() };
        let expected = Caps { tokens: Some(3), turns: Some(2), cost_cents: Some(9), running_sec: None };
        assert_eq!(a.lower(b), expected);
    }
}
