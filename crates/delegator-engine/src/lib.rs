//! Decides what happens when: submit, start, wait, query, cancel, rescue, clean up.
//!
//! ```text
//! submit ─▶ launch file, row ─▶ promote ─▶ supervisor process ─▶ agent ─▶ record, end, next tasks
//! results ◀─ registry, snapshot, record                             │
//! wait ◀──── end of the supervisor ◀────────────────────────────────┘
//! cancel ─▶ flag in the registry, wake the supervisor
//! ```
//!
//! There is no daemon: each call does what is due. A submit starts what may start; a query first ends tasks
//! whose supervisor is gone. The engine never renders, and knows no column, no key of an agent's JSON and no
//! flag.
//!
//! [`Engine`] has only what all folders need. What callers do with it is in its parts, such as [`Results`]:
//! the methods of each are in one folder. The folders use each other in one direction only, by functions that
//! take the engine, and by parts:
//! `provider_error`, `error`, `system_port` ← `shared` ← `worktrees`, `restore_points` ← `submit` ←
//! `upkeep` ← `supervise` ← `remote` ← `conversations` ← `results` ← `changes`, `wait` ← `cancel`, `live`.
//!
//! They reach clocks, randomness, processes and agents through one port, `system_port::System`. `real_system`
//! implements it for this machine; in tests `simulation` implements it for the many actors of `model_test`,
//! which checks every step.

mod cancel;
mod changes;
mod conversations;
mod error;
mod live;
#[cfg(all(test, debug_assertions))]
mod model_test;
mod provider_error;
mod real_system;
mod remote;
mod restore_points;
mod results;
mod shared;
#[cfg(all(test, debug_assertions))]
mod simulation;
mod submit;
mod supervise;
mod system_port;
mod upkeep;
mod wait;
mod worktrees;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_registry::{OpenOptions, Registry, RegistryError, StateDir};

use real_system::RealSystem;
use remote::event_fold::EventFolds;
use shared::connection_pool::PooledConnection;
use system_port::System;

