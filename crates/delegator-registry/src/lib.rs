//! The registry: tasks in SQLite, and one directory per task.
//!
//! ```text
//! <state directory>  0700
//!   registry.db(-wal, -shm)      tasks, their transitions, labels
//!   setup.lock                   held while a registry is created or set aside
//!   prune.lock                   held by the process that prunes
//!   notify.lock                  held by the process that delivers notifications, and which one that is
//!   held-back                    reserved disk space, released when an end must be recorded on a full disk
//!   submitting/<id>              locked while a submit of this task is running
//!   tasks/<id>/                  launch, lock, events.jsonl, snapshot.json, report.json, messages/, …
//! ```
//!
//! This is the only crate that knows the local SQL, its columns and the layout of these directories. It never
//! decides *when* something happens: it has no clock (times are passed in as milliseconds), no randomness
//! (ids and nonces are passed in) and no timers.
//!
//! Invariants that hold after a kill at any point:
//!
//! - A registry appears complete or not at all: it is built under another name and renamed. So an empty or
//!   missing file beside existing tasks is damage, never a fresh start.
//! - Every change is one transaction that first checks the state the caller expects. A caller that comes too
//!   late gets [`Cas::Lost`]. A terminal state never changes; the only transition table is the domain's.
//! - `launch` is on disk before its row is committed, so a crash cannot leave a row without it.
//! - The tasks of a chain exist all or not at all, and each has its `launch`.
//! - The end of a task, of its messages and questions and of followers that never start, its notifications
//!   and the claim of its successors are one transaction.

mod columns;
mod compare_and_set;
mod database;
mod error;
mod files;
mod ops;
mod redact_before_store;
mod registry;
mod row;
mod state_dir;
mod task;

pub use compare_and_set::{Attempt, Cas, Lost, Nonce};
pub use database::set_aside::set_aside_damaged;
pub use error::{RegistryError, StateDirError};
pub use files::durable::{Durability, make_private_path, remove_if_exists, replace as replace_file};
pub use files::lock::{ClaimKind, LockAttempt, LockGuard, WorktreeClaim};
pub use files::socket::{SOCKET_PATH_LIMIT, SocketPathError, private_runtime_dir, socket_path};
pub use files::task_dir::{LastLines, NewBytes, ReadPosition, TaskDir, TaskFile};
pub use ops::agent_pauses::AgentPause;
pub use ops::attempt::{BeginOutcome, GiveBackOutcome};
pub use ops::claim::{BlockedBy, Claim, MAX_CLAIMS_PER_CALL, Promotion, QueueEntry};
pub use ops::end::CancelOutcome;
pub use ops::history::{GroupUsage, HistoryOutcome, HistoryQuery, IndexedTask, UsageGroup};
pub use ops::import::ImportedSession;
pub use ops::leftovers::{Leftover, LeftoverKind};
pub use ops::list::{EndedPage, Filter, OldestPage, Page};
pub use ops::messages::{EnqueueOutcome, MAX_QUEUED_MESSAGES, Message, MessageCounts};
pub use ops::notes::AgentChange;
pub use ops::notifications::{DeliveryOutcome, StoredNotification};
pub use ops::prune::PruneOutcome;
pub use ops::queries::{ActiveTask, HistoryEntry, StateCounts, UnreadResults};
pub use ops::questions::{AnswerOutcome, StoredAnswer, StoredQuestion};
pub use ops::remote::RemoteReport;
pub use ops::restore_points::{HOLDS_UNIQUE_CONTENT, PointToRecord, RecordedPoint};
pub use ops::submit::Submission;
pub use ops::usage::{Cost, TaskCost, UsageTable};
pub use ops::worktrees::{StoredWorktree, WorktreeEvent};
pub use registry::{ChangeMark, Registry};
pub use state_dir::{IntegrityCheck, OpenOptions, StateDir};
pub use task::{
    CancelRequest, ChangedLines, EndRecord, Finish, Idempotency, Identity, NewTask, NewWorktree,
    RemoteEnvironment, RemoteRef, RemoteTask, Task, TaskNotify, TaskSummary, Tokens, WorktreeUse,
};
