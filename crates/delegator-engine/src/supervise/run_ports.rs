//! Connects a run to the registry and the files of its task: the engine's implementation of [`Ports`].
//!
//! Errors in this module never fail a run: they are ignored, and the agent continues. The end of the task
//! reports messages and answers that were not delivered.

use std::cell::{Cell, RefCell};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::budget::{Amounts, BudgetFinding, BudgetScope};
use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::message::{MessageNumber, QueuedMessage};
use delegator_domain::notification::Topic;
use delegator_domain::question::{Answer, Question, QuestionNumber, QuestionState};
use delegator_domain::redact::{Redactor, SecretDigests};
use delegator_domain::task::{TaskEnd, TaskId};
use delegator_registry::{AgentChange, Attempt, Cas, ChangeMark, StoredAnswer, TaskDir, TaskFile};
use delegator_supervisor::process::Owner;
use delegator_supervisor::run::{
    ActionPhase, AgentAction, CancelRequest, ClosedQuestion, LogAction, MessageOutcome, Ports, QuestionEnd,
    RunResult, Snapshot, Stream,
};

use super::evidence::{AgentTimes, EvidenceAndFindings, Observation};
use super::niceness::{processors, supervisor_niceness};
use super::received_signals::EndSignals;
use super::supervisor_log::SupervisorLog;
use crate::Engine;
use crate::shared::connection_pool::PooledConnection;
use crate::shared::estimate::DurationHistory;
use crate::shared::snapshot_file::write_snapshot;
use crate::shared::task_of_process::owner_of;
use crate::shared::worker_contact::{CONTACT_LOST, ContactWatch};
use crate::submit::budget_use::used_by_others;
use crate::submit::launch_file::Launch;
use crate::upkeep::delivery::start_delivery_if_due;
use crate::upkeep::rescue::{is_rescue_due, rescue};

/// Slightly shorter than the 30 s interval of a single supervisor, so that one supervisor covers all of them.
const UPKEEP_INTERVAL_MS: i64 = 25_000;

const EVENT_TIME_INTERVAL_MS: i64 = 1_000;

pub(crate) struct TaskPorts {
    pub(crate) registry: RefCell<PooledConnection>,
    pub(crate) id: TaskId,
    pub(crate) attempt: Attempt,
    pub(crate) dir: TaskDir,
    pub(crate) socket: Option<UnixDatagram>,
    pub(crate) signals: EndSignals,
    /// Set for a task of the fleet.
    pub(crate) contact: Option<ContactWatch>,
    pub(crate) engine: Engine,
    /// The change mark of the registry when the row was last read.
    pub(crate) last_read_mark: Cell<Option<ChangeMark>>,
    pub(crate) dialogue: UserDialogue,
    pub(crate) log: SupervisorLog,
    /// The state of the files before the agent started; taken by [`TaskPorts::observe_changes`].
    pub(crate) observation: RefCell<Option<Observation>>,
    pub(crate) redactor: Redactor,
    pub(crate) times: RefCell<AgentTimes>,
    /// When the last time of an event was recorded.
    pub(crate) event_time_ms: Cell<i64>,
    /// What changed until the agent and its processes were gone.
    pub(crate) observed: RefCell<Option<EvidenceAndFindings>>,
}

/// Messages and questions of the task. The supervision loop asks for messages and answers after every line of
/// the agent, so the registry is read only if it has changed since the last read found nothing.
#[derive(Debug, Default)]
pub(crate) struct UserDialogue {
    /// The change mark at which there was no message for the running turn.
    no_message_now: Cell<Option<ChangeMark>>,
    /// The change mark at which there was no message at all.
    no_message: Cell<Option<ChangeMark>>,
    no_answer: Cell<Option<ChangeMark>>,
    unanswered: RefCell<Vec<Unanswered>>,
}

#[derive(Debug)]
struct Unanswered {
    /// With the ids of its options as the agent knows them.
    question: Question,
    /// Until when the registry keeps it open, as far as the supervisor knows.
    expires_at_ms: i64,
}

pub(super) fn part_path(dir: &TaskDir, file: TaskFile, part: u32) -> PathBuf {
    let path = dir.file(file);
    match part {
        0 => path,
        part => path.with_added_extension(part.to_string()),
    }
}