pub use cancel::CancelReport;
pub use changes::apply::{ApplyOptions, DiffApplication};
pub use changes::list_worktrees::ListedWorktree;
pub use changes::restore::{RestoreReport, RestoreRequest, RestoredTree};
pub use changes::worktrees::{WorktreeApplication, WorktreeBranch};
pub use conversations::messages::{MAX_MESSAGE_BYTES, SentMessage, TaskMessages};
pub use delegator_git::{
    AppliedFile, ApplyError, ApplyReport, ChangeKind, Conflict, DiffHunk, EndStateProblem, FileDiff,
    GitError, HeadTarget, HunkRange, KeepReason, LeftOut, LeftOutReason, Overlap, OverlapPart, PossibleEdit,
    Recovery, RestoreError, RestorePoint, RestoreScope, WorktreeError, WriteError, display_path,
    parse_unified_diff,
};
pub use delegator_notify::{
    NOTIFY_SEND, NotifySettings, SendError, Webhook, check_webhook_url, find_program,
    read_secret as read_webhook_secret,
};
pub use delegator_supervisor::agent::health::{HealthCheck, HealthStatus, HealthSubject};
pub use delegator_supervisor::agent::{
    Agent, AgentInput, Capabilities, MessageSupport, PlanError, StoredSession, UsageScope, VariableAccess,
    Variables, VerifyCommand, check_environment, dialect_of, is_refused_write, sandbox_advice,
    sign_in_command, stored_sessions, variable_access,
};
pub use delegator_supervisor::enclosure::{ENCLOSE, Unavailable, enter as enter_enclosure, find_mechanism};
pub use delegator_supervisor::run::{Percent, PercentSource, Snapshot, omitted_bytes};
pub use delegator_supervisor::verdict::{has_acted, local_time};
pub use error::{
    AnswerProblem, ConversationError, DirectoryProblem, EngineError, FileProblem, IsolationError, NoDiff,
    RestoreChanges,
};
pub use live::change_log::{Cursor, Update};
pub use live::feed::{LiveFeed, LiveReader, Wake};
pub use live::state::{LiveChange, LiveOverall, LiveRow, LiveState, LiveTask};
pub use provider_error::{ProviderError, ServiceError, UnsupportedAction};
pub use remote::codex_cloud::HostedCodex;
pub use remote::follow::EventFollower;
pub use remote::provider::{
    CancelProgress, EventPage, EventPosition, ProviderRecord, Providers, RemoteEnd, RemoteProvider,
    RemoteRequest, RemoteStatus, RemoteSubmission, TaskAnswer,
};
pub use remote::refresh::{ProviderProblem, check_resumable};
pub use restore_points::lookup::{DroppedPoint, ListedPoint};
pub use restore_points::record::{PointProblem, RestorePointRecord, git_version, restore_command};
pub use restore_points::retained::{RetainedRestorePoint, RetentionReason};
pub use results::attention::{ShownBeside, ended_facts};
pub use results::event_range::{EventPlace, EventRange, EventTimes, StoredEvent};
pub use results::groups::{ComparedAttempt, ComparedGroup, DiffSize, Target};
pub use results::import::PastSession;
pub use results::overview::{AwaitedTasks, CloudCounts, Overview, OverviewRequest, QueuedTask, RunningTask};
pub use results::task_queries::{LongLog, TaskFiles};
pub use shared::agent_lookup::{agent_version, check_sign_in, find_agent, locate_agent};
pub use shared::allowed_paths::{open_allowed_file, resolve_allowed_dir};
pub use shared::connection_pool::ConnectionPool;
pub use shared::dashboard_address::DashboardAddress;
pub use shared::directories::remove_directory;
pub use shared::estimate::ExpectedDuration;
pub use shared::format_version::{FormatVersion, decode as decode_record, encode as encode_record};
pub use shared::git_program::git as find_git;
pub use shared::notifications::Notifications;
pub use shared::screens::OpenScreens;
pub use shared::task_of_process::{CallerTask, DELIVER, SUPERVISE, is_peer_in_task, own_task};
pub use shared::work_tree::untrusted_trees;
pub use shared::worker_contact::{BootInstant, CONTACT_LOST, WorkerContact, record_contact};
pub use submit::detach::{Forked, fork_supervisor};
pub use submit::enclosure::{EnclosureProblem, probe_enclosure};
pub use submit::launch_file::{Ending, Limits, Settings, SkippedAgent, Verify};
pub use submit::nesting::Nesting;
pub use submit::submission::{AgentChoice, Follower, Isolation, Reviewed, Submission, WorktreeRequest};
pub use submit::submit_task::SubmitOutcome;
pub use submit::thread_check::check_thread;
pub use submit::verification::probe_agent_sandbox;
pub use supervise::check_record::CheckRecord;
pub use supervise::evidence::{
    Artifact, Attribution, Branches, ChangeCounts, Evidence, Files, Finding, FindingKind, Lines, NotHashed,
    Renamed, RepositoryChanges, Source, UnattributedChanges,
};
pub use supervise::niceness::processors;
pub use supervise::supervisor_process::{best_containment, run_supervisor};
pub use supervise::task_diff::{DiffSource, TaskDiff};
pub use supervise::task_report::{Record, Salvage, SweptProcesses, tokens};
pub use upkeep::clean::{CleanFailure, CleanProblem, CleanReport, CleanRequest, MAX_LISTED_POINTS, clean};
pub use upkeep::delivery::deliver;
pub use upkeep::delivery_policy::DeliveryPolicy;
pub use upkeep::outbox::ListedNotifications;
pub use upkeep::queue_pause::QueueStatus;
pub use upkeep::retention::{PRUNE, prune};
pub use wait::blocking::WaitOutcome;
pub use wait::wait_loop::TaskProgress;
pub use wait::wait_thread;
pub use worktrees::content::WorktreeContent;
pub use worktrees::plan::WorktreePlan;
pub use worktrees::quota::WorktreeSize;
pub use worktrees::recorded::{DiffOmissions, RecordedWorktree, WorktreeChanges, WorktreeState};

/// One state directory, and how tasks in it are run.
#[derive(Debug, Clone)]
pub struct Engine {
    pub state_dir: PathBuf,
    /// How long ended tasks are retained; `None`: forever.
    pub retention_ms: Option<i64>,
    /// How long restore points with unique content are retained after the end of their task; `None`: forever.
    restore_point_retention_ms: Option<i64>,
    max_concurrent: usize,
    /// The executable that supervisors are started from.
    program: PathBuf,
    /// Open connections to the registry; only a long-running process pools them.
    connections: ConnectionPool,
    /// Who runs tasks elsewhere.
    providers: Providers,
    /// Set if submitted tasks send notifications at their end.
    notifications: Option<Arc<Notifications>>,
    event_folds: EventFolds,
    system: Arc<dyn System>,
}

impl Engine {
    /// An engine on this machine that runs one task at a time, retains ended tasks forever and pools no
    /// connections. Supervisors are started from `program`: this program, even if its file is replaced by an
    /// upgrade.
    pub fn new(state_dir: impl Into<PathBuf>, program: impl Into<PathBuf>) -> Engine {
        Engine::with_system(state_dir.into(), program.into(), Arc::new(RealSystem))
    }

