//! Watches the budgets that apply to a run.
//!
//! Most agents report tokens and costs only at the end of a turn, so a budget can be exceeded by what one
//! turn uses.

use std::time::Duration;

use delegator_domain::budget::{Amounts, BudgetFinding, BudgetLevel, check};
use delegator_transcript::{Report, TurnState};

use super::{RunContext, UPKEEP_INTERVAL};

#[derive(Debug, Default)]
pub(super) struct BudgetWatch {
    /// What other tasks have used of each budget, and when that was read.
    others: Vec<Amounts>,
    read_at: Option<Duration>,
    /// Budgets that are nearly or completely used, each reported once per level.
    pub(super) findings: Vec<BudgetFinding>,
}

impl BudgetWatch {
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.findings.iter().map(|finding| format!("budget: {finding}"))
    }

    /// Records which budgets are nearly or completely used. Returns an exhausted one.
    pub(super) fn update(
        &mut self,
        now: Duration,
        run: &RunContext<'_>,
        report: &Report,
    ) -> Option<BudgetFinding> {
        let budgets = &run.spec.budgets;
        if self.read_at.is_none_or(|read_at| now >= read_at + UPKEEP_INTERVAL) {
            self.read_at = Some(now);
            self.others = budgets.iter().map(|budget| run.ports.used_by_others(&budget.scope)).collect();
        }
        let own = used(report, now);
        let budgets = budgets.iter().zip(&self.others);
        let found: Vec<_> = budgets.flat_map(|(budget, others)| check(budget, others.plus(own))).collect();
        let key = |finding: &BudgetFinding| (finding.level, finding.scope.clone(), finding.measure);
        for finding in &found {
            if self.findings.iter().all(|known| key(known) != key(finding)) {
                if self.findings.is_empty() && finding.level == BudgetLevel::Near {
                    run.ports.on_budget_near(finding);
                }
                self.findings.push(finding.clone());
            }
        }
        found.into_iter().find(|finding| finding.level == BudgetLevel::Exhausted)
    }
}

fn used(report: &Report, elapsed: Duration) -> Amounts {
    let count = |count: i64| u64::try_from(count).unwrap_or_default();
    let own = report.usage.map(|usage| usage.own);
    Amounts {
        tokens: own.map_or(0, |own| count(own.input_tokens).saturating_add(count(own.output_tokens))),
        // The running turn is not used up.
        turns: report.turns.saturating_sub(u64::from(report.turn == TurnState::Running)),
        cost_microdollars: report.cost.map_or(0, |cost| cost.own),
        running_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
    }
}
