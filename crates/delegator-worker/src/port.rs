//! What a worker needs from the program: settings, signals, and the port that builds submissions and logs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use delegator_domain::redact::Redactor;
use delegator_domain::task::{Mode, State};
use delegator_engine::{EngineError, Submission};
use delegator_fleet::{FleetError, Retention};
use delegator_supervisor::agent::Variables;

#[derive(Debug, Clone)]
pub struct WorkerSettings {
    pub name: String,
    pub slots: u32,
    pub labels: BTreeMap<String, String>,
    /// Version of the program, for display.
    pub version: String,
    pub lease: Duration,
    pub heartbeat_interval: Duration,
    /// Without a successful heartbeat for this long, the worker stops its agents.
    pub cutoff: Duration,
    pub retention: Retention,
    /// Exit when no task is running or queued.
    pub exit_when_idle: bool,
    /// The environment for git and for setup scripts.
    pub variables: Variables,
    /// Masks secrets in the output of setup scripts.
    pub redactor: Redactor,
}

/// A task to submit to the registry of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalRequest {
    pub idempotency_key: String,
    pub working_dir: PathBuf,
    pub mode: Mode,
    pub text: String,
    pub title: String,
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

pub trait WorkerPort: Sync {
    /// The error says why the task cannot run here.
    fn build_submission(&self, request: &LocalRequest) -> Result<Submission, String>;

    fn report(&self, event: &WorkerEvent);
}

/// The signals that a worker has received: the first drains it, the second cancels its tasks, a third
/// abandons them.
#[derive(Debug, Clone, Default)]
pub struct StopSignals(Arc<AtomicU32>);

impl StopSignals {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn abandon(&self) {
        self.0.fetch_max(3, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.count() > 0
    }

    pub(crate) fn is_cancelling(&self) -> bool {
        self.count() > 1
    }

    /// Exit without a report. The next start of the worker finds the tasks again.
    pub fn is_abandoning(&self) -> bool {
        self.count() > 2
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerEvent {
    #[error("worker {worker} is ready for tasks ({slots} slot{})", if *slots == 1 { "" } else { "s" })]
    Ready { worker: String, slots: u32 },
    #[error("claimed {task}: {title}")]
    Claimed { task: String, title: String },
    #[error("resumed {task}, which an earlier worker process started")]
    Resumed { task: String },
    #[error("running the setup script of environment {environment} for {task}")]
    SetupStarted { task: String, environment: String },
    #[error("started {task} as {local}")]
    Started { task: String, local: String },
    #[error("{task} ended: {}{}", state.name(), in_brackets(detail))]
    Ended { task: String, state: State, detail: Option<String> },
    #[error("returned {task} to the queue")]
    Released { task: String },
    #[error("lost {task}: {cause}")]
    Lost { task: String, cause: String },
    #[error("cancelling {task}")]
    Cancelling { task: String },
    #[error("paused: running tasks continue, no task is claimed")]
    Paused,
    #[error("claiming tasks again")]
    Unpaused,
    #[error("draining: no task is claimed, running tasks continue")]
    Draining,
    #[error("{message}; running tasks continue")]
    DatabaseError { message: String },
    #[error("{message}; the worker waits and tries again")]
    Waiting { message: String },
    #[error("the fleet's database answers again")]
    DatabaseBack,
    #[error("created or upgraded the tables of the fleet to version {version}")]
    Migrated { version: i32 },
    #[error("no connection to the fleet's database for {seconds} s: stopping all tasks")]
    CutOff { seconds: u64 },
    #[error("the fleet has declared this worker lost: stopping its tasks and starting again")]
    SessionLost,
    #[error("{message}")]
    Problem { message: String },
    #[error("stopped")]
    Stopped,
}

fn in_brackets(detail: &Option<String>) -> String {
    detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default()
}

impl WorkerEvent {
    /// Whether the operator should look at it.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            WorkerEvent::Lost { .. }
                | WorkerEvent::DatabaseError { .. }
                | WorkerEvent::Waiting { .. }
                | WorkerEvent::CutOff { .. }
                | WorkerEvent::SessionLost
                | WorkerEvent::Problem { .. }
        )
    }
}
