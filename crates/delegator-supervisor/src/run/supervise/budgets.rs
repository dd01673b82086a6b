//! Watches the budgets that apply to a run.
//!
//! Most agents report tokens and costs only at the end of a turn, so a budget can be exceeded by what one turn uses.

use std::time::Duration;

use delegator_domain::budget::{Amounts, BudgetFinding, BudgetLevel, check};
use delegator_transcript::{Report, TurnState};

use super::{Run, UPKEEP_INTERVAL};
use crate::verdict::Cause;

#[derive(Debug, Default)]
pub(super) struct BudgetWatch {
    /// What other tasks have used of each budget, and when that was read.
    others: Vec<Amounts>,
    read_at: Option<Duration>,
    /// Budgets that are nearly or completely used, each reported once per level.
    findings: Vec<BudgetFinding>,
}

impl BudgetWatch {
    pub(super) fn findings(&self) -> &[BudgetFinding] {
        &self.findings
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.findings.iter().map(|finding| format!("budget: {finding}"))
    }
}

impl Run<'_> {
    /// Ends a turn that has exhausted a budget. Between two turns no further one is begun.
    pub(super) fn enforce_budgets(&mut self, now: Duration) {
        let Some((exhausted, turn)) = self.record_budgets(now) else { return };
        match turn {
            TurnState::Completed | TurnState::Failed => self.talk.take_no_more(),
            TurnState::None | TurnState::Running | TurnState::Interrupted => {
                self.begin_ending(Cause::Budget(exhausted));
            }
        }
    }

    /// Records which budgets are nearly or completely used. Returns an exhausted one and the state of the turn.
    pub(super) fn record_budgets(&mut self, now: Duration) -> Option<(BudgetFinding, TurnState)> {
        if self.spec.budgets.is_empty() {
            return None;
        }
        if self.budgets.read_at.is_none_or(|read_at| now >= read_at + UPKEEP_INTERVAL) {
            self.budgets.read_at = Some(now);
            let scopes = self.spec.budgets.iter().map(|budget| &budget.scope);
            self.budgets.others = scopes.map(|scope| self.ports.used_by_others(scope)).collect();
        }
        let report = self.stdout.as_ref()?.summarizer.report();
        let own = used(&report, now);
        let budgets = self.spec.budgets.iter().zip(&self.budgets.others);
        let found: Vec<_> = budgets.flat_map(|(budget, others)| check(budget, others.plus(own))).collect();
        let key = |finding: &BudgetFinding| (finding.level, finding.scope.clone(), finding.measure);
        for finding in &found {
            if self.budgets.findings.iter().all(|known| key(known) != key(finding)) {
                self.budgets.findings.push(finding.clone());
            }
        }
        let exhausted = found.into_iter().find(|finding| finding.level == BudgetLevel::Exhausted);
        exhausted.map(|finding| (finding, report.turn))
    }
}

/// What a run has used so far.
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
