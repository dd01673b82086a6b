//! The port through which the engine reaches the machine: clocks, randomness, processes and agents.
//!
//! An [`Engine`] gets its [`System`] at construction. `RealSystem` is the real one; the model tests use a
//! simulated one. Files and the registry are not behind this port: they are real in the model tests, too.
//! Time limits use `Instant` directly, because no model test waits for one.

use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use delegator_domain::task::{TaskId, TaskLocation};
use delegator_registry::{Finish, Nonce, Registry, RegistryError};
use delegator_supervisor::process::OwnerLookup;
use delegator_supervisor::run::{Ports, RunResult, RunSpec};

use crate::Engine;
use crate::error::{EngineError, Result};

/// A bound, in case the source of randomness is broken: with a million tasks one id in a billion is in use.
const MAX_ID_TRIES: u32 = 20;

/// Everything the engine needs of the machine besides files. All methods may be called from several threads
/// at once.
pub(crate) trait System: Debug + Send + Sync {
    /// Milliseconds since 1970; 0 if the clock is set before that. It can be set, so it may go back and must
    /// not measure a limit.
    fn now_ms(&self) -> i64;

    /// It cannot be set: within one boot it only advances, also during suspend.
    fn boot_time(&self) -> Result<BootTime>;

    /// Unpredictable bytes that no other call returns, in any process.
    fn random_bytes(&self) -> Result<[u8; 16]>;

    /// Blocks the calling thread for this time.
    fn sleep(&self, length: Duration);

    /// Starts the supervisor of a claimed task; it calls `supervise_task` with the same engine settings.
    /// `lock` is the task lock: it is held until the supervisor has exited. After an error no supervisor was
    /// started and the lock is released. Returns the launcher process for `launcher_failed`, if there is one.
    fn start_supervisor(
        &self,
        engine: &Engine,
        id: &TaskId,
        nonce: &Nonce,
        lock: OwnedFd,
    ) -> Result<Option<Child>>;

    /// Runs the agent until all its processes are gone. Never fails: a result describes every end.
    fn run_agent(&self, spec: RunSpec, ports: &dyn Ports) -> RunResult;

    /// Kills every process of a task whose supervisor is gone, except those that `owner` assigns to another
    /// task. Returns the pids of survivors. The caller holds the task lock.
    fn sweep_lost(&self, id: &TaskId, owner: OwnerLookup<'_>) -> Vec<i32>;

    /// How a task ended whose supervisor was lost. Writes its report, unless the supervisor has done so.
    fn finish_lost_run(&self, registry: &Registry, id: &TaskId, survivors: Vec<i32>) -> Finish;

    /// Starts `prune` outside of the calling call's control flow, unless the previous one still runs.
    fn start_pruning(
        &self,
        engine: &Engine,
        tasks_before_ms: i64,
        points_before_ms: Option<i64>,
    ) -> Result<()>;

    /// Starts `deliver` outside of the calling call's control flow, unless the previous one still runs.
    fn start_delivery(&self, engine: &Engine) -> Result<()>;

    /// Runs a job that the caller does not wait for. Its error is lost, unless the job ends before this
    /// returns.
    fn run_in_background(&self, name: &'static str, job: BackgroundJob) -> Result<()>;
}

pub(crate) type BackgroundJob = Box<dyn FnOnce() -> Result<()> + Send>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BootTime {
    /// Differs between two boots.
    pub(crate) boot_id: String,
    pub(crate) since_boot_ms: i64,
}

impl dyn System {
    /// Calls `store` with new ids until one is not in use.
    pub(crate) fn with_fresh_id<T>(
        &self,
        location: TaskLocation,
        store: impl Fn(TaskId) -> Result<T>,
    ) -> Result<T> {
        let mut tries_left = MAX_ID_TRIES;
        loop {
            let id = TaskId::from_random(location, self.random_bytes()?);
            match store(id) {
                Err(EngineError::Registry(RegistryError::IdInUse { .. })) if tries_left > 0 => {
                    tries_left -= 1
                }
                other => return other,
            }
        }
    }

    pub(crate) fn fresh_nonce(&self) -> Result<Nonce> {
        self.random_bytes().map(Nonce::from_random)
    }

    /// Callers draw all nonces they may need before a transaction begins, so that it cannot fail for lack of
    /// randomness.
    pub(crate) fn fresh_nonces(&self, count: usize) -> Result<Vec<Nonce>> {
        (0..count).map(|_| self.fresh_nonce()).collect()
    }
}
