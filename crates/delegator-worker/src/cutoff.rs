//! Stops the agents of a worker that has no contact with the database, before its lease can end.
//!
//! A thread of its own watches the time since the last successful heartbeat was sent: it must not depend on
//! calls that wait for the database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

use crate::attempt_control::Stop;
use crate::port::WorkerEvent;
use crate::shared::Shared;

const WATCH_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn with_cutoff_watch<'scope, T>(
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

/// Ends the watching thread. After a panic nothing sends heartbeats, so the tasks are left to the next
/// process.
struct CutoffWatch<'a> {
    shared: &'a Shared<'a>,
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

/// Stops all agents when the worker has been without the database for too long, so that they end before the
/// lease does.
fn watch_cutoff(shared: &Shared<'_>, is_over: &AtomicBool) {
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
