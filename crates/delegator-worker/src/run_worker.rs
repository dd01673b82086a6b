//! The life of a worker: from the first contact with the database over its sessions to the last attempt.
//!
//! A thread of its own stops the agents of a worker that has no contact with the database, before its lease
//! can end: it must not depend on calls that wait for the database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

use delegator_engine::{BootInstant, Engine, git_version};
use delegator_fleet::{Database, FleetError, NewSession, SessionId};

use crate::attempt_control::Stop;
use crate::decisions::back_off;
use crate::local_tasks::{leftovers, remove_leftover};
use crate::port::{StopSignals, WorkerError, WorkerEvent, WorkerPort, WorkerSettings};
use crate::run_attempt::Work;
use crate::session::{SessionEnd, begin_attempt, is_hopeless, run_session};
use crate::setup::clean_interrupted;
use crate::worker_state::{LOOK_INTERVAL, WorkerState};
use crate::workspace::Workspace;

/// Works until the worker is drained. The first signal drains, the second cancels the tasks.
pub fn run_worker(
    engine: &Engine,
    database: &Database,
    port: &dyn WorkerPort,
    settings: &WorkerSettings,
    workspace: &Workspace,
    signals: &StopSignals,
) -> Result<(), WorkerError> {
    // Without git every task would fail.
    git_version(workspace.dir(), &settings.variables)?;
    let shared = &WorkerState::new(engine, database, port, settings, workspace, signals);
    clean_interrupted(shared);
    with_cutoff_watch(shared, &AtomicBool::new(false), |scope| {
        let outcome = run_sessions(shared, scope);
        if outcome.is_err() {
            shared.stop_all(&Stop::Lost);
        }
        while shared.busy() > 0 {
            shared.wait_for_attempts(LOOK_INTERVAL);
        }
        shared.report(&WorkerEvent::Stopped);
        outcome
    })
}

/// A session that the fleet has declared lost is followed by another.
pub(crate) fn run_sessions<'scope>(
    shared: &'scope WorkerState<'scope>,
    scope: &'scope Scope<'scope, '_>,
) -> Result<(), WorkerError> {
    let mut has_worked = false;
    let Some(tables) = until_answered(shared, has_worked, || shared.database.migrate())? else {
        return Ok(());
    };
    if tables.before != tables.after {
        shared.report(&WorkerEvent::Migrated { version: tables.after });
    }
    loop {
        let Some(id) = open_session(shared, scope, has_worked)? else { return Ok(()) };
        has_worked = true;
        if run_session(shared, scope, id)? == SessionEnd::Drained {
            return Ok(());
        }
        shared.report(&WorkerEvent::SessionLost);
        shared.stop_all(&Stop::Lost);
        while shared.busy() > 0 && !shared.signals.is_abandoning() {
            shared.wait_for_attempts(LOOK_INTERVAL);
        }
    }
}

/// Repeats a call until the database answers; `None` if the worker shall stop. A worker that has not worked
/// yet ends with an error that waiting does not change, and one that shall not wait for tasks with any error.
fn until_answered<T>(
    shared: &WorkerState<'_>,
    has_worked: bool,
    mut call: impl FnMut() -> Result<T, FleetError>,
) -> Result<Option<T>, WorkerError> {
    let is_final = |error: &FleetError| {
        if has_worked {
            is_hopeless(shared, error)
        } else {
            !error.is_transient() || shared.settings.exit_when_idle
        }
    };
    let mut failures = 0;
    loop {
        match call() {
            Ok(answer) => {
                if failures > 0 {
                    shared.report(&WorkerEvent::DatabaseBack);
                }
                return Ok(Some(answer));
            }
            Err(error) if is_final(&error) => return Err(error.into()),
            Err(error) => {
                failures += 1;
                if failures == 1 {
                    shared.report(&WorkerEvent::Waiting { message: error.to_string() });
                }
            }
        }
        if shared.signals.is_draining() {
            return Ok(None);
        }
        shared.pause(back_off(failures));
    }
}

/// Opens a session, continues the running tasks of the workspace and stops all others. `None` if the worker
/// shall stop.
fn open_session<'scope>(
    shared: &'scope WorkerState<'scope>,
    scope: &'scope Scope<'scope, '_>,
    has_worked: bool,
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
    let opened = until_answered(shared, has_worked, || {
        let sent_at = BootInstant::now();
        let opened = shared.database.open_session(&session)?;
        shared.heartbeat_succeeded(sent_at);
        Ok(opened)
    })?;
    let Some(opened) = opened else { return Ok(None) };
    // Before anything is claimed: what is in the workspace now belongs to earlier sessions.
    let leftovers = leftovers(shared.workspace, &opened.tasks);
    for task in opened.tasks {
        begin_attempt(shared, scope, task, Work::Resume);
    }
    // Heartbeats do not wait for it.
    scope.spawn(move || leftovers.iter().for_each(|dir| remove_leftover(shared, dir)));
    shared.report(&WorkerEvent::Ready { worker: settings.name.clone(), slots: settings.slots });
    Ok(Some(opened.id))
}

const WATCH_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn with_cutoff_watch<'scope, T>(
    shared: &'scope WorkerState<'scope>,
    is_over: &'scope AtomicBool,
    sessions: impl for<'s> FnOnce(&'s Scope<'s, 'scope>) -> T,
) -> T {
    std::thread::scope(|scope| {
        let _watch = CutoffWatch { shared, is_over };
        scope.spawn(|| watch_cutoff(shared, is_over));
        sessions(scope)
    })
}

/// Ends the watching thread. After a panic nothing sends heartbeats, so the tasks are left to the next
/// process.
struct CutoffWatch<'a> {
    shared: &'a WorkerState<'a>,
    is_over: &'a AtomicBool,
}

impl Drop for CutoffWatch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.signals.abandon();
            self.shared.abandon_attempts();
        }
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn watch_cutoff(shared: &WorkerState<'_>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        if shared.since_last_heartbeat() >= shared.settings.cutoff && shared.stop_all(&Stop::CutOff) {
            shared.report(&WorkerEvent::CutOff { seconds: shared.settings.cutoff.as_secs() });
        }
        if shared.signals.is_abandoning() {
            shared.abandon_attempts();
        }
        shared.engine.sleep(WATCH_INTERVAL);
    }
}
