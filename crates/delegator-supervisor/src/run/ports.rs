//! The interface of a run: its specification, its callbacks and its result.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use delegator_domain::agents::AgentProtocol;
use delegator_domain::budget::{Amounts, Budget, BudgetFinding, BudgetScope};
use delegator_domain::message::{MessageNumber, QueuedMessage};
use delegator_domain::question::{Answer, Question, QuestionNumber};
use delegator_domain::redact::Redactor;
use delegator_domain::task::{ExitStatus, TaskEnd, TaskId, Verification};
use delegator_transcript::{FoldOptions, PlanStep, PlanSteps, Report, TurnState, UsageReport};
use serde::{Deserialize, Serialize};

use super::limits::{LimitWarning, Limits};
use crate::agent::{LaunchPlan, ShellSnapshots, Variables, VerifyCommand, VerifyPlan};
use crate::enclosure::Enclosure;
use crate::ending::EndSignal;
use crate::process::{Cgroup, Owner, ProcessIdentity, SweepLimits, SweepReport};
use crate::verdict::RefusedCalls;

#[derive(Debug)]
pub struct RunSpec {
    pub task: TaskId,
    pub protocol: AgentProtocol,
    pub plan: LaunchPlan,
    /// The agent's environment, without the variables the plan adds.
    pub environment: Variables,
    /// The validated directory. The agent starts in it even if the path now leads elsewhere.
    pub workdir: OwnedFd,
    /// Encloses the agent and its verification, if they have no sandbox of their own.
    pub enclosure: Option<Enclosure>,
    /// Other validated directories, and the paths passed to the agent. The start is refused if a path leads
    /// to another directory by then.
    pub pinned: Vec<(OwnedFd, PathBuf)>,
    pub umask: u32,
    pub limits: Limits,
    pub max_stream_bytes: u64,
    pub max_processes: usize,
    /// Programs that a sweep does not touch.
    pub sweep_exempt: Vec<String>,
    /// Niceness of the agent; 0 leaves it unchanged.
    pub niceness: u8,
    /// Niceness of the supervisor; 0 leaves it unchanged.
    pub own_niceness: u8,
    pub sweep: SweepLimits,
    /// The cgroup of the agent and its descendants, where one could be created. Removed after the run.
    pub group: Option<Cgroup>,
    pub redactor: Redactor,
    pub fold: FoldOptions,
    pub budgets: Vec<Budget>,
    /// Ask the agent to stop and report shortly before a limit.
    pub salvage: bool,
    /// How long a question of the agent stays open.
    pub answer_timeout: Duration,
    /// Removed after a forced end.
    pub leftovers: Option<ShellSnapshots>,
    pub verify: Option<VerifySpec>,
}

/// A verification of the agent's work: a second program under the same supervisor.
#[derive(Debug, Clone)]
pub struct VerifySpec {
    pub command: VerifyCommand,
    pub plan: VerifyPlan,
    /// Its time limit is what the agent left of the hard limit, but at least this.
    pub min_time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Events,
    Stderr,
    /// Output of a verification: stdout and stderr.
    Verify,
}

