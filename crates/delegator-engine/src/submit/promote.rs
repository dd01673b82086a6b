//! Starts queued tasks: claims them in one transaction, then starts one supervisor process for each claim.
//!
//! A supervisor is this same program (through `/proc/self/exe`, so that an upgrade cannot mix versions),
//! detached from the process that starts it (see [`super::detach`]). If it cannot be started, the claim is
//! released at once; if it dies before it begins to work, the next upkeep pass releases the claim.

use std::os::fd::OwnedFd;
use std::time::Duration;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_registry::{Claim, LockAttempt, MAX_CLAIMS_PER_CALL, Promotion, Registry, TaskDir};

use super::detach::launcher_failed;
use crate::Engine;
use crate::error::{EngineError, Result};

const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);
const MAX_LOCK_TRIES: u32 = 100;

pub(crate) fn promote(engine: &Engine, registry: &mut Registry) -> Result<()> {
    loop {
        let claims = with_promotion(engine, |promotion| Ok(registry.claim_all(promotion, engine.now_ms())?))?;
        if !start_supervisors(engine, registry, claims)? {
            return Ok(());
        }
    }
}

/// Calls `act` with what a claim needs: the number of slots and a nonce for each claim.
pub(crate) fn with_promotion<T>(engine: &Engine, act: impl FnOnce(&Promotion<'_>) -> Result<T>) -> Result<T> {
    let nonces = std::cell::RefCell::new(
        engine.system.fresh_nonces(engine.max_concurrent.clamp(1, MAX_CLAIMS_PER_CALL))?,
    );
    let spare = engine.system.fresh_nonces(1)?;
    // There are as many nonces as one transaction can claim, so the spare one is never used twice.
    let fresh_nonce = || nonces.borrow_mut().pop().unwrap_or_else(|| spare[0].clone());
    act(&Promotion { max_concurrent: engine.max_concurrent, fresh_nonce: &fresh_nonce })
}

pub(crate) fn start_all(engine: &Engine, registry: &mut Registry, claims: Vec<Claim>) -> Result<()> {
    if start_supervisors(engine, registry, claims)? { promote(engine, registry) } else { Ok(()) }
}

/// Acquires all locks before the first start, because starting is slow. A task that cannot be started
/// returns to its position in the queue. Returns whether there may be more to claim.
fn start_supervisors(engine: &Engine, registry: &mut Registry, claims: Vec<Claim>) -> Result<bool> {
    let may_have_more = claims.len() == MAX_CLAIMS_PER_CALL;
    let locks: Vec<_> =
        claims.iter().map(|claim| lock_for_start(engine, &registry.dir().task(&claim.task.id))).collect();
    let mut launchers = Vec::new();
    for (Claim { task, nonce }, lock) in claims.into_iter().zip(locks) {
        let started = lock.and_then(|lock| {
            crash_point(CrashPoint::StartLocked);
            engine.system.start_supervisor(engine, &task.id, &nonce, lock)
        });
        match started {
            Ok(launcher) => launchers.extend(launcher.map(|launcher| (task.id, nonce, launcher))),
            Err(_) => {
                registry.give_back(&task.id, &nonce, engine.now_ms())?;
            }
        }
        crash_point(CrashPoint::SupervisorSpawned);
    }
    // The launchers run in parallel; each exits as soon as it has forked its supervisor.
    for (id, nonce, launcher) in launchers {
        if launcher_failed(launcher) {
            registry.give_back(&id, &nonce, engine.now_ms())?;
        }
    }
    Ok(may_have_more)
}

/// An upkeep pass may hold the lock for a moment to check an earlier claim.
fn lock_for_start(engine: &Engine, dir: &TaskDir) -> Result<OwnedFd> {
    for _ in 0..MAX_LOCK_TRIES {
        match dir.try_lock()? {
            LockAttempt::Locked(lock) => return lock.hand_over().ok_or_else(|| lock_unavailable(dir)),
            LockAttempt::Held => engine.system.sleep(LOCK_RETRY_INTERVAL),
            LockAttempt::Gone => break,
        }
    }
    Err(lock_unavailable(dir))
}

fn lock_unavailable(dir: &TaskDir) -> EngineError {
    EngineError::Launch { task: dir.id().clone(), detail: "could not acquire the task lock".to_owned() }
}
