//! Decides what happens when: submit, start, wait, query, cancel, rescue, clean up.
//!
//! ```text
//! submit ─▶ launch file, row ─▶ promote ─▶ supervisor process ─▶ agent ─▶ record, end, next tasks
//! results ◀─ registry, snapshot, record                             │
//! wait ◀──── end of the supervisor ◀────────────────────────────────┘
//! cancel ─▶ flag in the registry, wake the supervisor
//! ```
//!
//! There is no daemon: each call does what is due. A submit starts what may start; a query first ends tasks whose
//! supervisor is gone. The engine never renders, and knows no column, no key of an agent's JSON and no flag.
//!
//! The folders use each other in one direction only, and all of them extend [`Engine`] with methods:
//! `error`, `clock`, `connection_pool` ← `submit` ← `upkeep` ← `supervise` ← `results` ← `wait`.
//!
//! In tests, `simulation` replaces clock, randomness, processes and agents for the thread of an actor; it is below
//! all folders. `model` runs many actors in it and checks every step; it is above all folders.

mod clock;
mod connection_pool;
mod error;
#[cfg(all(test, debug_assertions))]
mod model;
mod results;
#[cfg(all(test, debug_assertions))]
mod simulation;
mod submit;
mod supervise;
mod upkeep;
mod wait;

use std::path::PathBuf;

use delegator_registry::{OpenOptions, Registry, RegistryError, StateDir};

use connection_pool::PooledConnection;

pub use connection_pool::ConnectionPool;
pub use delegator_git::{LeftOut, RestoreError, RestorePoint};
pub use delegator_supervisor::agent::{VariableAccess, variable_access};
pub use error::{DirectoryProblem, EngineError, FileProblem};
pub use results::overview::{Overview, OverviewRequest, QueuedTask, RunningTask};
pub use results::restore::{RestoreReport, RestoreRequest, RestoredTree};
pub use results::restore_lookup::{DroppedPoint, ListedPoint};
pub use results::task_queries::{LongLog, TaskFiles};
pub use submit::allowed_dir::resolve_allowed_dir;
pub use submit::allowed_file::open_allowed_file;
pub use submit::detach::{LAUNCH, SUPERVISE, launch_supervisor};
pub use submit::estimate::ExpectedDuration;
pub use submit::launch::{AgentProgram, Ending, Limits, Settings};
pub use submit::nesting::Nesting;
pub use submit::submission::{Submission, SubmitOutcome};
pub use submit::verification::Verify;
pub use supervise::check_record::CheckRecord;
pub use supervise::evidence::{
    Artifact, Branches, Evidence, Files, Finding, FindingKind, Lines, NotHashed, Renamed, RepositoryChanges,
    Source,
};
pub use supervise::record::{Record, StreamRecord, SweptProcesses};
pub use supervise::supervisor_process::{best_containment, run_supervisor};
pub use upkeep::clean::{CleanReport, CleanRequest, MAX_LISTED_POINTS};
pub use upkeep::queue::QueueStatus;
pub use upkeep::restore_record::{PointProblem, RestorePointRecord, restore_command};
pub use upkeep::retained_points::{RetainedRestorePoint, RetentionReason};
pub use upkeep::retention::{PRUNE, prune};
pub use wait::blocking::{TaskProgress, WaitOutcome};
pub use wait::cancel::CancelReport;
pub use wait::wait_thread;

/// One state directory, and how tasks in it are run.
#[derive(Debug, Clone)]
pub struct Engine {
    pub state_dir: PathBuf,
    pub max_concurrent: usize,
    /// How long ended tasks are retained; `None`: forever.
    pub retention_ms: Option<i64>,
    /// How long restore points with unique content are retained after the end of their task; `None`: forever.
    pub restore_point_retention_ms: Option<i64>,
    /// The executable that supervisors are started from: this one, even if its file is replaced by an upgrade.
    pub program: PathBuf,
    /// Open connections to the registry; only a long-running process pools them.
    pub connections: ConnectionPool,
}

impl Engine {
    /// Opens the registry; creates it if it does not exist.
    fn open_registry(&self) -> Result<PooledConnection, EngineError> {
        let dir = StateDir::open(&self.state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
        let pooled = self.connections.take(&dir);
        Ok(self.connections.guard(pooled.map_or_else(|| Registry::open(&dir), Ok)?))
    }

    /// Opens the registry if it exists. Queries use this, so that they create nothing on a fresh machine.
    fn find_registry(&self) -> Result<Option<PooledConnection>, EngineError> {
        let dir = StateDir::find(&self.state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
        let Some(dir) = dir else { return Ok(None) };
        let found = match self.connections.take(&dir) {
            Some(pooled) => Some(pooled),
            None => Registry::find(&dir)?,
        };
        Ok(found.map(|registry| self.connections.guard(registry)))
    }
}