/// What an agent does to files by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAction {
    Command,
    Patch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionPhase {
    Started,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CancelRequest {
    pub reason: Option<String>,
}

/// What a run needs from its caller. Every method is called from the run's only thread and blocks it, so none
/// may take long. No method can fail a run.
pub trait Ports {
    /// A new, empty, owner-only file for a stream, open for reading and writing. Part 0 is the stream that
    /// others read. Higher parts temporarily hold the end of a stream that exceeds its limit. An existing
    /// file is replaced.
    fn create(&self, stream: Stream, part: u32) -> io::Result<File>;

    fn remove(&self, stream: Stream, part: u32) -> io::Result<()>;

    /// The wall clock, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// New events are stored from now on, after this many bytes. Called before they are stored.
    fn record_event_time(&self, _stored: u64) {}

    /// Whether the task is to be ended. Called at least once a second and whenever [`Ports::wake_fd`] is
    /// readable; must consume whatever made it readable, and never block.
    fn cancel_requested(&self) -> Option<CancelRequest>;

    /// How long similar tasks took, if enough of them have completed. Called at most once.
    fn typical_duration(&self) -> Option<Duration> {
        None
    }

    /// Readable when [`Ports::cancel_requested`] should be called (an epoll descriptor may combine several
    /// sources).
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn on_started(&self, _agent: &ProcessIdentity) {}

    /// The agent has the prompt, or closed its input. Called once.
    fn on_stdin_delivered(&self) {}

    /// The next message for the agent; with `now_only` the next one that is to be delivered into the running
    /// turn. The caller delivers it at once. It must be recorded as delivered before this returns.
    fn next_message(&self, _now_only: bool) -> Option<QueuedMessage> {
        None
    }

    fn on_message_settled(&self, _message: MessageNumber, _outcome: MessageOutcome) {}

    /// The agent waits for an answer, at most until `expires_ms`. The texts are redacted.
    fn on_question(&self, _question: &Question, _expires_ms: i64) {}

    /// Closes a question that has no answer.
    fn close_question(&self, _question: QuestionNumber, _reason: QuestionEnd) -> ClosedQuestion {
        ClosedQuestion::Unanswered
    }

    /// The answers that were given since the last call. Called as often as [`Ports::cancel_requested`].
    fn answers(&self) -> Vec<(QuestionNumber, Answer)> {
        Vec::new()
    }

    /// A conversing agent has reached a point that is logged.
    fn on_log(&self, _action: LogAction) {}

    /// What the other tasks of a budget have used, running ones included.
    fn used_by_others(&self, _scope: &BudgetScope) -> Amounts {
        Amounts::default()
    }

    /// The agent announced its thread. Called once.
    fn on_thread(&self, _thread_id: &str) {}

    /// The agent reported, not before `after_ms`, that an action started or ended; `item` identifies it.
    fn on_action(&self, _item: &str, _action: AgentAction, _phase: ActionPhase, _after_ms: i64) {}

    /// A budget is used to 80 %. Called for the first one only.
    fn on_budget_near(&self, _finding: &BudgetFinding) {}

    /// There was no activity for half of the idle limit. Called again only after some activity.
    fn on_silence(&self, _quiet: Duration, _limit: Duration) {}

    /// The progress changed; called at most once a second. The texts are redacted.
    fn on_snapshot(&self, _snapshot: &Snapshot) {}

    fn on_warning(&self, _warning: LimitWarning) {}

    /// The agent and its descendants are gone, and the verification comes next: the last moment at which the
    /// files are as the agent left them. Nothing of the task runs meanwhile, so this may take a while.
    fn before_verification(&self, _result: &RunResult) {}

    /// Called every half minute, for maintenance of other tasks.
    fn periodic_upkeep(&self) {}

    /// The task a descendant belongs to. Processes of another task are neither counted nor ended.
    fn owner_of(&self, _pid: i32) -> Owner {
        Owner::ThisTask
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageOutcome {
    Accepted,
    /// Redacted.
    Refused {
        reason: String,
    },
}

/// What is logged about an agent that takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogAction {
    /// No turn runs: the agent waits for a message.
    IdleDetected,
    /// The agent has ended its session.
    DoneDetected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionEnd {
    Expired,
    /// The agent no longer waits for it.
    Withdrawn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedQuestion {
    Unanswered,
    /// An answer came first: [`Ports::answers`] returns it.
    Answered,
    /// It did not expire: it was prolonged by this time.
    Prolonged(Duration),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub thread_id: Option<String>,
    pub turn: TurnState,
    /// Absent if neither a plan nor history tells it.
    pub percent: Option<Percent>,
    pub steps: Option<PlanSteps>,
    pub current_activity: Option<String>,
    /// The last line of the agent's last message.
    #[serde(default)]
    pub last_message: Option<String>,
    pub plan: Vec<PlanStep>,
    pub usage: Option<UsageReport>,
    pub events: u64,
    /// Commands that the agent has run to their end.
    pub commands: u64,
    pub files: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub elapsed_ms: u64,
    pub hard_limit_sec: u64,
    /// `None` if another version of the program wrote the snapshot.
    pub idle_limit_sec: Option<u64>,
    pub quiet_ms: u64,
    /// Living processes of the task at the last count.
    pub processes: usize,
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// How much of a task is done. It never decreases during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percent {
    /// At most 99.
    pub value: u8,
    pub source: PercentSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PercentSource {
    Plan,
    /// An estimate: elapsed time of the typical duration.
    History,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamSummary {
    pub received: u64,
    pub stored: u64,
    /// Whether less was stored than received.
    pub truncated: bool,
    /// Why storing stopped. Not redacted.
    #[serde(skip)]
    pub problem: Option<String>,
}

#[derive(Debug, Clone)]
pub struct RunResult {
    /// Redacted.
    pub end: TaskEnd,
    /// `None` if it never started, or could not be killed.
    pub exit: Option<ExitStatus>,
    /// Not redacted: for decisions only.
    pub report: Report,
    pub redacted_report: Report,
    /// Redacted.
    pub refused: RefusedCalls,
    /// Problems that are no failure, such as survivors and storage errors. Redacted.
    pub warnings: Vec<String>,
    /// At most 64 KiB of standard output. Redacted.
    pub last_output: String,
    /// At most 64 KiB of standard error. Redacted.
    pub last_stderr: String,
    pub stdout: StreamSummary,
    pub stderr: StreamSummary,
    /// The signals that were sent to end it; empty if it exited by itself.
    pub signals: Vec<EndSignal>,
    pub sweep: SweepReport,
    /// From the agent's start to its exit.
    pub elapsed: Duration,
    /// How long it had been idle then.
    pub quiet: Duration,
    /// `None` if no verification was requested, or the agent did not complete.
    pub verification: Option<VerificationResult>,
    /// The agent ended its turn when it was asked to report before a limit.
    pub reported_before_limit: bool,
}

impl RunResult {
    /// The result of a run without output. `end` is redacted.
    pub fn without_output(end: TaskEnd) -> RunResult {
        RunResult {
            end,
            exit: None,
            report: Report::default(),
            redacted_report: Report::default(),
            refused: RefusedCalls::default(),
            warnings: Vec::new(),
            last_output: String::new(),
            last_stderr: String::new(),
            stdout: StreamSummary::default(),
            stderr: StreamSummary::default(),
            signals: Vec::new(),
            sweep: SweepReport::default(),
            elapsed: Duration::ZERO,
            quiet: Duration::ZERO,
            verification: None,
            reported_before_limit: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationResult {
    pub outcome: Verification,
    /// What the outcome does not tell. Redacted.
    pub detail: Option<String>,
    pub exit: Option<ExitStatus>,
    pub elapsed: Duration,
    pub output: StreamSummary,
    /// At most 64 KiB of its output. Redacted.
    pub last_output: String,
}
