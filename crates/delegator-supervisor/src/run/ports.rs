//! What a run is given, what it tells on its way, and what it ends with.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use delegator_domain::redact::Redactor;
use delegator_domain::task::{ExitStatus, TaskEnd, TaskId, Verification};
use delegator_transcript::{FoldOptions, PlanStep, Progress, RecentLine, Report, TurnState, UsageReport};
use serde::Serialize;

use super::ending::EndSignal;
use super::limits::{LimitWarning, Limits};
use crate::agent::{LaunchPlan, Variables, VerifyPlan};
use crate::process::{Cgroup, Owner, ProcessIdentity, SweepLimits, SweepReport};
use crate::verdict::RefusedCalls;

/// One run.
#[derive(Debug)]
pub struct RunSpec {
    pub task: TaskId,
    pub plan: LaunchPlan,
    /// All the agent sees, but for what the plan adds.
    pub environment: Variables,
    /// The directory that was checked. The agent starts in it, whatever its name means by then.
    pub workdir: OwnedFd,
    /// Other directories that were checked, and the paths under which the agent is given them. A start is refused when
    /// a path leads to another directory by then.
    pub pinned: Vec<(OwnedFd, PathBuf)>,
    /// The submitter's.
    pub umask: u32,
    pub limits: Limits,
    /// Of each stored stream.
    pub max_stream_bytes: u64,
    pub max_processes: usize,
    /// Programs a sweep leaves alone.
    pub sweep_exempt: Vec<String>,
    /// How far the task gives way to everything else; 0: not at all.
    pub niceness: u8,
    pub sweep: SweepLimits,
    /// What holds the agent and all it starts together, where it can be had. It ends with the run.
    pub group: Option<Cgroup>,
    pub redactor: Redactor,
    pub fold: FoldOptions,
    /// Where Codex keeps the shell snapshots that are removed after a forced end.
    pub codex_home: Option<PathBuf>,
    /// What checks the agent's work once it has completed.
    pub verify: Option<VerifySpec>,
}

/// A check of the agent's work: a second program under the same supervisor.
#[derive(Debug, Clone)]
pub struct VerifySpec {
    pub plan: VerifyPlan,
    /// It has what the agent left of the hard limit, and at least this.
    pub min_time: Duration,
}

/// The streams that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Events,
    Stderr,
    /// What a check printed, on both of its streams.
    Verify,
}

/// Somebody wants the task ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CancelRequest {
    pub reason: Option<String>,
}

/// What a run needs from outside. All calls come from the one thread of the run and hold it up, so none may take long;
/// nothing here can fail a run.
pub trait Ports {
    /// A new, empty file for a stream, open for reading and writing, for the owner alone. Part 0 is the stream as
    /// others read it. Higher parts hold the end of a stream that is too long, for a while; an existing file of that
    /// name is replaced.
    fn create(&self, stream: Stream, part: u32) -> io::Result<File>;

    /// Removes a part above 0.
    fn remove(&self, stream: Stream, part: u32) -> io::Result<()>;

    /// Whether the task is to be ended. Asked at least once a second and whenever [`Ports::wake_fd`] is readable; takes
    /// away whatever made it so, and never blocks.
    fn cancel_requested(&self) -> Option<CancelRequest>;

    /// Readable when there is something to look at (an epoll descriptor may stand for many).
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The agent lives.
    fn on_started(&self, _agent: &ProcessIdentity) {}

    /// The agent has all of its input, or does not want it. Called once.
    fn on_stdin_delivered(&self) {}

    /// The thread is known. Called once.
    fn on_thread(&self, _thread_id: &str) {}

    /// Something changed; at most once a second. What it says is redacted.
    fn on_snapshot(&self, _snapshot: &Snapshot) {}

    /// A limit is near.
    fn on_warning(&self, _warning: LimitWarning) {}

    /// The agent and all it left are gone, and what checks its work comes next: the last moment at which everything is
    /// as the agent left it. Nothing of the task runs meanwhile, so this may take a while.
    fn before_verification(&self, _report: &Report) {}

    /// Half a minute has passed; others may need looking after.
    fn periodic_upkeep(&self) {}

    /// Which task a process below us belongs to. One of another task is neither counted nor ended.
    fn owner_of(&self, _pid: i32) -> Owner {
        Owner::ThisTask
    }
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    pub thread_id: Option<String>,
    pub turn: TurnState,
    pub progress: Option<Progress>,
    pub current_activity: Option<String>,
    pub plan: Vec<PlanStep>,
    pub usage: Option<UsageReport>,
    /// Lines on standard output.
    pub events: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub elapsed_ms: u64,
    /// Since the last sign of work.
    pub quiet_ms: u64,
    /// Living processes of the task, when last counted.
    pub processes: usize,
}

/// A stream, counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StreamSummary {
    /// Bytes the agent wrote.
    pub received: u64,
    /// Bytes in the file.
    pub stored: u64,
    /// Whether less was stored than there was.
    pub truncated: bool,
    /// Why storing stopped.
    pub problem: Option<String>,
}

/// What there is to show whatever the end. Redacted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PartialOutput {
    /// At most 50.
    pub last_events: Vec<RecentLine>,
    /// At most 64 KiB of standard output.
    pub last_output: String,
    /// At most 64 KiB of standard error.
    pub last_stderr: String,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Redacted.
    pub end: TaskEnd,
    /// Nothing if it never started, or could not be killed.
    pub exit: Option<ExitStatus>,
    pub thread_id: Option<String>,
    /// As the agent told it: not redacted, for deciding only.
    pub report: Report,
    /// The same as JSON, redacted: for keeping.
    pub report_json: String,
    /// Redacted.
    pub refused: RefusedCalls,
    /// Odd things that are no failure: survivors, what could not be stored. Redacted.
    pub warnings: Vec<String>,
    pub partial: PartialOutput,
    pub stdout: StreamSummary,
    pub stderr: StreamSummary,
    /// What was sent to end it; empty when it ended by itself.
    pub signals: Vec<EndSignal>,
    pub sweep: SweepReport,
    /// From the start of the agent to its end.
    pub elapsed: Duration,
    /// How long it had been quiet then.
    pub quiet: Duration,
    /// Whether all of the input was taken.
    pub stdin_delivered: bool,
    /// What became of the check; nothing if none was asked for, or none was begun because the agent did not complete.
    pub verification: Option<VerificationResult>,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationResult {
    pub outcome: Verification,
    /// What the outcome does not say. Redacted.
    pub detail: Option<String>,
    pub exit: Option<ExitStatus>,
    pub elapsed: Duration,
    pub output: StreamSummary,
    /// At most 64 KiB of what it printed. Redacted.
    pub last_output: String,
}
