//! The real [`System`]: this machine. It decides nothing, and is the only module of the engine that reads the
//! wall clock.

#![expect(clippy::disallowed_methods, reason = "this module reads the wall clock and sleeps for the engine")]

use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delegator_domain::task::TaskId;
use delegator_registry::{Finish, Nonce, Registry};
use delegator_supervisor::process::{OwnerLookup, ProcessIdentity, SweepLimits, sweep_lost};
use delegator_supervisor::run::{Ports, RunResult, RunSpec, supervise};
use rustix::time::{ClockId, clock_gettime};

use crate::Engine;
use crate::error::{EngineError, Result};
use crate::submit::detach::spawn_launcher;
use crate::supervise::lost_run::finish_lost_run;
use crate::system_port::{BackgroundJob, BootTime, System};
use crate::upkeep::delivery::spawn_delivery_process;
use crate::upkeep::retention::spawn_pruning_process;

#[derive(Debug)]
pub(crate) struct RealSystem;

impl System for RealSystem {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn boot_time(&self) -> Result<BootTime> {
        let own_process = ProcessIdentity::of_self().map_err(EngineError::io("read the boot id"))?;
        let since_boot = clock_gettime(ClockId::Boottime);
        let since_boot_ms = since_boot.tv_sec * 1000 + since_boot.tv_nsec / 1_000_000;
        Ok(BootTime { boot_id: own_process.boot_id, since_boot_ms })
    }

    fn random_bytes(&self) -> Result<[u8; 16]> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| EngineError::Randomness { detail: error.to_string() })?;
        Ok(bytes)
    }

    fn sleep(&self, length: Duration) {
        std::thread::sleep(length);
    }

    fn start_supervisor(
        &self,
        engine: &Engine,
        id: &TaskId,
        nonce: &Nonce,
        lock: OwnedFd,
    ) -> Result<Option<Child>> {
        spawn_launcher(engine, id, nonce, lock).map(Some)
    }

    fn run_agent(&self, spec: RunSpec, ports: &dyn Ports) -> RunResult {
        supervise(spec, ports)
    }

    fn sweep_lost(&self, id: &TaskId, owner: OwnerLookup<'_>) -> Vec<i32> {
        let swept = sweep_lost(id, owner, SweepLimits::default());
        swept.map(|report| report.survivors.iter().map(|process| process.pid).collect()).unwrap_or_default()
    }

    fn finish_lost_run(&self, registry: &Registry, id: &TaskId, survivors: Vec<i32>) -> Finish {
        finish_lost_run(registry, id, survivors)
    }

    fn start_pruning(
        &self,
        engine: &Engine,
        tasks_before_ms: i64,
        points_before_ms: Option<i64>,
    ) -> Result<()> {
        spawn_pruning_process(engine, tasks_before_ms, points_before_ms)
    }

    fn start_delivery(&self, engine: &Engine) -> Result<()> {
        spawn_delivery_process(engine)
    }

    fn run_in_background(&self, name: &'static str, job: BackgroundJob) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(job);
        thread.map(drop).map_err(EngineError::io("start a thread"))
    }
}
