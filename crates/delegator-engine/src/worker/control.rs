//! The session of a worker: heartbeats, claims, drain, and the cutoff.
//!
//! The session thread sends a heartbeat at its interval and whenever the database hints that something has changed, and
//! claims tasks for free slots. A second thread watches the time since the last successful heartbeat was sent: it must not
//! depend on calls that wait for the database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use delegator_fleet::{
    ClaimedTask, Database, FleetError, Heartbeat, Listener, NewSession, OwnedTask, SessionId,
};

use super::attempt::{Work, remove_checkout, run_attempt};
use super::attempt_control::Stop;
use super::decisions::{AttemptKey, Owned, Reaction, back_off, claim_count, react};
use super::local_tasks::end_local_tasks;
use super::port::{StopSignals, WorkerEvent, WorkerPort, WorkerSettings};
use super::pruning::Pruning;
use super::setup::clean_interrupted;
use super::shared::{Shared, key_of};
use super::workspace::Workspace;
use crate::Engine;
use crate::error::EngineError;
use crate::submit::worker_contact::BootTime;
use crate::upkeep::restore_record::git_version;

/// How often a worker polls for tasks, in case a hint was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Hints cause a heartbeat, but not more often than this.
const HINTED_BEAT_INTERVAL: Duration = Duration::from_millis(500);
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Why a worker could not work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Works until the worker is drained. The first signal drains, the second cancels the tasks.
pub fn run_worker(
    engine: &Engine,
    database: &Database,
    port: &dyn WorkerPort,
    settings: &WorkerSettings,
    (workspace, signals): (&Workspace, &StopSignals),
) -> Result<(), WorkerError> {
    // Without git every task would fail.
    git_version(workspace.dir(), &settings.variables)?;
    let shared = &Shared::new((engine, database), port, settings, workspace, signals);
    clean_interrupted(shared);
    with_cutoff_watch(shared, &AtomicBool::new(false), |scope| {
        let outcome = run_sessions(shared, scope);
        if outcome.is_err() {
            shared.stop_all(&Stop::Lost);
        }
        while shared.busy() > 0 {
            shared.wait_for_attempts(POLL_INTERVAL);
        }
        shared.report(&WorkerEvent::Stopped);
        outcome
    })
}

/// Runs the sessions beside the thread that watches the cutoff.
pub(super) fn with_cutoff_watch<'scope, T>(
    shared: &'scope Shared<'scope>,
    is_over: &'scope AtomicBool,
    sessions: impl for<'s> FnOnce(&'s Scope<'s, 'scope>) -> T,
) -> T {
    std::thread::scope(|scope| {
        let _watch = CutoffWatch { shared, is_over };
        scope.spawn(|| watch_cutoff(shared, is_over));
        sessions(scope)
    })
}

/// Ends the watching thread. After a panic nothing sends heartbeats, so the tasks are left to the next process.
struct CutoffWatch<'a> {
    shared: &'a Shared<'a>,
    is_over: &'a AtomicBool,
}

impl Drop for CutoffWatch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.signals.abandon();
            self.shared.wake_attempts();
        }
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Stops all agents when the worker has been without the database for too long, so that they end before the lease does.
fn watch_cutoff(shared: &Shared<'_>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        if shared.since_last_beat() >= shared.settings.cutoff && shared.stop_all(&Stop::CutOff) {
            shared.report(&WorkerEvent::CutOff { seconds: shared.settings.cutoff.as_secs() });
        }
        if shared.signals.is_abandoning() {
            shared.wake_attempts();
        }
        shared.engine.system.sleep(WATCH_INTERVAL);
    }
}

/// Opens sessions until the worker is drained. A session that the fleet has declared lost is followed by another.
fn run_sessions<'scope>(
    shared: &'scope Shared<'scope>,
    scope: &'scope Scope<'scope, '_>,
) -> Result<(), WorkerError> {
    let mut is_first = true;
    loop {
        let Some(id) = open_session(shared, scope, is_first)? else { return Ok(()) };
        is_first = false;
        if run_session(shared, scope, id)? == SessionEnd::Drained {
            return Ok(());
        }
        shared.report(&WorkerEvent::SessionLost);
        shared.stop_all(&Stop::Lost);
        while shared.busy() > 0 && !shared.signals.is_abandoning() {
            shared.wait_for_attempts(POLL_INTERVAL);
        }
    }
}

/// Works until the session is over.
pub(super) fn run_session<'scope>(
    shared: &'scope Shared<'scope>,
    scope: &'scope Scope<'scope, '_>,
    id: SessionId,
) -> Result<SessionEnd, WorkerError> {
    let session = Session {
        shared,
        scope,
        id,
        is_paused: false,
        is_draining: false,
        next_beat: Instant::now(),
        last_beat: Instant::now(),
        failures: 0,
        pruning: Pruning::default(),
    };
    session.run()
}

