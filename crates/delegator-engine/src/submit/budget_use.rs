//! What tasks have used of a budget, and refusal of a task whose budget is exhausted.

use delegator_domain::budget::{Amounts, BudgetFinding, BudgetLevel, BudgetScope, check};
use delegator_domain::task::TaskId;
use delegator_registry::Registry;
use delegator_supervisor::run::Snapshot;

use super::launch_file::Settings;
use crate::Engine;
use crate::error::{EngineError, Result};
use crate::shared::snapshot_file::read_snapshot;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What the ended and the running tasks of a budget have used, except one task.
pub(crate) fn used_by_others(
    engine: &Engine,
    registry: &Registry,
    except: Option<&TaskId>,
    scope: &BudgetScope,
) -> Result<Amounts> {
    if *scope == BudgetScope::Task {
        return Ok(Amounts::default());
    }
    let now_ms = engine.now_ms();
    let mut used = registry.used(scope, now_ms - now_ms.rem_euclid(DAY_MS))?;
    for active in registry.active()? {
        if except != Some(&active.id) && is_in_scope(registry, &active.id, scope)? {
            // Without a snapshot, or with one that cannot be read, nothing is known of the task.
            let snapshot = read_snapshot(&registry.dir().task(&active.id)).ok().flatten();
            used = used.plus(snapshot.as_ref().map(used_so_far).unwrap_or_default());
        }
    }
    Ok(used)
}

fn is_in_scope(registry: &Registry, id: &TaskId, scope: &BudgetScope) -> Result<bool> {
    Ok(match scope {
        BudgetScope::Task => false,
        BudgetScope::Day => true,
        BudgetScope::Label { key, value } => {
            registry.get(id)?.is_some_and(|task| task.labels.get(key) == Some(value))
        }
    })
}

fn used_so_far(snapshot: &Snapshot) -> Amounts {
    let own = snapshot.usage.map(|usage| usage.own);
    let tokens = own.map_or(0, |own| own.input_tokens.saturating_add(own.output_tokens));
    Amounts {
        tokens: u64::try_from(tokens).unwrap_or_default(),
        running_ms: snapshot.elapsed_ms,
        ..Amounts::default()
    }
}

pub(super) fn check_budgets(engine: &Engine, settings: &Settings) -> Result<()> {
    if settings.budgets.iter().all(|budget| budget.scope == BudgetScope::Task) {
        return Ok(());
    }
    let Some(registry) = engine.find_registry()? else { return Ok(()) };
    for budget in &settings.budgets {
        let used = used_by_others(engine, &registry, None, &budget.scope)?;
        let is_exhausted = |finding: &BudgetFinding| finding.level == BudgetLevel::Exhausted;
        if let Some(finding) = check(budget, used).find(is_exhausted) {
            return Err(EngineError::BudgetExhausted { finding });
        }
    }
    Ok(())
}