/// A new, empty, private file. It replaces that of an earlier agent of the task and is not the same file, so that a
/// reader notices it however long the new stream is.
pub(super) fn create_stream(path: &Path) -> io::Result<File> {
    let new = path.with_added_extension("new");
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    fs::rename(&new, path)?;
    Ok(file)
}

impl TaskPorts {
    fn path(&self, stream: Stream, part: u32) -> PathBuf {
        let file = match stream {
            Stream::Events => TaskFile::Events,
            Stream::Stderr => TaskFile::Stderr,
            Stream::Verify => TaskFile::Verify,
        };
        part_path(&self.dir, file, part)
    }

    /// Compares the files with their state before the run, unless that was done already.
    pub(crate) fn observe_changes(&self, result: &RunResult) {
        if let Some(observation) = self.observation.take() {
            let other_writers = || self.registry.borrow().concurrent_writers(&self.id).unwrap_or_default();
            let times = self.times.take();
            self.observed.replace(Some(observation.finish(result, times, other_writers)));
        }
    }

    /// For the diff of the task, which is not stored redacted. If the file cannot be written, the diff is
    /// only redacted by the secrets of its reader.
    fn store_secret_digests(&self) {
        let digests = SecretDigests::new(&self.redactor, self.id.to_string());
        if !digests.is_empty()
            && let Ok(bytes) = serde_json::to_vec(&digests)
        {
            let _ = self.dir.write(TaskFile::SecretDigests, &bytes);
        }
    }

    /// It got a signal, or the worker of a fleet task has lost its fleet.
    pub(crate) fn end_reason(&self) -> Option<String> {
        let is_lost = || self.contact.as_ref().is_some_and(ContactWatch::is_lost);
        self.signals.reason().or_else(|| is_lost().then(|| CONTACT_LOST.to_owned()))
    }

    /// Another agent runs the task; `end` is the end of the one before, if it ran.
    pub(crate) fn record_agent(&self, launch: &Launch, end: Option<&TaskEnd>) {
        let sandbox = launch.agent.sandbox(launch.settings.run.effective_mode());
        let change = AgentChange { agent: &launch.agent.name, sandbox, end };
        let (nonce, now_ms) = (&self.attempt.nonce, self.engine.now_ms());
        let _ = self.registry.borrow_mut().replace_agent(&self.id, nonce, &change, now_ms);
    }

    pub(crate) fn pause_of(&self, agent: &str) -> Option<String> {
        let pauses = self.registry.borrow().agent_pauses(self.engine.now_ms()).ok()?;
        let pause = pauses.into_iter().find(|pause| pause.agent == agent)?;
        Some(format!("it is paused: {}", pause.reason))
    }

    pub(crate) fn own_niceness(&self, agent_niceness: u8) -> u8 {
        let running = self.registry.borrow().running_count().unwrap_or(0);
        supervisor_niceness(agent_niceness, running, processors())
    }

    /// Tells a person about the running task, if its submitter wants that.
    fn notify(&self, topic: Topic, detail: &str) {
        let (nonce, now_ms) = (&self.attempt.nonce, self.engine.now_ms());
        let _ = self.registry.borrow_mut().notify(&self.id, nonce, topic, detail, now_ms);
        self.start_delivery();
    }

    /// If it cannot be started, the next upkeep pass does it.
    fn start_delivery(&self) {
        let _ = start_delivery_if_due(&self.engine, &self.registry.borrow());
    }

    fn drain_socket(&self) {
        let mut byte = [0; 16];
        while self.socket.as_ref().is_some_and(|socket| socket.recv(&mut byte).is_ok()) {}
    }
}

impl Ports for TaskPorts {
    fn now_ms(&self) -> i64 {
        self.engine.now_ms()
    }

    fn create(&self, stream: Stream, part: u32) -> io::Result<File> {
        if stream == Stream::Events && part == 0 {
            let _ = fs::remove_file(self.dir.file(TaskFile::EventTimes));
            self.event_time_ms.set(self.now_ms());
        }
        create_stream(&self.path(stream, part))
    }