    fn with_system(state_dir: PathBuf, program: PathBuf, system: Arc<dyn System>) -> Engine {
        Engine {
            state_dir,
            retention_ms: None,
            restore_point_retention_ms: None,
            max_concurrent: 1,
            program,
            connections: ConnectionPool::default(),
            providers: Providers::default(),
            notifications: None,
            event_folds: EventFolds::default(),
            system,
        }
    }

    /// Runs at most this many tasks at once.
    #[must_use]
    pub fn with_max_concurrent(self, max_concurrent: usize) -> Engine {
        Engine { max_concurrent, ..self }
    }

    /// Deletes ended tasks, and the restore points of deleted tasks, after these times; `None`: never.
    #[must_use]
    pub fn with_retention(self, tasks_ms: Option<i64>, restore_points_ms: Option<i64>) -> Engine {
        Engine { retention_ms: tasks_ms, restore_point_retention_ms: restore_points_ms, ..self }
    }

    #[must_use]
    pub fn with_providers(self, providers: Providers) -> Engine {
        Engine { providers, ..self }
    }

    /// Tasks submitted through this engine send notifications at their end.
    #[must_use]
    pub fn with_notifications(self, notifications: Option<Notifications>) -> Engine {
        Engine { notifications: notifications.map(Arc::new), ..self }
    }

    #[must_use]
    pub fn with_connections(self, connections: ConnectionPool) -> Engine {
        Engine { connections, ..self }
    }

    /// Opens the registry; creates it if it does not exist.
    fn open_registry(&self) -> Result<PooledConnection, EngineError> {
        let dir = StateDir::open(&self.state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
        let pooled = self.connections.take(&dir);
        Ok(self.connections.guard(pooled.map_or_else(|| Registry::open(&dir), Ok)?))
    }

    /// Opens the registry if it exists. Queries use this, so that they create nothing on a fresh machine.
    fn find_registry(&self) -> Result<Option<PooledConnection>, EngineError> {
        self.find_registry_with(&OpenOptions::default())
    }

    /// Opens the registry for a supervisor.
    fn find_checked_registry(&self) -> Result<Option<PooledConnection>, EngineError> {
        self.find_registry_with(&OpenOptions::of_supervisor())
    }

    /// What the registry answers; the default if there is none.
    fn query<T: Default>(
        &self,
        read: impl FnOnce(&Registry) -> Result<T, RegistryError>,
    ) -> Result<T, EngineError> {
        Ok(self.find_registry()?.map(|registry| read(&registry)).transpose()?.unwrap_or_default())
    }

    /// The registry for a call about this task.
    fn registry_of(&self, task: &TaskId) -> Result<PooledConnection, EngineError> {
        self.find_registry()?.ok_or_else(|| EngineError::unknown(task))
    }

    fn find_registry_with(&self, options: &OpenOptions) -> Result<Option<PooledConnection>, EngineError> {
        let dir = StateDir::find(&self.state_dir, options).map_err(RegistryError::from)?;
        let Some(dir) = dir else { return Ok(None) };
        let found = match self.connections.take(&dir) {
            Some(pooled) => Some(pooled),
            None => Registry::find(&dir)?,
        };
        Ok(found.map(|registry| self.connections.guard(registry)))
    }

    pub fn now_ms(&self) -> i64 {
        self.system.now_ms()
    }

    pub fn sleep(&self, length: Duration) {
        self.system.sleep(length);
    }

    pub fn random_bytes(&self) -> Result<[u8; 16], EngineError> {
        self.system.random_bytes()
    }
}

/// The parts of the engine: a type for each, whose methods are in one folder, and the method that returns it.
macro_rules! parts {
    ($($(#[$doc:meta])* $accessor:ident: $part:ident,)*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $part<'a> {
            engine: &'a Engine,
        })*

        impl Engine {
            $($(#[$doc])*
            pub fn $accessor(&self) -> $part<'_> {
                $part { engine: self }
            })*
        }
    };
}

parts! {
    /// Submits tasks of this machine.
    submissions: Submissions,
    /// The worktrees of isolated tasks, and their disk space.
    worktrees: Worktrees,
    /// The restore points that a repository holds.
    restore_points: RestorePoints,
    /// The notifications, and tests of channels.
    outbox: Outbox,
    /// The tasks that a person has on a screen.
    screens: Screens,
    /// The queue, which a user can pause.
    queue: Queue,
    /// The tasks that providers run.
    remote: RemoteTasks,
    /// Messages to the agent of a task, and its questions.
    conversations: Conversations,
    /// What is recorded about tasks: rows, files, groups, lists.
    results: Results,
    /// What tasks changed in the user's files.
    changes: Changes,
    /// Waits in the calling thread.
    waits: Waits,
    /// Cancels tasks.
    cancellations: Cancellations,
}
