//! One session of a worker: heartbeats, claims and drain.
//!
//! The thread of the session sends a heartbeat at its interval and when the database hints at a change of the
//! session, and claims tasks for free slots. It never waits for an attempt.

use std::collections::BTreeSet;
use std::thread::Scope;
use std::time::{Duration, Instant};

use delegator_engine::BootInstant;
use delegator_fleet::{FleetError, Heartbeat, Listener, OwnedTask, SessionId};

use crate::attempt_control::Stop;
use crate::decisions::{AttemptKey, ClaimPace, Reaction, back_off, claim_count, react};
use crate::port::WorkerEvent;
use crate::pruning::Pruning;
use crate::run_attempt::{Work, run_attempt};
use crate::worker_state::{LOOK_INTERVAL, WorkerState};

/// A draining worker ends with its last attempt.
const DRAINING_LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Hints cause a heartbeat, but not more often than this.
const HINTED_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    Drained,
    /// The fleet has ended it.
    Lost,
}

pub(crate) fn run_session<'scope>(
    shared: &'scope WorkerState<'scope>,
    scope: &'scope Scope<'scope, '_>,
    id: SessionId,
) -> Result<SessionEnd, FleetError> {
    let session = Session {
        shared,
        scope,
        listener: shared.database.listener(&id, shared.settings.heartbeat_interval),
        id,
        is_paused: false,
        is_draining: false,
        next_heartbeat: Instant::now(),
        last_heartbeat: Instant::now(),
        claims: ClaimPace::default(),
        ended_attempts: shared.ended_attempts(),
        failures: 0,
        pruning: Pruning::default(),
    };
    session.run()
}

pub(crate) fn begin_attempt<'scope>(
    shared: &'scope WorkerState<'scope>,
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

/// Whether the worker exits with this error: waiting does not remove its cause, and the cutoff has stopped
/// all tasks.
pub(crate) fn is_hopeless(shared: &WorkerState<'_>, error: &FleetError) -> bool {
    !error.is_transient() && shared.since_last_heartbeat() >= shared.settings.cutoff
}

struct Session<'scope, 'env> {
    shared: &'scope WorkerState<'scope>,
    scope: &'scope Scope<'scope, 'env>,
    id: SessionId,
    listener: Listener,
    is_paused: bool,
    is_draining: bool,
    next_heartbeat: Instant,
    last_heartbeat: Instant,
    claims: ClaimPace,
    /// How many attempts had ended before the last claim.
    ended_attempts: u64,
    failures: u32,
    pruning: Pruning,
}

impl<'scope> Session<'scope, '_> {
    fn run(mut self) -> Result<SessionEnd, FleetError> {
        loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(end)) => return Ok(end),
                Err(FleetError::SessionEnded) => return Ok(SessionEnd::Lost),
                Err(error) if is_hopeless(self.shared, &error) => return Err(error),
                Err(error) => self.note_failure(&error),
            }
            self.wait();
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
        if Instant::now() >= self.next_heartbeat {
            self.send_heartbeat()?;
        }
        if self.shared.ended_attempts() != self.ended_attempts {
            self.claims.claim_now();
        }
        if self.next_claim_in() == Some(Duration::ZERO) {
            self.claim()?;
        }
        self.note_success();
        Ok(None)
    }

    fn claim_count(&self) -> u32 {
        claim_count(self.shared.settings.slots, self.shared.busy(), self.is_paused, self.is_draining)
    }

    /// `None` while the worker may not claim, or has no free slot.
    fn next_claim_in(&self) -> Option<Duration> {
        let is_possible = self.claim_count() > 0;
        is_possible.then(|| self.claims.due_in(Instant::now(), self.listener.is_connected()))
    }

    fn claim(&mut self) -> Result<(), FleetError> {
        let shared = self.shared;
        let ended_attempts = shared.ended_attempts();
        let claimed = shared.database.claim(&self.id, self.claim_count())?;
        self.ended_attempts = ended_attempts;
        self.claims.add_claim(Instant::now(), claimed.is_empty(), shared.random_fraction());
        let is_idle = claimed.is_empty() && shared.busy() == 0;
        for task in claimed {
            let log_name = task.spec.log_name(&task.claim.task);
            shared.report(&WorkerEvent::Claimed { task: log_name, title: task.spec.title.clone() });
            begin_attempt(shared, self.scope, task, Work::Begin);
        }
        self.is_draining |= is_idle && shared.settings.exit_when_idle;
        Ok(())
    }

    /// An attempt that ends because of the third signal still has its task, so the signal is checked last.
    fn is_drained(&self) -> bool {
        self.is_draining && self.shared.busy() == 0 && !self.shared.signals.is_abandoning()
    }

    /// A session that cannot be closed has no tasks, and ends with its lease.
    fn close(&self) -> SessionEnd {
        if let Err(error) = self.shared.database.close_session(&self.id) {
            self.shared.report_problem(format!("could not close the session: {error}"));
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

    fn send_heartbeat(&mut self) -> Result<(), FleetError> {
        let known = self.shared.known();
        let (sent_at, now) = (BootInstant::now(), Instant::now());
        let heartbeat = self.shared.database.heartbeat(&self.id)?;
        self.shared.heartbeat_succeeded(sent_at);
        (self.last_heartbeat, self.next_heartbeat) = (now, now + self.shared.settings.heartbeat_interval);
        // After the third signal an attempt without a thread is not given up.
        if !self.shared.signals.is_abandoning() {
            self.obey_heartbeat(&known, heartbeat)?;
            self.pruning.begin(self.shared);
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
            self.claims.claim_now();
        }
        for reaction in react(known, heartbeat.tasks) {
            match reaction {
                Reaction::Lose(key) => self.shared.stop(&key, Stop::Lost),
                Reaction::Cancel(key, reason) => self.shared.stop(&key, Stop::Cancel { reason }),
                Reaction::Begin(task) if self.is_draining => self.shared.database.release(&task.claim)?,
                Reaction::Begin(task) => begin_attempt(self.shared, self.scope, task, Work::Begin),
                Reaction::GiveUp(task) => begin_attempt(self.shared, self.scope, task, Work::GiveUp),
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

    /// Waits until a hint arrives or something is due.
    fn wait(&mut self) {
        if self.failures > 0 {
            self.next_heartbeat = Instant::now();
            self.shared.pause(back_off(self.failures));
            return;
        }
        let limit = if self.is_draining { DRAINING_LOOK_INTERVAL } else { LOOK_INTERVAL };
        let next_heartbeat_in = self.next_heartbeat.saturating_duration_since(Instant::now());
        let limit = limit.min(next_heartbeat_in).min(self.next_claim_in().unwrap_or(limit));
        let hints = self.listener.wait(limit);
        if hints.queue {
            self.claims.add_hint(Instant::now());
        }
        if hints.session {
            self.next_heartbeat = self.next_heartbeat.min(self.last_heartbeat + HINTED_HEARTBEAT_INTERVAL);
        }
    }
}