    /// The beginning needs none: the task has a time of its start.
    fn record_event_time(&self, stored: u64) {
        let now_ms = self.now_ms();
        if now_ms.saturating_sub(self.event_time_ms.get()) < EVENT_TIME_INTERVAL_MS {
            return;
        }
        self.event_time_ms.set(now_ms);
        let path = self.dir.file(TaskFile::EventTimes);
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{stored} {now_ms}"));
    }

    fn remove(&self, stream: Stream, part: u32) -> io::Result<()> {
        fs::remove_file(self.path(stream, part))
    }

    /// Called every second by every supervisor, so it reads the row only if the registry has changed.
    fn cancel_requested(&self) -> Option<CancelRequest> {
        self.drain_socket();
        if let Some(reason) = self.end_reason() {
            return Some(CancelRequest { reason: Some(reason) });
        }
        let registry = self.registry.borrow();
        let mark = registry.change_mark().ok();
        if mark.is_some() && self.last_read_mark.get() == mark {
            return None;
        }
        let cancel = registry.cancel_request(&self.id).ok()?;
        // A request stays in effect: it also ends the verify command that runs after the agent.
        self.last_read_mark.set(mark.filter(|_| cancel.is_none()));
        cancel.map(|request| CancelRequest { reason: request.reason })
    }

    fn next_message(&self, now_only: bool) -> Option<QueuedMessage> {
        let UserDialogue { no_message_now, no_message, .. } = &self.dialogue;
        let none_at = if now_only { no_message_now } else { no_message };
        let mut registry = self.registry.borrow_mut();
        let mark = registry.change_mark().ok();
        if mark.is_some() && none_at.get() == mark {
            return None;
        }
        let taken = registry.take_next_message(&self.id, &self.attempt.nonce, now_only, self.engine.now_ms());
        none_at.set(mark.filter(|_| matches!(taken, Ok(None))));
        taken.ok().flatten()
    }

    fn on_message_settled(&self, message: MessageNumber, outcome: MessageOutcome) {
        let refusal = match &outcome {
            MessageOutcome::Accepted => None,
            MessageOutcome::Refused { reason } => Some(reason.as_str()),
        };
        let (nonce, now_ms) = (&self.attempt.nonce, self.engine.now_ms());
        let _ = self.registry.borrow_mut().settle_message(&self.id, nonce, message, refusal, now_ms);
    }

    fn on_question(&self, question: &Question, expires_ms: i64) {
        let (nonce, now_ms) = (&self.attempt.nonce, self.engine.now_ms());
        let _ = self.registry.borrow_mut().ask(&self.id, nonce, &question.revealed(), expires_ms, now_ms);
        let unanswered = Unanswered { question: question.clone(), expires_at_ms: expires_ms };
        self.dialogue.unanswered.borrow_mut().push(unanswered);
        self.start_delivery();
    }

    fn on_budget_near(&self, finding: &BudgetFinding) {
        self.notify(Topic::Budget, &format!("{finding}\nThe task ends when all of it is used."));
    }

    fn on_silence(&self, quiet: Duration, limit: Duration) {
        let [quiet, limit] = [quiet, limit].map(|time| time.as_secs());
        let detail = format!("no activity for {quiet} s\nWithout any, the task is stopped after {limit} s.");
        self.notify(Topic::Stuck, &detail);
    }

    fn close_question(&self, number: QuestionNumber, reason: QuestionEnd) -> ClosedQuestion {
        let mut unanswered = self.dialogue.unanswered.borrow_mut();
        let known = unanswered.iter_mut().find(|known| known.question.number == number);
        let (nonce, now_ms) = (&self.attempt.nonce, self.engine.now_ms());
        let mut registry = self.registry.borrow_mut();
        let closed = match reason {
            QuestionEnd::Expired => {
                let until_ms = known.as_ref().map_or(i64::MAX, |known| known.expires_at_ms);
                registry.expire_question(&self.id, nonce, number, until_ms, now_ms)
            }
            QuestionEnd::Withdrawn => {
                registry.close_question(&self.id, nonce, number, QuestionState::Withdrawn, now_ms)
            }
        };
        // An agent that withdrew its question takes no answer.
        if matches!(closed, Ok(Cas::Lost(_)))
            && reason == QuestionEnd::Expired
            && let (Ok(Some(found)), Some(known)) = (registry.question(&self.id, number), known)
        {
            match found.state {
                QuestionState::Answered => return ClosedQuestion::Answered,
                QuestionState::Open if found.expires_at_ms > known.expires_at_ms => {
                    let by_ms = found.expires_at_ms.abs_diff(known.expires_at_ms);
                    known.expires_at_ms = found.expires_at_ms;
                    return ClosedQuestion::Prolonged(Duration::from_millis(by_ms));
                }
                _ => {}
            }
        }
        unanswered.retain(|known| known.question.number != number);
        ClosedQuestion::Unanswered
    }

