//! What a worker needs from the program: settings, signals, and the port that builds submissions and logs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use delegator_domain::redact::Redactor;
use delegator_domain::task::{Mode, State};
use delegator_engine::Submission;
use delegator_fleet::Retention;
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEvent {
    Ready { worker: String, slots: u32 },
    Claimed { task: String, title: String },
    Resumed { task: String },
    SetupStarted { task: String, environment: String },
    Started { task: String, local: String },
    Ended { task: String, state: State, detail: Option<String> },
    Released { task: String },
    Lost { task: String, cause: String },
    Cancelling { task: String },
    Paused,
    Unpaused,
    Draining,
    DatabaseError { message: String },
    Waiting { message: String },
    DatabaseBack,
    Migrated { version: i32 },
    CutOff { seconds: u64 },
    SessionLost,
    Problem { message: String },
    Stopped,
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

impl fmt::Display for WorkerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerEvent::Ready { worker, slots } => {
                let plural = if *slots == 1 { "" } else { "s" };
                write!(f, "worker {worker} is ready for tasks ({slots} slot{plural})")
            }
            WorkerEvent::Claimed { task, title } => write!(f, "claimed {task}: {title}"),
            WorkerEvent::Resumed { task } => {
                write!(f, "resumed {task}, which an earlier worker process started")
            }
            WorkerEvent::SetupStarted { task, environment } => {
                write!(f, "running the setup script of environment {environment} for {task}")
            }
            WorkerEvent::Started { task, local } => write!(f, "started {task} as {local}"),
            WorkerEvent::Ended { task, state, detail: None } => write!(f, "{task} ended: {}", state.name()),
            WorkerEvent::Ended { task, state, detail: Some(detail) } => {
                write!(f, "{task} ended: {} ({detail})", state.name())
            }
            WorkerEvent::Released { task } => write!(f, "returned {task} to the queue"),
            WorkerEvent::Lost { task, cause } => write!(f, "lost {task}: {cause}"),
            WorkerEvent::Cancelling { task } => write!(f, "cancelling {task}"),
            WorkerEvent::Paused => f.write_str("paused: running tasks continue, no task is claimed"),
            WorkerEvent::Unpaused => f.write_str("claiming tasks again"),
            WorkerEvent::Draining => f.write_str("draining: no task is claimed, running tasks continue"),
            WorkerEvent::DatabaseError { message } => write!(f, "{message}; running tasks continue"),
            WorkerEvent::Waiting { message } => {
                write!(f, "{message}; the worker waits and tries again")
            }
            WorkerEvent::DatabaseBack => f.write_str("the fleet's database answers again"),
            WorkerEvent::Migrated { version } => {
                write!(f, "created or upgraded the tables of the fleet to version {version}")
            }
            WorkerEvent::CutOff { seconds } => {
                write!(f, "no connection to the fleet's database for {seconds} s: stopping all tasks")
            }
            WorkerEvent::SessionLost => {
                f.write_str("the fleet has declared this worker lost: stopping its tasks and starting again")
            }
            WorkerEvent::Problem { message } => f.write_str(message),
            WorkerEvent::Stopped => f.write_str("stopped"),
        }
    }
}
