//! Cleaning up: ending what is stuck, forgetting what is old, removing what crashes left.
//!
//! Nothing that lives is touched: a task is stuck only if nobody holds its lock, and only ended ones are forgotten. A few
//! at a time, so that nobody waits long for the registry.

use delegator_domain::task::{State, TaskId};
use delegator_registry::{Leftover, LeftoverKind, Registry};
use delegator_supervisor::agent::Variables;

use crate::Engine;
use crate::clock::now_ms;
use crate::error::EngineError;
use crate::rescue::is_abandoned;

/// What counts as stuck, and as old.
#[derive(Debug, Clone)]
pub struct Cleaning {
    pub stuck_after_ms: i64,
    pub old_after_ms: i64,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Where git is found, whose refs go with the tasks that made them.
    pub environment: Variables,
}

#[derive(Debug, Default)]
pub struct Cleaned {
    pub stuck: Vec<TaskId>,
    /// Of these, how many are ended now.
    pub stuck_ended: usize,
    pub old_found: u64,
    pub old_forgotten: u64,
    pub oldest_age_ms: Option<i64>,
    /// What crashes left: found, and removed.
    pub leftovers: Vec<Leftover>,
    pub leftovers_removed: usize,
    /// Directories with results whose task is not in the registry; they are kept.
    pub unclaimed: Vec<TaskId>,
}

/// A submit that is under way has a directory and no row for a moment.
const LEFTOVER_AFTER_MS: i64 = 60 * 60 * 1000;
const FORGET_AT_ONCE: u32 = 2_000;
/// How often retention runs by itself, and how much it forgets each time.
const RETENTION_EVERY_MS: i64 = 60 * 60 * 1000;
const RETENTION_AT_ONCE: u32 = 1_000;
/// Where git is looked for when nobody is there to say.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

impl Engine {
    pub fn clean(&self, cleaning: &Cleaning) -> Result<Cleaned, EngineError> {
        let Some(mut registry) = self.find()? else { return Ok(Cleaned::default()) };
        let mut cleaned = Cleaned::default();
        self.end_stuck(&mut registry, cleaning, &mut cleaned)?;
        self.forget_old(&mut registry, cleaning, &mut cleaned)?;
        remove_leftovers(&mut registry, cleaning, &mut cleaned)?;
        if !cleaning.dry_run {
            self.promote(&mut registry)?;
        }
        Ok(cleaned)
    }

    fn end_stuck(
        &self,
        registry: &mut Registry,
        cleaning: &Cleaning,
        cleaned: &mut Cleaned,
    ) -> Result<(), EngineError> {
        let before = now_ms() - cleaning.stuck_after_ms;
        for active in registry.active()? {
            let since = active.started_at_ms.unwrap_or(active.claimed_at_ms);
            if since > before || !is_abandoned(registry, &active)? {
                continue;
            }
            cleaned.stuck.push(active.id.clone());
            if !cleaning.dry_run {
                self.rescue_one(registry, &active)?;
                let now = registry.get(&active.id)?;
                let still = |state| matches!(state, State::Starting | State::Working);
                cleaned.stuck_ended += usize::from(now.is_none_or(|task| !still(task.state)));
            }
        }
        Ok(())
    }

    fn forget_old(
        &self,
        registry: &mut Registry,
        cleaning: &Cleaning,
        cleaned: &mut Cleaned,
    ) -> Result<(), EngineError> {
        let before = now_ms() - cleaning.old_after_ms;
        cleaned.old_found = registry.count_old(before)?;
        let oldest = registry.old(before, 1)?.into_iter().next();
        let oldest = oldest.map(|id| registry.get(&id)).transpose()?.flatten();
        cleaned.oldest_age_ms =
            oldest.and_then(|task| task.retained_since_ms()).map(|since| now_ms() - since);
        if cleaning.dry_run {
            return Ok(());
        }
        loop {
            match self.forget_some(registry, (before, FORGET_AT_ONCE), &cleaning.environment)? {
                0 => return Ok(()),
                forgotten => cleaned.old_forgotten += forgotten,
            }
        }
    }

    /// Forgets some of those that ended before; how many.
    fn forget_some(
        &self,
        registry: &mut Registry,
        (before_ms, at_most): (i64, u32),
        environment: &Variables,
    ) -> Result<u64, EngineError> {
        let ids = registry.old(before_ms, at_most)?;
        for id in &ids {
            // A repository that cannot be reached keeps a ref, and no task is kept for it.
            let _ = self.drop_restore_point(id, environment);
        }
        Ok(registry.forget(&ids)?.forgotten.len() as u64)
    }

    /// Forgets what is older than the retention, if nobody did so lately.
    pub(crate) fn retain(&self, registry: &mut Registry) -> Result<(), EngineError> {
        let Some(retention_ms) = self.retention_ms else { return Ok(()) };
        let now = now_ms();
        if registry.take_turn("retention", RETENTION_EVERY_MS, now)? {
            let usual: Variables = vec![("PATH".into(), USUAL_PATH.into())];
            self.forget_some(registry, (now - retention_ms, RETENTION_AT_ONCE), &usual)?;
            registry.finish_forgetting()?;
        }
        Ok(())
    }
}

fn remove_leftovers(
    registry: &mut Registry,
    cleaning: &Cleaning,
    cleaned: &mut Cleaned,
) -> Result<(), EngineError> {
    let found = registry.orphans(now_ms() - LEFTOVER_AFTER_MS)?;
    let (unclaimed, leftovers): (Vec<Leftover>, Vec<Leftover>) =
        found.into_iter().partition(|leftover| leftover.kind == LeftoverKind::Unclaimed);
    cleaned.unclaimed = unclaimed.into_iter().map(|leftover| leftover.id).collect();
    if !cleaning.dry_run {
        cleaned.leftovers_removed = registry.remove_orphans(&leftovers)?.len();
    }
    cleaned.leftovers = leftovers;
    Ok(())
}