    fn answers(&self) -> Vec<(QuestionNumber, Answer)> {
        let mut unanswered = self.dialogue.unanswered.borrow_mut();
        let mut registry = self.registry.borrow_mut();
        let mark = registry.change_mark().ok();
        if unanswered.is_empty() || (mark.is_some() && self.dialogue.no_answer.get() == mark) {
            return Vec::new();
        }
        let numbers: Vec<QuestionNumber> = unanswered.iter().map(|known| known.question.number).collect();
        let Ok(taken) = registry.take_answers(&self.id, &numbers) else { return Vec::new() };
        self.dialogue.no_answer.set(mark);
        let mut answers = Vec::new();
        for (number, StoredAnswer { option, text }) in taken {
            let Some(index) = unanswered.iter().position(|known| known.question.number == number) else {
                continue;
            };
            let Unanswered { question, .. } = unanswered.swap_remove(index);
            let option = option.and_then(|position| question.options.into_iter().nth(position));
            answers.push((number, Answer { option: option.map(|option| option.id), text }));
        }
        answers
    }

    fn on_log(&self, action: LogAction) {
        self.log.append(&self.dir, action, self.engine.now_ms());
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    fn on_stdin_delivered(&self) {
        crash_point(CrashPoint::StdinDelivered);
        self.store_secret_digests();
        let _ = self.dir.remove_launch();
        crash_point(CrashPoint::LaunchRemoved);
    }

    /// Changes by the verify command must not count as changes by the agent.
    fn before_verification(&self, result: &RunResult) {
        self.observe_changes(result);
    }

    /// One supervisor makes the pass for all. A rescue on another thread does not delay the run.
    fn periodic_upkeep(&self) {
        let turn =
            self.registry.borrow_mut().claim_periodic_job("rounds", UPKEEP_INTERVAL_MS, self.engine.now_ms());
        if *turn.as_ref().unwrap_or(&false) {
            let _ = self.registry.borrow_mut().remove_dead_submits();
        }
        if turn.unwrap_or(false) && is_rescue_due(&self.engine, &self.registry.borrow()).unwrap_or(false) {
            let engine = self.engine.clone();
            let _ = self.engine.system.run_in_background("rescue", Box::new(move || rescue(&engine)));
        }
    }

    fn used_by_others(&self, scope: &BudgetScope) -> Amounts {
        used_by_others(&self.engine, &self.registry.borrow(), Some(&self.id), scope).unwrap_or_default()
    }

    /// Without it only the estimated progress is missing.
    fn typical_duration(&self) -> Option<Duration> {
        DurationHistory::typical(&self.registry.borrow(), &self.id).ok().flatten()
    }

    fn owner_of(&self, pid: i32) -> Owner {
        owner_of(&self.registry.borrow(), &self.id, pid)
    }

    fn on_thread(&self, thread_id: &str) {
        let (nonce, now_ms) = (&self.attempt.nonce, self.engine.now_ms());
        let _ = self.registry.borrow_mut().set_thread(&self.id, nonce, thread_id, now_ms);
        self.dir.announce_change();
    }

    fn on_action(&self, item: &str, action: AgentAction, phase: ActionPhase, after_ms: i64) {
        let mut times = self.times.borrow_mut();
        let times = match action {
            AgentAction::Command => &mut times.commands,
            AgentAction::Patch => &mut times.patches,
        };
        times.record(item, phase, after_ms, self.engine.now_ms());
    }

    fn on_snapshot(&self, snapshot: &Snapshot) {
        write_snapshot(&self.dir, snapshot);
        crash_point(CrashPoint::SnapshotWritten);
    }
}
