//! Who decides and when.
//!
//! ```text
//! submit ─▶ launch file, row ─▶ promote ─▶ a supervisor process ─▶ work ─▶ record, end, next ones
//!              status, results ◀─ registry, snapshot, record         │
//!              wait ◀────────── its end ◀──────────────────────────────┘
//!              cancel ─▶ flag, wake
//! ```
//!
//! There is no daemon. Whoever calls does what is due: a submit starts what may start, whoever asks about a task whose
//! supervisor is gone ends it. The engine never renders and knows no column, no key of an agent's JSON and no flag.

mod agent_lookup;
mod allowed_dir;
mod allowed_file;
mod cancel;
mod clean;
mod clock;
mod connection_pool;
mod detach;
mod end_signals;
mod error;
mod error_locations;
mod estimate;
mod evidence;
mod import;
mod launch;
mod leftovers;
#[cfg(all(test, debug_assertions))]
mod model;
mod nesting;
mod niceness;
mod overview;
mod process_owner;
mod promote;
mod queue;
mod record;
mod rescue;
mod restore;
mod restore_lookup;
mod restore_point;
mod retained_points;
mod retention;
mod retention_clock;
mod retry;
mod run_ports;
mod submit;
mod summary;
mod supervisor_process;
mod task_queries;
mod task_watch;
mod verification;
mod wait;
pub mod wait_thread;
mod wake_socket;
mod work_tree;

use std::path::PathBuf;

use delegator_registry::{OpenOptions, Registry, RegistryError, StateDir};

use connection_pool::PooledConnection;

pub use allowed_dir::{DirectoryProblem, resolve_allowed_dir};
pub use allowed_file::{FileProblem, open_allowed_file};
pub use cancel::CancelReport;
pub use clean::{CleanReport, CleanRequest, MAX_LISTED_POINTS};
pub use connection_pool::ConnectionPool;
pub use delegator_git::{LeftOut, RestoreError, RestorePoint};
pub use delegator_supervisor::agent::{VariableAccess, variable_access};
pub use detach::{LAUNCH, SUPERVISE, launch_supervisor};
pub use error::EngineError;
pub use estimate::ExpectedDuration;
pub use evidence::{
    Artifact, Branches, Evidence, Files, Finding, FindingKind, Lines, NotHashed, Renamed, RepositoryChanges,
    Source,
};
pub use launch::{AgentProgram, Ending, Limits, Settings};
pub use nesting::Nesting;
pub use overview::{Overview, OverviewRequest, QueuedTask, RunningTask};
pub use queue::QueueStatus;
pub use record::{Record, StreamRecord, SweptProcesses};
pub use restore::{RestoreReport, RestoreRequest, RestoredTree};
pub use restore_lookup::{DroppedPoint, ListedPoint};
pub use restore_point::{PointProblem, RestorePointRecord, restore_command};
pub use retained_points::{RetainedRestorePoint, RetentionReason};
pub use retention::{PRUNE, prune};
pub use submit::{Submission, SubmitOutcome};
pub use supervisor_process::{best_containment, run_supervisor};
pub use task_queries::{LongLog, TaskFiles};
pub use verification::{CheckRecord, Verify};
pub use wait::{TaskProgress, WaitOutcome};

/// One state directory, and how tasks in it are run.
#[derive(Debug, Clone)]
pub struct Engine {
    pub state_dir: PathBuf,
    pub max_concurrent: usize,
    /// How long ended tasks are kept; `None`: for ever.
    pub retention_ms: Option<i64>,
    /// How long after their task's end restore points with unique content are kept; `None`: for ever.
    pub restore_point_retention_ms: Option<i64>,
    /// The program supervisors are started from: this very one, whatever replaces its file meanwhile.
    pub program: PathBuf,
    /// Where connections to the registry are kept, in a process that stays.
    pub connections: ConnectionPool,
}

impl Engine {
    /// The registry, made where there is none.
    fn open_registry(&self) -> Result<PooledConnection, EngineError> {
        let dir = StateDir::open(&self.state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
        let pooled = self.connections.take(&dir);
        Ok(self.connections.guard(pooled.map_or_else(|| Registry::open(&dir), Ok)?))
    }

    /// The registry that is there; a question asked on a fresh machine leaves it fresh.
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
