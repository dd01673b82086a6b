//! A task whose supervisor is gone is ended by whoever finds out.
//!
//! A supervisor holds its task's lock as long as it lives. So whoever gets the lock of an active task knows that nobody
//! supervises it, and while he holds it nobody can begin to: he judges alone.

use delegator_domain::task::{End, FailureKind, State};
use delegator_registry::{Active, Attempt, Finish, LockAttempt, Registry};
use delegator_supervisor::process::{Cgroup, SweepLimits, sweep_lost};

use crate::clock::now_ms;
use crate::error::EngineError;
use crate::{Engine, wake};

/// How long a supervisor may take to come to life before anyone wonders.
const STARTING_MAY_TAKE_MS: i64 = 5_000;

impl Engine {
    /// Ends what nobody supervises, and starts what may start. One cheap read when nothing is due.
    pub(crate) fn rescue_in(&self, registry: &mut Registry) -> Result<(), EngineError> {
        for active in registry.active()? {
            self.rescue_one(registry, &active)?;
        }
        // Also when nothing was lost: a start that failed left its task in the queue, and somebody has to try again.
        self.promote(registry)
    }

    fn rescue_one(&self, registry: &mut Registry, active: &Active) -> Result<(), EngineError> {
        let is_fresh =
            active.state == State::Starting && now_ms() - active.claimed_at_ms < STARTING_MAY_TAKE_MS;
        let dir = registry.dir().task(&active.id);
        // A fresh one may be about to take its lock; taking it first would only make it give up.
        if is_fresh {
            return Ok(());
        }
        let LockAttempt::Locked(_judge) = dir.try_lock()? else { return Ok(()) };
        if active.state == State::Starting {
            // It may have got as far as making its group.
            drop(Cgroup::left_by(&active.id));
            registry.give_back(&active.id, &active.nonce, now_ms())?;
            return Ok(());
        }
        // What it left running carries the task's mark or is in its group, however far it went.
        let swept = sweep_lost(&active.id, &[], SweepLimits::default());
        let survivors: Vec<i32> =
            swept.map(|report| report.survivors.iter().map(|one| one.pid).collect()).unwrap_or_default();
        let message = "its supervisor was lost; what it had done until then is kept".to_owned();
        let finish = Finish {
            kill_incomplete: (!survivors.is_empty()).then(|| serde_json::json!(survivors)),
            summary: Some("Failed: the supervisor was lost".to_owned()),
            ..Finish::bare(End::Failed { kind: FailureKind::SupervisorLost, message, retry_at: None })
        };
        let attempt = Attempt::working(active.nonce.clone());
        let claimed = self.with_promotion(|promotion| {
            Ok(registry.finish(&active.id, &attempt, &finish, promotion, now_ms())?)
        })?;
        wake::remove(&dir);
        if let delegator_registry::Cas::Applied(claimed) = claimed {
            self.start_all(registry, claimed)?;
        }
        Ok(())
    }
}
