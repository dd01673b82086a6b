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

mod agents;
mod cancel;
mod clean;
mod clock;
mod crowd;
mod detach;
mod directory;
mod end_signals;
mod error;
mod error_places;
mod estimate;
mod evidence;
mod file;
mod import;
mod insist;
mod kept_points;
mod launch;
mod leftovers;
mod look;
#[cfg(all(test, debug_assertions))]
mod model;
mod nesting;
mod other_tasks;
mod overview;
mod ports;
mod promote;
mod queue;
mod record;
mod rescue;
pub mod resident;
mod restore;
mod restore_lookup;
mod restore_point;
mod retention;
mod retention_clock;
mod shelf;
mod submit;
mod summary;
mod verification;
mod wait;
mod wake;
mod watch;
mod work;
mod work_tree;

use std::path::PathBuf;

use delegator_registry::{OpenOptions, Registry, RegistryError, StateDir};

use shelf::Lent;

pub use cancel::Cancelled;
pub use clean::{Cleaned, Cleaning, POINTS_SHOWN};
pub use delegator_git::{LeftOut, RestoreError, RestorePoint};
pub use delegator_supervisor::agent::{VariableRight, variable_right};
pub use detach::{LAUNCH, SUPERVISE, launch_supervisor};
pub use directory::{UnfitDirectory, real_directory};
pub use error::EngineError;
pub use estimate::Expected;
pub use evidence::{
    Artifact, Branches, Evidence, Files, Finding, FindingKind, History, Lines, NotHashed, Renamed, Source,
};
pub use file::{UnfitFile, open_file};
pub use kept_points::{KeptReason, KeptRestorePoint};
pub use launch::{AgentProgram, Ending, Limits, Settings};
pub use look::{LongLog, TaskFiles};
pub use nesting::Nesting;
pub use overview::{Overview, Queued, Running, Wanted};
pub use queue::QueueHeld;
pub use record::{Record, StreamRecord, Swept};
pub use restore::{RestoreAsked, Restored};
pub use restore_lookup::{DroppedPoint, ListedPoint};
pub use restore_point::{KeptPoint, PointProblem, restore_command};
pub use retention::{PRUNE, prune};
pub use shelf::Shelf;
pub use submit::{Submission, Submitted};
pub use verification::{CheckRecord, Verify};
pub use wait::{Progressed, Waited};
pub use work::{best_containment, work};

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
    pub shelf: Shelf,
}

impl Engine {
    /// The registry, made where there is none.
    fn open(&self) -> Result<Lent, EngineError> {
        let dir = StateDir::open(&self.state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
        let kept = self.shelf.take(&dir);
        Ok(self.shelf.lend(kept.map_or_else(|| Registry::open(&dir), Ok)?))
    }

    /// The registry that is there; a question asked on a fresh machine leaves it fresh.
    fn find(&self) -> Result<Option<Lent>, EngineError> {
        let dir = StateDir::find(&self.state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
        let Some(dir) = dir else { return Ok(None) };
        let found = match self.shelf.take(&dir) {
            Some(kept) => Some(kept),
            None => Registry::find(&dir)?,
        };
        Ok(found.map(|registry| self.shelf.lend(registry)))
    }
}