/// Opens a session, continues the running tasks of the workspace and stops all others. Only the first session of a process
/// fails if the database is away. `None` if the worker shall stop.
fn open_session<'scope>(
    shared: &'scope Shared<'scope>,
    scope: &'scope Scope<'scope, '_>,
    is_first: bool,
) -> Result<Option<SessionId>, WorkerError> {
    let settings = shared.settings;
    let session = NewSession {
        worker: settings.name.clone(),
        workspace: shared.workspace.id().to_owned(),
        slots: settings.slots,
        labels: settings.labels.clone(),
        version: settings.version.clone(),
        lease: settings.lease,
    };
    let mut failures = 0;
    let opened = loop {
        let sent_at = BootTime::now();
        match shared.database.open_session(&session) {
            Ok(opened) => {
                shared.beat_succeeded(sent_at);
                break opened;
            }
            Err(error) if !is_first && !is_hopeless(shared, &error) => failures += 1,
            Err(error) => return Err(error.into()),
        }
        if shared.signals.is_draining() {
            return Ok(None);
        }
        shared.pause(back_off(failures));
    };
    // Before anything is claimed: what is in the workspace now belongs to earlier sessions.
    let leftovers = leftovers(shared.workspace, &opened.tasks);
    for task in opened.tasks {
        begin(shared, scope, task, Work::Resume);
    }
    // Heartbeats do not wait for it.
    scope.spawn(move || leftovers.iter().for_each(|dir| remove_leftover(shared, dir)));
    shared.report(&WorkerEvent::Ready { worker: settings.name.clone(), slots: settings.slots });
    Ok(Some(opened.id))
}

/// Starts the thread of an attempt.
fn begin<'scope>(
    shared: &'scope Shared<'scope>,
    scope: &'scope Scope<'scope, '_>,
    task: OwnedTask,
    work: Work,
) {
    let log_name = task.spec.log_name(&task.claim.task);
    let Some(control) = shared.register(task.claim, log_name, work != Work::Begin) else { return };
    if let Some(cancel) = task.cancel {
        control.request(Stop::Cancel { reason: cancel.reason });
    }
    let spec = task.spec;
    scope.spawn(move || run_attempt(shared, &control, &spec, work));
}

/// Whether the worker ends with this error. Only an operator can remove its cause, and its tasks were stopped.
fn is_hopeless(shared: &Shared<'_>, error: &FleetError) -> bool {
    !error.is_transient() && shared.since_last_beat() >= shared.settings.cutoff
}

/// The directories of attempts that no longer belong to this worker.
fn leftovers(workspace: &Workspace, owned: &[OwnedTask]) -> Vec<PathBuf> {
    let owned: BTreeSet<_> = owned.iter().map(|task| workspace.attempt(&task.claim)).collect();
    let entries = std::fs::read_dir(workspace.tasks()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| !owned.contains(path)).collect()
}

