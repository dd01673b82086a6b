//! What the threads of a worker share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use delegator_engine::{BootInstant, Engine, WorkerContact, record_contact};
use delegator_fleet::{Database, FleetClaim, FleetError};

use crate::attempt_control::{AttemptControl, Stop};
use crate::decisions::{AttemptKey, back_off, key_of};
use crate::port::{StopSignals, WorkerEvent, WorkerPort, WorkerSettings};
use crate::workspace::{SetupLocks, Workspace};

/// How often the worker looks for signals and free slots while it waits.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How soon a pause ends after a signal.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct WorkerState<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) database: &'a Database,
    pub(crate) port: &'a dyn WorkerPort,
    pub(crate) settings: &'a WorkerSettings,
    pub(crate) workspace: &'a Workspace,
    pub(crate) signals: &'a StopSignals,
    pub(crate) setups: Arc<SetupLocks>,
    attempts: Mutex<BTreeMap<AttemptKey, Arc<AttemptControl>>>,
    attempt_ended: Condvar,
    ended_attempts: AtomicU64,
    /// When the last successful heartbeat was sent.
    last_heartbeat: Mutex<BootInstant>,
}

impl<'a> WorkerState<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        database: &'a Database,
        port: &'a dyn WorkerPort,
        settings: &'a WorkerSettings,
        workspace: &'a Workspace,
        signals: &'a StopSignals,
    ) -> WorkerState<'a> {
        WorkerState {
            engine,
            database,
            port,
            settings,
            workspace,
            signals,
            setups: Arc::default(),
            attempts: Mutex::default(),
            attempt_ended: Condvar::new(),
            ended_attempts: AtomicU64::new(0),
            last_heartbeat: Mutex::new(BootInstant::now()),
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        let since_1970 = u64::try_from(self.engine.now_ms()).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::from_millis(since_1970)
    }

    pub(crate) fn report(&self, event: &WorkerEvent) {
        self.port.report(event);
    }

    pub(crate) fn report_problem(&self, message: String) {
        self.report(&WorkerEvent::Problem { message });
    }

    /// Adds an attempt; `None` if it is known.
    pub(crate) fn register(
        &self,
        claim: FleetClaim,
        log_name: String,
        is_started: bool,
    ) -> Option<Arc<AttemptControl>> {
        let mut attempts = self.attempts();
        let key = key_of(&claim);
        if attempts.contains_key(&key) {
            return None;
        }
        let control = Arc::new(AttemptControl::new(claim, log_name, is_started));
        attempts.insert(key, Arc::clone(&control));
        Some(control)
    }

    pub(crate) fn stop(&self, key: &AttemptKey, stop: Stop) {
        let control = self.attempts().get(key).cloned();
        if let Some(control) = control {
            control.request(stop);
        }
    }

    pub(crate) fn unregister(&self, claim: &FleetClaim) {
        self.attempts().remove(&key_of(claim));
        self.ended_attempts.fetch_add(1, Ordering::Relaxed);
        self.attempt_ended.notify_all();
    }

    pub(crate) fn ended_attempts(&self) -> u64 {
        self.ended_attempts.load(Ordering::Relaxed)
    }

    pub(crate) fn known(&self) -> BTreeSet<AttemptKey> {
        self.attempts().keys().cloned().collect()
    }

    pub(crate) fn busy(&self) -> usize {
        self.attempts().len()
    }

    /// Stops all attempts; returns whether one of them was not stopping for this reason yet.
    pub(crate) fn stop_all(&self, stop: &Stop) -> bool {
        let attempts: Vec<_> = self.attempts().values().cloned().collect();
        attempts.iter().fold(false, |is_new, control| control.request(stop.clone()) | is_new)
    }

    /// Waits until all attempts have ended, at most this long.
    pub(crate) fn wait_for_attempts(&self, limit: Duration) {
        let attempts = self.attempts();
        let waited = self.attempt_ended.wait_timeout_while(attempts, limit, |attempts| !attempts.is_empty());
        drop(waited);
    }

    pub(crate) fn random_fraction(&self) -> f64 {
        let [first, second, ..] = self.engine.random_bytes().unwrap_or_default();
        f64::from(u16::from_le_bytes([first, second])) / f64::from(u16::MAX)
    }

    pub(crate) fn pause(&self, length: Duration) {
        let (signals, deadline) = (self.signals.count(), Instant::now() + length);
        while self.signals.count() == signals
            && let Some(left) = deadline.checked_duration_since(Instant::now())
        {
            self.engine.sleep(left.min(SIGNAL_INTERVAL));
        }
    }

    /// Ends all waits of the attempts: the worker exits and leaves their tasks to the next process.
    pub(crate) fn abandon_attempts(&self) {
        self.attempts().values().for_each(|control| control.abandon());
    }

    pub(crate) fn heartbeat_succeeded(&self, sent_at: BootInstant) {
        *self.last_heartbeat.lock().unwrap_or_else(PoisonError::into_inner) = sent_at;
        if let Err(error) = record_contact(&self.workspace.contact(), sent_at) {
            self.report_problem(format!("could not write {}: {error}", self.workspace.contact().display()));
        }
    }

    pub(crate) fn contact(&self) -> WorkerContact {
        WorkerContact { file: self.workspace.contact(), limit: self.settings.cutoff }
    }

    pub(crate) fn since_last_heartbeat(&self) -> Duration {
        self.last_heartbeat.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Repeats a call of an attempt until it succeeds. An error means that the task is lost, that the worker
    /// was stopped for good, or that the database will never accept the call; then the next heartbeat gives
    /// the task up.
    pub(crate) fn persist<T>(
        &self,
        control: &AttemptControl,
        mut call: impl FnMut() -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        let (task, mut failures) = (&control.log_name, 0);
        loop {
            match call() {
                Err(error @ (FleetError::Fenced { .. } | FleetError::SessionEnded)) => {
                    control.request(Stop::Lost);
                    return Err(error);
                }
                Err(error) if control.is_lost() || self.signals.is_abandoning() => return Err(error),
                Err(error) if error.is_final() => {
                    self.report_problem(format!("could not report on {task}: {error}"));
                    return Err(error);
                }
                Err(error) => {
                    failures += 1;
                    if failures == 1 && !error.is_transient() {
                        self.report_problem(format!("could not report on {task}: {error}; trying again"));
                    }
                    control.pause(back_off(failures));
                }
                done => return done,
            }
        }
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<AttemptKey, Arc<AttemptControl>>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