/// Stops the task of a checkout, and removes it when the task has ended.
pub(super) fn remove_leftover(shared: &Shared<'_>, dir: &Path) {
    if end_local_tasks(shared, dir) {
        remove_checkout(shared, dir);
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SessionEnd {
    Drained,
    /// The fleet has ended it.
    Lost,
}

struct Session<'scope, 'env> {
    shared: &'scope Shared<'scope>,
    scope: &'scope Scope<'scope, 'env>,
    id: SessionId,
    is_paused: bool,
    is_draining: bool,
    next_beat: Instant,
    last_beat: Instant,
    failures: u32,
    pruning: Pruning,
}

impl<'scope> Session<'scope, '_> {
    fn run(mut self) -> Result<SessionEnd, WorkerError> {
        let mut listener = self.shared.database.listener();
        loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(end)) => return Ok(end),
                Err(FleetError::SessionEnded) => return Ok(SessionEnd::Lost),
                Err(error) if is_hopeless(self.shared, &error) => return Err(error.into()),
                Err(error) => self.note_failure(&error),
            }
            self.wait(&mut listener);
        }
    }

    /// Does what is due; an end if the session is over.
    fn step(&mut self) -> Result<Option<SessionEnd>, FleetError> {
        if self.shared.signals.is_abandoning() {
            // The session stays open: the next worker process of the workspace takes its tasks over.
            return Ok(Some(SessionEnd::Drained));
        }
        self.obey_signals();
        if self.is_drained() {
            return Ok(Some(self.close()));
        }
        if Instant::now() >= self.next_beat {
            self.beat()?;
        }
        let shared = self.shared;
        let count = claim_count(shared.settings.slots, shared.busy(), self.is_paused, self.is_draining);
        if count > 0 {
            let claimed = shared.database.claim(&self.id, count)?;
            let is_idle = claimed.is_empty() && shared.busy() == 0;
            for ClaimedTask { claim, spec } in claimed {
                let event =
                    WorkerEvent::Claimed { task: spec.log_name(&claim.task), title: spec.title.clone() };
                shared.report(&event);
                let task = OwnedTask { claim, spec, is_running: false, cancel: None };
                begin(shared, self.scope, task, Work::Begin);
            }
            self.is_draining |= is_idle && shared.settings.exit_when_idle;
        }
        self.note_success();
        Ok(None)
    }

    /// An attempt that ends because of the third signal still has its task, so the signal is checked last.
    fn is_drained(&self) -> bool {
        self.is_draining && self.shared.busy() == 0 && !self.shared.signals.is_abandoning()
    }

    /// A session that cannot be closed has no tasks, and ends with its lease.
    fn close(&self) -> SessionEnd {
        if let Err(error) = self.shared.database.close_session(&self.id) {
            let message = format!("could not close the session: {error}");
            self.shared.report(&WorkerEvent::Problem { message });
        }
        SessionEnd::Drained
    }

    fn obey_signals(&mut self) {
        let signals = self.shared.signals;
        if signals.is_draining() && !self.is_draining {
            self.drain();
        }
        if self.is_draining {
            self.shared.stop_all(&Stop::Release);
        }
        if signals.is_cancelling() {
            self.shared.stop_all(&Stop::Cancel { reason: Some("the worker was stopped".to_owned()) });
        }
    }

    fn drain(&mut self) {
        self.is_draining = true;
        self.shared.report(&WorkerEvent::Draining);
    }

    fn beat(&mut self) -> Result<(), FleetError> {
        let known = self.shared.known();
        let (sent_at, now) = (BootTime::now(), Instant::now());
        let heartbeat = self.shared.database.heartbeat(&self.id)?;
        self.shared.beat_succeeded(sent_at);
        (self.last_beat, self.next_beat) = (now, now + self.shared.settings.beat);
        // After the third signal an attempt without a thread is not given up.
        if !self.shared.signals.is_abandoning() {
            self.obey_heartbeat(&known, heartbeat)?;
            self.pruning.go_on(self.shared);
        }
        Ok(())
    }

    fn obey_heartbeat(
        &mut self,
        known: &BTreeSet<AttemptKey>,
        heartbeat: Heartbeat,
    ) -> Result<(), FleetError> {
        if heartbeat.is_draining && !self.is_draining {
            self.drain();
        }
        if heartbeat.is_paused != self.is_paused {
            self.is_paused = heartbeat.is_paused;
            let event = if self.is_paused { WorkerEvent::Paused } else { WorkerEvent::Unpaused };
            self.shared.report(&event);
        }
        let owned: Vec<Owned> = heartbeat.tasks.iter().map(summary).collect();
        let find = |key: &AttemptKey| heartbeat.tasks.iter().find(|task| key_of(&task.claim) == *key);
        for reaction in react(known, &owned) {
            match &reaction {
                Reaction::Lose(key) => self.shared.stop(key, Stop::Lost),
                Reaction::Cancel(key) => {
                    let cancel = find(key).and_then(|task| task.cancel.clone());
                    self.shared.stop(key, Stop::Cancel { reason: cancel.and_then(|cancel| cancel.reason) });
                }
                Reaction::Begin(key) => match (find(key).cloned(), self.is_draining) {
                    (Some(task), false) => begin(self.shared, self.scope, task, Work::Begin),
                    (Some(task), true) => self.shared.database.release(&task.claim)?,
                    (None, _) => {}
                },
                Reaction::GiveUp(key) => {
                    if let Some(task) = find(key) {
                        begin(self.shared, self.scope, task.clone(), Work::GiveUp);
                    }
                }
            }
        }
        Ok(())
    }

    fn note_failure(&mut self, error: &FleetError) {
        self.failures += 1;
        if self.failures == 1 {
            self.shared.report(&WorkerEvent::DatabaseError { message: error.to_string() });
        }
    }

    fn note_success(&mut self) {
        if self.failures > 0 {
            self.failures = 0;
            self.shared.report(&WorkerEvent::DatabaseBack);
        }
    }

    /// Waits for a hint or for the next poll. A hint also means a heartbeat: a task may have been cancelled.
    fn wait(&mut self, listener: &mut Listener) {
        if self.failures > 0 {
            self.next_beat = Instant::now();
            self.shared.pause(back_off(self.failures));
            return;
        }
        // A draining worker ends with its last attempt, for which there is no hint.
        let limit = if self.is_draining { WATCH_INTERVAL } else { POLL_INTERVAL };
        if listener.wait(limit) {
            self.next_beat = self.next_beat.min(self.last_beat + HINTED_BEAT_INTERVAL);
        }
    }
}

fn summary(task: &OwnedTask) -> Owned {
    Owned { key: key_of(&task.claim), is_running: task.is_running, is_cancelled: task.cancel.is_some() }
}
